# over-ranks.sh - sourced by tests of several processes, instead of expect.sh.
# Their arguments are BIN EXAMPLES MPI, where MPI (mpi.sh) runs a program in
# processes; they begin in an empty folder.
source "$(dirname "$0")/expect.sh"
# shellcheck disable=SC2034 # What scripts use.
bin=$1 examples=$2 digits=$2/digits data=$2/digits/data mpi=$3
# shellcheck disable=SC2034
digitRows=(--data x=@"$data/train_images.npy" --data
  labels=@"$data/train_labels.npy")
cd "$work" || exit 1
command -v mpirun >/dev/null || { echo 'there is no mpirun'; exit 77; }
[ -e "$bin/../lib/libtandem-mpi.so" ] || { echo 'no libtandem-mpi.so'; exit 77; }

# compile ARTIFACT MODEL [options]: with the optimizer of these tests, and code
# that is made fast.
compile() {
  expect 0 '' "$bin/tandem" compile "$2" -o "$1.tdm" --optimizer=adamw:lr=2e-3 \
    --effort=0 "${@:3}"
}

# over RANKS COMMAND...: runs it in so many processes, or here.
over() {
  local ranks=$1
  shift
  if [ "$ranks" = 1 ]; then
    expect 0 '' "$bin/tandem-run" "$@"
  else
    expect 0 '' "$mpi" "$ranks" 120 "$bin/tandem-run" "$@"
  fi
}

# ended: waits until no rank of this test's folder is left. mpirun ends before
# those that it kills: one may hold its lock, or write, for a while.
ended() {
  local process
  for _ in $(seq 600); do
    for process in /proc/[0-9]*; do
      [[ $(readlink "$process/exe") == */tandem-run* ]] &&
        [ "$(readlink "$process/cwd")" = "$PWD" ] && sleep 0.1 && continue 2
    done
    return
  done
  fail "a rank is still there: $process"
}

# losses LOG: of each step.
losses() { sed -nE 's/.*"loss": ?([-+.e0-9]+|nan).*/\1/p' "$1"; }

# near A B: the losses of two logs are the same within 1e-5 of them.
near() {
  paste <(losses "$1") <(losses "$2") | awk '
    { d = $1 - $2; if (d < 0) d = -d
      if (NF != 2 || $1 == "nan" || $2 == "nan" || d > 1e-5 * $2) bad = 1 }
    END { exit bad || NR == 0 }' ||
    fail "the losses of $1 and $2 differ: $(paste <(losses "$1") <(losses "$2"))"
}

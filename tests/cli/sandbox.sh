#!/bin/bash
# sandbox.sh BIN EXAMPLES - with --sandbox an artifact's code has the files of the
# command line alone, and no network, program or process; all commands go as they do
# without it.
source "$(dirname "$0")/expect.sh"
bin=$1 digits=$2/digits here=$(cd "$(dirname "$0")" && pwd)
cd "$work" || exit 1
mkdir home outs secret
export HOME=$work/home
expect 0 '' "$bin/tandem" compile "$digits/mlp.mlir" -o m.tdm --optimizer=adamw:lr=2e-3 --target=cpu:x86-64-v3
run=$bin/tandem-run
"$run" bench m.tdm --steps=1 --sandbox >said 2>&1
if [ $? -eq 3 ] && grep -Eq 'needs (Landlock|filters)|is there for' said; then
  cat said
  echo 'skipped: this system has no sandbox'
  exit 77
fi

# --- the same bits
data=(--data "x=@$digits/data/train_images.npy" --cast='x=/255' --data "labels=@$digits/data/train_labels.npy" --seed=3)
for how in plain sandbox; do
  option=()
  [ $how = plain ] || option=(--sandbox)
  mkdir $how
  expect 0 '' "$run" train m.tdm "${data[@]}" --steps=20 --save=$how/w.safetensors --save-every=7 --log=$how/l.jsonl \
    --tensorboard=$how/events --plot=$how/p.svg --eval "x=@$digits/data/test_images.npy" \
    --eval "labels=@$digits/data/test_labels.npy" --threads=2 "${option[@]}"
  expect 0 '' "$run" train m.tdm "${data[@]}" --steps=10 --resume=$how/w.safetensors --save=$how/w.safetensors --log=$how/l.jsonl "${option[@]}"
  expect 0 '' "$run" train m.tdm "${data[@]}" --steps=3 --save=$how/i.safetensors.index.json "${option[@]}"
  expect 0 '' "$run" predict m.tdm --params=$how/i.safetensors.index.json --data "x=@$digits/data/test_images.npy" --cast='x=/255' \
    --output=logits=@$how/scores.npz "${option[@]}"
  expect 0 '' "$run" predict m.tdm --params=$how/w.safetensors --data "x=@$digits/data/test_images.npy" --cast='x=/255' --csv "${option[@]}"
  printf '%s\n' "$out" >$how/said
  expect 0 '' "$run" train m.tdm --steps=0 --params=$how/w.safetensors --eval "x=@$digits/data/test_images.npy" --cast='x=/255' \
    --eval "labels=@$digits/data/test_labels.npy" "${option[@]}"
  printf '%s\n' "$out" | sed 's/[0-9.]* s\b//' >>$how/said
  expect 0 'median' "$run" bench m.tdm --steps=5 --kernels "${option[@]}"
done
for file in w.safetensors scores.npz said; do # scores are of the index
  cmp "plain/$file" "sandbox/$file" || fail "$file has other bytes with --sandbox"
done
expect 0 '' "$bin/tandem" train m.tdm "${data[@]}" --steps=1 --save=outs/t.safetensors --sandbox
expect 0 '' "$run" train m.tdm "${data[@]}" --steps=9 --save=outs/k.safetensors --save-every=3 --keep=2 --sandbox
[ -e outs/k-9.safetensors ] && [ -e outs/k-6.safetensors ] || fail "--keep: $(ls outs)"

# --- what it is not for
expect 2 '' "$run" bench m.tdm --sandbox --device=cuda
expect 2 'would let the artifact write all of .*: expected outputs in a folder of their own' \
  "$run" train m.tdm "${data[@]}" --steps=1 --save="$HOME/w.safetensors" --sandbox
expect 2 'would let the artifact write' "$run" train m.tdm "${data[@]}" --steps=1 --save="$work/w.safetensors" --sandbox
account=$(getent passwd "$(id -u)" | cut -d: -f6)
[ ! -d "$account" ] || expect 2 'would let the artifact write' \
  env HOME=/nonexistent "$run" train m.tdm "${data[@]}" --steps=1 --save="$account/tandem-test.safetensors" --sandbox
expect 0 '' "$bin/tandem" compile "$digits/mlp.mlir" -o ranks.tdm --optimizer=sgd:lr=0.1 --mesh=data=2 --parallel=ddp
expect 3 'is for several, which need a network' "$run" bench ranks.tdm --sandbox

# --- an artifact that does something else
command -v python3 >/dev/null || { echo 'skipped from here: no python3'; finish; }
echo secret >secret/s
# attack CODE PATTERN CALL [PATH]: what becomes of it; without a sandbox it is done.
attack() {
  expect 0 '' python3 "$here/hostile.py" m.tdm h.tdm "${@:3}"
  expect "$1" "$2" "$run" run h.tdm --input=x="@zero.npy" --input=labels="@labels.npy" --output=logits=@outs/o.npy --program=evaluate --sandbox
}
open() {
  expect 0 '' python3 "$here/hostile.py" m.tdm h.tdm "$@"
  expect 66 '' "$run" run h.tdm --input=x="@zero.npy" --input=labels="@labels.npy" --output=logits=@outs/o.npy --program=evaluate
}
python3 - <<'END'
def npy(name, descr, shape, size):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + bytes(size))
npy("zero.npy", "<f4", (32, 64), 32 * 64 * 4)
npy("labels.npy", "<i8", (32,), 32 * 8)
END
for call in "read $work/secret/s" "create $work/secret/new" "unlink $work/secret/s" "rename $work/secret/s" "read /etc/passwd" \
  "read /proc/1/environ" "create $HOME/.bashrc"; do
  # shellcheck disable=SC2086
  attack 67 '' $call
  # shellcheck disable=SC2086
  case $call in read\ /proc*) ;; read*) open $call ;; esac
done
cat secret/s >/dev/null || fail 'a file was removed'
# What the command line names is there.
attack 66 '' read "$work/zero.npy"
attack 66 '' create "$work/outs/new"
attack 67 '' create "$work/zero.npy"
for call in socket execve fork kill ptrace io_uring_setup; do
  attack 1 "error: --sandbox: the process ends at system call $call of the artifact's code, which running 'h.tdm' does not need" $call /bin/true
done
attack 1 'system call clone' process
attack 1 'system call chmod' chmod "$work/secret/s"
attack 1 'system call truncate' truncate "$work/zero.npy"
attack 1 'system call openat' empty "$work/zero.npy"
attack 1 'system call openat' owner "$work/outs/owner"
attack 1 'system call fcntl' signals
attack 1 'system call ioctl' typed x
attack 1 'system call prlimit64' prlimit xxxxxxxxxxxxxxxx
# Files that are named to be read are not changed, nor others that are opened for neither.
attack 1 'system call openat' neither "$work/secret/s"
attack 67 '' permissions
attack 1 'system call openat' unnamed "$work/outs"
attack 1 'system call fcntl' lease
attack 1 'system call rt_sigaction' handler xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
# A connection that whoever started the process left open, under a large number.
expect 0 '' python3 "$here/hostile.py" m.tdm h.tdm send abc
for code in 66 67; do
  option=()
  [ $code = 66 ] || option=(--sandbox)
  expect $code '' python3 -c 'import os, socket, sys
ends = socket.socketpair()
os.dup2(ends[0].fileno(), 1500)
os.set_inheritable(ends[1].fileno(), True)
os.execv(sys.argv[1], sys.argv[1:])' "$run" run h.tdm --input=x="@zero.npy" --input=labels="@labels.npy" --output=logits=@outs/o.npy \
    --program=evaluate "${option[@]}"
done
attack 159 '' x32
attack 159 '' int80
open socket
open fork
finish

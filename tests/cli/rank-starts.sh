#!/bin/bash
# rank-starts.sh BIN EXAMPLES MPI - X17: a rank that ends before the ranks are
# connected. The others do not wait for it longer than --timeout or 30 s, and whoever
# knows the reason says it with its number. MPI runs a program in processes.
# shellcheck source=tests/cli/over-ranks.sh
source "$(dirname "$0")/over-ranks.sh"
compile two "$digits/mlp.mlir" --mesh=data=2 --parallel=ddp
cp two.tdm copy.tdm
train=(train two.tdm "${digitRows[@]}" --steps=2 --timeout=3)

# each CODE TEXT COMMAND0... ::: COMMAND1...: the commands of ranks 0 and 1. The
# launcher waits for both: none of them makes it end the other.
each() {
  local code=$1 text=$2 first=()
  shift 2
  while [ "$1" != ::: ]; do
    first+=("$1")
    shift
  done
  shift
  expect "$code" "$text" "$mpi" 1 60 "${first[@]}" : -n 1 "$@"
}
run=$bin/tandem-run
# Nor if the second process has begun when the first one ends.
export OMPI_MCA_orte_allowed_exit_without_sync=1
# Nobody knows why, but all know when to end; processes have 30 s to begin.
each 1 'error: rank 1: MPI has not connected the 2 processes within 30000 ms' \
  "$run" version ::: "$run" "${train[@]}"
# Who has the reason says it.
each 2 "error: rank 1: .*unknown option '--stpes'" \
  "$run" "${train[@]}" ::: "$run" train two.tdm "${digitRows[@]}" --stpes=2
each 1 "error: rank 1: .*'gone.tdm'" \
  "$run" "${train[@]}" ::: "$run" train gone.tdm "${digitRows[@]}" --steps=2
each 1 "error: rank 0: .*'gone.npy'" \
  "$run" train two.tdm --data x=@gone.npy --data labels=@gone.npy --steps=2 \
  ::: "$run" "${train[@]}"
# Ranks of other commands said the bytes that they compare.
each 2 "the ranks do not agree: of the command rank 0 has 'train', and rank 1 has 'predict'" \
  "$run" "${train[@]}" ::: "$run" predict two.tdm --data x=@"$digits/data/train_images.npy" --output logits=@o.npy --timeout=3
finish

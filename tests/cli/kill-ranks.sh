#!/bin/bash
# kill-ranks.sh BIN ROOT - X18: five of the trials of tools/kill-ranks: a rank is
# killed at a random moment, the others end, and the training is resumed; and
# three with products in bf16, where all ranks may be killed.
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
source "$(dirname "$0")/expect.sh"
bin=$1 kill=$2/tools/kill-ranks
command -v mpirun >/dev/null || { echo 'skipped: no mpirun'; exit 77; }
[ -e "$bin/../lib/libtandem-mpi.so" ] || { echo 'no libtandem-mpi.so'; exit 77; }
export TMPDIR=$work
expect 0 '5 kills, 0 wrong' "$kill" --bin="$bin" --kills=5 --from=3
expect 0 '3 kills, 0 wrong' "$kill" --bin="$bin" --kills=3 --from=9 \
  --amp=bf16 --ranks=2 --all=0.4
finish

#!/bin/bash
# faults.sh BIN ROOT - some of the runs of tools/faults: all calls for files and
# threads of a training and of a compilation, a few of its calls for memory,
# and what is left of files after losses of power.
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
source "$(dirname "$0")/expect.sh"
faults="$2/tools/faults --bin=$1 --library=$1/../lib/libfail-at.so"
export TMPDIR=$work
expect 0 ' 0 wrong' $faults --only='^train$' --kind=files --every=2
expect 0 ' 0 wrong' $faults --only='^(train|watched|compile)$' --kind=threads
expect 0 ' 0 wrong' $faults --only='^compile$' --kind=files --every=7
expect 0 ' 0 wrong' $faults --only='^(replace|predict)$' --kind=memory --every=499
expect 0 ' 0 wrong' $faults --kind=power
finish

#!/bin/bash
# random-programs.sh BIN EXAMPLES ROOT - a few random programs over some ninety operations
# agree with the reference.
source "$(dirname "$0")/expect.sh"
command -v python3 >/dev/null || { echo 'skipped: no python3'; exit 77; }
export TMPDIR=$work
expect 0 '^[0-9]+ programs .* 0 wrong' "$3/tools/random-programs" --bin="$1" --programs=8 --seed=7
finish

#!/usr/bin/env bash
# tests/runtime/comm/failing.sh MPI PROGRAM LIBRARY KIND: runs the program in
# three processes, of which one fails; the others say within the limit that they
# found what they expected.
set -euo pipefail
mpi=$1
shift
code=0
output=$("$mpi" 3 60 "$@" 2>&1) || code=$?
echo "$output"
[ "$code" -eq 77 ] && exit 77
for rank in 0 1; do
  grep -q "^rank $rank: ok" <<<"$output"
done

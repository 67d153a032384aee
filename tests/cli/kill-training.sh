#!/bin/bash
# kill-training.sh BIN - a training that is killed at random moments and resumed has
# the losses and the last checkpoint of one that is not (T09); of a compilation that
# is killed the old artifact stays.
source "$(dirname "$0")/expect.sh"
command -v python3 >/dev/null || { echo 'skipped: no python3'; exit 77; }
export TMPDIR=$work
expect 0 '10 kills .* 0 problems' "$(dirname "$0")/../../tools/kill-training" --bin="$1" \
  --kills=10 --longest=0.3
expect 0 '10 kills .* 0 problems' "$(dirname "$0")/../../tools/kill-training" --bin="$1" \
  --kills=10 --longest=0.3 --signals=INT,TERM,HUP
for recipe in sums low scaled eight; do
  expect 0 '6 kills .* 0 problems' "$(dirname "$0")/../../tools/kill-training" \
    --bin="$1" --kills=6 --longest=0.3 --recipe=$recipe
done
expect 0 '4 kills .* 0 problems' "$(dirname "$0")/../../tools/kill-training" --bin="$1" \
  --compile --kills=4 --longest=0.6 --signals=KILL,TERM
finish

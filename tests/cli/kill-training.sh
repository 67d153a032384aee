#!/bin/bash
# kill-training.sh BIN - a training that is killed at random moments and resumed has
# the losses and the last checkpoint of one that is not (T09).
source "$(dirname "$0")/expect.sh"
command -v python3 >/dev/null || { echo 'skipped: no python3'; exit 77; }
export TMPDIR=$work
expect 0 '10 kills .* 0 problems' "$(dirname "$0")/../../tools/kill-training" --bin="$1" \
  --kills=10 --longest=0.3
finish

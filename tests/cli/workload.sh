#!/bin/bash
# workload.sh BIN EXPECTED NAME - a benchmark model's losses and gradient norms
# equal the expected ones (within 1e-4 relative).
source "$(dirname "$0")/expect.sh"
bin=$1 expected=$2 name=$3
cd "$work" || exit 1
expect 0 '' "$bin/tandem-workload" write "$name" -o model.mlir
optimizer=$("$bin/tandem-workload" optimizer "$name")
expect 0 '' "$bin/tandem" compile model.mlir -o model.tdm \
  --optimizer="$optimizer"
expect 0 'numbers compared' "$bin/tandem-workload" check "$name" model.tdm \
  --expected="$expected"
printf '%s\n' "$out"
finish

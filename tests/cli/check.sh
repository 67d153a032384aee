#!/bin/bash
# check.sh BIN EXAMPLES - all gradients of the example models, compiled (f32)
# against the f64 reference and against central differences.
source "$(dirname "$0")/expect.sh"
bin=$1
cd "$work" || exit 1
expect 0 '' "$bin/digits-cnn" cnn.mlir
expect 0 '' "$bin/addition-gpt" gpt.mlir
for model in "$2/digits/mlp.mlir" cnn.mlir gpt.mlir; do
  expect 0 'gradients checked' "$bin/tandem" check "$model"
  printf '%s\n' "$out" | tail -n 1
done
# Numbers that differ: exit code 4.
expect 4 'gradients differ' "$bin/tandem" check "$2/digits/mlp.mlir" \
  --tolerance=1e-12
finish

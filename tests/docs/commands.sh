#!/usr/bin/env bash
# tests/docs/commands.sh PAGE [EXAMPLES]: runs the lines of the ```sh blocks of a guide that
# begin with one of Tandem's programs, in order, in a folder that has a model
# `model.mlir`, and the digits of EXAMPLES as `mlp.mlir`, `x.npy`, `labels.npy`,
# `tx.npy` and `tlabels.npy`, and the page's ```toml block as `run.toml`; each has
# to succeed. A page without one is an error.
set -euo pipefail
page=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/model.mlir" <<'MLIR'
module @model attributes {tandem.phase = "capture"} {
  func.func @graph(
      %x: tensor<8x16xf32> {tandem.role = #tandem.role<input "x">},
      %w: !tandem.ref<16x4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}) {
    %0 = tandem.read %w : !tandem.ref<16x4xf32>
    %1 = tandem.matmul %x, %0 : tensor<8x16xf32>, tensor<16x4xf32> -> tensor<8x4xf32>
    %2 = tandem.tanh %1 : tensor<8x4xf32>
    %3 = tandem.reduce_mean %2 over [0, 1] : tensor<8x4xf32> -> tensor<f32>
    return %3 : tensor<f32>
  }
}
MLIR
if [ $# -gt 1 ]; then
  digits=$2/digits
  cp "$digits/mlp.mlir" "$folder"
  cp "$digits/data/train_images.npy" "$folder/x.npy"
  cp "$digits/data/train_labels.npy" "$folder/labels.npy"
  cp "$digits/data/test_images.npy" "$folder/tx.npy"
  cp "$digits/data/test_labels.npy" "$folder/tlabels.npy"
  # And its file of options.
  sed -n '/^```toml$/,/^```$/p' "$page" | grep -v '^```' >"$folder/run.toml"
fi
count=0
while read -r line; do
  echo "$line"
  (cd "$folder" && eval "$line" >said 2>&1) || { cat "$folder/said"; exit 1; }
  count=$((count + 1))
done < <(awk '
  /^```sh$/ { inside = 1; next }
  /^```$/ { inside = 0 }
  inside && /^tandem(-run)? /' "$page" | sed 's/ # .*//')
[ $count -gt 0 ] || { echo "$page: no commands"; exit 1; }

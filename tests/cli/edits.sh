#!/bin/bash
# edits.sh BIN - edited dumps crashed the compiler or made it run for ever (A9),
# trained to other numbers without a word (A8, A10), and misspelt attributes and
# initial values of a model were ignored (A5, A6).
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem
cd "$work" || exit 1

cat >m.mlir <<'MLIR'
#x = #tandem.role<input "x">
#labels = #tandem.role<input "labels" {high = 4 : i64}>
#w0 = #tandem.role<param "w0" {requires_grad, init = {kind = "uniform", low = -0.2, high = 0.2}}>
#b0 = #tandem.role<param "b0" {requires_grad, init = {kind = "constant", value = 0.0}}>
#w1 = #tandem.role<param "w1" {requires_grad, init = {kind = "uniform", low = -0.2, high = 0.2}}>
#loss = #tandem.role<output "loss">
#logits = #tandem.role<output "logits">
module @m attributes {tandem.phase = "capture"} {
  func.func @graph(%x: tensor<32x16xf32> {tandem.role = #x}, %labels: tensor<32xi64> {tandem.role = #labels},
      %w0: tensor<24x16xf32> {tandem.role = #w0}, %b0: tensor<24xf32> {tandem.role = #b0},
      %w1: tensor<4x24xf32> {tandem.role = #w1})
      -> (tensor<f32> {tandem.role = #loss}, tensor<32x4xf32> {tandem.role = #logits}) {
    %a = tandem.linear %x, %w0, %b0 : (tensor<32x16xf32>, tensor<24x16xf32>, tensor<24xf32>) -> tensor<32x24xf32>
    %h = tandem.relu %a : tensor<32x24xf32>
    %logits = tandem.matmul %h, %w1 {transpose_rhs} : tensor<32x24xf32>, tensor<4x24xf32> -> tensor<32x4xf32>
    %loss = tandem.cross_entropy %logits, %labels : tensor<32x4xf32>, tensor<32xi64> -> tensor<f32>
    return %loss, %logits : tensor<f32>, tensor<32x4xf32>
  }
}
MLIR
"$tandem" compile m.mlir -o m.tdm --target=cpu:x86-64-v3 \
  --optimizer=adamw:lr=1e-2 --dump-phases=dumps || fail 'the model itself'

# refused PATTERN FILE SED: the file, edited, is an error that says PATTERN.
refused() {
  sed -E "$3" "$2" >edited.mlir
  if cmp -s "$2" edited.mlir; then
    fail "nothing was edited: $3 in $2"
    return
  fi
  expect 1 "$1" timeout 60 "$tandem" compile edited.mlir -o edited.tdm
}
# accepted FILE SED: it compiles.
accepted() {
  sed -E "$2" "$1" >edited.mlir
  cmp -s "$1" edited.mlir && fail "nothing was edited: $2 in $1"
  expect 0 '' "$tandem" compile edited.mlir -o edited.tdm
}
for file in dumps/m.0[2-7].*.mlir; do
  expect 0 '' "$tandem" compile "$file" -o same.tdm
  cmp m.tdm same.tdm || fail "$file does not compile to the same"
done
finish

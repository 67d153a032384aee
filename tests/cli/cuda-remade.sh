#!/bin/bash
# cuda-remade.sh BIN EXAMPLES - gelu's gradient in the epilogue of a product
# makes gelu's inner values again and reads none in f32, and adds up its rows;
# trained on the emulated device beside the CPU.
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem
data=$2/digits/data
cd "$work" || exit 1

# Values of 2 MiB in f32, few products, whole tiles.
cat >m.mlir <<'END'
#w0 = #tandem.role<param "w0" {requires_grad, init = {kind = "uniform", low = -0.125, high = 0.125}}>
#b0 = #tandem.role<param "b0" {requires_grad, init = {kind = "constant", value = 0.1}}>
#w1 = #tandem.role<param "w1" {requires_grad, init = {kind = "uniform", low = -0.03, high = 0.03}}>
module @block attributes {tandem.phase = "capture"} {
  func.func @graph(
      %x: tensor<256x64xf32> {tandem.role = #tandem.role<input "x">},
      %labels: tensor<256xi64> {tandem.role = #tandem.role<input "labels" {high = 10 : i64}>},
      %w0: tensor<2048x64xbf16> {tandem.role = #w0},
      %b0: tensor<2048xbf16> {tandem.role = #b0},
      %w1: tensor<10x2048xbf16> {tandem.role = #w1})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}) {
    %h = tandem.cast %x : tensor<256x64xf32> to tensor<256x64xbf16>
    %a = tandem.linear %h, %w0, %b0 : (tensor<256x64xbf16>, tensor<2048x64xbf16>, tensor<2048xbf16>) -> tensor<256x2048xbf16>
    %g = tandem.gelu %a {approximate = "tanh"} : tensor<256x2048xbf16>
    %l = tandem.linear %g, %w1 : (tensor<256x2048xbf16>, tensor<10x2048xbf16>) -> tensor<256x10xbf16>
    %logits = tandem.cast %l : tensor<256x10xbf16> to tensor<256x10xf32>
    %loss = tandem.cross_entropy %logits, %labels : tensor<256x10xf32>, tensor<256xi64> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
END
expect 0 '' "$tandem" compile m.mlir --target=cuda:sm_90a -o cuda-emu.tdm \
  --cubin=no --emulation --optimizer=sgd:lr=0.05
expect 0 '' "$tandem" compile m.mlir -o cpu.tdm --optimizer=sgd:lr=0.05
# No kernel of the step gives or takes the 256 x 2048 numbers in f32; the product
# adds up its rows for the gradient of the bias.
expect 0 '' "$tandem" compile m.mlir --target=cuda:sm_90a --stop-after=plan \
  --optimizer=sgd:lr=0.05 -o plan.mlir
sed -n '/func.func @step/,/func.func @evaluate/p' plan.mlir >step.mlir
[ -s step.mlir ] || fail "expected a program 'step'"
grep -qE '\) -> .*256x2048xbf16' step.mlir || fail "expected kernels in bf16"
grep -qE '^    } .*: \(.*256x2048xf32.*\) -> ' step.mlir &&
  fail "a kernel reads or writes 256x2048xf32"
grep -qE '^    } .*: \(.*\) -> .*256x2048xbf16.*, tensor<4x2048xf32>' step.mlir ||
  fail "expected parts of the bias' gradient beside a product's result"

for device in cpu cuda-emu; do
  expect 0 '' "$tandem" train $device.tdm --device=$device --seed=3 --steps=4 \
    --log=$device.jsonl --data x=@"$data/train_images.npy" \
    --data labels=@"$data/train_labels.npy" --cast='x=/16'
done
for device in cpu cuda-emu; do
  sed -E 's/.*"loss": ([-0-9.e]+).*/\1/' $device.jsonl >$device.losses
done
[ "$(wc -l <cpu.losses)" = 4 ] || fail 'expected 4 losses'
# Both round to 8 bits.
paste cpu.losses cuda-emu.losses | awk '
  { d = $1 - $2; if (d < 0) d = -d
    if (!(d <= 1e-2 * $1)) { print "step " NR ": " $1 ", " $2; bad = 1 } }
  END { exit bad }' || fail 'the losses differ'
finish

#!/bin/bash
# cuda-wgmma.sh BIN EXAMPLES - products of warpgroups from bulk copies through
# the whole path: compiled for sm_90a, with tensor maps in the artifact that the
# runtime encodes, trained on the emulated device beside the CPU.
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem
data=$2/digits/data
cd "$work" || exit 1

# Small products are made so only if the target says it. The first layer is of
# f32 as tf32, the second of bf16.
model() {
  cat <<END
#x = #tandem.role<input "x">
#labels = #tandem.role<input "labels" {high = 10 : i64}>
#w0 = #tandem.role<param "w0" {requires_grad, init = {kind = "uniform", low = -0.0216, high = 0.0216}}>
#w1 = #tandem.role<param "w1" {requires_grad, init = {kind = "uniform", low = -0.153, high = 0.153}}>
#w2 = #tandem.role<param "w2" {requires_grad, init = {kind = "uniform", low = -0.153, high = 0.153}}>
module @layers attributes {tandem.phase = "capture", tandem.target = $1} {
  func.func @graph(
      %x: tensor<32x64xf32> {tandem.role = #x},
      %labels: tensor<32xi64> {tandem.role = #labels},
      %w0: tensor<136x64xf32> {tandem.role = #w0},
      %w1: tensor<128x136xbf16> {tandem.role = #w1},
      %w2: tensor<10x128xf32> {tandem.role = #w2})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}) {
    %a0 = tandem.linear %x, %w0 {precision = "tf32"} : (tensor<32x64xf32>, tensor<136x64xf32>) -> tensor<32x136xf32>
    %r0 = tandem.relu %a0 : tensor<32x136xf32>
    %h0 = tandem.cast %r0 : tensor<32x136xf32> to tensor<32x136xbf16>
    %a1 = tandem.linear %h0, %w1 : (tensor<32x136xbf16>, tensor<128x136xbf16>) -> tensor<32x128xbf16>
    %r1 = tandem.relu %a1 : tensor<32x128xbf16>
    %h1 = tandem.cast %r1 : tensor<32x128xbf16> to tensor<32x128xf32>
    %logits = tandem.linear %h1, %w2 : (tensor<32x128xf32>, tensor<10x128xf32>) -> tensor<32x10xf32>
    %loss = tandem.cross_entropy %logits, %labels : tensor<32x10xf32>, tensor<32xi64> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
END
}
model '#tandem.target<cuda {arch = "sm_90a", products = "wgmma"}>' >cuda-emu.mlir
model '' | sed 's/, tandem.target = }/}/' >cpu.mlir

expect 0 '' "$tandem" compile cuda-emu.mlir -o cuda-emu.tdm --cubin=no \
  --emulation --optimizer=sgd:lr=0.01
expect 0 'f32\.tf32\.tf32' "$tandem" inspect cuda-emu.tdm --ptx
expect 0 'wgmma\.mma_async.*f32\.bf16\.bf16' "$tandem" inspect cuda-emu.tdm --ptx
expect 0 '\.param \.align 64 \.b8 .*\[128\]' "$tandem" inspect cuda-emu.tdm --ptx
# Braces of inline assembly were taken for the end of another kernel.
for kernel in $("$tandem" inspect cuda-emu.tdm --ptx |
  sed -nE 's/^\.visible \.entry (.*)\(/\1/p'); do
  expect 0 '\.entry' "$tandem" inspect cuda-emu.tdm --ptx="$kernel"
  [ "$(grep -c '// begin inline' <<<"$out")" = \
    "$(grep -c '// end inline' <<<"$out")" ] || fail "half the assembly in $kernel"
  awk '/\.entry/ { isIn = 1 } !isIn && /inline asm|wgmma/ { bad = 1 }
    END { exit bad }' <<<"$out" || fail "remains before $kernel"
done
expect 0 '' "$tandem" compile cpu.mlir -o cpu.tdm --optimizer=sgd:lr=0.01
# The same training on both devices; TOLERANCE is a part of the loss.
compare() { # NAME TOLERANCE
  for device in cpu cuda-emu; do
    expect 0 '' "$tandem" train "$1$device.tdm" --device=$device --seed=3 \
      --steps=6 --log=$device.jsonl --data x=@"$data/train_images.npy" \
      --data labels=@"$data/train_labels.npy"
    sed -E 's/.*"loss": ([-0-9.e]+).*/\1/' $device.jsonl >$device.losses
  done
  [ "$(wc -l <cpu.losses)" = 6 ] || fail 'expected 6 losses'
  paste cpu.losses cuda-emu.losses | awk -v tolerance="$2" '
    { d = $1 - $2; if (d < 0) d = -d
      if (!(d <= tolerance * $1)) { print "step " NR ": " $1 ", " $2; bad = 1 } }
    END { exit bad }' || fail "the losses of $1 differ"
}
# Both round to 8 bits, the CPU's first layer not to 11.
compare '' 1e-2

# Gradients of products of f8 values: factors along their lines are turned.
fp8=(--fp8='fc[01].w' --optimizer=sgd:lr=0.01)
sed 's/tandem.phase = "capture"/&, tandem.target = #tandem.target<cuda {arch = "sm_90a", products = "wgmma"}>/' \
  "$2/digits/mlp.mlir" >fp8.mlir
expect 0 '' "$tandem" compile fp8.mlir -o fp8-cuda-emu.tdm --cubin=no \
  --emulation "${fp8[@]}"
expect 0 '' "$tandem" compile "$2/digits/mlp.mlir" -o fp8-cpu.tdm "${fp8[@]}"
expect 0 'wgmma\.mma_async.*f32\.e5m2\.e4m3' "$tandem" inspect fp8-cuda-emu.tdm --ptx
[[ $out == *e4m3.e4m3* ]] || fail 'no forward by warpgroups'
[[ $out == *mma.sync*e5m2* ]] && fail 'a gradient by warps'
expect 0 'permute_[0-9]' "$tandem" inspect fp8-cuda-emu.tdm --kernels
compare fp8- 1e-3

# A map that no driver takes: said when the module is compiled.
expect 0 '' "$tandem" compile cuda-emu.mlir --stop-after=lower -o lowered.mlir
expect 0 '' "$tandem" compile lowered.mlir -o again.tdm --cubin=no
sed 's/strides = \[272\]/strides = [270]/' lowered.mlir \
  >strides.mlir
cmp -s lowered.mlir strides.mlir && fail 'no strides to change'
expect 1 'tensor_maps/0/strides/0: expected 16 to .* got 270' \
  "$tandem" compile strides.mlir -o x.tdm --cubin=no
sed 's/swizzle = 128/swirl = 1/' lowered.mlir >swirl.mlir
expect 1 'duplicate or unknown struct parameter name: swirl' \
  "$tandem" compile swirl.mlir -o x.tdm --cubin=no
[ -e x.tdm ] && fail 'a failed compilation left a file'
finish

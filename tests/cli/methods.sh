#!/bin/bash
# methods.sh BIN EXAMPLES - `inspect --methods`: which method computes each
# kernel, the reasons against the others, and methods asked for in a dump.
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem
cd "$work" || exit 1

cat >model.mlir <<'END'
#x = #tandem.role<input "x">
#w = #tandem.role<param "w" {requires_grad, init = {kind = "uniform", low = -0.1, high = 0.1}}>
#y = #tandem.role<output "y">
module @model attributes {tandem.phase = "capture"} {
  func.func @graph(%x: tensor<2x16x12x12xf32> {tandem.role = #x}, %w: tensor<32x16x5x5xf32> {tandem.role = #w})
      -> (tensor<2x32x8x8xf32> {tandem.role = #y}) {
    %y = tandem.conv2d %x, %w : tensor<2x16x12x12xf32>, tensor<32x16x5x5xf32> -> tensor<2x32x8x8xf32>
    return %y : tensor<2x32x8x8xf32>
  }
}
END

inspect=("$tandem" inspect --methods --target=cpu:x86-64-v4 --inference)
expect 0 '^conv2d 2x16x12x12 32x16x5x5 -> 2x32x8x8$' "${inspect[@]}" model.mlir
for line in '^  a convolution for cpu; 1 in evaluate$' \
  '^  direct +[0-9.]+ +[0-9.]+  chosen$' \
  '^ +rows = [0-9]+, vectors = [0-9]+, block = [0-9]+$' \
  '^  winograd +- +-  impossible: expected taps of 3x3 but got 5x5$' \
  "^  windows +[0-9.]+ +[0-9.]+  not chosen: 'direct' is asked first$"; do
  grep -qE -- "$line" <<<"$out" || fail "no line '$line' in: $out"
done
expect 0 '"kind": "methods"' "${inspect[@]}" model.mlir --json
for field in '"name": "direct"' '"chosen": true' '"scratch_bytes": [1-9]' \
  '"schedule": "rows = [0-9]+' \
  '"against": "expected taps of 3x3 but got 5x5"' '"target": "cpu"' \
  '"programs"'; do
  grep -qE "$field" <<<"$out" || fail "no field $field in: $out"
done
expect 0 '^  simt +[0-9.]+ +[0-9.]+  chosen$' \
  "$tandem" inspect --methods --target=cuda:sm_80 --inference model.mlir
grep -qE 'wgmma .* impossible: expected a target of sm_90a but got sm_80$' \
  <<<"$out" || fail "no reason against wgmma in: $out"

# A dump says which method and which numbers were chosen, and what scratch they
# take. One that asks for another method gets it, or is refused where the model
# has the op; the scratch that it says must be that method's.
"$tandem" compile model.mlir --target=cpu:x86-64-v4 --inference \
  --stop-after=plan -o plan.mlir >/dev/null || fail 'no dump'
grep -q 'schedule = #tandem.schedule<chosen(method = direct, rows = [0-9]*, vectors = [0-9]*, block = [0-9]*)>, scratch_bytes = [1-9]' plan.mlir ||
  fail 'no method in the plan'
sed 's/schedule<chosen(method = direct[^>]*>/schedule<method = pixels>/' plan.mlir >stale.mlir
expect 1 "^model.mlir:7:10: error: expected 'scratch_bytes' to be what the kernel's code takes with its schedule, [0-9]+, but got [0-9]+$" \
  "$tandem" compile stale.mlir -o x.tdm
sed 's/schedule<chosen(method = direct[^>]*>, scratch_bytes = [0-9]* : i64/schedule<method = windows>/' \
  plan.mlir >windows.mlir
expect 0 '^  windows +.*  chosen$' "$tandem" inspect --methods windows.mlir
expect 0 '' "$tandem" compile windows.mlir -o windows.tdm
sed 's/method = windows>/method = winograd>/' windows.mlir >winograd.mlir
expect 0 "^  error: method 'winograd' does not compute this kernel: expected" \
  "$tandem" inspect --methods winograd.mlir
expect 1 "^model.mlir:7:10: error: method 'winograd' does not compute this kernel: expected taps of 3x3 but got 5x5$" \
  "$tandem" compile winograd.mlir -o x.tdm
[ -e x.tdm ] && fail 'a refused method left an artifact'

# A number that is changed where it stands is what the kernel is cut by: here
# the pixels of an item, half of them. One by which the method cannot cut the
# kernel is refused with the one that it would take, and so are one that the
# method does not have and one of another target.
block=$(sed -n 's/.*method = direct.*block = \([0-9]*\)).*/\1/p' plan.mlir)
edited() { # FROM TO: plan.mlir with another schedule, and no scratch
  sed "s/$1/$2/; s/, scratch_bytes = [0-9]* : i64//" plan.mlir
}
edited "block = $block)" "block = $((block / 2)))" >half.mlir
expect 0 '' "$tandem" compile half.mlir --stop-after=lower -o lowered.mlir
grep -qE "schedule = <chosen\(method = direct, .*block = $((block / 2))\)>" \
  lowered.mlir || fail 'the edited number is gone'
[ "$(grep -c "items = 1[,>]" lowered.mlir)" = 0 ] || fail 'it was not cut'
edited "block = $block)" "block = $((block - 1)))" >odd.mlir
expect 1 "^model.mlir:7:10: error: method 'direct' cannot cut this kernel with 'block' = $((block - 1)) and what else its schedule says; it would take [0-9]+$" \
  "$tandem" compile odd.mlir -o x.tdm
edited "block = $block)" "block = $block, ahead = true)" >ahead.mlir
expect 1 "^model.mlir:7:10: error: expected the schedule of method 'direct' to have, for this kernel, 'rows', 'vectors', 'block', but got 'ahead'$" \
  "$tandem" compile ahead.mlir -o x.tdm
edited 'schedule<chosen([^)]*)' 'schedule<stages = 4' >stages.mlir
expect 1 "^model.mlir:7:10: error: 'stages' of a schedule is of CUDA, but the kernel is for a CPU$" \
  "$tandem" compile stages.mlir -o x.tdm

# For another target of the kind the tables are asked again, but a method that
# was asked for stays. What had been chosen for tiles of bf16 was refused where
# there are none.
cat >narrow.mlir <<'END'
#x = #tandem.role<input "x">
#w = #tandem.role<param "w" {requires_grad, init = {kind = "uniform", low = -0.1, high = 0.1}}>
#y = #tandem.role<output "y">
module @narrow attributes {tandem.phase = "capture"} {
  func.func @graph(%x: tensor<128x128xbf16> {tandem.role = #x}, %w: tensor<128x128xbf16> {tandem.role = #w})
      -> (tensor<128x128xbf16> {tandem.role = #y}) {
    %y = tandem.matmul %x, %w : tensor<128x128xbf16>, tensor<128x128xbf16> -> tensor<128x128xbf16>
    return %y : tensor<128x128xbf16>
  }
}
END
expect 0 '' "$tandem" compile narrow.mlir --target=cpu:sapphirerapids \
  --inference --stop-after=plan -o tiles.mlir
grep -q 'method = tiles' tiles.mlir || fail 'no tiles'
expect 0 '' "$tandem" compile tiles.mlir --target=cpu:x86-64-v3 \
  -o from-tiles.tdm
expect 0 '' "$tandem" compile narrow.mlir --target=cpu:x86-64-v3 --inference \
  -o narrow.tdm
cmp narrow.tdm from-tiles.tdm || fail 'a dump of another target is not the same'
expect 0 '' "$tandem" compile windows.mlir --target=cpu:x86-64-v3 \
  --stop-after=plan -o again.mlir
grep -q 'schedule<method = windows, chosen(rows' again.mlir ||
  fail 'the method that was asked for is gone'

# What has no effect.
expect 2 "'--methods'|--methods" "$tandem" inspect windows.tdm --methods
expect 2 '' "$tandem" inspect model.mlir --methods --ptx
"$tandem" compile model.mlir --target=cpu:x86-64-v4 --inference \
  --stop-after=lower -o lower.mlir >/dev/null || fail 'no lowered dump'
expect 2 "cannot stop after 'plan': the module is at 'lower'" "$tandem" inspect --methods lower.mlir
finish

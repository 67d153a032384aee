#!/bin/bash
# corners.sh BIN EXAMPLES - values that were wrong without a word at the ends of types, each
# found by reading: no test had a narrow type, a bool or an unsigned index there.
source "$(dirname "$0")/expect.sh"
bin=$1
cd "$work" || exit 1

# zeros FILE DESCR COUNT BYTES: an .npy of zeros.
zeros() {
  printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' \
    "{'descr': '$2', 'fortran_order': False, 'shape': ($3,), }" >"$1"
  head -c "$4" /dev/zero >>"$1"
}
zeros x.npy '<f4' 65536 262144
zeros i.npy '<i4' 4 16

# Numbers uniform in [low, high) were rounded to high, of which 1 - u has no log.
cat >uniform.json <<'JSON'
{"format": "tandem-graph", "version": 1, "name": "uniform",
 "inputs": [{"name": "x", "type": "f32", "shape": [65536]}],
 "states": [{"name": "s", "type": "i64", "shape": [2], "init": {"kind": "seed"}}],
 "nodes": [{"op": "cast", "inputs": ["x"], "outputs": ["n"], "type": "bf16"},
           {"op": "uniform_like", "inputs": ["n", "s"], "outputs": ["a"]},
           {"op": "uniform_like", "inputs": ["n", "s"], "outputs": ["b"], "attributes": {"low": 1, "high": 2, "draw": 1}},
           {"op": "cast", "inputs": ["a"], "outputs": ["y"], "type": "f32"},
           {"op": "cast", "inputs": ["b"], "outputs": ["z"], "type": "f32"},
           {"op": "constant", "type": "i64", "shape": [2], "value": [0, 1], "outputs": ["step"]},
           {"op": "add", "inputs": ["s", "step"], "outputs": ["next"]},
           {"op": "write", "inputs": ["next", "s"]}],
 "outputs": [{"name": "y", "value": "y"}, {"name": "z", "value": "z"}]}
JSON
expect 0 '' "$bin/tandem" compile uniform.json -o uniform.tdm --inference
expect 0 '"max": 0.99609375' "$bin/tandem-run" run uniform.tdm --json --input=x=@x.npy
expect 0 '"max": 1.9921875' "$bin/tandem-run" run uniform.tdm --json --input=x=@x.npy

# A sum of bools is an or, as `add` of two is, and was an exclusive or.
cat >bools.mlir <<'MLIR'
module @bools {
  func.func public @main(%x: tensor<4xi32>) -> tensor<i32> {
    %c = stablehlo.constant dense<[0, 0, 9, 9]> : tensor<4xi32>
    %d = stablehlo.add %x, %c : tensor<4xi32>
    %limit = stablehlo.constant dense<5> : tensor<4xi32>
    %p = stablehlo.compare LT, %d, %limit : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %false = stablehlo.constant dense<false> : tensor<i1>
    %r = stablehlo.reduce(%p init: %false) applies stablehlo.add across dimensions = [0] : (tensor<4xi1>, tensor<i1>) -> tensor<i1>
    %y = stablehlo.convert %r : (tensor<i1>) -> tensor<i32>
    return %y : tensor<i32>
  }
}
MLIR
expect 0 '' "$bin/tandem" compile bools.mlir -o bools.tdm --inference
expect 0 '"value": 1' "$bin/tandem-run" run bools.tdm --json --input=arg0=@i.npy

# A number of a pad or fill that the type does not hold was cut to its width.
cat >pad.json <<'JSON'
{"format": "tandem-graph", "version": 1, "name": "pad",
 "inputs": [{"name": "x", "type": "i8", "shape": [2]}],
 "nodes": [{"op": "pad", "inputs": ["x"], "outputs": ["y"], "attributes": {"low": [1], "high": [0], "interior": [0], "value": 300}}],
 "outputs": [{"name": "y", "value": "y"}]}
JSON
expect 1 'holds, but got 300' "$bin/tandem" compile pad.json -o pad.tdm --inference
sed -i 's/"op": "pad"/"op": "full_like"/; s/"low": .* "value"/"value"/' pad.json
expect 1 'holds, but got 300' "$bin/tandem" compile pad.json -o pad.tdm --inference

# The gradient of what an unsigned index does not place was NaN.
cat >scatter.mlir <<'MLIR'
module @scatter {
  func.func @graph(%x: tensor<200xf32> {tandem.role = #tandem.role<param "x" {requires_grad, init = {kind = "constant", value = 1.0}}>},
      %u: tensor<3xf32> {tandem.role = #tandem.role<param "u" {requires_grad, init = {kind = "constant", value = 1.0}}>},
      %z: tensor<3xui8> {tandem.role = #tandem.role<input "z">}) -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}) {
    %c = tandem.constant dense<[1, 250, 199]> : tensor<3xui8>
    %i = tandem.bit_or %z, %c : tensor<3xui8>
    %y = tandem.scatter add %x, %i, %u : tensor<200xf32>, tensor<3xui8>, tensor<3xf32> -> tensor<200xf32>
    %s = tandem.mul %y, %y : tensor<200xf32>
    %loss = tandem.reduce_sum %s over [0] : tensor<200xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
MLIR
expect 0 '' "$bin/tandem" check scatter.mlir --optimizer=sgd:lr=0.1

# LLVM crashes on products in tiles that nothing optimizes.
[ "$(uname -m)" != x86_64 ] || expect 0 '' "$bin/tandem" compile "$2/digits/mlp.mlir" -o tiles.tdm \
  --optimizer=sgd:lr=0.1 --amp=bf16 --effort=0 --target=cpu:sapphirerapids --kernel-cache=off
finish

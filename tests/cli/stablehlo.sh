#!/bin/bash
# stablehlo.sh BIN EXAMPLES FIXTURES - modules from JAX as a user meets them:
# what is trained, what is wrong, and everything that is not supported.
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem
fixtures=$3
cd "$work" || exit 1
cp "$fixtures"/{mlp,step}.mlir "$fixtures"/{mlp_exported,step_exported,platforms,others}.bin .

# Arguments that are called params are trained, unless --train says otherwise.
loss=--loss=cross_entropy:result,labels
expect 0 "trains 3 arguments of 64 numbers: 'params\['dense'\]\['bias'\]'" \
  "$tandem" compile mlp.mlir -o m.tdm $loss --optimizer=sgd:lr=0.1
expect 0 "trains 1 arguments of 24 numbers: 'params\['head'\]" \
  "$tandem" compile mlp.mlir -o m.tdm $loss --train=head --force
expect 0 "trains 2 arguments of 40 numbers" \
  "$tandem" compile mlp.mlir -o m.tdm $loss --freeze=head --force
expect 2 "'hed' matches no argument; the arguments are" \
  "$tandem" compile mlp.mlir -o m.tdm $loss --freeze=hed --force
expect 2 "expected the name of a result; the results are 'result'" \
  "$tandem" compile mlp.mlir -o m.tdm --loss=los --force
expect 2 'nothing is trained: --train=REGEX' \
  "$tandem" compile mlp.mlir -o m.tdm $loss --freeze=params --force

# A step that JAX differentiated updates what was donated.
expect 0 '7 arguments are states' "$tandem" compile step.mlir -o s.tdm

# Such a step is trained as it is; the rate is its own. The file of JAX's
# numbers has the arguments' values under other names.
cp "$fixtures"/step.safetensors .
LC_ALL=C sed 's/"in \([a-z]\)/   "\1/g' step.safetensors >init.safetensors
train() {
  "$tandem" train s.tdm --init-from init.safetensors --save t.safetensors \
    --data "x=@step.safetensors:in x" --data "y=@step.safetensors:in y" \
    --no-shuffle --force "$@"
}
expect 0 'loss 0.864173' train --steps 1
grep -q "has no optimizer of Tandem's: a step is its program 'forward'" <<<"$out" ||
  fail "no word of it: $out"
expect 0 '' train --steps 20
grep -qE 'loss 0\.[0-7]' <<<"$out" || fail "does not fall: $out"
expect 0 "params\['w'\]" "$tandem" inspect t.safetensors
expect 2 "brings a whole step of its own" train --steps 1 --lr 0.1
expect 2 "states of program 'forward' have no value" "$tandem" train s.tdm --steps 1 \
  --data "x=@step.safetensors:in x" --data "y=@step.safetensors:in y"

# What exported.serialize() gives has the same names and states.
expect 0 "trains 2 arguments of 40 numbers" \
  "$tandem" compile mlp_exported.bin -o m.tdm $loss --freeze=head --force
grep -q "the derivative of JAX is left out" <<<"$out" || fail "no word: $out"
expect 0 '7 arguments are states' \
  "$tandem" compile step_exported.bin -o s.tdm --force
# For several platforms: what it computes on that of the target.
for target in cpu cuda:sm_90; do
  expect 0 "what it computes on '${target%:*}' is compiled" \
    "$tandem" compile platforms.bin -o p.tdm --target=$target --force
done
expect 0 '' "$tandem" compile platforms.bin -o p.tdm --force
grep -q "on 'cpu' is compiled" <<<"$out" || fail "another platform: $out"
printf 'x\n0.5\n0.5\n' >x.csv
expect 0 '^result +f32 +\[2\] +0.479426 ' "$tandem" run p.tdm --input x=@x.csv:x
expect 3 "exported for the platforms 'tpu', 'cuda', but it is compiled for 'cpu'" \
  "$tandem" compile others.bin -o p.tdm
head -c 3000 mlp_exported.bin >short.bin
expect 1 "expected what 'serialize..' of jax.export gives, but it is not whole" \
  "$tandem" compile short.bin -o p.tdm
cp mlp.mlir text.bin
expect 1 "expected what 'serialize..' of jax.export gives" \
  "$tandem" compile text.bin -o p.tdm
# An artifact may be called .bin, too, but does not replace what is read.
expect 0 "wrote the artifact to 'p.bin'" \
  "$tandem" compile mlp_exported.bin -o p.bin
expect 2 "-o would replace 'mlp_exported.bin', which the model reads" \
  "$tandem" compile mlp_exported.bin -o mlp_exported.bin

# Of crossed bounds the upper one wins, also for what is below both.
cat >crossed.mlir <<'EOF'
module @crossed {
  func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
    %low = stablehlo.constant dense<2.0> : tensor<3xf32>
    %high = stablehlo.constant dense<1.0> : tensor<3xf32>
    %0 = stablehlo.clamp %low, %x, %high : tensor<3xf32>
    return %0 : tensor<3xf32>
  }
}
EOF
expect 0 '' "$tandem" compile crossed.mlir -o crossed.tdm
printf 'x\n0.5\n1.5\n7\n' >x.csv
expect 0 '^result +f32 +\[3\] +1 +1 +1 +0' "$tandem" run crossed.tdm \
  --input arg0=@x.csv:x

# Annotations of sharding are dropped with a word.
cat >sharded.mlir <<'EOF'
module @sharded {
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{replicated}"} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = stablehlo.cosine %0 : tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
EOF
expect 0 'annotations of sharding are left out' "$tandem" compile sharded.mlir \
  -o sharded.tdm

# Those of Shardy, as JAX writes them for a mesh.
cat >shardy.mlir <<'EOF'
module @shardy attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["data"=2, "model"=2]> {stablehlo.mesh = {axes = [{name = "data", size = 2 : i64}]}}
  func.func public @main(%x: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {?}]>}) -> tensor<4x2xf32> {
    %0 = sdy.sharding_constraint %x <@mesh, [{"data"}, {"model":(1)2p1}]> : tensor<4x2xf32>
    %1 = stablehlo.cosine %0 : tensor<4x2xf32>
    return %1 : tensor<4x2xf32>
  }
}
EOF
expect 0 'annotations of sharding are left out' "$tandem" compile shardy.mlir \
  -o shardy.tdm
sed 's/{"data"}, {"model"/{"data"}, {*"model"/' shardy.mlir >wrong.mlir
expect 1 'error: expected' "$tandem" compile wrong.mlir -o w.tdm
# The argument that chooses between platforms is none of the user's.
sed 's/{sdy.sharding = .*]>}/{jax.global_constant = "_platform_index"}/' \
  shardy.mlir >index.mlir
expect 3 "the argument '_platform_index'" "$tandem" compile index.mlir -o i.tdm

# Everything that is not supported, each at its place; exit code 3.
cat >bad.mlir <<'EOF'
module @bad {
  func.func public @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %0 = stablehlo.custom_call @lapack_spotrf_ffi(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %1 = stablehlo.cbrt %0 : tensor<2x3xf32>
    %2 = stablehlo.complex %1, %1 : tensor<2x3xcomplex<f32>>
    %3 = stablehlo.real %2 : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
    return %3 : tensor<2x3xf32>
  }
}
EOF
expect 3 "bad.mlir:3:10: error: unsupported: .*'lapack_spotrf_ffi'" \
  "$tandem" compile bad.mlir -o b.tdm
grep -q "bad.mlir:5:10: error: unsupported: the op 'stablehlo.complex'" \
  <<<"$out" || fail "not all of it: $out"
grep -q "bad.mlir:6:10: error: unsupported: the op 'stablehlo.real'" \
  <<<"$out" || fail "not all of it: $out"

# What is wrong is an error of the file.
sed 's/tensor<5x3xf32> loc(#loc5)/tensor<5x4xf32> loc(#loc5)/' mlp.mlir >wrong.mlir
expect 1 'error: ' "$tandem" compile wrong.mlir -o w.tdm
head -c 700 mlp.mlir >short.mlir
expect 1 'is not a valid module of StableHLO' \
  "$tandem" compile short.mlir -o w.tdm
head -c 700 "$fixtures/loops_portable.mlir" >short.mlir
expect 1 'is not a valid module of StableHLO' \
  "$tandem" compile short.mlir -o w.tdm

finish

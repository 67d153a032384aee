#!/bin/bash
# explain.sh BIN EXAMPLES - `tandem explain`: questions are answered from the
# facts of `inspect --json`; what an artifact does not know it does not say, and
# a name that does not exist comes with one that does. Names are anybody's.
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem
model=$2/digits/mlp.mlir
cd "$work" || exit 1
"$tandem" compile "$model" -o a.tdm --optimizer=adamw:lr=1e-3 2>/dev/null
# has PATTERN... looks for lines in what the last command printed.
has() {
  for line in "$@"; do
    grep -qE -- "$line" <<<"$out" || fail "no line '$line' in the answer: $out"
  done
}

# A value.
expect 0 "'fc1.w' is a value of role param: f32\[128, 128\], 64\.0 KiB; it requires a gradient" \
  "$tandem" explain a.tdm --value=fc1.w
has 'it begins as .*uniform' "in 'forward' 1 launch reads it: 'matmul_add_relu_1'" \
  "in 'backward' its gradient is computed" \
  "in 'step' it gets a new value.*in its own storage"
expect 0 "'loss' is a value of role output" "$tandem" explain a.tdm --value=loss
expect 2 "no value 'fc1.v' \(did you mean 'fc1.w'\?\)" \
  "$tandem" explain a.tdm --value=fc1.v
expect 2 "no value 'zzzzzz'; known are " "$tandem" explain a.tdm --value=zzzzzz

# What is saved, or is not.
expect 0 "'relu.0' is saved for the backward: f32\[32, 128\], 16\.0 KiB" \
  "$tandem" explain a.tdm --why-saved=relu.0
has 'the reason of the partition: the smallest cut goes through it' \
  'the op that makes it is relu at mlp.mlir:34:11; making it again, with all' \
  "the backward reads it in '"
expect 0 "'logits', so it costs no memory" \
  "$tandem" explain a.tdm --why-saved=add.2
expect 0 "'fc0.w' is not saved: it is a value of role param" \
  "$tandem" explain a.tdm --why-saved=fc0.w
expect 0 'exp at mlp.mlir:38:13 is not saved: the backward runs it again' \
  "$tandem" explain a.tdm --why-saved=exp
expect 2 "no saved value 'relu.7' \(did you mean 'relu.0'\?\)" \
  "$tandem" explain a.tdm --why-saved=relu.7
# Of a module by its path: what it saves.
sed -E 's/(%a1 = tandem.linear .*)/\1 loc("fc.1.linear"("m.py":3:1))/
  s/(%h1 = tandem.relu .*)/\1 loc("fc.1.relu"("m.py":4:1))/
  s/(%loss = tandem.cross_entropy .*)/\1 loc("end.entropy"("m.py":5:1))/' \
  "$model" >modules.mlir
expect 0 "in 'fc.1' 1 value is saved for the backward: 16\.0 KiB of 41\.5 KiB, 'relu.1'" \
  "$tandem" explain modules.mlir --why-saved=fc.1
has 'the backward runs none of it again'
expect 0 "in 'end' 2 values are saved .*; the largest first, '" \
  "$tandem" explain modules.mlir --why-saved=end
has 'the backward runs [1-9][0-9]* ops of it again'
expect 0 "exp at m.py:5:1 \('end.entropy'\) is not saved: .*; it is in 'fused_" \
  "$tandem" explain modules.mlir --why-saved=exp
has 'a kernel of the backward is expected to take it in'
expect 2 "no saved value 'fc.7'" "$tandem" explain modules.mlir --why-saved=fc.7
"$tandem" compile "$model" -o i.tdm --inference 2>/dev/null
expect 2 'nothing is saved: there is no backward' \
  "$tandem" explain i.tdm --why-saved=relu.0

# A path with controls is said without them.
sed 's/fc.1.relu/fc.1.\\0Arelu/' modules.mlir >controls.mlir
expect 0 "\('fc\.1\.\?relu'\)" "$tandem" explain controls.mlir \
  --why-saved=relu.1

# A kernel: of an artifact without its place, which is said.
expect 0 'matmul 32x128 128x128 -> 32x128 transpose_rhs' \
  "$tandem" explain a.tdm --kernel=matmul_add_relu_1
has 'fused in it are matmul, broadcast, add, relu' 'is predicted to take' \
  "'forward' launches it 1 time" 'an artifact does not say where'
expect 0 'schedule: .*method = gemm' "$tandem" explain "$model" --kernel=1
has 'mlp.mlir:33:11'
expect 2 "no kernel 'matmul_add_relu_9'" \
  "$tandem" explain a.tdm --kernel=matmul_add_relu_9

# Where time goes.
expect 0 'is predicted to take .*; nothing was measured' \
  "$tandem" explain a.tdm --why-slow
has 'by moving bytes' 'by starting kernels' ' is in [0-9]+ launch(es)? of '

# What the peak is made of, and what halves it: the plan that it speaks of is
# the one that the budget gives.
expect 0 'the planned peak of a step is .*: states .*, parameters ' \
  "$tandem" explain a.tdm --why-large
has "saved for the backward: 40\.2 KiB, which lie in the arena of 'step'" \
  'of a model, compiled for one target in one size'
expect 0 'no memory budget halves it: the least, with --memory-budget=0, is' \
  "$tandem" explain "$model" --optimizer=adamw:lr=1e-3 --why-large
has 'there it is made of states ' 'no budget changes .* of it: parameters'
cat >deep.json <<'JSON'
{"format": "tandem-graph", "version": 1, "name": "deep",
 "inputs": [{"name": "x", "type": "f32", "shape": [512, 16]}],
 "params": [{"name": "w", "type": "f32", "shape": [16, 16], "init": {"kind": "constant", "value": 0.1}}],
 "nodes": [
JSON
before=x
for i in {0..39}; do
  cat >>deep.json <<JSON
  {"op": "matmul", "inputs": ["$before", "w"], "outputs": ["a$i"]},
  {"op": "sin", "inputs": ["a$i"], "outputs": ["b$i"]},
JSON
  before=b$i
done
cat >>deep.json <<JSON
  {"op": "reduce_sum", "inputs": ["$before"], "outputs": ["loss"], "attributes": {"dims": [0, 1]}}],
 "outputs": [{"name": "loss", "value": "loss"}]}
JSON
expect 0 '^--memory-budget=[0-9]+ halves it: .* [KM]iB \(-5.*, predicted to take .* %; the backward runs [1-9]' \
  "$tandem" explain deep.json --optimizer=sgd:lr=0.1 --why-large
budget=$(grep -oE -- '--memory-budget=[0-9]+' <<<"$out")
half=$(grep -oE 'halves it: [0-9.]+ [KM]iB' <<<"$out" | cut -d' ' -f3-)
expect 0 "^peak +$half" "$tandem" inspect deep.json --optimizer=sgd:lr=0.1 \
  "$budget"

# A name may have commas; the ops of a backward are in modules, too.
sed 's/fc\.1\.relu/fc,1,relu/' modules.mlir >commas.mlir
expect 0 "matmul at m\.py:3:1 \('fc\.1\.linear'\) and relu at m\.py:4:1 \('fc,1,relu'\) are in one kernel" \
  "$tandem" explain commas.mlir --why-not-fused=matmul@fc.1.linear,fc,1,relu
has "in 'backward' .* at m\.py:3:1 \('fc\.1\.linear', of the gradient of matmul\)"
expect 0 "and matmul at m\.py:3:1 \('fc\.1\.linear'\) are in one kernel" \
  "$tandem" explain commas.mlir --why-not-fused=fc,1,relu,matmul@fc.1.linear
expect 2 "no op 'fc'" "$tandem" explain commas.mlir --why-not-fused=fc,2,relu
# A target has one name.
"$tandem" explain "$model" --why-not-fused=34:11,35:11 --json >fused.json
"$tandem" explain "$model" --why-slow --json >slow.json
[ "$(grep '"target"' fused.json)" = "$(grep '"target"' slow.json)" ] ||
  fail "the target is '$(grep '"target"' fused.json)'"

# Fusion, asked of its own code.
expect 0 'relu at mlp.mlir:34:11 and matmul at mlp.mlir:35:11 are in two kernels: each has a product, a convolution' \
  "$tandem" explain "$model" --why-not-fused=34:11,matmul@35:11
expect 0 'matmul at mlp.mlir:33:11 and relu at mlp.mlir:34:11 are in one kernel' \
  "$tandem" explain "$model" --why-not-fused=matmul@33:11,34:11
# A cheap op that kernels make again is in those that use it.
expect 0 'relu at mlp.mlir:34:11 and broadcast at mlp.mlir:33:11 are in one kernel' \
  "$tandem" explain "$model" --why-not-fused=relu@34:11,broadcast@33:11
expect 2 "no op '34:1' \(did you mean '.*'\?\)|no op '34:1'; known are" \
  "$tandem" explain "$model" --why-not-fused=34:1,35:11
expect 2 'has no effect on an artifact, whose kernels are formed' \
  "$tandem" explain a.tdm --why-not-fused=34:11,35:11
expect 2 'with two ops, but got' "$tandem" explain "$model" --why-not-fused=a

# As JSON, the same twice; one question at a time.
"$tandem" explain a.tdm --why-slow --json >one.json
"$tandem" explain a.tdm --why-slow --json >two.json
cmp one.json two.json || fail 'two answers differ'
expect 0 '"version": 1,' cat one.json
expect 2 '' "$tandem" explain a.tdm
expect 2 'expected either --value.* but got --kernel and --why-slow' \
  "$tandem" explain a.tdm --why-slow --kernel=1

# What is printed has no controls.
hostile='<\/script><img src=x onerror=alert(1)>'
escape=$'\x1b[31m.mlir'
sed "s/\"fc0\\.w\"/\"$hostile\"/g" "$model" >"$escape"
for question in '--value=</script><img src=x onerror=alert(1)>' --why-slow \
  --why-large --why-saved=relu.0 --kernel=1 --why-not-fused=34:11,35:11; do
  expect 0 '' "$tandem" explain "$escape" "$question"
  ! grep -q $'\x1b' <<<"$out" || fail "$question: a name reaches the terminal"
done
expect 2 '' "$tandem" explain a.tdm --value=$'\x1b[31m'
! grep -q $'\x1b' <<<"$out" || fail 'a question reaches the terminal'
finish

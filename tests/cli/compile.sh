#!/bin/bash
# compile.sh BIN EXAMPLES - the command `tandem compile`, as a user meets it:
# phases, dumps, resuming, equal bytes, and everything that can be wrong.
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem
model=$2/digits/mlp.mlir
cd "$work" || exit 1

# Whole, twice: the same bytes; and with one thread. No code is one another's.
expect 0 '' "$tandem" compile "$model" -o a.tdm --optimizer=adamw:lr=1e-3
expect 0 '' "$tandem" compile "$model" -o b.tdm --optimizer=adamw:lr=1e-3 \
  --kernel-cache=off
expect 0 '' "$tandem" compile "$model" -o c.tdm --optimizer=adamw:lr=1e-3 \
  --kernel-cache=off --threads=1
cmp a.tdm b.tdm || fail 'two compilations differ'
cmp a.tdm c.tdm || fail 'one thread and several give different bytes'

# Phase by phase: a dump of each, and going on from any gives the same bytes.
expect 0 '' "$tandem" compile "$model" -o d.tdm --optimizer=adamw:lr=1e-3 \
  --dump-phases=dumps
names=$(cd dumps && echo *)
[ "$names" = "digits_mlp.01.capture.mlir digits_mlp.02.functionalize.mlir \
digits_mlp.03.joint.mlir digits_mlp.04.optimize.mlir \
digits_mlp.05.partition.mlir digits_mlp.06.plan.mlir \
digits_mlp.07.lower.mlir" ] || fail "dumps are: $names"
for phase in 02.functionalize 03.joint 04.optimize; do
  expect 0 '' "$tandem" compile dumps/digits_mlp.$phase.mlir -o e.tdm \
    --optimizer=adamw:lr=1e-3
  cmp a.tdm e.tdm || fail "resuming from $phase gives other bytes"
done
for phase in 05.partition 06.plan 07.lower; do
  expect 0 '' "$tandem" compile dumps/digits_mlp.$phase.mlir -o e.tdm
  cmp a.tdm e.tdm || fail "resuming from $phase gives other bytes"
done
expect 0 '^module @digits_mlp.*tandem.phase = "joint"' \
  "$tandem" compile "$model" --stop-after=joint
expect 0 '^module @digits_mlp.*winograd = "no"' \
  "$tandem" compile "$model" --stop-after=joint --winograd=no
expect 0 '^emit ' "$tandem" compile "$model" -o f.tdm --time-report
expect 0 '' "$tandem" compile "$model" -o g.tdm --inference
expect 0 'evaluate' "$tandem" inspect g.tdm
expect 0 '"kind": "artifact"' "$tandem" inspect a.tdm --json
grep -q '"programs"' <<<"$out" || fail 'no programs in JSON'
expect 0 'saved' "$tandem" inspect "$model"

# Within a memory budget.
expect 0 '' "$tandem" compile "$model" -o h.tdm --memory-budget=0.5 \
  --optimizer=adamw:lr=1e-3
expect 0 '' "$tandem" compile "$model" -o i.tdm --memory-budget=0.5 \
  --optimizer=adamw:lr=1e-3 --kernel-cache=off
cmp h.tdm i.tdm || fail 'two compilations within a budget differ'

# For another processor: what it needs is what this one reports, or it says so.
expect 0 '' "$tandem" compile "$model" -o v3.tdm --target=cpu:x86-64-v3
if grep -qw avx2 /proc/cpuinfo; then
  expect 0 'median' "$tandem" bench v3.tdm --program=evaluate --steps=2
else
  expect 5 'lacks' "$tandem" bench v3.tdm --program=evaluate --steps=2
fi

# Wrong use.
expect 2 'missing argument MODEL' "$tandem" compile
expect 2 'expected -o' "$tandem" compile "$model"
expect 2 "unknown option '--lost' \(did you mean '--loss'" "$tandem" compile "$model" -o x.tdm --lost=1
expect 2 "'--stop-after' expected capture, .* but got 'jiont' \(did you mean 'joint'" \
  "$tandem" compile "$model" --stop-after=jiont
expect 2 "'--partition' expected min-cut or default" "$tandem" compile "$model" -o x.tdm --partition=x
expect 2 "expected --memory-budget to be a number from 0 to 1, .* but got '1.5'" \
  "$tandem" compile "$model" -o x.tdm --memory-budget=1.5
expect 2 "but got '-0.1'" \
  "$tandem" compile "$model" -o x.tdm --memory-budget=-0.1
expect 2 "but got '6GiBs'; --inference and --memory-budget exclude each other" \
  "$tandem" compile "$model" -o x.tdm --memory-budget=6GiBs --inference
expect 2 '--partition=default and --memory-budget exclude each other' \
  "$tandem" compile "$model" -o x.tdm --memory-budget=0 --partition=default
expect 3 'unsupported --memory-budget=1kB: a step needs at least' \
  "$tandem" compile "$model" -o x.tdm --memory-budget=1kB
expect 2 '--memory-budget has no effect on a module that is past .partition.' \
  "$tandem" compile dumps/digits_mlp.05.partition.mlir -o x.tdm \
  --memory-budget=0.5
expect 2 "'--winograd' expected auto or no but got 'yes'" \
  "$tandem" compile "$model" -o x.tdm --winograd=yes
expect 2 '--winograd=no comes too late for a module at .lower.' \
  "$tandem" compile dumps/digits_mlp.07.lower.mlir -o x.tdm --winograd=no
expect 2 'expected --target' "$tandem" compile "$model" -o x.tdm --target=tpu
expect 2 'for .cuda. to be one of sm_80, .* but got .sm_1.; unknown processor' \
  "$tandem" compile "$model" -o x.tdm --target=cuda:sm_1+cpu:i9000
expect 2 "the architecture 'sm_80' once" \
  "$tandem" compile "$model" -o x.tdm --target=cuda:sm_80+cpu+cuda:sm_80
expect 2 'expected --target to be cpu' \
  "$tandem" compile "$model" -o x.tdm --target=cpu+
expect 2 "unknown processor 'i9000'" \
  "$tandem" compile "$model" -o x.tdm --target=cpu:i9000
expect 2 'exclude each other' \
  "$tandem" compile "$model" -o x.tdm --inference --optimizer=sgd:lr=1
expect 2 "option '--order' expected an integer from 1 to 2" \
  "$tandem" compile "$model" -o x.tdm --order=3
expect 2 '--order exclude each other' \
  "$tandem" compile "$model" -o x.tdm --inference --order=2
expect 2 '--order has no effect' \
  "$tandem" compile dumps/digits_mlp.04.optimize.mlir -o x.tdm --order=2

# Sizes that would be called the same.
mkdir other
sed 's/tensor<32x/tensor<16x/g' "$model" >"other/$(basename "$model")"
expect 2 "--variant=other/mlp.mlir: a size is called as its file, but '.*mlp.mlir' is 'mlp' already" \
  "$tandem" compile "$model" -o x.tdm --variant=other/mlp.mlir
cp other/mlp.mlir sixteen.mlir
cp other/mlp.mlir other/sixteen.mlir
expect 2 "'sixteen.mlir' is 'sixteen' already: expected --variant to be a file of another name" \
  "$tandem" compile "$model" -o x.tdm --variant=sixteen.mlir --variant=other/sixteen.mlir
# "At least 32" was said, where 16 would do, too.
expect 0 '' "$tandem" compile "$model" -o sizes.tdm --optimizer=sgd:lr=0.1 --variant=sixteen.mlir
for i in $(seq 20); do seq -s, 64; done >rows.csv
for i in $(seq 20); do echo 1; done >classes.csv
expect 2 'expected at least 32 rows, one batch, or 16, of which there are sizes, but got 20' \
  "$tandem-run" train sizes.tdm --steps=1 --data x=@rows.csv:header=no --data labels=@classes.csv:header=no
expect 2 "--variant=batch=1,batch=2: expected one size of 'batch' but got two" \
  "$tandem" compile "$2/onnx/digits.onnx" -o x.tdm --variant=batch=1,batch=2
expect 2 "--dim=batch=7 has no effect: every --variant has a size of 'batch'" \
  "$tandem" compile "$2/onnx/digits.onnx" -o x.tdm --dim=batch=7 \
  --variant=batch=2 --variant=batch=3
expect 2 '--fast-math and --stop-after=capture exclude each other|--stop-after=capture and --fast-math exclude each other' \
  "$tandem" compile "$model" --fast-math --stop-after=capture
expect 2 '--variant=batch=1 is given twice' "$tandem" compile "$2/onnx/digits.onnx" \
  -o x.tdm --variant=batch=1 --variant=batch=1

# Code for several processors: each variant has a plan of its own, and the one
# that uses most of this processor is chosen.
if [ "$(uname -m)" = x86_64 ]; then
  expect 0 '' "$tandem" compile "$model" -o v.tdm \
    --target=cpu:x86-64+x86-64-v2 --dump-phases=dumps --inference
  [ -f dumps/digits_mlp.06.plan.cpu-x86-64-v2.mlir ] ||
    fail 'the dumps of variants have their names'
  expect 0 'for cpu x86-64 and cpu x86-64-v2' "$tandem" inspect v.tdm
  expect 0 '^object.cpu.2' "$tandem" inspect v.tdm
  for variant in '' x86-64 x86-64-v2; do
    expect 0 '^median' "$tandem" bench v.tdm --steps=1 --warmup=0 \
      ${variant:+--cpu-variant=$variant}
  done
  expect 2 "no code for 'z80'; it has the variants 'x86-64', 'x86-64-v2'" \
    "$tandem" bench v.tdm --cpu-variant=z80
  expect 2 "the processor 'x86-64' once" \
    "$tandem" compile "$model" -o x.tdm --target=cpu:x86-64+x86-64
fi

# What is copied instead of a kernel that may not run lies in buffers of its own
# size, and not in larger ones that have become free.
cat >two.json <<'EOF'
{"format": "tandem-graph", "version": 1, "name": "two",
 "inputs": [{"name": "x", "type": "f32", "shape": [32, 24]}],
 "params": [{"name": "w", "type": "f32", "shape": [24, 24], "init": {"kind": "constant", "value": 0.1}},
            {"name": "v", "type": "f32", "shape": [24, 24], "init": {"kind": "constant", "value": 0.1}}],
 "nodes": [{"op": "matmul", "inputs": ["x", "w"], "outputs": ["a"]},
           {"op": "sin", "inputs": ["a"], "outputs": ["b"]},
           {"op": "matmul", "inputs": ["b", "v"], "outputs": ["c"]},
           {"op": "exp", "inputs": ["c"], "outputs": ["d"]},
           {"op": "reduce_mean", "inputs": ["d"], "outputs": ["loss"], "attributes": {"dims": [0, 1]}}],
 "outputs": [{"name": "loss", "value": "loss"}]}
EOF
expect 0 '' "$tandem" compile two.json -o two.tdm --order=2

# Kernels whose ops stand between each other's in the program do not need each
# other's results.
sed 's/"matmul"/"mul"/; s/\[24, 24\]/[32, 24]/' two.json >crossed.json
expect 0 '' "$tandem" compile crossed.json -o crossed.tdm --order=2

# A sum in ten steps, each of what was there and the same shifted: one kernel
# would read at 1024 places.
{
  printf '{"format": "tandem-graph", "version": 1, "name": "steps",
   "inputs": [{"name": "y0", "type": "f32", "shape": [1024]}],
   "nodes": ['
  for k in 0 1 2 3 4 5 6 7 8 9; do
    printf '{"op": "slice", "inputs": ["y%d"], "outputs": ["a%d"],
      "attributes": {"starts": [0], "limits": [%d], "strides": [1]}},
     {"op": "pad", "inputs": ["a%d"], "outputs": ["b%d"],
      "attributes": {"low": [%d], "high": [0], "interior": [0], "value": 0.0}},
     {"op": "add", "inputs": ["y%d", "b%d"], "outputs": ["y%d"]},' \
      $k $k $((1024 - (1 << k))) $k $k $((1 << k)) $k $k $((k + 1))
  done
  printf '{"op": "neg", "inputs": ["y10"], "outputs": ["y"]}],
   "outputs": [{"name": "y", "value": "y"}]}'
} >steps.json
expect 0 '' "$tandem" compile steps.json -o steps.mlir --inference \
  --stop-after=plan
kernels=$(grep -c 'tandem.kernel' steps.mlir)
[ "$kernels" -ge 2 ] || fail "expected a chain of steps to be several kernels, but got $kernels"
expect 2 'past .joint' "$tandem" compile dumps/digits_mlp.04.optimize.mlir \
  -o x.tdm --loss=loss
expect 2 "no output 'lost' \(did you mean 'loss'" "$tandem" compile "$model" -o x.tdm --loss=lost
expect 2 "unknown optimizer 'sgdd' \(did you mean 'sgd'" "$tandem" compile "$model" -o x.tdm --optimizer=sgdd:lr=1
expect 2 'expected a model in .mlir, .json, .onnx, .pt2 or .bin' \
  "$tandem" compile "$1/tandem" -o x.tdm
expect 1 'No such file' "$tandem" compile nowhere.mlir -o x.tdm
expect 1 'cannot|No such file' "$tandem" compile "$model" -o nowhere/x.tdm
[ -e x.tdm ] && fail 'a failed compilation left a file'

# Wrong models: located, and the right exit code.
sed 's/tandem.relu/tandem.rely/' "$model" >bad.mlir
expect 1 'bad.mlir:[0-9]+:[0-9]+: error: .*tandem.rely' \
  "$tandem" compile bad.mlir -o x.tdm
sed 's/tensor<10x128xf32>/tensor<10x129xf32>/g' "$model" >bad.mlir
expect 1 'bad.mlir:[0-9]+:[0-9]+: error: .*' "$tandem" compile bad.mlir -o x.tdm
head -c 700 "$model" >bad.mlir
expect 1 'bad.mlir:[0-9]+:[0-9]+: error: ' "$tandem" compile bad.mlir -o x.tdm
sed 's/"fc0.w"/"fc1.w"/' "$model" >bad.mlir
expect 1 'unique' "$tandem" compile bad.mlir -o x.tdm
# The word in a name of the user's does not make an error another kind.
sed 's/"fc[01].w"/"unsupported"/' "$model" >bad.mlir
expect 1 "'param \"unsupported\"' twice" "$tandem" compile bad.mlir -o x.tdm
printf '{"format": "tandem-graph"' >bad.json
expect 1 'bad.json:1:[0-9]+: not JSON' "$tandem" compile bad.json -o x.tdm
# A deeply nested module ended the compiler with signal 11 and no message.
awk 'BEGIN { for (i = 0; i < 100000; ++i) print "module {" }' >deep.mlir
for command in 'compile -o x.tdm' check inspect; do
  # shellcheck disable=SC2086 # a command and its options
  expect 1 'deep.mlir:257:8: expected at most 256 levels' \
    "$tandem" $command deep.mlir
done
# A model called "../evil" wrote its dumps outside of the folder.
mkdir -p evil/in
printf 'module @"../evil" {\n}\n' >evil.mlir
expect 1 "evil.mlir:1:1: error: expected a model's name without '/'" \
  "$tandem" compile evil.mlir -o x.tdm --dump-phases=evil/in
[ "$(ls -A evil evil/in)" = "$(printf 'evil:\nin\n\nevil/in:')" ] ||
  fail "a model's name made a path: $(ls -A evil evil/in)"
# A parameter with the name of an optimizer's state ended in an assertion.
cat >lr.json <<'EOF'
{"format": "tandem-graph", "version": 1, "name": "lr",
 "inputs": [{"name": "x", "type": "f32", "shape": [4]}],
 "params": [{"name": "sgd.lr", "type": "f32", "shape": [4], "init": {"kind": "constant", "value": 1}}],
 "nodes": [{"op": "mul", "inputs": ["x", "sgd.lr"], "outputs": ["y"]},
           {"op": "reduce_sum", "inputs": ["y"], "outputs": ["loss"], "attributes": {"dims": [0]}}],
 "outputs": [{"name": "loss", "value": "loss"}]}
EOF
expect 1 "'param \"sgd.lr\"' has the name of a state of optimizer 'sgd'" \
  "$tandem" compile lr.json -o x.tdm --optimizer=sgd
expect 0 '' "$tandem" compile lr.json -o x.tdm --optimizer=adam
: >empty.mlir
expect 1 'empty.mlir|graph' "$tandem" compile empty.mlir -o x.tdm

# A full disk and a folder that may not be written leave nothing behind.
mkdir full
if mount -t tmpfs -o size=16k tmpfs full 2>/dev/null; then
  expect 1 'full/x.tdm' "$tandem" compile "$model" -o full/x.tdm
  [ -z "$(ls -A full)" ] || fail "a full disk kept: $(ls -A full)"
  umount full
else
  echo 'skipped: a full disk (mounting a small file system is not allowed here)'
fi
finish

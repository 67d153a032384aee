#!/bin/bash
# check.sh BIN EXAMPLES - all gradients of the example models, compiled (f32)
# against the f64 reference and against central differences.
source "$(dirname "$0")/expect.sh"
bin=$1
cd "$work" || exit 1
expect 0 '' "$bin/digits-cnn" cnn.mlir
# 132 rows are two tiles and a rest; two layers have what lies between layers.
expect 0 '' "$bin/addition-gpt" gpt.mlir 12 2
for model in "$2/digits/mlp.mlir" cnn.mlir gpt.mlir; do
  expect 0 'gradients checked' "$bin/tandem" check "$model"
  printf '%s\n' "$out" | tail -n 1
done
# A loss that is named was refused, as without effect past 'joint'.
# Options that act before the gradient were refused, as if they came too late.
expect 0 'gradients checked' "$bin/tandem" check "$2/digits/mlp.mlir" --amp=bf16
# Other options that act while the model is differentiated; adapters are none of the model.
# Of a single number two samples of rounding may cancel.
expect 0 'results of the step checked' "$bin/tandem" check "$2/digits/mlp.mlir" \
  --optimizer=sgd --loss-scale=256 --amp=f16
expect 0 '5 gradients checked' "$bin/tandem" check "$2/digits/mlp.mlir" --freeze=fc1.w
expect 3 '^tandem: error: --lora: .* has no adapters' \
  "$bin/tandem" check "$2/digits/mlp.mlir" --lora=fc1.w:rank=2
expect 0 'gradients checked' "$bin/tandem" check "$2/digits/mlp.mlir" \
  --loss=loss
expect 2 "no output 'los' \(did you mean 'loss'" "$bin/tandem" check \
  "$2/digits/mlp.mlir" --loss=los
# Numbers that differ: exit code 4.
expect 4 'gradients differ' "$bin/tandem" check "$2/digits/mlp.mlir" \
  --tolerance=1e-12

# graph NAME TYPE NODES: x [8, 6] in, w [6] of TYPE, loss out.
graph() {
  cat >"$1.json" <<EOF
{"format": "tandem-graph", "version": 1, "name": "$1",
 "inputs": [{"name": "x", "type": "$2", "shape": [8, 6]}],
 "params": [{"name": "w", "type": "$2", "shape": [8, 6],
   "init": {"kind": "uniform", "low": 0.5, "high": 1.5}}],
 "nodes": [$3,
   {"op": "sin", "inputs": ["y"], "outputs": ["s"]},
   {"op": "reduce_sum", "inputs": ["s"], "outputs": ["loss"],
    "attributes": {"dims": [0, 1]}}],
 "outputs": [{"name": "loss", "value": "loss"}]}
EOF
}

# custom NAME FORWARD GRADIENT: y of x and w, with a backward of its own.
custom() {
  printf '%s' "{\"op\": \"custom_vjp\", \"name\": \"$1\",
    \"inputs\": [\"x\", \"w\"], \"outputs\": [\"y\"],
    \"forward\": {\"inputs\": [\"x\", \"w\"], \"refs\": [],
      \"nodes\": [$2], \"outputs\": [\"o\"], \"saved\": [\"x\"]},
    \"backward\": {\"saved\": [\"x\"], \"cotangents\": [\"dy\"], \"refs\": [],
      \"nodes\": [$3], \"gradients\": [null, \"dw\"]}}"
}
product='{"op": "mul", "inputs": ["x", "w"], "outputs": ["o"]}'
right='{"op": "mul", "inputs": ["dy", "x"], "outputs": ["dw"]}'
twice='{"op": "mul", "inputs": ["dy", "x"], "outputs": ["h"]},
  {"op": "add", "inputs": ["h", "h"], "outputs": ["dw"]}'
rounded='{"op": "mul", "inputs": ["x", "w"], "outputs": ["h"]},
  {"op": "round", "inputs": ["h"], "outputs": ["o"]}'

# Models of bf16 and f16 differed at the default tolerance, right as they were.
# What is wrong by a factor of 2 differs in all types, and what rounding
# explains is less than that.
for type in f32 bf16 f16; do
  graph "right-$type" "$type" "$(custom product "$product" "$right")"
  expect 0 'gradients checked' "$bin/tandem" check "right-$type.json"
  explained=$(sed -nE 's/.*explains ([0-9.e-]+).*/\1/p' <<<"$out")
  awk -v e="${explained:-0}" 'BEGIN { exit !(4 * e < 0.5) }' ||
    fail "too much is explained in $type: $explained"
  graph "twice-$type" "$type" "$(custom product "$product" "$twice")"
  expect 4 '^w .*  differs' "$bin/tandem" check "twice-$type.json"
done

# Gradients far below 0, where exp(x) - 1 is -1 in f32, were 0.
for op in elu selu celu expm1; do
  graph "$op" f32 '{"op": "constant", "type": "f32", "shape": [],
    "value": -20.0, "outputs": ["c"]},
    {"op": "multiply", "inputs": ["w", "c"], "outputs": ["z"]},
    {"op": "'$op'", "inputs": ["z"], "outputs": ["y"]}'
  expect 0 '^w .*[0-9]$' "$bin/tandem" check $op.json --tolerance=1e-4
done

# Products of other blocks, of which there is none before the first one, and
# what fills up the last one made gradients of what is infinite there, or behind
# it, no number: cumprod([1, inf, 0, 3]) and cumprod([1, inf, 0]). So did the
# piece of hardswish that is not taken.
cat >infinite.json <<'END'
{"format": "tandem-graph", "version": 1, "name": "infinite",
 "params": [{"name": "w", "type": "f32", "shape": [4],
   "init": {"kind": "constant", "value": 1.0}}],
 "nodes": [
   {"op": "constant", "type": "f32", "shape": [4], "value": [0, 1, -1, 2],
    "outputs": ["a"]},
   {"op": "constant", "type": "f32", "shape": [4], "value": [1, 0, 1, 1],
    "outputs": ["b"]},
   {"op": "div", "inputs": ["a", "b"], "outputs": ["more"]},
   {"op": "add", "inputs": ["w", "more"], "outputs": ["x"]},
   {"op": "cumprod", "inputs": ["x"], "outputs": ["y"]},
   {"op": "grad", "inputs": ["y", "x"], "outputs": ["g"]},
   {"op": "select_index", "inputs": ["g"], "outputs": ["second"],
    "attributes": {"index": 1}},
   {"op": "narrow", "inputs": ["x"], "outputs": ["three"],
    "attributes": {"length": 3}},
   {"op": "cumprod", "inputs": ["three"], "outputs": ["y3"]},
   {"op": "grad", "inputs": ["y3", "three"], "outputs": ["g3"]},
   {"op": "select_index", "inputs": ["g3"], "outputs": ["last"],
    "attributes": {"index": 2}},
   {"op": "hardswish", "inputs": ["x"], "outputs": ["h"]},
   {"op": "grad", "inputs": ["h", "x"], "outputs": ["gh"]},
   {"op": "select_index", "inputs": ["gh"], "outputs": ["bent"],
    "attributes": {"index": 1}}],
 "outputs": [{"name": "second", "value": "second", "no_grad": true},
   {"name": "last", "value": "last", "no_grad": true},
   {"name": "bent", "value": "bent", "no_grad": true}]}
END
expect 0 '' "$bin/tandem" compile infinite.json -o infinite.tdm
expect 0 '^second = 1$' "$bin/tandem" run infinite.tdm
for line in 'last = inf' 'bent = 1'; do
  grep -qx "$line" <<<"$out" || fail "expected '$line' in: $out"
done

# What is in range up to each element: a block's products were too large, and
# 0 times them, or times what was too small, no number.
list() { # COUNT VALUE: separated by commas
  local i text=$2
  for ((i = 1; i < $1; i++)); do text+=", $2"; done
  printf '%s' "$text"
}
cat >products.json <<END
{"format": "tandem-graph", "version": 1, "name": "products",
 "nodes": [
   {"op": "constant", "type": "f32", "shape": [64],
    "value": [0, $(list 63 1e5)], "outputs": ["a"]},
   {"op": "cumprod", "inputs": ["a"], "outputs": ["pa"]},
   {"op": "amax", "inputs": ["pa"], "outputs": ["zero"]},
   {"op": "constant", "type": "f64", "shape": [64],
    "value": [0, $(list 63 1e60)], "outputs": ["b"]},
   {"op": "cumprod", "inputs": ["b"], "outputs": ["pb"]},
   {"op": "amax", "inputs": ["pb"], "outputs": ["zero64"]},
   {"op": "constant", "type": "f32", "shape": [24],
    "value": [1e-30, $(list 11 '1e30, 1e-30'), 1e30], "outputs": ["c"]},
   {"op": "cumprod", "inputs": ["c"], "outputs": ["pc"]},
   {"op": "select_index", "inputs": ["pc"], "outputs": ["one"],
    "attributes": {"index": 23}},
   {"op": "constant", "type": "f64", "shape": [24],
    "value": [1e-300, $(list 11 '1e300, 1e-300'), 1e300], "outputs": ["d"]},
   {"op": "cumprod", "inputs": ["d"], "outputs": ["pd"]},
   {"op": "select_index", "inputs": ["pd"], "outputs": ["one64"],
    "attributes": {"index": 23}},
   {"op": "grad", "inputs": ["one64", "d"], "outputs": ["gd"]},
   {"op": "select_index", "inputs": ["gd"], "outputs": ["slope"],
    "attributes": {"index": 0}}],
 "outputs": [{"name": "zero", "value": "zero", "no_grad": true},
   {"name": "zero64", "value": "zero64", "no_grad": true},
   {"name": "one", "value": "one", "no_grad": true},
   {"name": "one64", "value": "one64", "no_grad": true},
   {"name": "slope", "value": "slope", "no_grad": true}]}
END
expect 0 '' "$bin/tandem" compile products.json -o products.tdm
expect 0 '^zero = 0$' "$bin/tandem" run products.tdm
for line in 'zero64 = 0' 'one = (1|0\.99999[0-9]*|1\.00000[0-9]*)' \
  'one64 = (1|0\.99999999[0-9]*|1\.00000000[0-9]*)' \
  'slope = (1|9\.99999[0-9]*|1\.00000[0-9]*)e\+?(300|299)'; do
  grep -qxE "$line" <<<"$out" || fail "expected '$line' in: $out"
done

# Several models: each is checked, whatever is wrong with another one.
printf '{' >broken.json
expect 4 'error: 2 of 3 models have errors; twice-f32.json: 1 of 1 gradients differ' \
  "$bin/tandem" check twice-f32.json broken.json right-f32.json
for line in '^twice-f32.json: error: 1 of 1 gradients differ' \
  '^broken.json: error: .*not JSON' '^right-f32.json:$' \
  '^3 models checked, 2 of them with errors$'; do
  grep -qE "$line" <<<"$out" || fail "expected '$line' in: $out"
done
expect 0 '^2 models checked, 0 of them' "$bin/tandem" check right-f32.json elu.json
expect 2 "expected models of one format, but got 'elu.json' and" \
  "$bin/tandem" check elu.json "$2/digits/mlp.mlir"
expect 2 '--dump-phases is of one model, but got 2' "$bin/tandem" check \
  elu.json selu.json --dump-phases=d

# What a backward gives at other cotangents than ones was not looked at: dy * dy * x is right at
# these alone, and x without dy, too. A law that holds is said with how near it was.
squared='{"op": "mul", "inputs": ["dy", "dy"], "outputs": ["h"]},
  {"op": "mul", "inputs": ["h", "x"], "outputs": ["dw"]}'
constant='{"op": "neg", "inputs": ["x"], "outputs": ["h"]},
  {"op": "neg", "inputs": ["h"], "outputs": ["dw"]}'
for backward in "$squared" "$constant"; do
  graph other f32 "$(custom other "$product" "$backward")"
  sed -i 's/{"op": "sin", "inputs": \["y"\], "outputs": \["s"\]},//; s/"inputs": \["s"\]/"inputs": ["y"]/' other.json
  expect 0 'gradients checked' "$bin/tandem" check other.json
  expect 4 '^w .* is not linear in the cotangents: .*  differs' "$bin/tandem" check other.json --linear
done
for type in f32 bf16 f16; do
  expect 0 '^1 results are linear in the cotangents \(worst: w, off by [0-9.e-]+ in the reference' \
    "$bin/tandem" check "right-$type.json" --linear
done

# Rows: each by itself, and each with a factor of its own, which has another order.
rows() {
  cat >"$1.json" <<END
{"format": "tandem-graph", "version": 1, "name": "$1",
 "inputs": [{"name": "x", "type": "f32", "shape": [8, 6], "requires_grad": true}],
 "params": [{"name": "w", "type": "f32", "shape": [$2],
   "init": {"kind": "uniform", "low": 0.5, "high": 1.5}}],
 "nodes": [{"op": "multiply", "inputs": ["x", "w"], "outputs": ["y"]},
   {"op": "sin", "inputs": ["y"], "outputs": ["s"]},
   {"op": "sum", "inputs": ["s"], "outputs": ["loss"]}],
 "outputs": [{"name": "loss", "value": "loss"}, {"name": "s", "value": "s"}]}
END
}
rows alike 6
rows unlike '8, 1'
expect 0 '^4 results are the same in another order of rows' "$bin/tandem" check alike.json --rows-alike
expect 0 '' "$bin/tandem" check unlike.json
expect 4 "^output 's' .* is not the same in another order of rows" "$bin/tandem" check unlike.json --rows-alike
sed 's/"shape": \[8, 6\]/"shape": [1, 6]/' alike.json >one.json
expect 2 '^tandem: error: --rows-alike needs an input with at least two rows' "$bin/tandem" check one.json --rows-alike

# A backward that passes the gradient straight through could not be excused.
graph through f32 "$(custom ste "$rounded" "$right")"
expect 4 '^w .*  differs' "$bin/tandem" check through.json
expect 0 "^w .*through 'ste', which is trusted" "$bin/tandem" check \
  through.json --trust='^ste$'
expect 2 "--trust=nothing matches no custom_vjp of the model: 'ste'" \
  "$bin/tandem" check through.json --trust=nothing
expect 2 'expected --trust to be a regular expression' "$bin/tandem" check \
  through.json --trust='*'

# What passes no gradient moved with the differences, and right gradients
# differed from them: once detached, once in a no_grad region.
mul='{"op": "mul", "inputs": ["x", "w"], "outputs": ["h"]}'
timesFixed='{"op": "mul", "inputs": ["h", "fixed"], "outputs": ["y"]}'
graph detached f32 "$mul,
  {\"op\": \"detach\", \"inputs\": [\"h\"], \"outputs\": [\"fixed\"]}, $timesFixed"
graph no-grad f32 "$mul, {\"op\": \"no_grad\", \"nodes\": [
  {\"op\": \"exp\", \"inputs\": [\"h\"], \"outputs\": [\"fixed\"]}]}, $timesFixed"
for model in detached no-grad; do
  expect 0 'gradients checked' "$bin/tandem" check $model.json
done

# The gradient of a bias before batch norm is zero, and its rounding differed.
cat >zero.json <<'EOF'
{"format": "tandem-graph", "version": 1, "name": "zero",
 "inputs": [{"name": "x", "type": "f32", "shape": [16, 3, 12, 12]}],
 "params": [
   {"name": "w", "type": "f32", "shape": [4, 3, 3, 3],
    "init": {"kind": "uniform", "low": -0.2, "high": 0.2}},
   {"name": "b", "type": "f32", "shape": [4],
    "init": {"kind": "uniform", "low": 1.0, "high": 3.0}},
   {"name": "scale", "type": "f32", "shape": [4],
    "init": {"kind": "constant", "value": 1.0}},
   {"name": "shift", "type": "f32", "shape": [4],
    "init": {"kind": "constant", "value": 0.5}}],
 "states": [
   {"name": "mean", "type": "f32", "shape": [4],
    "init": {"kind": "constant", "value": 0.0}},
   {"name": "variance", "type": "f32", "shape": [4],
    "init": {"kind": "constant", "value": 1.0}}],
 "nodes": [
   {"op": "conv2d", "inputs": ["x", "w"], "outputs": ["c"]},
   {"op": "broadcast", "inputs": ["b"], "outputs": ["spread"],
    "attributes": {"shape": [16, 4, 10, 10], "dims": [1]}},
   {"op": "add", "inputs": ["c", "spread"], "outputs": ["h"]},
   {"op": "batch_norm", "inputs": ["h", "scale", "shift", "mean", "variance"],
    "outputs": ["n"], "attributes": {"training": true}},
   {"op": "tanh", "inputs": ["n"], "outputs": ["t"]},
   {"op": "reduce_sum", "inputs": ["t"], "outputs": ["loss"],
    "attributes": {"dims": [0, 1, 2, 3]}}],
 "outputs": [{"name": "loss", "value": "loss"}]}
EOF
expect 0 '^b +[0-9.]+e-1[0-9] ' "$bin/tandem" check zero.json

# Indices are drawn from the range that follows from the table, and masks are both: all were
# zero where the model stated no range, and one row of a table was checked.
cat >drawn.json <<'EOF'
{"format": "tandem-graph", "version": 1, "name": "drawn",
 "inputs": [{"name": "ids", "type": "i64", "shape": [4, 32]}, {"name": "mask", "type": "i64", "shape": [4, 32]}],
 "params": [{"name": "w", "type": "f32", "shape": [], "init": {"kind": "constant", "value": 1.0}},
            {"name": "m", "type": "f32", "shape": [], "init": {"kind": "constant", "value": 1.0}},
            {"name": "table", "type": "f32", "shape": [256, 4], "init": {"kind": "uniform", "low": -1.0, "high": 1.0}}],
 "nodes": [{"op": "cast", "type": "f32", "inputs": ["ids"], "outputs": ["f"]},
           {"op": "cast", "type": "f32", "inputs": ["mask"], "outputs": ["g"]},
           {"op": "reduce_sum", "inputs": ["f"], "outputs": ["s"], "attributes": {"dims": [0, 1]}},
           {"op": "reduce_sum", "inputs": ["g"], "outputs": ["t"], "attributes": {"dims": [0, 1]}},
           {"op": "mul", "inputs": ["s", "w"], "outputs": ["a"]},
           {"op": "mul", "inputs": ["t", "m"], "outputs": ["b"]},
           {"op": "take", "inputs": ["table", "ids"], "outputs": ["e"]},
           {"op": "mul", "inputs": ["e", "e"], "outputs": ["e2"]},
           {"op": "reduce_sum", "inputs": ["e2"], "outputs": ["l"], "attributes": {"dims": [0, 1, 2]}},
           {"op": "add", "inputs": ["a", "b"], "outputs": ["c"]},
           {"op": "add", "inputs": ["c", "l"], "outputs": ["loss"]}],
 "outputs": [{"name": "loss", "value": "loss"}]}
EOF
expect 0 '^w +1[0-9]{4} ' "$bin/tandem" check drawn.json
grep -qE '^m +[5-7][0-9] ' <<<"$out" || fail "a mask of one value: $out"

# Kernels for CUDA on the emulated GPU: the same bits in all orders, and the
# reference's numbers; a whole step too. A kernel that fails in the second order
# says so.
emulated=("$bin/tandem" check "$2/digits/mlp.mlir" --target=cuda:sm_90a
  --cubin=no --emulation --differences=no --amp=bf16
  --optimizer=momentum:lr=0.1,momentum=0.9)
expect 0 '^[1-9][0-9]* kernels, [1-9][0-9]* launches: the same bits in 3 orders$' "${emulated[@]}"
grep -q '^14 results of the step checked against the f64 reference' <<<"$out" ||
  fail "the step was not checked: $out"
launches=$(sed -nE 's/.* kernels, ([0-9]+) launches.*/\1/p' <<<"$out")
expect 1 'in the order others-first' \
  env TANDEM_EMULATOR_FAIL=launch:$((2 * launches)) "${emulated[@]}"
expect 0 '^26 results of the step checked' "$bin/tandem" check \
  "$2/digits/mlp.mlir" --differences=no --optimizer=adamw:lr=1e-3
grep -q 'and central differences' <<<"$out" && fail 'differences that were left out'

# Running statistics had the forward's change, too, where the step was compared.
expect 0 '' "$bin/mutation-models" running-statistics stats.mlir
expect 0 '^[0-9]+ results of the step checked' "$bin/tandem" check stats.mlir \
  --differences=no --optimizer=sgd:lr=0.1

# One target at a time.
for target in cuda cpu:x86-64-v3+x86-64-v4; do
  expect 2 "--target=${target//+/.} is 2 targets, and gradients are checked on one" \
    "$bin/tandem" check drawn.json --target=$target
done
finish

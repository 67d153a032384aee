#!/bin/bash
# anomaly.sh BIN - a NaN (or infinity) of a training step is followed to the op
# of the model that made it: row N28 at the command line.
source "$(dirname "$0")/expect.sh"
bin=$1
cd "$work" || exit 1
tandem=$bin/tandem

# The gradient of sqrt at 0 is infinite, and 0 times that NaN.
cat >root.json <<'M'
{"format": "tandem-graph", "version": 1, "name": "root",
 "inputs": [{"name": "x", "type": "f32", "shape": [2, 3]}],
 "params": [{"name": "w", "type": "f32", "shape": [2, 3], "init": {"kind": "constant", "value": 0.5}}],
 "nodes": [
  {"op": "mul", "inputs": ["x", "w"], "outputs": ["z"]},
  {"op": "mul", "inputs": ["z", "z"], "outputs": ["q"]},
  {"op": "sqrt", "inputs": ["q"], "outputs": ["r"]},
  {"op": "mean", "inputs": ["r"], "outputs": ["loss"]}],
 "outputs": [{"name": "loss", "value": "loss"}]}
M
# log of a negative number, in the forward.
sed -e 's/"root"/"log"/' -e 's/"sqrt", "inputs": \["q"\]/"log", "inputs": ["z"]/' \
  root.json >log.json
# An infinity of f32 that f64 does not have, and its difference.
sed -e 's/"root"/"exp"/' \
  -e 's/"mul", "inputs": \["z", "z"\]/"exp", "inputs": ["z"]/' \
  -e 's/"sqrt", "inputs": \["q"\]/"sub", "inputs": ["q", "q"]/' \
  root.json >exp.json
for model in root log exp; do
  expect 0 '' "$tandem" compile $model.json -o $model.tdm \
    --optimizer=sgd:lr=0.001
done
printf '1,2,3\n4,5,6\n7,8,9\n1,2,0\n' >zero.csv # the second batch has a 0
printf '1,2,3\n4,5,6\n7,-8,9\n1,2,3\n' >negative.csv
printf '1,2,3\n4,5,6\n7,500,9\n1,2,3\n' >large.csv
train() { # MODEL DATA OPTION...
  "${tool:-$tandem}" train "$1.tdm" --data "x=@$2.csv:header=no" --steps=2 \
    --no-shuffle "${@:3}"
}

# Without the option the loss is a number, and the weights are lost.
expect 0 'loss = ' train root zero
expect 1 "step 2: NaN in the new value of 'w': 'tandem\.[a-z]+' at root\.json:(6|7):" \
  train root zero --detect-anomaly
grep -q ', in the grad of ' <<<"$out" || fail "no gradient: $out"
grep -q 'of an infinity: .* at root.json:7:' <<<"$out" ||
  fail "where the infinity is of was not said: $out"
expect 1 "step 2: NaN in the loss: 'tandem.log' at log\.json:7:.* gave NaN" \
  train log negative --detect-anomaly
expect 1 "'tandem.sub' at exp\.json:7:.*infinity: 'tandem.exp' at exp\.json:6:" \
  train exp large --detect-anomaly
expect 1 "step 2: .*'tandem.exp' at exp\.json:6:.* gave an infinity" \
  train exp large --detect-anomaly=infinity
expect 0 'loss = ' train log large --detect-anomaly=infinity
# How a dynamic scale is found is no anomaly: the norm of infinity times 0 was
# one. What stays below a scale of 1 is.
sed -e 's/"root"/"zero"/' -e '/"params"/s/}],/},/' \
  -e '/"params"/a {"name": "v", "type": "f32", "shape": [2, 3], "init": {"kind": "constant", "value": 0.0}}],' \
  -e 's/"mul", "inputs": \["z", "z"\]/"mul", "inputs": ["z", "v"]/' \
  -e 's/"sqrt", "inputs": \["q"\]/"mul", "inputs": ["q", "x"]/' root.json >zero.json
expect 0 '' "$tandem" compile zero.json -o scaled.tdm --optimizer=sgd:lr=0.001 \
  --loss-scale=dynamic:init=8e37
printf '7,500,9\n1,2,3\n1,2,3\n4,5,6\n' >first.csv
expect 0 'is left out' train scaled first --detect-anomaly
expect 0 '' "$tandem" compile root.json -o scaled.tdm --optimizer=sgd:lr=0.001 \
  --loss-scale=dynamic:init=2 --force
printf '%s\n' 0,1,2 3,4,5 0,1,2 3,4,5 >zeros.csv
expect 1 "step 2: NaN in the new value of 'sgd.grad_norm'" train scaled zeros \
  --detect-anomaly
# Nothing is saved.
expect 1 '' train log negative --detect-anomaly --save=w.safetensors
[ -e w.safetensors ] && fail 'parameters were saved'

# Without the model, by what the artifact's programs give.
mkdir alone
cp ./*.tdm alone
expect 1 "made in the backward, whose gradients of 'w' .*no model lies beside" \
  train alone/root zero --detect-anomaly
tool=$bin/tandem-run
expect 1 "step 2: NaN in the new value of 'w': it was made in the backward" \
  train root zero --detect-anomaly
expect 1 "made in the forward, whose outputs 'loss' have it" \
  train log negative --detect-anomaly
expect 2 'on-nan=report' train log negative --detect-anomaly --on-nan=report
expect 2 'detect-anomaly' train log negative --detect-anomaly=zero

# check draws inputs of both signs.
expect 1 "'tandem.log' at log.json:7:.* gave NaN" \
  "$tandem" check log.json --detect-anomaly
expect 0 'gradients checked' "$tandem" check exp.json --detect-anomaly \
  --numeric-tolerance=1
finish

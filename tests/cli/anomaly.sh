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

#!/bin/bash
# same-bits.sh BIN - what a model learns does not hang on what is saved. A sum
# in the backward was added up in an order that its kernel's other ops decided,
# and these are other ones where its elements are loaded and not computed again:
# of 30 cases (ten lengths, three seeds) 21 had two or three different results.
source "$(dirname "$0")/expect.sh"
bin=$1
cd "$work" || exit 1
printf 'dummy\n0\n' >dummy.csv

# model N: a param's mean, spread over N elements.
model() {
  cat >"$1.json" <<JSON
{"format": "tandem-graph", "version": 1, "name": "bits",
 "inputs": [{"name": "dummy", "type": "f32", "shape": [1]}],
 "params": [{"name": "p", "type": "f32", "shape": [3],
   "init": {"kind": "uniform", "low": -1.0, "high": 1.0}}],
 "nodes": [
   {"op": "sin", "inputs": ["p"], "outputs": ["a"]},
   {"op": "reduce_mean", "inputs": ["a"], "outputs": ["m"], "attributes": {"dims": [0]}},
   {"op": "broadcast", "inputs": ["m"], "outputs": ["b"],
    "attributes": {"shape": [$1], "dims": []}},
   {"op": "tanh", "name": "tanh", "inputs": ["b"], "outputs": ["t"]},
   {"op": "cos", "name": "cos", "inputs": ["t"], "outputs": ["c"]},
   {"op": "mul", "inputs": ["c", "t"], "outputs": ["u"]},
   {"op": "mul", "inputs": ["u", "u"], "outputs": ["v"]},
   {"op": "reduce_sum", "inputs": ["v"], "outputs": ["loss"], "attributes": {"dims": [0]}}],
 "outputs": [{"name": "loss", "value": "loss"}]}
JSON
}

# trained ARTIFACT SEED: the bits of the param after one step.
trained() {
  rm -f p.safetensors
  expect 0 '' "$bin/tandem-run" train "$1" --data dummy=@dummy.csv --steps 1 \
    --seed "$2" --save p.safetensors
  tail -c 16 p.safetensors | head -c 12 | od -An -tx1
}

# 20 and 100 leave a rest of a vector, 5000 is a sum of partial sums.
for length in 20 100 1000 4096 5000; do
  model $length
  rm -f ./*.tdm
  i=0
  for option in --partition=min-cut --partition=default --save=tanh --save=cos \
    --memory-budget=0; do
    expect 0 '' "$bin/tandem" compile $length.json -o $((i++)).tdm \
      --optimizer=sgd:lr=1 $option
  done
  for seed in 0 1 2; do
    wanted=$(trained 0.tdm $seed)
    for artifact in [1-9].tdm; do
      got=$(trained "$artifact" $seed)
      [ "$got" = "$wanted" ] ||
        fail "$length elements, seed $seed, $artifact: $got, but 0: $wanted"
    done
  done
done
finish

#!/bin/bash
# random.sh BIN - row G08: random bits are a function of seed, op and offset.
# They are the same on every device, for every plan and number of threads; new
# in each step; and evaluation draws none.
source "$(dirname "$0")/expect.sh"
bin=$1
cd "$work" || exit 1
cat >noise.json <<'M'
{"format": "tandem-graph", "version": 1, "name": "noise",
 "inputs": [{"name": "x", "type": "f32", "shape": [4, 8]}],
 "params": [{"name": "w", "type": "f32", "shape": [8, 8], "init": {"kind": "constant", "value": 0.25}}],
 "states": [{"name": "random", "type": "i64", "shape": [2], "init": {"kind": "seed"}}],
 "nodes": [
  {"op": "constant", "type": "i64", "shape": [2], "value": [0, 1], "outputs": ["one"]},
  {"op": "add", "inputs": ["random", "one"], "outputs": ["next"]},
  {"op": "mul", "inputs": ["x", "x"], "outputs": ["a"]},
  {"op": "dropout", "inputs": ["a", "random"], "attributes": {"draw": 0, "p": 0.5, "training": true}, "outputs": ["b"]},
  {"op": "matmul", "inputs": ["b", "w"], "outputs": ["c"]},
  {"op": "dropout", "inputs": ["c", "random"], "attributes": {"draw": 1, "p": 0.5, "training": true}, "outputs": ["d"]},
  {"op": "sum", "inputs": ["d"], "outputs": ["loss"]},
  {"op": "write", "inputs": ["next", "random"]}],
 "outputs": [{"name": "loss", "value": "loss"}]}
M
for row in 1 2 3 4; do echo "1,2,4,8,16,32,64,128"; done >x.csv
compile() { # NAME OPTION...: sums of powers of 2 are exact in any order
  expect 0 '' "$bin/tandem" compile noise.json -o "$1.tdm" \
    --optimizer=sgd:lr=0 "${@:2}"
}
losses() { # NAME OPTION...
  rm -f log.jsonl
  expect 0 'eval.loss' "$bin/tandem-run" train "$1.tdm" --data x=@x.csv:header=no \
    --eval x=@x.csv:header=no --steps=3 --log log.jsonl "${@:2}"
  eval_loss=$(grep -oE 'eval.loss = [0-9.e+]+' <<<"$out")
  losses=$(grep -oE '"loss": ?[0-9.e+-]+' log.jsonl | head -n 3)
}
compile noise
losses noise --seed=1 --threads=1
first=$losses drawn=$eval_loss
[ "$(sort -u <<<"$first" | wc -l)" -eq 3 ] || fail "steps draw the same: $first"
same() {
  [ "$losses" = "$first" ] || fail "$1 draws other bits: $losses, not $first"
  [ "$eval_loss" = "$drawn" ] || fail "$1: evaluation draws: $eval_loss"
}
losses noise --seed=1 --threads=1
same 'the same again'
losses noise --seed=1 --threads=4
same 'another number of threads'
compile budget --memory-budget=0
losses budget --seed=1
same 'the smallest memory budget'
compile other --partition=default
losses other --seed=1
same 'another partition'
compile emulated --target=cpu+cuda:sm_90 --emulation --cubin=no
losses emulated --seed=1 --device=cuda-emu
same 'another device'
losses noise --seed=2
[ "$losses" = "$first" ] && fail 'another seed draws the same'
[ "$eval_loss" = "$drawn" ] || fail "evaluation follows from the seed: $eval_loss"
finish

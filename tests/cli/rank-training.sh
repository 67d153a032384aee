#!/bin/bash
# rank-training.sh BIN EXAMPLES MPI - X04, X07, T10, T17: over two processes each
# rank says which one has a NaN, in which row and in the gradient of which
# parameter; the best evaluation and early stops are those of all ranks. MPI runs
# a program in processes.
# shellcheck source=tests/cli/over-ranks.sh
source "$(dirname "$0")/over-ranks.sh"
compile() { # MODEL OUTPUT [options]
  expect 0 '' "$bin/tandem" compile "$1" -o "$2.tdm" --effort=0 "${@:3}"
}
both() { # CODE TEXT COMMAND...
  expect "$1" "$2" "$mpi" 2 120 "$bin/tandem-run" "${@:3}"
}
mesh=(--mesh=data=2 --parallel=ddp)

# A row of data. Of a batch of 32 rows in their order, rank 0 has the first 16.
awk 'BEGIN { for (r = 0; r < 1437; ++r) for (c = 0; c < 64; ++c)
  printf "%s%s", r == 50 && c == 5 ? "nan" : (r * c) % 17,
    c == 63 ? "\n" : "," }' >nan.csv
rows=(--data x=@nan.csv:header=no --data labels=@"$data/train_labels.npy"
  --no-shuffle --steps=3)
compile "$digits/mlp.mlir" mlp --optimizer=adamw:lr=2e-3 --clip=norm:1 "${mesh[@]}"
both 0 '' train mlp.tdm "${rows[@]}" --on-nan=skip --rank-logs=logs
grep -q '29 of 1437 rows do not fill a batch of 32 and are left out of each epoch$' \
  logs/rank-0.log || fail "rows left out, where --variant is refused: $(cat logs/rank-0.log)"
for rank in 0 1; do
  grep -qE "the loss is nan at step 2, .*rank 0: .*gradients of 'fc0.*rank 1: row \
50 of --data 'x' \('nan.csv'\); outputs 'logits'; gradients of 'fc0" \
    logs/rank-$rank.log || fail "X07: rank $rank says $(cat logs/rank-$rank.log)"
done

# A gradient alone: that of sqrt at 0 is infinite, and 0 times that NaN. Sums of
# gradients are a rank's own.
cat >root.json <<'M'
{"format": "tandem-graph", "version": 1, "name": "root",
 "inputs": [{"name": "x", "type": "f32", "shape": [2, 3]}],
 "params": [{"name": "w", "type": "f32", "shape": [3], "init": {"kind": "constant", "value": 0.5}}],
 "nodes": [
  {"op": "expand", "inputs": ["w"], "outputs": ["v"], "attributes": {"shape": [2, 3]}},
  {"op": "mul", "inputs": ["x", "v"], "outputs": ["z"]},
  {"op": "mul", "inputs": ["z", "z"], "outputs": ["q"]},
  {"op": "sqrt", "inputs": ["q"], "outputs": ["r"]},
  {"op": "mean", "inputs": ["r"], "outputs": ["loss"]}],
 "outputs": [{"name": "loss", "value": "loss"}]}
M
printf '1,2,3\n4,5,6\n7,8,9\n1,2,0\n' >zero.csv
compile root.json root --optimizer=sgd:lr=0.001 --clip=norm:1 --accumulate \
  "${mesh[@]}"
both 0 "the norm of the gradients is nan at step 2.*; NaN or infinity in rank 1: \
gradients of 'w'" train root.tdm --data x=@zero.csv:header=no --steps=2 \
  --no-shuffle --on-nan=skip

# What one finds the best, all do.
compile "$digits/mlp.mlir" ddp --optimizer=adamw:lr=2e-3 "${mesh[@]}"
train=(--data x=@"$data/train_images.npy" --data
  labels=@"$data/train_labels.npy" --seed 0 --lr=0.02
  --eval x=@"$data/test_images.npy" --eval labels=@"$data/test_labels.npy"
  --accuracy=logits,labels --eval-every=1)
both 0 'stopped early: 2 evaluations' train ddp.tdm "${train[@]}" --epochs=80 \
  --patience=2 --save-best=best.st --log=ddp.csv --max-time=1h
accuracy=$(grep -oE 'best = accuracy [0-9.]+' <<<"$out" | grep -oE '[0-9.]+$')
both 0 "accuracy = $accuracy" train ddp.tdm --steps=0 --params best.st \
  "${train[@]:7:5}"
# T15: metrics are those of one process.
compile "$digits/mlp.mlir" alone --optimizer=adamw:lr=2e-3
metrics=(--metric=f1:logits,labels --metric=top2:logits,labels)
expect 0 'eval.top2 = ' "$bin/tandem-run" train alone.tdm --steps=0 \
  --params best.st "${train[@]:7:5}" "${metrics[@]}"
for name in f1 top2; do
  value=$(grep -oE "eval.$name = .*" <<<"$out")
  both 0 "$value" train ddp.tdm --steps=0 --params best.st "${train[@]:7:5}" \
    "${metrics[@]}"
done
both 0 'max-time is over' train ddp.tdm "${train[@]}" --epochs=100000 \
  --max-time=0.3

# Whose statistics.
expect 2 'batch-norm' "$bin/tandem" compile "$digits/mlp.mlir" -o no.tdm \
  --batch-norm=per-rank
finish

#!/bin/bash
# digits.sh BIN EXAMPLES - the digit models learn: accuracy on the held-out
# fifth, seed 0; the same losses, bitwise, from two runs and any thread count.
source "$(dirname "$0")/expect.sh"
bin=$1 data=$2/digits/data
cd "$work" || exit 1
expect 0 '' "$bin/tandem" compile "$2/digits/mlp.mlir" -o mlp.tdm \
  --optimizer=adamw:lr=2e-3
expect 0 '' "$bin/digits-cnn" cnn.mlir
expect 0 '' "$bin/tandem" compile cnn.mlir -o cnn.tdm --optimizer=adamw:lr=2e-3

# train MODEL EPOCHS LOG [options]
train() {
  local model=$1 epochs=$2 log=$3
  shift 3
  expect 0 '' "$bin/tandem" train "$model" \
    --data x=@"$data/train_images.npy" --data labels=@"$data/train_labels.npy" \
    --eval x=@"$data/test_images.npy" --eval labels=@"$data/test_labels.npy" \
    --accuracy=logits,labels --epochs "$epochs" --seed 0 --log="$log" --json \
    "$@"
}

# atleast PERCENT: the accuracy that the last run printed.
atleast() {
  local accuracy
  accuracy=$(grep -oE '"accuracy": ?[0-9.]+' <<<"$out" | tail -n 1 |
    grep -oE '[0-9.]+$')
  awk -v a="${accuracy:-0}" -v b="$1" 'BEGIN { exit !(100 * a >= b) }' ||
    fail "accuracy ${accuracy:-unknown}, expected at least $1 %: $out"
  echo "accuracy $accuracy"
}

train mlp.tdm 40 mlp.log
atleast 97
train cnn.tdm 15 cnn.log
atleast 98

# Only wall-clock times may differ between two logs.
losses() { grep -oE '"(loss|step)": ?[-+.e0-9]+' "$1"; }
train cnn.tdm 1 one.log --threads=1
train cnn.tdm 1 two.log --threads=2
[ -s one.log ] || fail 'no log'
cmp <(losses one.log) <(losses two.log) || fail 'threads change the losses'
train cnn.tdm 1 again.log --threads=2
cmp <(losses two.log) <(losses again.log) || fail 'two runs differ'
finish

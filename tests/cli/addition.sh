#!/bin/bash
# addition.sh BIN EXAMPLES - the character GPT learns three-digit addition: at
# least 95 % of unseen sums exactly right.
source "$(dirname "$0")/expect.sh"
bin=$1
cd "$work" || exit 1
expect 0 '' "$bin/addition-data" data
expect 0 '' "$bin/addition-gpt" gpt.mlir
start=$SECONDS
expect 0 '' "$bin/tandem" compile gpt.mlir -o gpt.tdm \
  --optimizer=adamw:lr=2e-3,beta2=0.99,weight_decay=0.01 --time-report
printf '%s\n' "$out"
echo "compiled in $((SECONDS - start)) s"
start=$SECONDS
expect 0 '' "$bin/tandem" train gpt.tdm \
  --data tokens=@data/train_tokens.npy --data labels=@data/train_labels.npy \
  --eval tokens=@data/eval_tokens.npy --eval labels=@data/eval_labels.npy \
  --accuracy=logits,labels --epochs 1 --seed 0 --json
took=$((SECONDS - start))
printf "%s\n" "$out" | tail -n 3
echo "trained in $took s"
exact=$(grep -oE '"exact_match": ?[0-9.]+' <<<"$out" | tail -n 1 |
  grep -oE '[0-9.]+$')
awk -v a="${exact:-0}" 'BEGIN { exit !(100 * a >= 95) }' ||
  fail "exact match ${exact:-unknown}, expected at least 0.95"
finish

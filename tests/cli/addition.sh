#!/bin/bash
# addition.sh BIN EXAMPLES - the character GPT learns three-digit addition: at
# least 95 % of unseen sums exactly right.
source "$(dirname "$0")/expect.sh"
bin=$1
cd "$work" || exit 1
expect 0 '' "$bin/addition-data" data
expect 0 '' "$bin/addition-gpt" gpt.mlir
expect 0 '' "$bin/tandem" compile gpt.mlir -o gpt.tdm \
  --optimizer=adamw:lr=2e-3,weight_decay=0.01 --time-report
printf '%s\n' "$out"

# 1,600 steps, then 400 with a tenth of the learning rate: at a constant rate
# Adam forgets what it knows for a while now and then.
start=$SECONDS
data=(--data tokens=@data/train_tokens.npy --data labels=@data/train_labels.npy)
expect 0 '' "$bin/tandem" train gpt.tdm "${data[@]}" --steps 1600 --seed 0 \
  --save gpt.safetensors
expect 0 '' "$bin/tandem" train gpt.tdm "${data[@]}" --steps 400 --lr 2e-4 \
  --resume gpt.safetensors \
  --eval tokens=@data/eval_tokens.npy --eval labels=@data/eval_labels.npy \
  --accuracy=logits,labels --best=exact_match --json
echo "trained in $((SECONDS - start)) s"
exact=$(grep -oE '"exact_match": ?[0-9.]+' <<<"$out" | tail -n 1 |
  grep -oE '[0-9.]+$')
echo "exact match ${exact:-unknown}"
awk -v a="${exact:-0}" 'BEGIN { exit !(100 * a >= 95) }' ||
  fail "exact match ${exact:-unknown}, expected at least 0.95"
finish

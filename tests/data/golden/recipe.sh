# recipe.sh - sourced by tools/golden-artifact, which writes a checkpoint in the
# middle of this training, and by the test that goes on from it. A checkpoint of
# a released version is never written again, so that what is here never changes.
recipe_compile=(--optimizer=adamw:lr=0.05,weight_decay=0.01 --accumulate
  --group='b.*:weight_decay=0' --clip=norm:1 --ema=0.75
  --swa=start=2,every=2 --lr-schedule=cosine:warmup=2,total=12
  --loss-scale=dynamic:interval=3,init=1024)
recipe_train=(--data x=@x.csv:header=no --data y=@y.csv:header=no --accumulate=2)

# recipe_data FOLDER: writes the rows, five batches and a half of them.
recipe_data() {
  awk 'BEGIN { for (r = 0; r < 22; ++r) { a = r % 7 - 3; b = r % 5 - 2
    printf "%g,%g,%g\n", a / 4, b / 2, (a * b) / 8 } }' >"$1/x.csv"
  awk 'BEGIN { for (r = 0; r < 22; ++r) { a = r % 7 - 3; b = r % 5 - 2
    printf "%g,%g\n", (a + b) / 8, (a - b) / 4 } }' >"$1/y.csv"
}

# recipe_begin BIN FILE: writes the checkpoint, one batch behind an update.
recipe_begin() {
  "$1/tandem-run" train m.tdm "${recipe_train[@]}" --steps=6 --seed=5 --save="$2"
}

# recipe_rest BIN FILE: goes on from it, and prints names and numbers of the rest.
recipe_rest() {
  rm -f rest.jsonl
  "$1/tandem-run" train m.tdm "${recipe_train[@]}" --steps=10 --resume="$2" \
    --log=rest.jsonl --save=rest.safetensors >rest.said 2>&1 || return
  grep -oE '"(loss|lr|grad_norm|loss_scale)": ?[-+.e0-9]+' rest.jsonl
  local average
  for average in ema swa; do
    "$1/tandem-run" predict m.tdm --params=rest.safetensors --average=$average \
      --data x=@x.csv:header=no --output=pred=@pred.csv >/dev/null || return
    tr ',' '\n' <pred.csv | sed "s/^/$average: /"
  done
}

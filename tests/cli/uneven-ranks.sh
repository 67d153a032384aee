#!/bin/bash
# uneven-ranks.sh BIN EXAMPLES MPI - X02, X05, X18, X19: the digits where sizes
# do not divide. Of 5 rows over 4 processes they have 2, 2, 1 and none; the ten
# classes' biases are in pieces of 3, 3, 3 and 1. Losses, checkpoints and
# predictions are those of one process. MPI runs a program in processes.
# shellcheck source=tests/cli/over-ranks.sh
source "$(dirname "$0")/over-ranks.sh"
sed 's/tensor<32x/tensor<5x/g' "$2/digits/mlp.mlir" >five.mlir

# compile OUTPUT [options]
compile() {
  local to=$1
  shift
  expect 0 '' "$bin/tandem" compile five.mlir -o "$to.tdm" \
    --optimizer=adamw:lr=2e-3 "$@"
}

train() { # MODEL RANKS [options]
  local model=$1 ranks=$2
  shift 2
  over "$ranks" train "$model.tdm" --data x=@"$data/train_images.npy" \
    --data labels=@"$data/train_labels.npy" --seed 0 --threads=1 --force "$@"
}

predict() { # MODEL RANKS OUTPUT
  over "$2" predict "$1.tdm" --params one.safetensors --data \
    x=@"$data/test_images.npy" --output logits=@"$3" --force
}

compile one
train one 1 --steps 20 --log one.jsonl --save one.safetensors
predict one 1 one.csv
compile three --mesh=data=3 --parallel=fsdp
for plan in ddp zero2 fsdp; do
  compile "$plan" --mesh=data=4 --parallel=$plan
  train $plan 4 --steps 20 --log $plan.jsonl --save $plan.safetensors
  near $plan.jsonl one.jsonl
  # A checkpoint has the sizes of one process, and whoever resumes goes on.
  [ "$(wc -c <$plan.safetensors)" = "$(wc -c <one.safetensors)" ] ||
    fail "$plan: another checkpoint than one process writes"
  train $plan 4 --steps 10 --save half.safetensors
  for rest in 'three 3' 'one 1'; do
    read -r model ranks <<<"$rest"
    rm -f rest.jsonl
    train "$model" "$ranks" --steps 10 --resume half.safetensors \
      --log rest.jsonl
    tail -n 10 one.jsonl >tail.jsonl
    near rest.jsonl tail.jsonl
  done
  # Each row once, and no other.
  predict $plan 4 all.csv
  [ "$(wc -l <all.csv)" = "$(wc -l <one.csv)" ] || fail "$plan: other rows"
  paste -d, one.csv all.csv | awk -F, 'NR > 1 {
    for (i = 1; i <= NF / 2; ++i) {
      d = $i - $(i + NF / 2)
      if (!(d <= 1e-4 && d >= -1e-4) || NF != 20) bad = 1
    } } END { exit bad || NR < 100 }' || fail "$plan: predictions differ"
done

# What a rank has is shown, and its size in the whole.
expect 0 'param "fc2.b" +\[data\] +tensor<3xf32> of tensor<10xf32>' \
  "$bin/tandem" inspect five.mlir --mesh=data=4 --parallel=fsdp --shardings \
  --optimizer=adamw:lr=2e-3
finish

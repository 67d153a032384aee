#!/bin/bash
# rank-accumulate.sh BIN EXAMPLES MPI - X09, X18: gradients of several batches
# are reduced once, and a training that stops between them goes on: on the same
# mesh with the same bits, on another one and on one process within rounding.
# MPI runs a program in processes.
# shellcheck source=tests/cli/over-ranks.sh
source "$(dirname "$0")/over-ranks.sh"
rows=("${digitRows[@]}" --accumulate=3)

compile() { # ARTIFACT [options]
  expect 0 '' "$bin/tandem" compile "$examples/digits/mlp.mlir" -o "$1.tdm" \
    --optimizer=adamw:lr=2e-3 --accumulate --clip=norm:1 --effort=0 "${@:2}"
}
compile one
# 7 updates, then 2 batches, then the rest.
over 1 train one.tdm "${rows[@]}" --seed 0 --steps 30 --log one.jsonl \
  --save one.safetensors
tail -n 7 one.jsonl >tail.jsonl
for plan in ddp zero1 fsdp; do
  compile $plan-2 --mesh=data=2 --parallel=$plan
  compile $plan-4 --mesh=data=4 --parallel=$plan
  for name in .safetensors .safetensors.index.json; do
    rm -f w* rest* whole*
    over 4 train $plan-4.tdm "${rows[@]}" --seed 0 --steps 30 --log whole.jsonl \
      --save whole.safetensors
    near whole.jsonl one.jsonl
    over 4 train $plan-4.tdm "${rows[@]}" --seed 0 --steps 23 --save w$name
    for rest in "$plan-4 4" "$plan-2 2" 'one 1'; do
      read -r artifact ranks <<<"$rest"
      rm -f rest*
      over "$ranks" train "$artifact.tdm" "${rows[@]}" --steps 7 \
        --resume w$name --save rest.safetensors --log rest.jsonl
      near rest.jsonl tail.jsonl
      [ "$ranks" != 4 ] || cmp whole.safetensors rest.safetensors ||
        fail "$plan, $name: other bits on the same mesh"
    done
  done
  # Where nothing waits for an update there are no sums in the file.
  over 4 train $plan-4.tdm "${rows[@]}" --seed 0 --steps 24 --force \
    --save w.safetensors
  expect 0 '' "$bin/tandem-run" inspect w.safetensors
  grep -q 'sum:' <<<"$out" && fail "sums of nothing: $out"
done

# A sum of one process on ranks.
over 1 train one.tdm "${rows[@]}" --seed 0 --steps 23 --save part.safetensors
over 2 train ddp-2.tdm "${rows[@]}" --steps 7 --resume part.safetensors \
  --log from-one.jsonl
near from-one.jsonl tail.jsonl
finish

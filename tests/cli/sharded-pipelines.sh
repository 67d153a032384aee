#!/bin/bash
# sharded-pipelines.sh BIN EXAMPLES MPI - X17, X05, X13, X18: stages that are of
# several ranks each, on 4 processes. 20 steps have the losses of one process that
# adds up as many batches (relative 1e-5); checkpoints go to one process, to
# stages of one rank, and back. MPI runs a program in processes.
# shellcheck source=tests/cli/over-ranks.sh
source "$(dirname "$0")/over-ranks.sh"
rows=("${digitRows[@]}" --accumulate=4)

compile one "$examples/digits/mlp.mlir" --accumulate
over 1 train one.tdm "${rows[@]}" --seed 0 --steps 22 --log one.jsonl \
  --save one.safetensors
head -n 20 one.jsonl >first.jsonl
over 1 train one.tdm "${rows[@]}" --seed 0 --steps 30 --log whole.jsonl \
  --save whole.safetensors
tail -n 8 whole.jsonl >tail.jsonl
compile stages "$examples/digits/mlp.mlir" --mesh=pipe=2 --parallel=pp
for parallel in ddp zero1 fsdp; do
  compile $parallel "$examples/digits/mlp.mlir" --mesh=pipe=2,data=2 \
    --parallel=pp+$parallel
  over 4 train $parallel.tdm "${rows[@]}" --seed 0 --steps 20 \
    --log $parallel.jsonl --save $parallel.safetensors
  near $parallel.jsonl first.jsonl
done

# In the middle of an accumulation, in one file and in one for each rank.
for name in w.safetensors v.safetensors.index.json; do
  over 4 train zero1.tdm "${rows[@]}" --seed 0 --steps 22 --save $name
  for rest in 'one 1' 'stages 2' 'fsdp 4'; do
    read -r artifact ranks <<<"$rest"
    rm -f rest.jsonl
    over "$ranks" train "$artifact.tdm" "${rows[@]}" --steps 8 --force \
      --resume $name --save r.safetensors --log rest.jsonl
    near rest.jsonl tail.jsonl
  done
done
[ "$(find . -name 'v-*-of-00004.safetensors' | wc -l)" = 4 ] ||
  fail "expected four files: $(ls)"
expect 0 '' "$bin/tandem" checkpoint merge v.safetensors.index.json \
  -o merged.safetensors
cmp merged.safetensors w.safetensors || fail 'the index has other values'
rm -f rest.jsonl
over 4 train fsdp.tdm "${rows[@]}" --steps 8 --resume one.safetensors \
  --log rest.jsonl
near rest.jsonl tail.jsonl

# A GPT, whose stages send each other several lines of each row.
expect 0 '' "$bin/addition-data" sums --train 2560 --eval 128
expect 0 '' "$bin/addition-gpt" gpt.mlir
gpt=(--data tokens=@sums/train_tokens.npy --data
  labels=@sums/train_labels.npy --accumulate=5 --seed 0 --steps 20)
compile gpt gpt.mlir --accumulate
over 1 train gpt.tdm "${gpt[@]}" --log gpt.jsonl
compile turns gpt.mlir --mesh=pipe=2,data=2 --parallel=pp:2+ddp
over 4 train turns.tdm "${gpt[@]}" --log turns.jsonl
near turns.jsonl gpt.jsonl

# X07, X08: the norm, the scale and the rate are those of one process. A row of
# data that is no number leaves out the update of all stages.
update=(--clip=norm:0.5 --loss-scale=dynamic:init=1024
  --lr-schedule=cosine:warmup=2,total=8 --ema=0.9 --group='fc1.*:lr=1e-3')
compile plain "$examples/digits/mlp.mlir" --accumulate "${update[@]}"
compile normed "$examples/digits/mlp.mlir" --mesh=pipe=2,data=2 \
  --parallel=pp+ddp "${update[@]}"
awk 'BEGIN { for (r = 0; r < 1437; ++r) for (c = 0; c < 64; ++c)
  printf "%s%s", r == 250 && c == 5 ? "nan" : (r * c) % 17,
    c == 63 ? "\n" : "," }' >nan.csv
nan=(--data x=@nan.csv:header=no --data labels=@"$data/train_labels.npy"
  --accumulate=4 --no-shuffle --steps=16 --on-nan=skip)
over 1 train plain.tdm "${nan[@]}" --log plain.jsonl --save plain.safetensors
over 4 train normed.tdm "${nan[@]}" --log normed.jsonl --save normed.safetensors
grep -q 'its update is left out' <<<"$out" || fail "nothing was said: $out"
# numbers LOG: all but the time, and the NaN of a loss.
numbers() { sed -E 's/"seconds": ?[^,}]*//; s/nan|null/-1/g; s/true/1/g;
  s/[^-+.e0-9]+/ /g' "$1"; }
grep -q '"skipped": true' normed.jsonl || fail "$(cat normed.jsonl)"
grep -q '"loss_scale": 512' normed.jsonl || fail "$(cat normed.jsonl)"
[ "$(grep -c grad_norm normed.jsonl)" = 4 ] || fail "$(cat normed.jsonl)"
paste <(numbers plain.jsonl) <(numbers normed.jsonl) | awk '
  { for (i = 1; i <= NF / 2; ++i) { d = $i - $(i + NF / 2); if (d < 0) d = -d
      if (NF % 2 || d > 2e-5 * ($i < 0 ? -$i : $i) + 1e-9) bad = 1 } }
  END { exit bad || NR != 16 }' ||
  fail "$(paste plain.jsonl normed.jsonl)"
expect 2 'compile with --clip=norm' "$mpi" 4 60 "$bin/tandem-run" train \
  zero1.tdm "${rows[@]}" --steps 4 --on-nan=skip

# Averages in the place of parameters, of the stages that have some.
eval=(--eval x=@"$data/test_images.npy" --eval
  labels=@"$data/test_labels.npy" --accuracy logits,labels)
compile halves "$examples/digits/mlp.mlir" --mesh=pipe=2 --parallel=pp \
  "${update[@]}"
over 1 train plain.tdm "${rows[@]}" "${eval[@]}" --seed 0 --steps 24 \
  --save a.safetensors --average=ema
one=$(grep '^eval' <<<"$out")
over 2 train halves.tdm "${rows[@]}" "${eval[@]}" --seed 0 --steps 24 \
  --save a2.safetensors --average=ema
[ "$(grep '^eval' <<<"$out")" = "$one" ] || fail "expected $one but got $out"
over 1 predict plain.tdm --params a.safetensors --average=ema \
  --data x=@"$data/test_images.npy" --argmax --output logits=@p.npy
over 4 predict normed.tdm --params a.safetensors --average=ema \
  --data x=@"$data/test_images.npy" --argmax --output logits=@p4.npy
cmp p.npy p4.npy || fail 'stages predict something else'
expect 3 'stages of several ranks' "$mpi" 4 60 "$bin/tandem-run" train \
  normed.tdm "${rows[@]}" "${eval[@]}" --steps 4 --average=ema

# How many processes; and files of two compilations.
expect 2 'expected 4 processes' "$mpi" 2 60 "$bin/tandem-run" train ddp.tdm \
  "${rows[@]}" --steps 1
cp zero1.stage1.tdm ddp.stage1.tdm
expect 2 'is not stage 1' "$mpi" 4 60 "$bin/tandem-run" train ddp.tdm \
  "${rows[@]}" --steps 1
finish

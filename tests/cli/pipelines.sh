#!/bin/bash
# pipelines.sh BIN EXAMPLES MPI - X17, X11, X13, X18: models in stages on 2 and 4
# processes. 20 steps have the losses of one process that adds up as many
# batches (relative 1e-5); checkpoints go from stages to one process and back; a
# rank that is killed ends all. MPI runs a program in processes.
# shellcheck source=tests/cli/over-ranks.sh
source "$(dirname "$0")/over-ranks.sh"
rows=("${digitRows[@]}" --accumulate=4)

# as_one NAME MODEL: 2 and 4 ranks learn as one does.
as_one() {
  local name=$1 model=$2 stages
  shift 2
  compile "$name" "$model" --accumulate
  over 1 train "$name.tdm" "$@" --seed 0 --steps 20 --log "$name.jsonl" \
    --save "$name.safetensors"
  for stages in 2 4; do
    compile "$name-$stages" "$model" --mesh=pipe=$stages --parallel=pp
    over $stages train "$name-$stages.tdm" "$@" --seed 0 --steps 20 \
      --log "$name-$stages.jsonl" --save "$name-$stages.safetensors"
    near "$name-$stages.jsonl" "$name.jsonl"
  done
}

as_one digits "$examples/digits/mlp.mlir" "${rows[@]}"
expect 0 '' "$bin/digits-cnn" cnn.mlir
as_one cnn cnn.mlir "${rows[@]}"
expect 0 '' "$bin/addition-data" sums --train 2560 --eval 128
expect 0 '' "$bin/addition-gpt" gpt.mlir
as_one gpt gpt.mlir --data tokens=@sums/train_tokens.npy \
  --data labels=@sums/train_labels.npy --accumulate=5
# npy SHAPE: an array of bytes, which come on stdin.
npy() {
  local head="{'descr': '|u1', 'fortran_order': False, 'shape': ($1), }"
  printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$head"
  cat
}
bytes=$((96 * 3 * 32 * 32))
for _ in 1 2 3 4; do cat "$data/train_images.npy"; done | head -c $bytes |
  npy '96, 3, 32, 32' >images.npy
for i in $(seq 96); do printf "\\x0$((i * 7 % 10))"; done |
  npy '96,' >classes.npy
expect 0 '' "$bin/tandem-workload" write resnet8 -o resnet8.mlir
as_one resnet8 resnet8.mlir --data x=@images.npy --data labels=@classes.npy \
  --accumulate=2

# One process goes on with what stages saved, and the other way round; in the
# middle of an accumulation, too.
over 1 train digits.tdm "${rows[@]}" --seed 0 --steps 30 --log whole.jsonl \
  --save whole.safetensors
tail -n 8 whole.jsonl >tail.jsonl
for name in w.safetensors v.safetensors.index.json; do
  over 4 train digits-4.tdm "${rows[@]}" --seed 0 --steps 22 --save $name
  for rest in 'digits 1' 'digits-2 2' 'digits-4 4'; do
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
over 1 train digits.tdm "${rows[@]}" --seed 0 --steps 22 --save o.safetensors
rm -f rest.jsonl
over 2 train digits-2.tdm "${rows[@]}" --steps 8 --resume o.safetensors \
  --log rest.jsonl
near rest.jsonl tail.jsonl

# A pass ends with an update of what is left, and what is saved on the way is of
# a moment between batches that go together.
over 1 train digits.tdm "${rows[@]}" --seed 0 --epochs 1 --log one.jsonl
over 2 train digits-2.tdm "${rows[@]}" --seed 0 --epochs 1 --save-every=7 \
  --save s.safetensors --log two.jsonl
near two.jsonl one.jsonl

# Several stages of a rank.
compile turns cnn.mlir --mesh=pipe=2 --parallel=pp:2
over 2 train turns.tdm "${rows[@]}" --seed 0 --steps 20 --log turns.jsonl
near turns.jsonl cnn.jsonl
expect 0 '^ +3 +1 ' "$bin/tandem" inspect turns.tdm
expect 0 'idle.* 50.0 ' "$bin/tandem-run" inspect digits-2.tdm

# Files of two compilations, and of too few ranks (X13).
compile other "$examples/digits/mlp.mlir" --mesh=pipe=2 --parallel=pp \
  --memory-budget=0
cp digits-2.tdm mixed.tdm
cp other.stage1.tdm mixed.stage1.tdm
expect 2 'is not stage 1' "$mpi" 2 60 "$bin/tandem-run" train mixed.tdm \
  "${rows[@]}" --steps 1
expect 2 'expected 2 processes' "$mpi" 4 60 "$bin/tandem-run" train \
  digits-2.tdm "${rows[@]}" --steps 1
expect 2 'file of stage 0' "$bin/tandem-run" train digits-2.stage1.tdm \
  "${rows[@]}" --steps 1

# Updates are timed, and idle ranks; what is of one model alone is refused.
expect 0 '^idle +[0-9.]+ %, and 33\.3 % if' "$mpi" 2 60 "$bin/tandem-run" bench \
  digits-2.tdm --steps=5 --accumulate=2
expect 0 '"idle_of_equal_stages": 0.6' "$mpi" 4 60 "$bin/tandem-run" bench \
  digits-4.tdm --steps=5 --accumulate=2 --json
grep -qE '"median_ms": [0-9]' <<<"$out" || fail "$out"
expect 3 '.--kernels is of one model' "$mpi" 2 60 "$bin/tandem-run" bench \
  digits-2.tdm --kernels
expect 3 "which 'train', 'predict' and 'bench' run" "$bin/tandem-run" run \
  digits-2.tdm
# So are updates of one model, where there is a program that accumulates.
expect 0 '^batches an update +2' "$bin/tandem-run" bench digits.tdm --steps=2 \
  --accumulate=2
expect 0 '' "$bin/tandem" compile "$examples/digits/mlp.mlir" -o plain.tdm \
  --optimizer=adamw:lr=2e-3
expect 2 "is no model in stages, and has no programs 'step' and 'accumulate'" \
  "$bin/tandem-run" bench plain.tdm --accumulate=2

# The C API says what runs stages.
tail -c +129 "$data/train_images.npy" >images
tail -c +129 "$data/train_labels.npy" >labels
expect 3 "is stage 0 of the 2 of a model .*'tandem-run predict' do, as 2 proc" \
  "$bin/embed" digits-2.tdm images labels

# What is evaluated and predicted, and begun with, is that of one process: on the
# way and at the end, with nothing trained, and with rows that fill no batch.
eval=(--eval x=@"$data/test_images.npy" --eval
  labels=@"$data/test_labels.npy" --accuracy logits,labels)
evaluated() { grep -E '^(epoch|eval|best|output|logits)|gives' <<<"$out"; }
over 1 train digits.tdm "${rows[@]}" "${eval[@]}" --seed 0 --epochs 2 \
  --eval-every 1 --save-best b.safetensors --save e.safetensors
wanted=$(evaluated | grep -v samples/s)
# same RANKS COMMAND...: it says what one process said.
same() {
  over "$@"
  [ "$(evaluated | grep -v samples/s)" = "$wanted" ] ||
    fail "expected $wanted of $*, but got $out"
}
for stages in 2 4; do
  same $stages train digits-$stages.tdm "${rows[@]}" "${eval[@]}" --seed 0 \
    --epochs 2 --eval-every 1 --save-best b$stages.safetensors \
    --save e$stages.safetensors
done
over 1 train digits.tdm "${eval[@]}" --steps=0 --params e.safetensors
wanted=$(evaluated)
same 4 train digits-4.tdm "${eval[@]}" --steps=0 --params e.safetensors
over 1 train digits.tdm "${rows[@]}" "${eval[@]}" --steps 8 --init-from \
  e.safetensors --save i.safetensors
wanted=$(evaluated | grep -v samples/s)
same 2 train digits-2.tdm "${rows[@]}" "${eval[@]}" --steps 8 --init-from \
  e.safetensors --save i2.safetensors
over 1 predict digits.tdm --params e.safetensors \
  --data x=@"$data/test_images.npy" --output logits=@p.npy
wanted=$(evaluated)
for stages in 2 4; do
  same $stages predict digits-$stages.tdm --params e.safetensors \
    --data x=@"$data/test_images.npy" --output logits=@p$stages.npy
  cmp p.npy p$stages.npy || fail "$stages stages predict something else"
done
expect 3 'stage of a pipeline' "$bin/tandem-run" run digits-2.tdm
expect 3 '--profile is not there' "$mpi" 2 60 "$bin/tandem-run" predict \
  digits-2.tdm --data x=@"$data/test_images.npy" --profile p.json

# A rank that is killed ends the others, with a message.
"$mpi" 4 60 "$bin/tandem-run" train digits-4.tdm "${rows[@]}" --seed 0 \
  --epochs 10000 --timeout=5 --rank-logs=logs >killed.txt 2>&1 &
launcher=$!
# ranks: the processes of ours that have stages.
ranks() {
  local parents=$launcher next
  for _ in 1 2 3 4; do
    next=$(pgrep -P "${parents//$'\n'/,}" -f . || true)
    [ -n "$next" ] || return
    parents=$next
    pgrep -P "${parents//$'\n'/,}" tandem-run && return
  done
}
victim=
for _ in $(seq 200); do
  # Under way, not only started.
  [ -s logs/rank-0.log ] && victim=$(ranks | tail -n 1)
  [ -n "$victim" ] && break
  sleep 0.1
done
[ -n "$victim" ] || fail "no rank was found: $(cat killed.txt)"
kill -9 "$victim"
wait "$launcher"
case $? in
  0 | 124) fail "it went on, or did not end: $(cat killed.txt)" ;;
esac

# What is not compiled says so.
refused() { # TEXT [options]
  local text=$1
  shift
  expect 2 "$text" "$bin/tandem" compile "$examples/digits/mlp.mlir" \
    -o no.tdm --optimizer=sgd:lr=0.1 "$@"
}
refused "needs an axis 'pipe'" --mesh=data=2 --parallel=pp
refused "expected 'pp' among" --mesh=pipe=2,data=2 --parallel=ddp
refused "'z' has no member" --mesh=pipe=2 --parallel=pp --group=z:lr=0.1
refused "but got 'pp:0'" --mesh=pipe=2 --parallel=pp:0
expect 2 "several artifacts" "$bin/tandem" inspect "$examples/digits/mlp.mlir" \
  --mesh=pipe=2 --parallel=pp --optimizer=sgd:lr=0.1
finish

#!/bin/bash
# onnx.sh BIN EXAMPLES DATA - models in ONNX as a user meets them: what is in
# one, what is wrong with one, and one from PyTorch that is trained on. DATA is
# the folder of ONNX's backend tests.
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem
digits=$2/digits/data
model=$2/onnx/digits.onnx
data=$3
cd "$work" || exit 1

# What is in it: everything that is not supported first.
expect 0 'ai.onnx 14, made by pytorch' "$tandem" inspect "$model" --dim=batch=64
grep -q '^operator   Conv  *2$' <<<"$out" || fail "no operators: $out"
grep -q 'evaluate' <<<"$out" || fail "no programs: $out"
case=test_strnormalizer_nostopwords_nochangecase
expect 3 "^  node 'y' \(StringNormalizer\): unsupported" \
  "$tandem" inspect "$data/node/$case/model.onnx"
[[ $out == *" not supported:"* ]] || fail "no list first: $out"

# Sizes and values are asked for.
expect 2 "input 'x': has a dimension of no fixed size.* --dim=batch=N" \
  "$tandem" compile "$model" -o m.tdm
expand=$data/simple/test_expand_shape_model1/model.onnx
expect 3 "--value=shape=" "$tandem" compile "$expand" -o m.tdm
expect 0 '' "$tandem" compile "$expand" -o m.tdm --value='shape=[3,1]'
expect 1 "node .*Expand" "$tandem" compile "$expand" -o m.tdm \
  --value='shape=[2,5,7]'
expect 2 'a list of numbers' "$tandem" compile "$expand" -o m.tdm \
  --value='shape=[x]'
expect 2 '--dim=NAME=N' "$tandem" compile "$model" -o m.tdm --dim=batch
expect 2 '--shape=INPUT=AxBxC' "$tandem" compile "$model" -o m.tdm \
  --shape=x=2x
expect 2 'for models of other formats' "$tandem" compile \
  "$2/digits/mlp.mlir" -o m.tdm --train=w --loss=loss

# Names that match nothing passed: a typo in --freeze trained everything.
trained() {
  "$tandem" compile "$model" -o m.tdm --dim=batch=64 \
    --loss=cross_entropy:logits,labels "$@"
}
expect 2 "'conv1.weigth' matches no initializer .did you mean 'conv1.weight'" \
  trained --freeze='conv1.weigth|fc'
expect 2 'to be a regular expression' trained --freeze='*'
expect 2 'matches no initializer' trained --train=nothing
expect 2 'nothing is left to train' trained --freeze=conv1 --train=conv1
expect 2 'no dimension of this name.* .batch.' trained --dim=nope=3

# What is trained is said, and where an op stands.
expect 0 "digits.onnx: remark: trains [0-9]+ initializers of [0-9]+ numbers: 'conv1.weight'" \
  trained
expect 0 '' "$tandem" compile "$model" -o capture.mlir --dim=batch=64 \
  --stop-after=capture
grep -q '"(Conv)"' capture.mlir || fail "no node of a Conv"

# Files and losses that are wrong.
head -c 20000 "$model" >short.onnx
expect 1 'truncated' "$tandem" compile short.onnx -o m.tdm
expect 1 'cannot read' "$tandem" compile none.onnx -o m.tdm
expect 2 "no value 'scores'.* 'logits'" "$tandem" compile "$model" -o m.tdm \
  --dim=batch=64 --loss=cross_entropy:scores,labels
expect 2 'one of the kinds cross_entropy.* but got .squares.' "$tandem" compile "$model" -o m.tdm \
  --dim=batch=64 --loss=squares:logits,labels

# Every kind of loss: one of them named a function that does not exist.
for kind in cross_entropy nll mse l1 smooth_l1 huber bce_with_logits bce kl dice \
  dice_with_logits; do
  expect 0 'wrote the artifact' "$tandem" compile "$model" -o m.tdm \
    --dim=batch=64 --loss=$kind:logits,target --optimizer=sgd:lr=0.1
done
# Was exit code 1, and did not say which outputs there are.
expect 2 "its outputs are 'logits' \(in a model in ONNX, --loss=KIND" \
  "$tandem" compile "$model" -o m.tdm --dim=batch=64 --optimizer=sgd:lr=0.1
expect 1 "cannot read 'none.onnx': No such file" "$tandem" compile none.onnx -o m.tdm

# Without a loss there is the forward alone, which starts from the weights.
expect 0 'wrote 14 weights' "$tandem" compile "$model" -o m.tdm --dim=batch=360
expect 0 '^logits  f32   \[360, 10\]' "$tandem" run m.tdm \
  --params m.safetensors --input x=@"$digits/test_images.npy"
expect 2 "have no value and no initial one: 'conv1.weight'.*expected --params" \
  "$tandem" run m.tdm \
  --input x=@"$digits/test_images.npy"

# `check` without a loss did not say how a model in ONNX gets one.
expect 3 'no gradients \(in a model in ONNX, --loss=KIND:OUTPUT,LABELS' \
  "$tandem" check "$model" --dim=batch=4

# A fresh network of PyTorch's, of which the exporter merged scales and running
# variances: they were states, and no gradient trained them.
fixtures=$(dirname "$0")/../onnx/fixtures
expect 0 "trains 8 initializers of .*; 4 running statistics" \
  "$tandem" compile "$fixtures/batchnorm.onnx" -o bn.tdm \
  --loss=cross_entropy:y,labels --optimizer=sgd:lr=0.1
grep -q "split, since an exporter merges what is equal" <<<"$out" ||
  fail "no remark: $out"

# Labels of -100 were refused by cross_entropy and counted by nobody.
printf 'a,b,c\n%s' "$(for i in 1 2 3 4 5 6 7 8; do
  echo "0.$i,-0.$i,$i.5"
done)" >x.csv
printf '0\n1\n-100\n3\n2\n1\n-100\n0\n' >labels.csv
rows=(--eval x=@x.csv --eval labels=@labels.csv)
expect 0 '^eval.loss = [0-9.]+' "$tandem" train bn.tdm --params bn.safetensors \
  --steps=0 "${rows[@]}"
printf '0\n1\n-5\n3\n2\n1\n-100\n0\n' >labels.csv
expect 2 "from 0 to 3, or -100, which does not count but row 2 is -5" \
  "$tandem" train bn.tdm --params bn.safetensors --steps=0 "${rows[@]}"
# The names that pandas gives to columns were a row.
printf '0,1,2\n%s' "$(tail -n 8 x.csv)" >pandas.csv
expect 2 "line 1 may be names of columns, or data \\(0 to 2\\)" "$tandem" train bn.tdm \
  --params bn.safetensors --steps=0 --eval x=@pandas.csv \
  --eval labels=@labels.csv

# The largest of one score is no prediction.
expect 0 'wrote the artifact' "$tandem" compile "$fixtures/layernorm.onnx" \
  -o one.tdm
expect 0 "note: --argmax: 'y' has one score a row" "$tandem" predict one.tdm \
  --params one.safetensors --data x=@x.csv --argmax

# Gradients of a model in ONNX.
expect 0 'gradients checked' "$tandem" check "$model" --dim=batch=4 \
  --loss=cross_entropy:logits,labels --keep-eval
printf '%s\n' "$out" | tail -n 1

# accuracy OPTIMIZER EPOCHS OPTION...: trains, and leaves the accuracy.
accuracy() {
  local optimizer=$1 epochs=$2
  shift 2
  expect 0 'wrote [0-9]+ weights' "$tandem" compile "$model" -o m.tdm \
    --dim=batch=64 --loss=cross_entropy:logits,labels \
    --optimizer="$optimizer" "$@"
  expect 0 'accuracy' "$tandem" train m.tdm --params m.safetensors --seed 0 \
    --data x=@"$digits/train_images.npy" \
    --data labels=@"$digits/train_labels.npy" \
    --eval x=@"$digits/test_images.npy" \
    --eval labels=@"$digits/test_labels.npy" \
    --accuracy=logits,labels --epochs "$epochs" --json
  accuracy=$(grep -oE '"accuracy": *[0-9.]+' <<<"$out" | grep -oE '[0-9.]+$')
}
accuracy sgd:lr=0 1 --keep-eval
start=$accuracy
accuracy adamw:lr=2e-3 20
printf 'accuracy %s, after 20 passes %s\n' "$start" "$accuracy"
awk -v a="$start" -v b="$accuracy" 'BEGIN { exit !(a > 0.5 && b > 0.97) }' ||
  fail "expected to start above 0.5 and end above 0.97: $start, $accuracy"
finish

#!/bin/bash
# inputs.sh BIN EXAMPLES - inputs that arrive as bytes, mixed rows, smoothed
# labels and AdamW without a schedule, as a user meets them: the numbers of the
# program without them where there is one, and resumed to the same bits.
source "$(dirname "$0")/expect.sh"
source "$(dirname "$0")/train-digits.sh"

adamw=--optimizer=adamw:lr=2e-3
eval=(--eval x=@"$data/test_images.npy" --eval labels=@"$data/test_labels.npy")

of() { grep -oE 'eval.loss = .*' <<<"$out"; }
evaluated() { # MODEL FILE [options]
  local model=$1 file=$2
  shift 2
  expect 0 'eval.loss' "$bin/tandem-run" train "$model.tdm" --steps=0 "${eval[@]}" \
    --params="$file" "$@"
}

# What is wrong is said before a model is read, what does not fit it after that.
refused 2 "expected the type of 'x' to be u8, " --input=x:u7
refused 2 "expected std to be a number above 0" --input=x:u8,std=0
# f32 makes 0 or infinity of them, or of what is computed: inputs were NaN or 0.
for numbers in std=1e-50 std=1e39 std=1e-40 mean=1e39 scale=1e39 scale=1e-50 \
  scale=1e-30/1e30 scale=1e37; do
  refused 2 "expected ${numbers%%=*} to be a number that f32 holds" --input=x:u8,$numbers
done
refused 2 "has no input 'images'" --input=images:u8
refused 2 "expected 'labels' to have floating-point elements" --input=labels:u8
refused 2 "'x' is given twice" --input=x:u8 --input=x:i8
refused 2 'expected alpha to be from' $adamw --mixup=x,labels:alpha=0
refused 2 "exclude each other" --inference --mixup=x,labels:alpha=1
expect 0 '' "$bin/tandem" compile "$digits/mlp.mlir" --stop-after=functionalize -o later.mlir
expect 2 "input has no effect on a module that is past 'capture'" \
  "$bin/tandem" compile later.mlir -o no.tdm --input=x:u8

# Bytes give the numbers that the host made of them before.
compile floats $adamw
compile bytes $adamw --input=x:u8,scale=1/8
train 0 '' floats --steps=20 --log=floats.log --save=floats.st --cast=x=/8
train 0 '' bytes --steps=20 --log=bytes.log --save=bytes.st
diff <(losses floats.log) <(losses bytes.log) || fail 'bytes give other losses'
expect 0 'u8\[' "$bin/tandem" inspect bytes.tdm
# A program that evaluates takes them too.
evaluated bytes bytes.st
# What bytes cannot hold is refused where it is read.
printf '%s\n' 300 >large.csv
expect 2 'u8' "$bin/tandem-run" train bytes.tdm --data x=@large.csv \
  --data labels=@"$data/train_labels.npy" --steps=1

# Rows are mixed by numbers that follow from the seed, and go on where they were.
compile mixed $adamw --mixup=x,labels:alpha=0.4
trains=(--seed=3)
train 0 '' mixed --steps=20 --log=whole.log --save=whole.st
train 0 '' mixed --steps=20 --save=again.st
cmp whole.st again.st || fail 'one seed gives two trainings'
train 0 '' mixed --steps=7 --save=part.st
trains=()
train 0 '' mixed --steps=13 --resume=part.st --save=rest.st
cmp whole.st rest.st || fail 'resumed, rows are mixed otherwise'
train 0 '' floats --steps=20 --seed=3 --log=plain.log --save=plain.st
diff -q <(losses whole.log) <(losses plain.log) >/dev/null && fail 'nothing is mixed'
# What evaluates knows nothing of it.
evaluated mixed plain.st
mixed=$(of)
evaluated floats plain.st
[ "$(of)" = "$mixed" ] || fail "evaluated as $(of), but $mixed with --mixup"

# Smoothed labels are in the loss of a model that had none.
onnx=$2/onnx/digits.onnx
expect 2 "smoothing is cross_entropy's" "$bin/tandem" compile "$onnx" -o no.tdm \
  --dim=batch=64 --loss=nll:logits,labels,smoothing=0.1
for smoothing in 0 0.1; do
  expect 0 '' "$bin/tandem" compile "$onnx" -o "smooth$smoothing.tdm" --dim=batch=64 \
    --loss=cross_entropy:logits,labels,smoothing=$smoothing $adamw
done
expect 0 'labels .* in \[0, 10\)' "$bin/tandem" inspect smooth0.1.tdm

# The mean of what AdamW without a schedule visits is what evaluates.
compile free --optimizer=schedulefree:lr=5e-3,weight_decay=0.01
train 0 '' free --steps=30 --seed=0 --save=free.st "${eval[@]}" --average=schedulefree
during=$(of)
evaluated free free.st --average=schedulefree
[ "$(of)" = "$during" ] || fail "of the file $(of), but $during in training"
evaluated free free.st
[ "$(of)" = "$during" ] && fail 'parameters are their mean'
train 0 '' free --steps=12 --seed=0 --save=freed.st
train 0 '' free --steps=18 --resume=freed.st --save=freed.st
cmp free.st freed.st || fail 'resumed, it has other numbers'
train 2 'compile with --optimizer=schedulefree' floats --steps=1 "${eval[@]}" \
  --average=schedulefree
finish

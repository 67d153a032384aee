#!/bin/bash
# files.sh BIN EXAMPLES - what the compiler's commands write: over nothing that
# is somebody's, and every weight that a model brings. And what a checkpoint
# knows of the model that it is of.
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem
onnx=$2/onnx/digits.onnx
cp "$2/digits/mlp.mlir" "$work/mlp.mlir"
cp "$onnx" "$work/cnn.onnx"
cd "$work" || exit 1
with=(--dim=batch=64 --loss=cross_entropy:logits,labels --optimizer=adamw:lr=1e-3)

# refuse PATTERN COMMAND...: exit code 2, and every file is as it was.
refuse() {
  local before
  before=$(find . -type f -exec md5sum {} + | sort -k 2)
  expect 2 "$1.*; choose another file, or say --force" "${@:2}"
  [ "$before" = "$(find . -type f -exec md5sum {} + | sort -k 2)" ] ||
    fail "files changed: ${*:2}"
}

# `compile mlp.mlir -o mlp.mlir` and `compile cnn.onnx -o cnn.onnx` replaced the
# model, with exit code 0; so did other names of the same file.
ln -s mlp.mlir soft.tdm
ln mlp.mlir hard.tdm
expect 2 "expected -o to name an artifact \(.tdm\), but got 'mlp.mlir'" \
  "$tandem" compile mlp.mlir -o mlp.mlir
expect 2 "expected -o to name an artifact \(.tdm\), but got 'cnn.onnx'" \
  "$tandem" compile cnn.onnx -o cnn.onnx
for name in soft.tdm hard.tdm; do
  refuse "-o would replace '$name', which the model reads" \
    "$tandem" compile mlp.mlir -o $name
done
refuse "-o would replace '.*/mlp.mlir', which the model reads" \
  "$tandem" compile mlp.mlir -o "$PWD/mlp.mlir" --stop-after=joint
rm soft.tdm hard.tdm
cp mlp.mlir other.mlir
refuse "-o would replace 'other.mlir': expected a module that 'compile' wrote but got a model in MLIR" \
  "$tandem" compile mlp.mlir -o other.mlir --stop-after=joint
for i in 1 2; do
  expect 0 '' "$tandem" compile mlp.mlir -o joint.mlir --stop-after=joint
done
expect 0 '' "$tandem" compile mlp.mlir -o other.mlir --stop-after=joint --force

# Text went into an artifact's name, and over an artifact.
expect 2 "expected -o to name a module \(.mlir\) with --stop-after, but got 'x.tdm'" \
  "$tandem" compile mlp.mlir -o x.tdm --stop-after=joint

# An artifact is replaced by an artifact alone.
expect 0 '' "$tandem" compile mlp.mlir -o a.tdm --optimizer=sgd:lr=0.1

# Devices that never end were read until no memory was left.
for type in mlir json onnx npy npz csv safetensors; do
  ln -s /dev/zero endless.$type
done
device='expected a file, but it is a device'
for type in mlir json onnx; do
  expect 1 "$device" timeout 20 "$tandem" compile endless.$type -o endless.tdm
done
for type in npy npz csv safetensors; do
  expect 1 "$device" timeout 20 "$tandem" predict a.tdm \
    --data x=@endless.$type
done
expect 1 "$device" timeout 20 "$tandem" compile mlp.mlir -o endless.tdm \
  --tune=1 --tune-cache=/dev/zero
expect 1 "$device" timeout 20 "$tandem" compile mlp.mlir -o endless.tdm \
  --mesh=tensor=2 --parallel=tp --shard=/dev/zero
expect 1 "$device" timeout 20 "$tandem" simulate a.tdm --machines=/dev/zero
expect 1 "$device" timeout 20 "$tandem" simulate a.tdm --calibrate=/dev/zero
expect 1 "$device" timeout 20 "$tandem" link mlp.mlir --graph=/dev/zero \
  -o endless.tdm
expect 1 "$device" timeout 20 "$tandem" train a.tdm --params /dev/zero \
  --data x=@endless.npy --data labels=@endless.npy --steps=1
expect 0 '' "$tandem" compile mlp.mlir -o a.tdm --optimizer=adamw:lr=1e-3
printf 'my notes\n' >notes
refuse "-o would replace 'notes': expected an artifact but got a file of another kind" \
  "$tandem" compile mlp.mlir -o notes

# Two outputs of a command went into one file, the weights over the artifact.
expect 2 "-o and --weights would both write" \
  "$tandem" compile cnn.onnx "${with[@]}" -o y.tdm --weights=./y.tdm --force
refuse "--tune-cache would replace 'notes': expected schedules" \
  "$tandem" compile mlp.mlir -o b.tdm --tune=0 --tune-cache=notes
printf '{}' >curve.json
refuse "--budget-curve would replace 'curve.json': expected a budget curve" \
  "$tandem" inspect mlp.mlir --budget-curve=curve.json

# A dump went over the edited dump that it was made from.
expect 0 '' "$tandem" compile mlp.mlir -o a.tdm --dump-phases=dumps
refuse "--dump-phases=dumps may replace 'dumps/digits_mlp.03.joint.mlir' of the model" \
  "$tandem" compile dumps/digits_mlp.03.joint.mlir -o a.tdm --dump-phases=dumps
refuse "--dump-phases=./dumps may replace" \
  "$tandem" check dumps/digits_mlp.01.capture.mlir --dump-phases=./dumps

# The weights of a model in ONNX were lost where -o does not end in .tdm.
expect 0 "wrote 14 weights to 'q.safetensors'" \
  "$tandem" compile cnn.onnx "${with[@]}" -o q
expect 0 "wrote 14 weights to 'q.bin.safetensors'" \
  "$tandem" compile cnn.onnx "${with[@]}" -o q.bin
expect 2 "expected -o to name an artifact" \
  "$tandem" compile cnn.onnx "${with[@]}" -o q.safetensors
expect 0 "wrote 14 weights to 'j.safetensors'" \
  "$tandem" compile cnn.onnx "${with[@]}" -o j.mlir --stop-after=joint
cmp q.safetensors j.safetensors || fail 'the same weights differ'
expect 0 "note: 14 weights of 'cnn.onnx' are not written; --weights=F.safetensors" \
  "$tandem" compile cnn.onnx "${with[@]}" --stop-after=joint

# Compiling a model in ONNX again overwrote the weights that had been trained.
data=(--data x=@"$2/digits/data/train_images.npy"
  --data labels=@"$2/digits/data/train_labels.npy")
expect 0 "wrote 14 weights to 'r.safetensors'" \
  "$tandem" compile cnn.onnx "${with[@]}" -o r.tdm
expect 0 "wrote 14 weights" "$tandem" compile cnn.onnx "${with[@]}" -o r.tdm
refuse "--save would replace 'r.safetensors', which --params reads" \
  "$tandem" train r.tdm --params r.safetensors "${data[@]}" --steps 1 \
  --save r.safetensors
expect 0 "saved to 'r.safetensors'" "$tandem" train r.tdm \
  --params r.safetensors "${data[@]}" --steps 1 --save r.safetensors --force
refuse "--weights would replace 'r.safetensors': expected a model's initial values but got a checkpoint" \
  "$tandem" compile cnn.onnx "${with[@]}" -o r.tdm
expect 0 "wrote 14 weights to 'new.safetensors'" "$tandem" compile cnn.onnx \
  "${with[@]}" -o r.tdm --weights=new.safetensors

# A checkpoint goes on with the same graph, however it is compiled.
digest() { "$tandem" inspect "$1" --json | grep -oE '"graph": *"[0-9a-f]{64}"'; }
expect 0 '' "$tandem" compile mlp.mlir -o a.tdm --optimizer=adamw:lr=1e-3
expect 0 '' "$tandem" compile mlp.mlir -o b.tdm --optimizer=adamw:lr=1e-5 \
  --memory-budget=0.5
[ -n "$(digest a.tdm)" ] || fail 'no digest'
[ "$(digest a.tdm)" = "$(digest b.tdm)" ] || fail 'another rate, another graph'
if [ "$(uname -m)" = x86_64 ]; then
  expect 0 '' "$tandem" compile mlp.mlir -o c.tdm --target=cpu:x86-64-v2
  [ "$(digest a.tdm)" = "$(digest c.tdm)" ] || fail 'another target, another graph'
fi
expect 0 '' "$tandem" compile dumps/digits_mlp.04.optimize.mlir -o d.tdm \
  --optimizer=adamw:lr=1e-3
[ "$(digest a.tdm)" = "$(digest d.tdm)" ] || fail 'a dump has another graph'
sed 's/low = -[0-9.]*/low = -0.5/' mlp.mlir >init.mlir
expect 0 '' "$tandem" compile init.mlir -o e.tdm
[ "$(digest a.tdm)" = "$(digest e.tdm)" ] || fail 'other values, another graph'
sed 's/tandem.relu/tandem.tanh/' mlp.mlir >tanh.mlir
expect 0 '' "$tandem" compile tanh.mlir -o t.tdm --optimizer=adamw:lr=1e-3
[ "$(digest a.tdm)" != "$(digest t.tdm)" ] || fail 'another op, the same graph'
expect 0 '' "$tandem" train a.tdm "${data[@]}" --epochs 1 --save a.safetensors
expect 2 "'a.safetensors' was trained on another graph, of the model 'digits_mlp'" \
  "$tandem" train t.tdm "${data[@]}" --epochs 1 --resume a.safetensors
expect 0 'note: the learning rate is 0.001, as in .a.safetensors., and not 1e-05' \
  "$tandem" train b.tdm "${data[@]}" --epochs 1 --resume a.safetensors
expect 0 'warning: without --save nothing of this training is kept' \
  "$tandem" train b.tdm "${data[@]}" --epochs 1

# A dump replaced what was called like one: a link's target, somebody's array.
mkdir dumped
expect 0 '' "$tandem" compile mlp.mlir -o d.tdm --dump-phases=dumped
expect 0 '' "$tandem" compile mlp.mlir -o d.tdm --dump-phases=dumped
one=$(find dumped -name '*.03.joint.mlir')
echo mine >notes.txt
ln -sf ../notes.txt "$one"
expect 2 'may replace .*03.joint.mlir., which is a link' \
  "$tandem" compile mlp.mlir -o d.tdm --dump-phases=dumped
rm "$one"
cp "$2/digits/data/test_labels.npy" "$one"
expect 2 'may replace .*03.joint.mlir., which is' \
  "$tandem" compile mlp.mlir -o d.tdm --dump-phases=dumped
[ "$(cat notes.txt)" = mine ] || fail 'a dump went through a link'

# A dump that does not fit left half of itself in place of the earlier one.
rm "$one"
expect 0 '' "$tandem" compile mlp.mlir -o d.tdm --dump-phases=dumped
sums=$(md5sum dumped/*)
expect 1 'cannot write' bash -c \
  "ulimit -f 2; exec '$tandem' compile mlp.mlir -o d.tdm --dump-phases=dumped"
[ "$sums" = "$(md5sum dumped/*)" ] || fail 'a dump was cut'

# Names of locks and of unfinished files belong to those.
expect 2 'has a name that locks' "$tandem" compile mlp.mlir -o d.tdm.tandem-lock
expect 2 "expected a file but got '-'" "$tandem" compile mlp.mlir -o -
# The next option was a value: a file called --force.
for next in --force --forse; do
  expect 2 "option '--save' needs a value" "$tandem" train d.tdm --steps=1 \
    --save $next
done
expect 2 'safetensors' "$tandem" train d.tdm --steps=1 --save weights.npy --data x=@a.npy
finish

#!/bin/bash
# cuda-examples.sh BIN EXAMPLES - the three example models on the emulated CUDA
# device: every kernel runs, with the emulator's checks, and the losses are the
# CPU's. Compared to 5 digits: sums have another order.
source "$(dirname "$0")/expect.sh"
bin=$1 tandem=$1/tandem
data=$2/digits/data
cd "$work" || exit 1
"$bin/digits-cnn" cnn.mlir || fail 'no cnn'
# 132 rows are more than one tile of each kernel, and a rest.
"$bin/addition-gpt" gpt.mlir 12 2 || fail 'no gpt'
cp "$2/digits/mlp.mlir" mlp.mlir
"$bin/addition-data" . --train 256 --eval 16 >/dev/null || fail 'no data'

digits=(--data x=@"$data/train_images.npy" --data labels=@"$data/train_labels.npy")
addition=(--data tokens=@train_tokens.npy --data labels=@train_labels.npy)

# trains MODEL STEPS OPTIMIZER DATA...: the same losses on both devices.
trains() {
  local model=$1 steps=$2 optimizer=$3 device
  shift 3
  expect 0 '' "$tandem" compile "$model.mlir" -o "$model.tdm" --cubin=no \
    --target=cpu+cuda:sm_90 --emulation --optimizer="$optimizer"
  for device in cpu cuda-emu; do
    expect 0 '' "$tandem" train "$model.tdm" --device=$device --seed=3 \
      --steps="$steps" --log="$model.$device.jsonl" "$@"
    sed -E 's/.*"loss": ([-0-9.e]+).*/\1/' "$model.$device.jsonl" >"$device"
  done
  [ "$(wc -l <cpu)" = "$steps" ] || fail "$model: expected $steps losses"
  paste cpu cuda-emu | awk -v model="$model" '
    { d = $1 - $2; if (d < 0) d = -d
      if (!(d <= 1e-5 * $1)) {
        print model ", step " NR ": " $1 " on cpu, " $2 " on cuda-emu"; bad = 1 }
    } END { exit bad }' || fail "$model: the losses differ"
}

trains mlp 10 adamw:lr=2e-3 "${digits[@]}"
trains cnn 3 momentum:lr=0.05 "${digits[@]}"
trains gpt 2 adamw:lr=1e-3 "${addition[@]}"
finish

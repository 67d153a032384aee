#!/bin/bash
# workloads.sh BIN SOURCE MODEL... - what is compiled for aarch64 on another
# machine trains under QEMU as the same artifact's code for x86-64 does here: its
# checkpoint is within a bound of f32, or of bf16 with --amp=bf16. Exit code 77:
# the cross compiler or QEMU is missing. MODEL is mlp, lstm, resnet8, gpt, or
# errors: what fits no machine is refused.
source "$(dirname "$0")/../cli/expect.sh"
here=$(cd "$(dirname "$0")" && pwd)
bin=$1 source=$2
shift 2
emulator=qemu-aarch64-static foreign=$source/build-aarch64/bin/tandem-run
[ "$(uname -m)" = x86_64 ] || { echo "skipped: expected a machine of x86-64"; exit 77; }
for needed in aarch64-linux-gnu-g++ $emulator python3; do
  command -v $needed >/dev/null || {
    echo "skipped: '$needed' is missing (tools/install --aarch64)"
    exit 77
  }
done
# One test builds it, the others wait.
mkdir -p "$source/build-aarch64"
(
  flock 9
  source "$source/tools/lib/common.sh"
  configure aarch64
  build aarch64 tandem-run
) 9>"$source/build-aarch64/lock" </dev/null >"$work/log" 2>&1 || {
  cat "$work/log"
  echo 'FAILED: the runtime cannot be built for aarch64'
  exit 1
}
cd "$work" || exit 1

# same NAME BOUND OPTION...: trains NAME.tdm on both, with options of 'train'.
same() {
  local name=$1 bound=$2
  shift 2
  expect 0 '' "$bin/tandem-run" train "$name.tdm" "$@" --threads=2 --save=here.safetensors
  expect 0 '' $emulator "$foreign" train "$name.tdm" "$@" --threads=2 --save=there.safetensors
  expect 0 'numbers compared' "$here/compare.py" here.safetensors there.safetensors "$bound"
  printf '%s: %s\n' "$name" "$out"
  rm -f here.safetensors there.safetensors
}
compiled() { # NAME MODEL OPTION...
  expect 0 '' "$bin/tandem" compile "$2" -o "$1.tdm" --target=cpu:x86-64-v3+aarch64 "${@:3}"
}
adamw=--optimizer=adamw:lr=1e-3

for model in "$@"; do
  case $model in
    mlp)
      data=$source/examples/digits/data
      digits=(--data "x=@$data/train_images.npy" --data "labels=@$data/train_labels.npy" --cast=round --steps=60)
      compiled mlp "$source/examples/digits/mlp.mlir" $adamw
      same mlp 1e-5 "${digits[@]}"
      compiled mlp-bf16 "$source/examples/digits/mlp.mlir" $adamw --amp=bf16
      same mlp-bf16 1e-3 "${digits[@]}"
      compiled mlp-f16 "$source/examples/digits/mlp.mlir" $adamw --amp=f16 --loss-scale=dynamic
      same mlp-f16 1e-3 "${digits[@]}"
      ;;
    lstm)
      "$here/data.py" f32 48x8x20 x.npy
      "$here/data.py" i64 48 7 y.npy
      compiled lstm "$here/lstm.json" $adamw
      same lstm 1e-5 --data x=@x.npy --data y=@y.npy --steps=12
      compiled lstm-bf16 "$here/lstm.json" $adamw --amp=bf16
      same lstm-bf16 1e-3 --data x=@x.npy --data y=@y.npy --steps=12
      ;;
    resnet8 | gpt)
      # Gradients that are 0 but for rounding, as of a bias in front of a batch norm,
      # would be steps of AdamW of either sign.
      sgd=--optimizer=sgd:lr=0.01 steps=2 rows=2
      if [ "$model" = gpt ]; then
        steps=1 rows=1
        "$here/data.py" i64 1x128 1024 x.npy
        "$here/data.py" i64 1x128 1024 y.npy
      else
        "$here/data.py" f32 4x3x32x32 x.npy
        "$here/data.py" i64 4 10 y.npy
      fi
      expect 0 '' "$bin/tandem-workload" write "$model" --rows=$rows -o "$model.mlir"
      compiled "$model" "$model.mlir" $sgd
      same "$model" 1e-3 --data x=@x.npy --data labels=@y.npy --steps=$steps
      compiled "$model-bf16" "$model.mlir" $sgd --amp=bf16
      same "$model-bf16" 1e-2 --data x=@x.npy --data labels=@y.npy --steps=$steps
      ;;
    errors)
      model=$source/examples/digits/mlp.mlir
      expect 0 '' "$bin/tandem" compile "$model" -o arm.tdm --target=cpu:aarch64
      expect 5 "code is for 'aarch64' and needs aarch64, but this processor is x86-64" \
        "$bin/tandem-run" bench arm.tdm
      expect 0 '' $emulator "$foreign" bench arm.tdm --steps=1 --warmup=0
      expect 0 '' "$bin/tandem" compile "$model" -o x86.tdm --target=cpu:x86-64-v3
      expect 5 "code is for 'x86-64-v3' and needs x86-64, but this processor is aarch64" \
        $emulator "$foreign" bench x86.tdm
      # Of several the one is taken that uses most of what the processor has.
      expect 0 '' "$bin/tandem" compile "$model" -o both.tdm \
        --target=cpu:x86-64+aarch64+neoverse-v2+neoverse-n1
      expect 0 'cpu x86-64' "$bin/tandem-run" bench both.tdm --steps=1 --warmup=0 --json
      expect 0 'cpu aarch64' $emulator -cpu cortex-a72 "$foreign" bench both.tdm --steps=1 --warmup=0 --json
      expect 0 'cpu neoverse-v2' $emulator "$foreign" bench both.tdm --steps=1 --warmup=0 --json
      expect 5 "code is for 'neoverse-v2' and this processor lacks .*'bf16'" \
        $emulator -cpu cortex-a72 "$foreign" bench both.tdm --cpu-variant=neoverse-v2
      expect 2 "unknown processor 'neoverse-n9' for 'x86_64' or 'aarch64'.*neoverse-n" \
        "$bin/tandem" compile "$model" -o no.tdm --target=cpu:neoverse-n9
      ;;
    *) fail "unknown model '$model'" ;;
  esac
done
finish

#!/bin/bash
# libraries.sh BIN EXAMPLES - cuBLASLt's calls as a user meets them, on the
# emulated device: what may be one, switched on and off, failing.
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem
model=$2/digits/mlp.mlir data=$2/digits/data
cd "$work" || exit 1

compile() {
  expect 0 '' "$tandem" compile "$model" -o "$1.tdm" --target=cuda:sm_90 --emulation \
    --cubin=no --optimizer=sgd:lr=1e-2 --libraries="$2"
}
compile yes yes
compile again yes
cmp yes.tdm again.tdm || fail 'two compilations differ'
compile auto auto
compile no no
cmp auto.tdm no.tdm || fail 'small products are calls by default'
expect 0 '^step .* cuBLASLt$' "$tandem" inspect yes.tdm
expect 0 '' "$tandem" inspect no.tdm
grep -q cuBLASLt <<<"$out" && fail 'calls in spite of --libraries=no'
ptxas=$(command -v ptxas || echo "${CUDA_HOME:-/usr/local/cuda}/bin/ptxas")
if [ -x "$ptxas" ]; then
  expect 0 ' cuBLASLt$' "$tandem" inspect yes.tdm --kernels
fi

# The losses of both, within rounding; the calls are in the profile.
train() {
  local log=$1 artifact=$2
  shift 2
  expect 0 '' "$tandem" train "$artifact.tdm" --device=cuda-emu --steps 8 \
    --seed 0 --data x=@"$data/train_images.npy" --log="$log.log" \
    --data labels=@"$data/train_labels.npy" "$@"
  grep -oE '"loss": ?[-+.e0-9]+' "$log.log" >"$log.losses"
}
same() {
  paste <(grep -oE '[-+.e0-9]+$' "$1.losses") \
    <(grep -oE '[-+.e0-9]+$' "$2.losses") |
    awk '{ d = $1 - $2; if (d * d > 1e-10 * $1 * $1) exit 1 }
         END { exit NR != 8 }' || fail "the losses of $1 and $2 differ"
}
train own no
train calls yes
train graphless yes --no-cuda-graph
train off yes --libraries=no
same own calls
cmp own.losses off.losses || fail 'the kernels of both differ'
cmp calls.losses graphless.losses || fail 'graphs change the numbers'
train profiled yes --profile=profile.json
grep -q '(cublasLtMatmul)' profile.json || fail 'no call in the profile'
train ownprofiled yes --libraries=no --profile=profile.json
grep -q 'cublasLtMatmul' profile.json && fail 'a call in spite of --libraries=no'
# One that is too old, one that has no algorithm for the first shape.
export TANDEM_EMULATOR_FAIL=blas:110000
train old yes
cmp own.losses old.losses || fail 'an old library is used'
export TANDEM_EMULATOR_FAIL=algorithm:1
train none yes
same own none
export TANDEM_EMULATOR_FAIL=library:1
expect 1 'cublasLtMatmul failed' "$tandem" train yes.tdm --device=cuda-emu \
  --steps 1 --data x=@"$data/train_images.npy" \
  --data labels=@"$data/train_labels.npy"
unset TANDEM_EMULATOR_FAIL

expect 2 "'--libraries' expected auto, yes or no" \
  "$tandem" compile "$model" -o x.tdm --target=cuda:sm_90 --libraries=maybe
expect 2 "'--libraries' expected auto or no" \
  "$tandem" train yes.tdm --libraries=yes --steps 1 \
  --data x=@"$data/train_images.npy" --data labels=@"$data/train_labels.npy"
finish

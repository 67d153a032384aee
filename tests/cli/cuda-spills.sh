#!/bin/bash
# cuda-spills.sh BIN EXAMPLES - the kernels of the example and benchmark models
# are assembled, and none spills registers beyond what is stated here: 32 bytes
# (a register or two of a kernel for which ptxas prefers more threads), and the
# kernels of the list.
source "$(dirname "$0")/expect.sh"
bin=$1
cd "$work" || exit 1
need_ptxas

# MODEL KERNEL BYTES: at most so many, stores and loads together. Two have
# one thread, which raises a constant to the step count of each of a hundred
# parameters; what is read for all of them waits in its own memory. The others are
# products of f32, of which two blocks fit with 128 registers a thread.
stated='
mlp matmul_add_relu_1 16
gpt matmul_add_0 16
gpt matmul_sub_sub_mul_add_3 8
gpt2-124m matmul_add_add_1 24
gpt2-124m fused_cast_add_cast_mul_exp_2 336
gpt2-124m fused_add_cast_cast_mul_exp_1 336
'

# check MODEL ARCH [options]: the module MODEL.mlir.
check() {
  local model=$1 arch=$2
  shift 2
  expect 0 '' "$bin/tandem" compile "$model.mlir" -o "$model.tdm" \
    --target="cuda:$arch" --cubin=no "$@"
  expect 0 '^kernel +block' "$bin/tandem" inspect "$model.tdm" --kernels
  local kernel bytes
  while read -r kernel bytes; do
    local limit
    limit=$(awk -v m="$model" -v k="$kernel" '$1 == m && $2 == k { print $3 }' \
      <<<"$stated")
    # Others of products and attention spill nothing.
    [[ $kernel =~ matmul|attention ]] && limit=${limit:-0}
    [ "$bytes" -le "${limit:-32}" ] ||
      fail "$model for $arch: '$kernel' spills $bytes bytes"
  done < <(awk 'NR > 1 { print $1, $NF }' <<<"$out")
  echo "$model for $arch: $(wc -l <<<"$out") lines," \
    "$(awk 'NR > 1 && $NF > 0' <<<"$out" | wc -l) kernels that spill"
}

cp "$2/digits/mlp.mlir" digits.mlir
check digits sm_80 --optimizer=adamw:lr=1e-3
expect 0 '' "$bin/digits-cnn" cnn.mlir
check cnn sm_90 --optimizer=momentum:lr=0.05
expect 0 '' "$bin/addition-gpt" addition.mlir
check addition sm_90 --optimizer=adamw:lr=1e-3
for model in mlp gpt gpt2-124m normchain resnet18; do
  expect 0 '' "$bin/tandem-workload" write $model --type=f32 -o $model.mlir
  check $model sm_90 --optimizer="$("$bin/tandem-workload" optimizer $model)"
done
finish

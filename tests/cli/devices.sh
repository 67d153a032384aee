#!/bin/bash
# devices.sh BIN EXAMPLES - GPUs as a user meets them, on the emulated one:
# which there are, a second one, slices, and the memory that they may take.
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem
run=$1/tandem-run
model=$2/digits/mlp.mlir data=$2/digits/data
cd "$work" || exit 1

expect 0 '' "$tandem" compile "$model" -o m.tdm --target=cpu+cuda:sm_90 \
  --emulation --cubin=no --optimizer=sgd:lr=1e-2
train() {
  "$run" train m.tdm --steps 4 --seed 0 --data x=@"$data/train_images.npy" \
    --data labels=@"$data/train_labels.npy" "$@"
}

# The second one of two has the numbers of the first.
export TANDEM_EMULATOR_DEVICES=2
expect 0 '' train --device=cuda-emu:0 --save=first.safetensors
expect 0 '' train --device=cuda-emu:1 --save=second.safetensors
cmp first.safetensors second.safetensors || fail 'devices differ'
expect 5 "no device 'cuda-emu:2': expected one of 'cuda-emu:0' \(Tandem CUDA emulator\), 'cuda-emu:1' \(" \
  train --device=cuda-emu:2
unset TANDEM_EMULATOR_DEVICES

# A slice of a GPU says what it is, and computes the same.
export TANDEM_EMULATOR_TRAITS='name=NVIDIA H200 MIG 1g.18gb,multiprocessors=16'
expect 0 '^cuda-emu:0 +NVIDIA H200 MIG 1g\.18gb, sm_90, 16 multiprocessors' \
  "$run" doctor
expect 0 '' train --device=cuda-emu --save=slice.safetensors
cmp first.safetensors slice.safetensors || fail 'a slice differs'
export TANDEM_EMULATOR_TRAITS=no-pools,no-peer-copies,no-registering
expect 0 '' train --device=cuda-emu --save=virtual.safetensors
cmp first.safetensors virtual.safetensors || fail 'a virtual GPU differs'
unset TANDEM_EMULATOR_TRAITS

# Drivers that are too old.
TANDEM_EMULATOR_FAIL=driver:11080 \
  expect 5 "the driver is too old: expected one for CUDA 12\.0 \(525 or later\) but got one for CUDA 11\.8 \(" \
  train --device=cuda-emu

# Memory.
expect 0 '' train --device=cuda-emu --memory-limit=64MiB --save=limit.safetensors
cmp first.safetensors limit.safetensors || fail 'a limit changes numbers'
expect 1 "out of memory on device 'cuda-emu:0': expected [0-9]+ bytes beside the [0-9]+ in use, but the limit that was set is 16384" \
  train --device=cuda-emu --memory-limit=16KiB --save=none.safetensors
[ -e none.safetensors ] && fail 'a file of a training that was refused'
expect 2 "memory limits are for GPUs, and the device is 'cpu'" \
  train --memory-limit=8GiB
expect 2 '--device=cpu and --memory-limit exclude each other' \
  train --device=cpu --memory-limit=8GiB
for wrong in 0 -1 8GB8 nan 1e400 GiB 9999999TiB; do
  expect 2 "expected bytes, as 500MB or 6GiB, but got '$wrong'" \
    train --device=cuda-emu --memory-limit=$wrong
done
finish

#!/bin/bash
# workload.sh BIN EXPECTED NAME TYPE [TOLERANCE [DEVICE]] - a benchmark model's
# losses and gradient norms equal the expected ones: by default within 1e-4
# relative in f32, within 1e-6 in f64; on the CPU, or on cuda-emu.
source "$(dirname "$0")/expect.sh"
bin=$1 expected=$2 name=$3 type=$4
cd "$work" || exit 1
expect 0 '' "$bin/tandem-workload" write "$name" --type="$type" -o model.mlir
optimizer=$("$bin/tandem-workload" optimizer "$name")
target=cpu
if [ "${6:-cpu}" = cuda-emu ]; then target='cuda:sm_90 --emulation --cubin=no'; fi
# shellcheck disable=SC2086  # several options
expect 0 '' "$bin/tandem" compile model.mlir -o model.tdm \
  --optimizer="$optimizer" --target=$target
expect 0 'numbers compared' "$bin/tandem-workload" check "$name" model.tdm \
  --expected="$expected" ${5:+--tolerance="$5"} ${6:+--device="$6"}
printf '%s\n' "$out"

# What a step allocates on the CPU is what was planned, to the byte.
if [ "${6:-cpu}" = cpu ]; then
  expect 0 '"planned_peak_bytes"' "$bin/tandem-run" bench model.tdm \
    --program=step --warmup=0 --steps=1 --json
  bytes_of() { sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" <<<"$out"; }
  planned=$(bytes_of planned_peak_bytes) actual=$(bytes_of actual_peak_bytes)
  printf 'a step allocates %s bytes\n' "$actual"
  [ "$planned" = "$actual" ] ||
    fail "expected a step to allocate the $planned bytes planned, but it was $actual"
fi
finish

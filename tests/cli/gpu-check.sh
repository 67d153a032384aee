#!/bin/bash
# gpu-check.sh BIN EXAMPLES DOCS CHECK - tools/gpu-check as it is used, with the
# emulated device in place of a GPU: what is prepared runs in an empty
# environment; a step that hangs, one that crashes, a program that is not there,
# a driver that fails and a run that is cut take nothing of the other steps.
source "$(dirname "$0")/expect.sh"
bin=$1
tools=$3/../tools
schema=$3/schemas/gpu-check.schema.json
check=$4
cd "$work" || exit 1

# run FILE [OPTION...]: from the folder, with neither a compiler nor anything
# else in PATH, and of the environment nothing.
mkdir empty
run() {
  local file=$1
  shift
  env -i PATH="$work/empty" "$@" "$BASH" ready/gpu-check --run \
    --device=cuda-emu --out="$work/$file"
}
# status FILE STEP: what came of it.
status() {
  sed -n "s|^{\"kind\":\"step\",\"step\":\"$2\",.*\"status\":\"\([a-z ]*\)\".*|\1|p" "$1"
}
# is FILE STEP STATUS
is() {
  [ "$(status "$1" "$2")" = "$3" ] ||
    fail "$1: expected '$2' to have $3, but it has '$(status "$1" "$2")'"
}
lines=0
validate() { # FILE
  [ -x "$check" ] || return 0
  rm -f line-*.json
  split -l 1 --additional-suffix=.json "$1" line-
  expect 0 '' "$check" "$schema" line-*.json
  lines=$((lines + $(wc -l <"$1")))
}

expect 0 'MiB, [0-9]+ steps' "$tools/gpu-check" --prepare ready --bin "$bin" \
  --emulation
expect 1 "exists: expected a folder that is not there" \
  "$tools/gpu-check" --prepare=ready --bin="$bin" --emulation
expect 2 'expected --prepare=DIR or --report' "$tools/gpu-check"
expect 2 'expected a value after --prepare' "$tools/gpu-check" --prepare
cp ready/steps all

expect 0 'kernels/.* passed' run good.jsonl
validate good.jsonl
for step in device/facts device/streams roof/f32 roof/f32-library \
  models/mlp-bf16-wgmma kernels/product-wgmma-bf16 kernels/sort-f32; do
  is good.jsonl "$step" passed
done
is good.jsonl device/clocks missing # nvidia-smi, which is optional
[ "$(grep -c '"kind":"step"' good.jsonl)" = "$(grep -vc '^#' all)" ] ||
  fail 'expected a line for each step'
tail -n 1 good.jsonl | grep -q '"kind":"end".*"not_passed":0' ||
  fail 'expected an end without failures'
expect 2 'exists: a run has a file of its own' run good.jsonl

# What may go wrong, step by step: the last one passes all the same.
{
  echo '!device/facts 30 bin/gpu-check device --device=@device'
  echo "faults/hang 1 $(command -v sleep) 60"
  echo 'faults/missing 5 bin/nothing --here'
  echo "faults/crash 5 $BASH -c kill\${IFS}-SEGV\${IFS}\$\$"
  echo "?faults/optional 5 python3 -c pass"
  grep 'kernels/product-wgmma-bf16' all | sed 's|kernels/|kernels/other-|
    s|--tolerance=[^ ]*|--tolerance=1e-9|'
  grep 'kernels/sort-f32' all
} >ready/steps
expect 1 '4 of 7 steps did not pass' run faults.jsonl
validate faults.jsonl
is faults.jsonl faults/hang 'timed out'
is faults.jsonl faults/missing missing
is faults.jsonl faults/crash crashed
is faults.jsonl faults/optional missing
is faults.jsonl kernels/other-product-wgmma-bf16 failed
grep -q "differs by .* of its largest magnitude" faults.jsonl ||
  fail 'expected the difference in the message'
is faults.jsonl kernels/sort-f32 passed

# A driver that fails at once, and one that loses the device later.
expect 1 "'device/facts' failed" run none.jsonl TANDEM_EMULATOR_FAIL=init:100
validate none.jsonl
is none.jsonl device/facts failed
is none.jsonl kernels/sort-f32 skipped
grep 'kernels/' all >ready/steps
expect 1 'steps did not pass' run lost.jsonl TANDEM_EMULATOR_FAIL=lost:1
validate lost.jsonl
is lost.jsonl kernels/sort-f32 failed

# Time that is over cuts a step and leaves out those after it. What was written
# until a run is killed counts.
{
  echo 'times/first 30 bin/gpu-check help'
  echo "times/long 30 $(command -v sleep) 20"
  grep 'kernels/sort-f32' all
} >ready/steps
expect 1 '2 of 3 steps did not pass' env -i PATH="$work/empty" "$BASH" \
  ready/gpu-check --run --device=cuda-emu --out cut.jsonl --minutes 0.03
validate cut.jsonl
is cut.jsonl times/first passed
is cut.jsonl times/long 'timed out'
is cut.jsonl kernels/sort-f32 skipped
expect 137 '' timeout -s KILL 2 env -i PATH="$work/empty" "$BASH" \
  ready/gpu-check --run --device=cuda-emu --out killed.jsonl
is killed.jsonl times/first passed
grep -q '"kind":"end"' killed.jsonl && fail 'a run that was killed has an end'

# Lines of steps that are none.
printf 'kernels 5 true\nkernels/a 0 true\nkernels/b 5\n' >ready/steps
expect 1 "line 1: expected KIND/NAME but got 'kernels'; line 2: .* '0'; line 3" \
  run wrong.jsonl

# The page.
expect 0 'good.md' "$tools/gpu-check" --report good.jsonl --bin "$bin"
for text in '^# gpu-check: ' '^\| copies, read and written \| [0-9.e+]+ GB/s \|' \
  '^\| product-wgmma-bf16 \| passed \| [0-9.e-]+ \| 0.01 \| 3 \| 0 \|' \
  '^\| models/mlp-bf16-wgmma \| passed \|'; do
  grep -qE "$text" good.md || fail "the page has no line '$text'"
done
expect 0 'took [0-9.]+ times the estimate' "$bin/tandem" inspect ready/roofs/f32.tdm \
  --estimate=h100 --calibrate=good.roof-f32.json
grep -q 'The run was cut' good.md && fail 'a whole run counts as cut'
head -c $(($(wc -c <killed.jsonl) - 5)) killed.jsonl >half.jsonl
expect 0 'page.md' "$tools/gpu-check" --report=half.jsonl --out=page.md --bin="$bin"
grep -q 'The run was cut' page.md || fail 'the page does not say that it was cut'
expect 0 '' "$tools/gpu-check" --report=faults.jsonl --bin="$bin"
grep -qE '^\| faults/hang \| timed out \|' faults.md || fail 'no row of faults/hang'
echo nothing >none.txt
expect 1 'line 1: expected an object of JSON' \
  "$tools/gpu-check" --report=none.txt --bin="$bin"
[ -x "$check" ] || echo 'skipped: valijson (libvalijson-dev) was not there'
echo "$lines lines are as the schema has it"
finish

#!/bin/bash
# profile.sh BIN EXAMPLES - `profile`: of a model and of an artifact, as text, as
# JSON whose sums agree, and as a flame graph; what the system does not count is
# said with its reason.
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem
model=$2/digits/mlp.mlir
check=$(realpath "$(dirname "$0")")/profile.py
if ! command -v python3 >/dev/null; then
  echo 'skipped: python3 is not installed'
  exit 77
fi
cd "$work" || exit 1

expect 0 '' "$tandem" profile "$model" --optimizer=adamw:lr=1e-3 --steps=9 \
  --run-threads=2 --flame=f.svg --html=m.html --trace=t.json --json
printf '%s\n' "$out" >m.json
python3 "$check" facts m.json || fail 'the facts do not agree'
python3 "$check" places m.json || fail 'the places do not agree'
python3 "$check" passes m.json forward backward update ||
  fail 'the passes are others'
python3 "$check" flame f.svg m.json || fail 'the flame graph is wrong'

expect 0 '^[12] lines, 0 arrows' python3 "$(dirname "$check")/trace.py" t.json
python3 "$check" page m.html m.json ||
  fail 'the page has other facts'

browser=$(command -v chromium || command -v chromium-browser)
if [ -n "$browser" ]; then
  timeout 100 "$browser" --headless --no-sandbox --disable-gpu \
    --user-data-dir="$work/browser" --enable-logging=stderr \
    --virtual-time-budget=5000 --dump-dom "file://$work/m.html#all" \
    >dom 2>log || fail 'the page does not open'
  ! grep CONSOLE log || fail 'the page has an error'
  grep -q 'thread 1' dom || fail 'the page has no line for a thread'
  grep -q 'id="panel-measured"' dom || fail 'the page has no measured times'
  ! grep -q 'object HTML' dom || fail 'an element is shown as text'
fi

# What the backward runs again is no part of the forward. An update that is no
# kernel of its own is in that of its gradient.
cat >again.json <<'JSON'
{"format": "tandem-graph", "version": 1, "name": "again",
 "inputs": [{"name": "x", "type": "f32", "shape": [64, 64]}],
 "params": [{"name": "w", "type": "f32", "shape": [64, 64], "init": {"kind": "constant", "value": 0.01}}],
 "nodes": [
  {"op": "module", "name": "h0", "nodes": [
    {"op": "matmul", "inputs": ["x", "w"], "outputs": ["a"]},
    {"op": "sin", "inputs": ["a"], "outputs": ["b"]}]},
  {"op": "matmul", "inputs": ["b", "w"], "outputs": ["c"]},
  {"op": "reduce_sum", "inputs": ["c"], "outputs": ["loss"], "attributes": {"dims": [0, 1]}}],
 "outputs": [{"name": "loss", "value": "loss"}]}
JSON
for options in --partition=default '--recompute=^h0\.'; do
  expect 0 '' "$tandem" profile again.json --optimizer=sgd:lr=1e-3 --steps=3 \
    "$options" --json
  printf '%s\n' "$out" >again-profile.json
  again=$(grep -o recompute <<<"$options")
  python3 "$check" passes again-profile.json forward ${again:+"$again"} \
    backward || fail "other passes: $options"
  python3 "$check" facts again-profile.json || fail 'the facts do not agree'
done
expect 0 '^recompute  *1 ' "$tandem" profile again.json --steps=3 \
  --optimizer=sgd:lr=1e-3 '--recompute=^h0\.'

# An artifact has no places; the numbers are of the same kernels.
expect 0 '' "$tandem" compile "$model" -o a.tdm --optimizer=adamw:lr=1e-3
expect 0 '' "$tandem" profile a.tdm --steps=3 --json
printf '%s\n' "$out" >a.json
python3 "$check" facts a.json || fail 'the facts of an artifact do not agree'
python3 "$check" same a.json m.json || fail 'the kernels differ'
expect 0 '^no modules and lines: artifacts' "$tandem" profile a.tdm --steps=3
expect 2 '--flame has no effect' "$tandem" profile a.tdm --flame=f.svg
expect 2 '--optimizer has no effect' "$tandem" profile a.tdm \
  --optimizer=sgd:lr=1
expect 2 nothing "$tandem" profile a.tdm \
  --program=nothing

# Of other programs, and with inputs that were given.
expect 0 '^lines ' "$tandem" profile "$model" --effort=0 --steps=3 \
  --program=evaluate
expect 2 "to end in .svg, but got 'f.html'" "$tandem" profile "$model" \
  --flame=f.html

# Of the emulated device times are said to be its own.
expect 0 'the emulator.s' "$tandem" profile "$model" --target=cuda:sm_90 \
  --cubin=no --emulation --device=cuda-emu --optimizer=sgd:lr=1e-3 --steps=2 \
  --warmup=1
expect 0 '' "$tandem" profile "$model" --target=cuda:sm_90 --cubin=no \
  --emulation --device=cuda-emu --optimizer=sgd:lr=1e-3 --steps=2 --warmup=1 \
  --json
printf '%s\n' "$out" >e.json
python3 "$check" emulated e.json || fail 'the facts of the emulator are wrong'
# With less memory than it has.
emulated=("$tandem" profile "$model" --target=cuda:sm_90 --cubin=no
  --emulation --device=cuda-emu --optimizer=sgd:lr=1e-3 --steps=2 --warmup=1)
expect 0 'the emulator.s' "${emulated[@]}" --memory-limit=1GiB
expect 1 'in use, but the limit that was set is 4096' "${emulated[@]}" \
  --memory-limit=4KiB
expect 2 "expected bytes, as 500MB or 6GiB, but got '4XB'" "${emulated[@]}" \
  --memory-limit=4XB
expect 2 '--device=cpu and --memory-limit exclude each other' "$tandem" \
  profile "$model" --device=cpu --memory-limit=1GiB
finish

#!/bin/bash
# diff.sh BIN EXAMPLES - `tandem diff`: what changed between two artifacts or
# models is said, with the largest effect first; equal ones and pairs that make
# no sense are said, too. Names are anybody's.
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem
model=$2/digits/mlp.mlir
cd "$work" || exit 1

"$tandem" compile "$model" -o a.tdm --optimizer=adamw:lr=1e-3 2>/dev/null
"$tandem" compile "$model" -o b.tdm --optimizer=sgd:lr=1e-3 \
  --memory-budget=0.3 2>/dev/null
"$tandem" compile "$model" -o i.tdm --inference 2>/dev/null

# Equal ones.
cp a.tdm same.tdm
expect 0 'they are equal, byte by byte' "$tandem" diff a.tdm same.tdm
expect 0 'equal' "$tandem" diff a.tdm same.tdm --exit-code
expect 0 '"equal": true' "$tandem" diff a.tdm same.tdm --json
# An artifact and the model that it is of.
expect 0 'equal' "$tandem" diff a.tdm "$model" --optimizer=adamw:lr=1e-3
# Nothing but bytes.
expect 0 'all that is known of the two is equal: their bytes are not' \
  "$tandem" diff "$model" "$model" --b-options=--effort=0

# Different ones: the step, and each part.
expect 0 'planned peak +374\.1 KiB +160\.9 KiB +-57\.0 %' \
  "$tandem" diff a.tdm b.tdm
for line in 'optimizer +adamw +sgd' '-204\.5 KiB +states +204\.6 KiB +64 B' \
  '  step +.* us +.* us +-' 'one graph, which was compiled otherwise' \
  '-64\.0 KiB +state adamw\.m:fc1\.w ' \
  '-8\.0 KiB +sub f32\[32, 64\] at mlp.mlir:31:11 +yes: the smallest cut' \
  'sub at mlp.mlir:31:11 +no +yes: ' 'object\.cpu +[0-9.]+ KiB'; do
  grep -qE -- "$line" <<<"$out" || fail "no line '$line' in the comparison"
done
expect 4 'A and B differ' "$tandem" diff a.tdm b.tdm --exit-code
"$tandem" diff a.tdm b.tdm --json >one.json
"$tandem" diff a.tdm b.tdm --json >two.json
cmp one.json two.json || fail 'two comparisons differ'
expect 0 '"version": 1,' cat one.json
expect 0 'schedules|kernels' "$tandem" diff "$model" "$model" \
  --optimizer=adamw:lr=1e-3 --b-options='--amp=bf16 --optimizer=sgd:lr=1'
expect 0 'adamw +sgd' cat <(printf '%s' "$out")

# More launches of a kernel are no other schedule of it.
powers() {
  printf '%s' '{"format": "tandem-graph", "version": 1, "name": "powers",
    "inputs": [{"name": "x0", "type": "f32", "shape": [64, 64]}], "nodes": ['
  for ((i = 1; i <= $1; ++i)); do
    printf '%s{"op": "matmul", "inputs": ["x%d", "x0"], "outputs": ["x%d"]}' \
      "$([ "$i" = 1 ] || echo ,)" $((i - 1)) "$i"
  done
  printf '], "outputs": [{"name": "y", "value": "x%d"}]}' "$1"
}
powers 2 >two.json
powers 5 >five.json
expect 0 '2 x +5 x +matmul 64x64' "$tandem" diff two.json five.json --inference
! grep -q '^schedules' <<<"$out" || fail 'a count is a schedule'

# A pair that makes no sense is said, and compared as far as it goes.
expect 0 'A trains, and B does not' "$tandem" diff a.tdm i.tdm
expect 0 'B trains, and A does not' "$tandem" diff i.tdm a.tdm
sed 's/fc0\.w/other.w/g' "$model" >other.mlir
expect 0 '5 parameters are in both, of 6 in A and 6 in B' \
  "$tandem" diff "$model" other.mlir
expect 0 'only a has code for cpu' "$tandem" diff i.tdm "$model" --inference \
  --target=cuda:sm_90 --cubin=no
expect 0 'no target in common' cat <(printf '%s' "$out")

# Wrong uses.
expect 2 "--amp has no effect: A and B are artifacts" \
  "$tandem" diff a.tdm b.tdm --amp=bf16
expect 2 'B is an artifact' "$tandem" diff a.tdm b.tdm --b-options=--amp=bf16
expect 2 "options of B: --optimizer: unknown optimizer 'foo'" \
  "$tandem" diff "$model" "$model" --b-options=--optimizer=foo
expect 2 '--help is none' "$tandem" diff "$model" "$model" \
  --b-options=--help
expect 1 'missing.tdm' "$tandem" diff a.tdm missing.tdm
head -c 4000 a.tdm >cut.tdm
expect 1 'cut.tdm' "$tandem" diff a.tdm cut.tdm

# Names are anybody's: what is printed has no controls, and the page no
# elements of theirs.
hostile='<\/script><img src=x onerror=alert(1)>'
escape=$'\x1b[31m.mlir'
sed "s/\"fc0\\.w\"/\"$hostile\"/g" "$model" >hostile.mlir
cp hostile.mlir "$escape"
expect 0 'onerror=alert' "$tandem" diff "$model" "$escape" \
  --b-options=--memory-budget=0.5
grep -qF '\x1b[31m.mlir' <<<"$out" || fail 'the name of the file is not shown'
! grep -q $'\x1b' <<<"$out" || fail 'a name reaches the terminal as it is'
expect 0 '' "$tandem" diff "$model" hostile.mlir --html=h.html
! grep -q '<img' h.html || fail 'a name is an element of the page'
expect 2 '--json and --html exclude' "$tandem" diff a.tdm b.tdm --json \
  --html=h.html
expect 0 '' "$tandem" diff a.tdm b.tdm --html=d.html

browser=$(command -v chromium || command -v chromium-browser)
[ -n "$browser" ] || finish
opened() {
  timeout 100 "$browser" --headless --no-sandbox --disable-gpu \
    --user-data-dir="$work/browser" --enable-logging=stderr \
    --virtual-time-budget=5000 --dump-dom "file://$work/$1" 2>log
}
opened d.html >dom || fail 'the page does not open'
! grep CONSOLE log || fail 'the page has an error'
for part in 'Memory of a step' Programs Kernels 'Saved for the backward'; do
  grep -qF "<h2>$part" dom || fail "the page has no '$part'"
done
grep -q -- '-57.0 %' dom || fail 'the page has another peak'
opened h.html >dom || fail 'the page of hostile names does not open'
! grep CONSOLE log || fail 'a name is an error'
! grep -q '<img' dom || fail 'a name is an element'
grep -q '&lt;img src=x onerror=alert(1)&gt;' dom || fail 'a name is not shown'
finish

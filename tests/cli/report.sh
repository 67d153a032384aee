#!/bin/bash
# report.sh BIN EXAMPLES - the page of `inspect --html` and `compile --report`:
# it has the facts of `inspect --json`, allows its own script alone, and shows
# names as text. Where there is a chromium, it opens without an error and shows
# the numbers of the facts.
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem
model=$2/digits/mlp.mlir
check=$(realpath "$(dirname "$0")")/report.py
walk=$(realpath "$(dirname "$0")/../../tools/report-walk")
if ! command -v python3 >/dev/null; then
  echo 'skipped: python3 is not installed'
  exit 77
fi
cd "$work" || exit 1

# The same facts, and but for times the same bytes, each time and on both ways;
# the artifact is what it is without a report.
expect 0 '^wrote a report to .c\.html. \(.*\)$' "$tandem" compile "$model" \
  -o a.tdm --optimizer=adamw:lr=1e-3 --report=c.html
expect 0 '' "$tandem" inspect "$model" --optimizer=adamw:lr=1e-3 --html=d.html
python3 "$check" same d.html c.html ||
  fail 'compile --report and inspect --html differ'
expect 0 '' "$tandem" compile "$model" -o b.tdm --optimizer=adamw:lr=1e-3
cmp a.tdm b.tdm || fail 'a report changes the artifact'
expect 0 '' "$tandem" inspect a.tdm --html=a.html
"$tandem" inspect a.tdm --json >a.json || fail 'no facts'
python3 "$check" block a.html a.json || fail 'the page of an artifact is wrong'
expect 0 '"version": 1,' cat a.json

# A model is compiled first; kernels that the first time kept change nothing.
for page in m.html n.html; do
  expect 0 '' "$tandem" inspect "$model" --kernel-cache=kernels --html=$page
done
python3 "$check" same m.html n.html || fail 'two pages of a model differ'
"$tandem" inspect "$model" --kernel-cache=kernels --json >m.json ||
  fail 'no facts'
python3 "$check" block m.html m.json || fail 'the page of a model is wrong'
python3 "$check" planned m.json || fail 'the plan is of other launches'

# What passes did: counted without the kernel cache, by any number of threads.
for threads in 1 3; do
  "$tandem" inspect "$model" --optimizer=adamw:lr=1e-3 --kernel-cache=off \
    --threads=$threads --json >passes$threads.json || fail 'no facts'
done
cmp passes1.json passes3.json || fail 'threads change what passes did'
python3 "$check" passes passes1.json || fail 'what passes did is wrong'
! grep -q '"passes"' a.json || fail 'an artifact says what passes did'

# Of several targets, too, and of what is past the plan.
expect 0 '' "$tandem" inspect "$model" --target=cpu+cuda:sm_90 --cubin=no \
  --html=t.html
"$tandem" inspect "$model" --target=cpu+cuda:sm_90 --cubin=no --json >t.json
python3 "$check" block t.html t.json || fail 'the page of two targets is wrong'
python3 "$check" planned t.json || fail 'the plan is of other launches'
expect 0 '' "$tandem" compile "$model" --stop-after=lower -o lower.mlir
expect 0 '' "$tandem" inspect lower.mlir --html=l.html

# The timeline is what `simulate` says: of one process, of ranks, and of stages,
# whose pages each have it if all artifacts are there.
"$tandem" simulate a.tdm --json >a.step.json
expect 0 '^1 ranks, 0 exchanges' python3 "$check" timeline a.html a.step.json
expect 0 '' "$tandem" compile "$model" -o d4.tdm --optimizer=adamw:lr=1e-3 \
  --mesh=data=4 --parallel=zero1 --report=d4.html
"$tandem" simulate d4.tdm --json >d4.json
expect 0 '^1 ranks, [1-9]' python3 "$check" timeline d4.html d4.json
expect 0 '' "$tandem" compile "$model" -o pp.tdm --mesh=pipe=2 --parallel=pp \
  --optimizer=adamw:lr=1e-3 --report=pp.html
# Stages that a report was made of are of one compilation, as without one.
"$tandem" simulate pp.tdm --json >pp.json || fail 'the stages do not fit'
expect 0 '^2 ranks, 4 exchanges' python3 "$check" timeline pp.html pp.json
grep -q 'this is one stage of a pipeline' pp.stage1.html ||
  fail 'the second stage does not say where its timeline is'

# Names are anybody's.
hostile='<\/script><script>document.title=1<\/script><!--\\22'"'"'\&amp;<img src=x onerror=alert(1)>'$'\u2028\u202e\u009b'
sed "s/\"fc0\\.w\"/\"$hostile\"/g" "$model" >hostile.mlir
expect 0 '' "$tandem" inspect hostile.mlir --optimizer=sgd:lr=1 --code \
  --html=h.html
"$tandem" inspect hostile.mlir --optimizer=sgd:lr=1 --kernel-cache=off --json \
  >h.json || fail 'no facts'
grep -q 'onerror=alert' h.json || fail 'the name is not in the facts'
python3 "$check" block h.html h.json || fail 'a name is more than text'

# Gradients, the curve over budgets and code, where they are asked for.
expect 0 '"relu": "`select' cat m.json
expect 0 'planned peak' "$tandem" inspect "$model" --optimizer=sgd:lr=1 \
  --budget-curve --code --html=e.html
python3 "$check" more e.html || fail 'the page lacks what was asked for'
expect 0 '' "$tandem" inspect "$model" --target=cuda:sm_90 --cubin=no --code \
  --html=g.html
python3 "$check" code e.html MLIR 'LLVM IR' assembly ||
  fail 'the page of a model lacks code'
python3 "$check" code g.html MLIR PTX || fail 'the page has no PTX'
expect 0 '' "$tandem" inspect a.tdm --code --html=ac.html
python3 "$check" code ac.html assembly || fail 'the page has no machine code'
expect 2 '--code needs .*--html' "$tandem" inspect "$model" --code
# The page of `compile` has it too, of stages each its own, and the artifact is
# the same.
expect 0 '' "$tandem" compile "$model" -o k.tdm --optimizer=adamw:lr=1e-3 \
  --report=kc.html --code
cmp a.tdm k.tdm || fail 'code on a page changes the artifact'
python3 "$check" code kc.html MLIR 'LLVM IR' assembly ||
  fail 'the page of compile lacks code'
expect 0 '' "$tandem" compile "$model" -o kp.tdm --mesh=pipe=2 --parallel=pp \
  --optimizer=adamw:lr=1e-3 --report=kp.html --code
for page in kp kp.stage1; do
  python3 "$check" code $page.html MLIR 'LLVM IR' assembly ||
    fail "$page.html lacks code"
done
expect 2 '--code needs .*--report' "$tandem" compile "$model" -o k.tdm --code
expect 2 '--code and --kernel-cache exclude each other' "$tandem" inspect \
  "$model" --code --html=k.html --kernel-cache=kernels

# What is no page stays, and what is no name of one is refused.
echo precious >other.html
expect 2 'other.html' "$tandem" inspect a.tdm --html=other.html
expect 0 precious cat other.html
expect 2 "to end in .html, but got 'a.htm'" "$tandem" inspect a.tdm \
  --html=a.htm
expect 2 '--json and --html exclude each other' "$tandem" inspect a.tdm \
  --html=b.html --json
expect 2 '--report has no effect|exclude each other' "$tandem" compile \
  "$model" --stop-after=plan --report=b.html
expect 1 'nowhere' "$tandem" inspect a.tdm --html=nowhere/b.html

browser=$(command -v chromium || command -v chromium-browser)
if [ -z "$browser" ]; then
  [ "$failures" -eq 0 ] || finish
  echo 'skipped in part: chromium is not installed, so no page was opened'
  exit 77
fi
# opened PAGE prints all parts of it as the browser has them; errors are in
# `log`.
opened() {
  timeout 100 "$browser" --headless --no-sandbox --disable-gpu \
    --user-data-dir="$work/browser" --enable-logging=stderr \
    --virtual-time-budget=5000 --dump-dom "file://$work/$1#all" 2>log
}
opened c.html >dom || fail 'the page does not open'
! grep CONSOLE log || fail 'the page has an error'
# The peak is that of a step; of a program's arena it is what is most in use.
grep -q '>Most in use by program<' dom || fail 'the arenas have no heading'
! grep -qE 'Peaks by|at the peak|>peak<' dom || fail 'an arena has a peak'
# All parts below each other have all rows of their tables.
expect 0 '^[0-9]{3,} rows at most' python3 "$check" rows dom
for part in overview memory kernels saved graph timeline writes precision passes; do
  grep -qE "id=\"panel-$part\"[^>]*><(h2|div|form|p)" dom ||
    fail "the part '$part' is empty"
done
python3 "$check" shown dom a.json || fail 'the numbers are others'
grep -q 'matmul f32\[32, 128\]' dom || grep -q 'role="treeitem"' dom ||
  fail 'the graph has no ops'

# What would halve the memory: by the curve where the page has it.
expect 0 'What would halve the memory\? .* explain MODEL --why-large|What would halve the memory\? No memory budget' \
  cat dom
opened e.html >dom || fail 'the page with a curve does not open'
grep -qE 'What would halve the memory\? (--memory-budget=0\.[0-9] plans|No memory budget: the least is what --memory-budget=)' dom ||
  fail 'the curve does not say what halves the memory'

# In a narrow window the backward is below the forward, and pictures say that
# they go on.
cat >small.json <<'JSON'
{"format": "tandem-graph", "version": 1, "name": "small",
 "inputs": [{"name": "x", "type": "f32", "shape": [8, 8]}],
 "params": [{"name": "w", "type": "f32", "shape": [8, 8]}],
 "nodes": [
  {"op": "matmul", "inputs": ["x", "w"], "outputs": ["y"]},
  {"op": "reduce_sum", "inputs": ["y"], "outputs": ["loss"], "attributes": {"dims": [0, 1]}}],
 "outputs": [{"name": "loss", "value": "loss"}]}
JSON
expect 0 '' "$tandem" inspect small.json --html=small.html
narrow() {
  timeout 100 "$browser" --headless --no-sandbox --disable-gpu \
    --user-data-dir="$work/browser" --window-size="$1,900" \
    --virtual-time-budget=5000 --dump-dom "file://$work/small.html#all" 2>>log
}
narrow 500 >dom || fail 'the page does not open in a narrow window'
grep -qE 'class="side">↩ ' dom || fail 'the narrow graph has no backward'
grep -q 'class="soft narrow"' dom || fail 'pictures do not say that they go on'
narrow 1200 >dom || fail 'the page does not open in a wide window'
! grep -qE 'class="side">↩ ' dom || fail 'the wide graph is a narrow one'

# As a reader walks through it.
"$walk" --json=walk.json c.html e.html g.html h.html pp.html || fail 'a walk through the pages meets an error'

opened h.html >dom || fail 'the page of hostile names does not open'
! grep CONSOLE log || fail 'a name is an error'
grep -q '<title>digits_mlp: a report of tandem</title>' dom ||
  fail 'a name has run'
! grep -q '<img' dom || fail 'a name is an element'
grep -q '&lt;img src=x onerror=alert(1)&gt;' dom || fail 'a name is not shown'
# What cannot be seen, or turns the line around, is shown as its number.
grep -qF 'alert(1)&gt;\u2028\u202e\u009b' dom || fail 'a control is not shown'
finish

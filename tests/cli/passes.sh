#!/bin/bash
# passes.sh BIN EXAMPLES - a compilation stopped, was printed and timed by phases
# alone: which pass did what could only be guessed. And a phase's verifier that
# failed left nothing to repeat it with.
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem
opt=$1/tandem-opt
model=$2/digits/mlp.mlir
cd "$work" || exit 1
with=(--optimizer=adamw:lr=1e-3 --target=cpu:x86-64-v3)

expect 0 '' "$tandem" compile "$model" -o a.tdm "${with[@]}" \
  --dump-phases=phases

# Stopped after a pass, of each phase, the dump goes on to the same bytes.
for pass in build-evaluate differentiate decompose-composites:2 simplify \
  form-kernels plan-memory place-constants; do
  expect 0 "wrote the module after '$pass'" "$tandem" compile "$model" \
    --stop-after=$pass -o within.mlir "${with[@]}"
  grep -q "tandem.within = {after = \"${pass%:*}\"" within.mlir ||
    fail "the module after $pass does not say where it stands"
  # The optimizer, which acts later, is in the module.
  expect 0 '' "$tandem" compile within.mlir -o b.tdm
  cmp a.tdm b.tdm || fail "going on after $pass gives other bytes"
done
# same A B: they are equal but for a newline at the end.
same() { [ "$(cat "$1")" = "$(cat "$2")" ]; }
# The last pass of a phase ends it.
expect 0 '' "$tandem" compile "$model" --stop-after=leave-phase:2 -o end.mlir \
  "${with[@]}"
same end.mlir phases/digits_mlp.03.joint.mlir || fail 'the end of a phase'
# A dump within a phase stops again, at a pass, a phase, and within it.
expect 0 '' "$tandem" compile "$model" --stop-after=fuse-composites -o c.mlir \
  "${with[@]}"
expect 0 '^module.*after = "differentiate", number = 13' "$tandem" compile \
  c.mlir --stop-after=differentiate
expect 0 '' "$tandem" compile c.mlir --stop-after=joint -o d.mlir
same d.mlir phases/digits_mlp.03.joint.mlir || fail 'the rest of a phase'
# NAME is the next run of the pass, NAME:N the Nth.
expect 0 'after = "fold-empty-tensors".*phase = "optimize"' "$tandem" compile \
  "$model" --stop-after=fold-empty-tensors
expect 0 'after = "fold-empty-tensors".*phase = "plan"' "$tandem" compile \
  "$model" --stop-after=tandem-fold-empty-tensors:2
expect 0 'after = "fold-empty-tensors".*phase = "plan"' "$tandem" compile \
  phases/digits_mlp.04.optimize.mlir --stop-after=fold-empty-tensors

# What is wrong.
expect 2 "got 'fuse-composite' \(did you mean 'fuse-composites'" "$tandem" \
  compile "$model" --stop-after=fuse-composite
expect 2 "expected NAME:N.*got 'simplify:9'" "$tandem" compile "$model" \
  --stop-after=simplify:9
expect 2 "expected NAME:N.*got 'simplify:x'" "$tandem" compile "$model" \
  --stop-after=simplify:x
expect 2 "needs no pass 'differentiate'" "$tandem" compile "$model" \
  --stop-after=differentiate --inference
expect 2 "not every target has the pass 'emit-cuda-kernels'; 'cuda' has it" \
  "$tandem" compile "$model" --stop-after=emit-cuda-kernels --target=cpu+cuda:sm_90
expect 2 "cannot stop after 'simplify'.*not left for a module at 'plan'" \
  "$tandem" compile phases/digits_mlp.06.plan.mlir --stop-after=simplify
expect 2 "cannot stop after 'functionalize-refs'.*at 'joint', after the pass" \
  "$tandem" compile c.mlir --stop-after=functionalize-refs
expect 2 "cannot stop after 'capture'.*'joint', after the pass 'fuse-comp" \
  "$tandem" compile c.mlir --stop-after=capture
# Options that the passes that are left were made without.
expect 2 "--loss has no effect on a module that is past the beginning of 'joint'" \
  "$tandem" compile c.mlir -o x.tdm --loss=loss
# A dump starts no pass that compiling would not.
sed 's/rest = "/&builtin.module(print-ir),/' c.mlir >edited.mlir
cmp -s c.mlir edited.mlir && fail 'nothing was edited'
expect 1 "has a pass that 'joint' has not: 'print-ir" "$tandem" compile \
  edited.mlir -o x.tdm
sed 's/rest = "[^"]*"/rest = "tandem-fuse-composite"/' c.mlir >edited.mlir
expect 1 "'joint' has a broken pipeline.*tandem-fuse-composite" "$tandem" \
  compile edited.mlir -o x.tdm
sed 's/phase = "joint", rest/phase = "plan", rest/' c.mlir >edited.mlir
expect 1 "expected 'phase' to be the one that follows 'functionalize' but got 'plan'" \
  "$tandem" compile edited.mlir -o x.tdm
sed -E 's/,tandem-leave-phase\{phase=joint\}//' c.mlir >edited.mlir
cmp -s c.mlir edited.mlir && fail 'nothing was edited'
expect 1 "left the module at 'functionalize'" "$tandem" compile edited.mlir \
  -o x.tdm

# A module after each pass that changed it; each goes on to the same bytes.
expect 0 'wrote the modules that passes changed' "$tandem" compile "$model" \
  -o b.tdm "${with[@]}" --dump-passes=passes
cmp a.tdm b.tdm || fail '--dump-passes changes the artifact'
ls passes/digits_mlp.03.joint.*.expand-grads.mlir >/dev/null 2>&1 &&
  fail 'a pass that changed nothing has a dump'
for file in passes/digits_mlp.03.joint.07.build-evaluate.mlir \
  passes/digits_mlp.04.optimize.0*.simplify.mlir \
  passes/digits_mlp.06.plan.*.form-kernels.mlir \
  passes/digits_mlp.07.lower.*.deduplicate-kernels.mlir \
  passes/digits_mlp.07.lower.*.emit-cpu-kernels.mlir \
  passes/digits_mlp.07.lower.*.convert-func-to-llvm.mlir \
  passes/digits_mlp.07.lower.*.emit-cpu-wrappers.mlir; do
  [ -e "$file" ] || fail "no $file in: $(ls passes)"
  expect 0 '' "$tandem" compile "$file" -o b.tdm
  cmp a.tdm b.tdm || fail "$file gives other bytes"
done
expect 2 '--dump-passes and --stop-after=capture exclude|--stop-after=capture and --dump-passes exclude' \
  "$tandem" compile "$model" --dump-passes=passes --stop-after=capture
mkdir mine
echo mine >mine/digits_mlp.03.joint.02.fuse-composites.mlir
expect 2 '--dump-passes=mine may replace' "$tandem" compile "$model" -o b.tdm \
  --dump-passes=mine

# The passes that would run, as tandem-opt takes them: what it makes of a dump is
# the dump of a later phase.
expect 0 '^builtin.module\(tandem-enter-phase.*,tandem-functionalize-refs,.*\)$' "$tandem" compile \
  "$model" "${with[@]}" --print-pipeline
"$tandem" compile phases/digits_mlp.02.functionalize.mlir \
  --print-pipeline >pipeline.txt || fail 'no pipeline of a dump'
"$opt" phases/digits_mlp.02.functionalize.mlir \
  --pass-pipeline="$(cat pipeline.txt)" --mlir-print-debuginfo -o opt.mlir ||
  fail 'tandem-opt refuses the pipeline'
"$opt" phases/digits_mlp.07.lower.mlir --mlir-print-debuginfo -o lower.mlir
cmp opt.mlir lower.mlir || fail 'the pipeline makes another module'
expect 0 '^builtin.module\(.*tandem-build-evaluate[^,]*\)$' "$tandem" compile \
  "$model" --print-pipeline --stop-after=build-evaluate
expect 2 '-o and --print-pipeline exclude each other|--print-pipeline and -o' \
  "$tandem" compile "$model" --print-pipeline -o x.tdm
[ "$("$tandem" compile "$model" --print-pipeline --target=cpu+cuda:sm_90 | wc -l)" = 2 ] ||
  fail 'two targets have two pipelines'

# A table of times: passes, and the steps of emission.
expect 0 'FormKernels|tandem::.*FormKernels|form-kernels' "$tandem" compile \
  "$model" -o b.tdm --time-passes --kernel-cache=off
for row in 'Execution time report' ' joint' ' emit' "LLVM's passes" \
  'machine code' ' link'; do
  grep -qF -- "$row" <<<"$out" || fail "no row '$row' in the times: $out"
done

# A verifier that fails leaves the passes and their module; a model's own error
# does not.
sed -E 's/tandem.pass = "backward"(, )?//' \
  passes/digits_mlp.03.joint.*.differentiate.mlir >edited.mlir
cmp -s passes/digits_mlp.03.joint.*.differentiate.mlir edited.mlir &&
  fail 'nothing was edited'
expect 1 "phase 'joint': the pass 'leave-phase' refused what the passes before it made.*a reproducer is in 'r.mlir': 'tandem-opt --run-reproducer r.mlir'" \
  "$tandem" compile edited.mlir -o x.tdm --reproducer=r.mlir
grep -q 'mlir_reproducer' r.mlir || fail 'no reproducer'
expect 1 "without 'tandem.pass'" "$opt" --run-reproducer r.mlir
rm -f r.mlir
expect 1 "reproducer is in '$work/tandem-joint-[^']*.mlir'" \
  env TMPDIR="$work" "$tandem" compile edited.mlir -o x.tdm
cat >wrong.mlir <<'MLIR'
module @m {
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.relu %x : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
MLIR
expect 1 "phase '.*' failed$|error" "$tandem" compile wrong.mlir -o x.tdm \
  --reproducer=r.mlir --loss=y
grep -q reproducer <<<"$out" && fail "a model's error is called the compiler's"
[ -e r.mlir ] && fail "a model's error has a reproducer"

# Malformed files, at which MLIR's own functions crash or leave a line out.
cat >region.mlir <<'M'
func.func @graph(%x: tensor<4xf32>, %c: tensor<i1>) {
  %u = tandem.sin %9 : tensor<4xf32>
  %4 = "tandem.if"(%c, %x) ({
  ^bb0(%a: tensor<4xf32>):
    %9 = tandem.sin %a : tensor<4xf32>
    tandem.yield %9 : tensor<4xf32>
  }, {}) { broken
M
expect 1 "region.mlir:.*expected '}' in attribute dictionary" "$opt" region.mlir
cat >quote.mlir <<'M'
func.func @graph(%s: !tandem.ref<4xf32>) {
  %0 = tandem.read %s : !tandem.ref<4xf32>
" tandem.write %0 into %s : tensor<4xf32>, !tandem.ref<4xf32>
  return
}
M
expect 1 "quote.mlir:.*expected '\"' in string literal" "$opt" quote.mlir
{ echo 'func.func @f() { return }'; echo '// -----'; cat quote.mlir; } >parts.mlir
expect 1 'within split at parts.mlir:.*in string literal' "$opt" -split-input-file parts.mlir
printf 'ML\357R\015StableHLO\0\0\023\0\377\377\377\377\377\377\377\017\1\1\2\1\3\1\4\1\010\1' >many.mlirbc
expect 1 'tandem-opt: error: malformed bytecode \(SmallVector' "$opt" many.mlirbc
# What is right comes out as it went in.
sed '3d' quote.mlir >right.mlir
expect 0 '' "$opt" -emit-bytecode right.mlir -o right.mlirbc
expect 0 'tandem.read' "$opt" right.mlirbc
expect 0 'tandem.read' bash -c "'$opt' - <right.mlir"
expect 1 'No such file' "$opt" none.mlir

# Help lists them, and shells complete them.
expect 0 'joint: enter-phase, check-random, add-adapters, quantize-products,' "$tandem" help passes
{ grep -q '^lower (cpu): enter-phase, lower-collectives, outline-regions,' <<<"$out" &&
  grep -q '^lower (cuda): enter-phase, lower-collectives, lower-host-copies,' <<<"$out"; } ||
  fail "passes of one target are not named so: $out"
"$tandem" completion bash >completion.bash
complete_bash() {
  bash -c 'source completion.bash
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _tandem; echo "${COMPREPLY[@]}"' bash "$@"
}
[ "$(complete_bash tandem compile m.mlir --stop-after = form-k)" = \
  form-kernels ] || fail 'bash does not complete passes'
[ "$(complete_bash tandem compile m.mlir --partition = de)" = default ] ||
  fail 'bash does not complete --partition='
[ "$(complete_bash tandem compile m.mlir --partition mi)" = min-cut ] ||
  fail 'bash does not complete --partition '
[ "$(complete_bash tandem run a.tdm --device = cuda-)" = cuda-emu ] ||
  fail 'bash does not complete --device='
[ "$(complete_bash tandem compile m.mlir --optimizer = adamw8)" = adamw8bit ] ||
  fail 'bash does not complete --optimizer='
finish

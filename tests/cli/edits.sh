#!/bin/bash
# edits.sh BIN - edited dumps crashed the compiler or made it run for ever (A9),
# trained to other numbers without a word (A8, A10), and misspelt attributes and
# initial values of a model were ignored (A5, A6).
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem
cd "$work" || exit 1

cat >m.mlir <<'MLIR'
#x = #tandem.role<input "x">
#labels = #tandem.role<input "labels" {high = 4 : i64}>
#w0 = #tandem.role<param "w0" {requires_grad, init = {kind = "uniform", low = -0.2, high = 0.2}}>
#b0 = #tandem.role<param "b0" {requires_grad, init = {kind = "constant", value = 0.0}}>
#w1 = #tandem.role<param "w1" {requires_grad, init = {kind = "uniform", low = -0.2, high = 0.2}}>
#loss = #tandem.role<output "loss">
#logits = #tandem.role<output "logits">
module @m attributes {tandem.phase = "capture"} {
  func.func @graph(%x: tensor<32x16xf32> {tandem.role = #x}, %labels: tensor<32xi64> {tandem.role = #labels},
      %w0: tensor<24x16xf32> {tandem.role = #w0}, %b0: tensor<24xf32> {tandem.role = #b0},
      %w1: tensor<4x24xf32> {tandem.role = #w1})
      -> (tensor<f32> {tandem.role = #loss}, tensor<32x4xf32> {tandem.role = #logits}) {
    %a = tandem.linear %x, %w0, %b0 : (tensor<32x16xf32>, tensor<24x16xf32>, tensor<24xf32>) -> tensor<32x24xf32>
    %h = tandem.relu %a : tensor<32x24xf32>
    %logits = tandem.matmul %h, %w1 {transpose_rhs} : tensor<32x24xf32>, tensor<4x24xf32> -> tensor<32x4xf32>
    %loss = tandem.cross_entropy %logits, %labels : tensor<32x4xf32>, tensor<32xi64> -> tensor<f32>
    return %loss, %logits : tensor<f32>, tensor<32x4xf32>
  }
}
MLIR
"$tandem" compile m.mlir -o m.tdm --target=cpu:x86-64-v3 \
  --optimizer=adamw:lr=1e-2 --dump-phases=dumps || fail 'the model itself'

# refused PATTERN FILE SED: the file, edited, is an error that says PATTERN.
refused() {
  sed -E "$3" "$2" >edited.mlir
  if cmp -s "$2" edited.mlir; then
    fail "nothing was edited: $3 in $2"
    return
  fi
  expect 1 "$1" timeout 60 "$tandem" compile edited.mlir -o edited.tdm
}
# accepted FILE SED: it compiles.
accepted() {
  sed -E "$2" "$1" >edited.mlir
  cmp -s "$1" edited.mlir && fail "nothing was edited: $2 in $1"
  expect 0 '' "$tandem" compile edited.mlir -o edited.tdm
}
# What is not edited compiles to the same.
for file in dumps/m.0[2-7].*.mlir; do
  expect 0 '' "$tandem" compile "$file" -o same.tdm
  cmp m.tdm same.tdm || fail "$file does not compile to the same"
done

# A5, A6: what nobody knows in a model.
refused "'tandem.cross_entropy' op has no attribute 'reducton' \(did you mean 'reduction'\?\)" \
  m.mlir 's/(cross_entropy %logits, %labels)/\1 {reducton = "sum"}/'
refused "'tandem.linear' op has no attribute 'bias'" \
  m.mlir 's/(linear %x, %w0, %b0)/\1 {bias = false}/'
refused "got 'unifrom' \(did you mean 'uniform'\?\)" m.mlir 's/"uniform"/"unifrom"/'
refused "unknown key 'vlaue'" m.mlir 's/value = 0.0/vlaue = 3.0/'
refused "a finite number 'value'" m.mlir 's/, value = 0.0//'
# B9: an op that PyTorch calls otherwise.
refused "'tandem.swish' is unknown \(did you mean 'silu'\?\)" m.mlir 's/tandem.relu/tandem.swish/'
refused "'tandem.rellu' is unknown \(did you mean 'relu'\?\)" m.mlir 's/tandem.relu/tandem.rellu/'

# A9, A10: targets.
for bits in 100 1000000000000 0 -512 7; do
  refused "expected 'vector_bits' to be" dumps/m.03.joint.mlir \
    "s/vector_bits = 256/vector_bits = $bits/"
done
refused "expected 'processors' to be an integer from 1" dumps/m.03.joint.mlir \
  's/vector_bits = /processors = -4 : i64, &/'
refused "expected 'last_cache_bytes' to be an integer from 1" dumps/m.03.joint.mlir \
  's/vector_bits = /last_cache_bytes = -1 : i64, &/'
refused "unknown processor 'foo'" dumps/m.03.joint.mlir 's/arch = "[^"]*"/arch = "foo"/'
refused "the processor 'pentium' does not run code of 64 bits" dumps/m.03.joint.mlir \
  's/arch = "[^"]*"/arch = "pentium"/'
refused "unknown feature 'avx512q'" dumps/m.03.joint.mlir 's/"avx2"/"avx512q", &/'
expect 3 "the processor 'pentium' does not run code of 64 bits" \
  "$tandem" compile m.mlir -o edited.tdm --target=cpu:pentium
expect 2 "unknown processor 'pentiun'" "$tandem" compile m.mlir -o edited.tdm --target=cpu:pentiun

# A10: programs of one module say the same.
refused "an unexpected function 'stepp' \(did you mean 'step'\?\)" \
  dumps/m.05.partition.mlir 's/func.func @step\(/func.func @stepp(/'
for phase in 05.partition 06.plan 07.lower; do
  file=dumps/m.$phase.mlir
  refused "'input \"xx\"' in 'step'" "$file" '/func.func @step\(/s/input "x"/input "xx"/'
  refused "with 'high' 3 : i64 in 'step', but with 'high' 4 : i64" "$file" \
    '/func.func @step\(/s/high = 4/high = 3/'
  refused "with 'init' .* in 'update', but with 'init'" "$file" \
    '/func.func @update\(/s/(param "b0" \{init = \{kind = "constant", value = )0\.0+e\+00/\11.0e+00/'
  refused "without 'requires_grad' in 'evaluate', but with" "$file" \
    '/func.func @evaluate\(/s/, requires_grad//'
done

# A8: the memory of a plan.
plan=dumps/m.06.plan.mlir
step='/func.func @step\(/,/^  \}/'
refused 'arena 0> is taken' $plan "$step"'s/<arena [1-9][0-9]*>/<arena 0>/'
refused 'expected to overwrite only what is updated in place' $plan \
  "$step"'s/<arena 0>/<argument 2>/'
refused "expected 'arena_bytes' of 'tandem.plan' to be" $plan "$step"'s/arena_bytes = [1-9][0-9]*/&0/'
refused "expected 'lower_bound_bytes' of 'tandem.plan' to be" $plan \
  "$step"'s/lower_bound_bytes = [0-9]+/lower_bound_bytes = 1/'
refused "expected 'peak_bytes' of 'tandem.plan' to be" $plan \
  "$step"'s/peak_bytes = [0-9]+/peak_bytes = 1/;'"$step"'s/lower_bound_bytes = [0-9]+/lower_bound_bytes = 1/'
refused "expected 'host_bytes' of 'tandem.plan' to be" $plan \
  "$step"'s/lower_bound_bytes = [0-9]+/&, host_bytes = 64/'
refused "expected a plan with 0 <= 'lower_bound_bytes' <= 'peak_bytes' <= 'arena_bytes'" $plan \
  "$step"'s/arena_bytes = [1-9][0-9]*/arena_bytes = 64/'
refused "expected 'tandem.step_memory' to be" $plan 's/(step_memory = \{.*parameters = )[0-9]+/\17/'
in_place="${step/step/evaluate}"'s/buffers = \[[^]]*\]/&, in_place = '
refused "expected 'in_place' to pair one of 1 results with one of [0-9] inputs, but got result 0 over input 9" \
  $plan "$in_place#tandem.in_place<0 over 9>/"
refused "attribute 'in_place' failed to satisfy constraint" $plan "$in_place[array<i64: 0, 0>]/"
refused 'expected the number of a result, but got -1' $plan "$in_place#tandem.in_place<-1 over 0>/"
refused 'expected result #0 not to overwrite input #0' $plan \
  "$step"'s/buffers = \[#tandem.buffer<(arena|result) [0-9]+>\]/&, in_place = #tandem.in_place<0 over 0>/'
refused "expected 'non_temporal' to be rising numbers of its" $plan \
  "$step"'s/buffers = \[[^]]*\]/&, non_temporal = array<i64: 9>/'
refused "expected 'rows' of a schedule to be 1 to 32, but got 33" $plan \
  "$step"'s/buffers = \[[^]]*\]/&, schedule = #tandem.schedule<rows = 33>/'

# A8, A9: a launch and its kernel.
lower=dumps/m.07.lower.mlir
refused 'arena 0> is taken' $lower "$step"'s/<arena [1-9][0-9]*>/<arena 0>/'
for work in 0 1000000; do
  refused "expected 'work' to be the 'items' of its kernel" $lower \
    "/tandem.launch/s/work = [0-9]+/work = $work/"
done
refused "expected its type to be the 'type' of its kernel" $lower \
  '/func.func @evaluate\(/,/^  \}/s/launch @cpu::@[a-z0-9_]*/launch @cpu::@NONE/;s/NONE/'"$(
    grep -oE 'launch @cpu::@[a-z0-9_]*' $lower | tail -1 | sed 's/.*@//')/"
grep -q 'scratch_bytes = [1-9]' $lower && refused "expected 'scratch_bytes' to be what the code" \
  $lower 's/scratch_bytes = [1-9][0-9]*/scratch_bytes = 0/'
# What a kernel's function says of itself has a type.
refused "expected 'items' of a kernel to be at least 0, but got -1" $lower \
  's/(kernel_facts<.*)items = [0-9]+/\1items = -1/'
refused "duplicate or unknown struct parameter name: flop" $lower \
  's/(kernel_facts<.*)flops = /\1flop = /'
refused "'tandem.target': unknown field 'procesors' \(did you mean 'processors'\?\)" \
  dumps/m.03.joint.mlir 's/vector_bits = /procesors = 4 : i64, &/'
refused "expected 'tandem.target' to be '#tandem.target', but got" dumps/m.03.joint.mlir \
  's/#tandem.target<cpu (\{[^}]*\})>/\1/'
# How many items a thread takes at a time changes no result.
accepted $lower 's/grain = [0-9]+/grain = 3/'
finish

#!/bin/bash
# schemas.sh BIN EXAMPLES DOCS CHECK - what `inspect`, `diff`, `explain` and
# `profile` print as JSON is as docs/schemas has it, and has no field that is
# not there; the checker finds what is missing, more, or of another type.
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem
model=$2/digits/mlp.mlir
schemas=$3/schemas
check=$4
if [ ! -x "$check" ]; then
  echo 'skipped: valijson (libvalijson-dev) was not there when this was built'
  exit 77
fi
cd "$work" || exit 1
adamw=--optimizer=adamw:lr=1e-3

# print NAME COMMAND... keeps what a command prints as NAME.json.
print() {
  "$tandem" "${@:2}" --json >"$1.json" 2>err || fail "${*:2}: $(cat err)"
}
print 'inspect-model' inspect "$model" $adamw
print 'inspect-inference' inspect "$model" --inference
print 'inspect-cuda' inspect "$model" $adamw --target=cuda:sm_90+cpu --cubin=no
print 'inspect-ranks' inspect "$model" $adamw --mesh=data=2 --parallel=ddp
"$tandem" compile "$model" -o a.tdm $adamw 2>err || fail "$(cat err)"
print 'inspect-artifact' inspect a.tdm
"$1/tandem-run" inspect a.tdm --json >inspect-run.json || fail 'tandem-run'
print 'diff-model' diff "$model" "$model" $adamw \
  --b-options='--target=cpu:x86-64-v3 --memory-budget=0'
print 'diff-artifact' diff a.tdm "$model"
# Of two sizes.
sed 's/tensor<32x/tensor<16x/g' "$model" >sixteen.mlir
for budget in 0 1; do
  "$tandem" compile "$model" -o "s$budget.tdm" $adamw --variant=sixteen.mlir \
    --memory-budget=$budget 2>err || fail "$(cat err)"
done
print 'inspect-sizes' inspect s0.tdm
print 'diff-sizes' diff s0.tdm s1.tdm
# Of a mesh, stages or sizes beside none: these were objects and lists.
"$tandem" compile "$model" -o ranks.tdm $adamw --mesh=data=2 --parallel=ddp \
  2>err || fail "$(cat err)"
"$tandem" compile "$model" -o stages.tdm $adamw --mesh=pipe=2 --parallel=pp \
  2>err || fail "$(cat err)"
print 'diff-ranks' diff a.tdm ranks.tdm
print 'diff-stages' diff stages.tdm ranks.tdm
print 'diff-two-stages' diff stages.tdm stages.stage1.tdm
print 'diff-one-of-sizes' diff s0.tdm a.tdm
for said in 'ranks data=2' 'stages 0 of 2 on 2' 'two-stages 1 of 2 on 2' \
  'one-of-sizes mlp, sixteen'; do
  grep -qF "\"${said#* }\"" "diff-${said%% *}.json" ||
    fail "diff-${said%% *} does not say ${said#* }"
done
for question in value=fc1.w value=relu.0 why-saved=relu.0 why-saved=exp \
  why-saved=fc0.w kernel=1 why-slow why-large; do
  print "explain-${question/=/-}" explain a.tdm "--$question"
done
print 'explain-large' explain "$model" $adamw --why-large
print 'explain-fused' explain "$model" --why-not-fused=34:11,35:11
print 'profile-artifact' profile a.tdm --steps=2 --warmup=0
print 'profile-model' profile "$model" $adamw --steps=2 --warmup=0
for kind in inspect diff explain profile; do
  expect 0 '' "$check" "$schemas/$kind.schema.json" "$kind"-*.json
done

# The checker is no rubber stamp.
sed 's/"version": 1/"version": "1"/' explain-why-slow.json >other.json
expect 1 'version' "$check" "$schemas/explain.schema.json" other.json
sed 's/"overhead"/"overheads"/' profile-artifact.json >other.json
expect 1 'overhead' "$check" "$schemas/profile.schema.json" other.json
expect 1 'kind' "$check" "$schemas/diff.schema.json" profile-artifact.json
finish

#!/bin/bash
# link.sh BIN EXAMPLES - models that were composed at run time become one
# artifact (row N32): with the gradients of the composition, or with the reason
# why a node stays one.
source "$(dirname "$0")/expect.sh"
bin=$1 models=$2/graph
cd "$work" || exit 1
cp "$models/generator.json" "$models/critic.json" .
tandem=$bin/tandem
for model in generator critic; do
  expect 0 '' "$tandem" compile $model.json -o $model.tdm
done
expect 0 'wrote the graph' "$bin/graph-linked" generator.tdm critic.tdm g.json
link() { "$tandem" link "$@"; }

# Artifacts with their models beside them, or the models.
expect 0 "linked 'generator', 'critic' and 3 ops of 'g.json'" \
  link generator.tdm critic.tdm --graph=g.json -o linked.tdm --model=linked.mlir
grep -q "input 'noise' is 'noise' of 'generator'" <<<"$out" ||
  fail "what the input is was not said: $out"
grep -q 'stays' <<<"$out" && fail "a node stays: $out"
expect 0 'generator.w1 +differs by 0' \
  "$bin/graph-linked" generator.tdm critic.tdm g.json linked.tdm
expect 0 'critic.b2 +differs by 0' \
  "$bin/graph-linked" generator.tdm critic.tdm g.json linked.tdm
expect 0 '' link critic.json generator.json --graph=g.json -o again.tdm
cmp -s linked.tdm again.tdm || fail 'the order of the pieces matters'
# The linked model is a model: compiled by itself, with an optimizer.
expect 0 '' "$tandem" compile linked.mlir -o same.tdm
cmp -s linked.tdm same.tdm || fail 'the linked model makes another artifact'
expect 0 '' link generator.json critic.json --graph=g.json -o trained.tdm \
  --optimizer=sgd:lr=0.1
expect 0 'generator.w1' "$bin/tandem-run" inspect trained.tdm
expect 0 'step' "$bin/tandem-run" inspect trained.tdm

# What stays, and why.
mkdir alone
cp critic.tdm alone
expect 0 "'critic' \(node 3\) stays a node: no model lies beside 'alone/critic" \
  link generator.json alone/critic.tdm --graph=g.json --model=part.mlir
grep -q "^linked 'generator' of" <<<"$out" || fail "not the generator: $out"
grep -q "'mul' .* it is computed of 'critic' (node 3), which stays" \
  <<<"$out" || fail "no reason for the op: $out"
expect 0 "no model 'generator' is given" \
  link critic.json --graph=g.json --model=part.mlir
grep -q "input 'points' is what 'generator' (node 4) gives" <<<"$out" ||
  fail "what the input is was not said: $out"
sed 's/"tanh"/"sigmoid"/' critic.json >alone/critic.json
expect 0 "was not compiled from 'alone/critic.json'" \
  link generator.json alone/critic.tdm --graph=g.json --model=part.mlir
expect 0 'is another model than the one that ran' \
  link generator.json alone/critic.json --graph=g.json --model=part.mlir
sed '/"name": "critic"/s/"hooks": 0/"hooks": 2/' g.json >hooked.json
expect 0 'it has 2 hooks, which would not be called' \
  link generator.json critic.json --graph=hooked.json --model=part.mlir

# Errors.
expect 1 'no program of the graph can be taken in' \
  link alone/critic.json --graph=g.json --model=part.mlir
sed 's/"critic"/"other"/' critic.json >other.json
expect 2 "'other.json': the graph calls no model 'other'" \
  link generator.json other.json --graph=g.json -o x.tdm
expect 2 "are both called 'critic'" \
  link critic.json critic.tdm --graph=g.json -o x.tdm
expect 2 'missing argument PIECE' link --graph=g.json -o x.tdm
expect 2 'graph' link critic.json -o x.tdm
expect 2 "'compile --stop-after=capture'|makes one of it" \
  link model.onnx --graph=g.json -o x.tdm
echo '{"format": "tandem-graph"}' >wrong.json
expect 1 "wrong.json: .*'format' to be 'tandem-run-time-graph'" \
  link critic.json --graph=wrong.json -o x.tdm
[ -e x.tdm ] && fail 'an artifact was written'
# An output does not replace a piece.
expect 2 'generator.json' \
  link generator.json critic.json --graph=g.json -o generator.json
finish

#!/bin/bash
# tags.sh BIN EXAMPLES - what a user says of what is saved: expressions over
# paths, and tags edited in a dump.
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem
cd "$work" || exit 1

cat >m.json <<'JSON'
{"format": "tandem-graph", "version": 1, "name": "m",
 "inputs": [{"name": "x", "type": "f32", "shape": [64, 32]}],
 "params": [{"name": "w", "type": "f32", "shape": [32, 32], "init": {"kind": "constant", "value": 0.1}}],
 "states": [{"name": "n", "type": "f32", "shape": [], "init": {"kind": "constant", "value": 0.0}}],
 "nodes": [
  {"op": "module", "name": "h0", "nodes": [
    {"op": "matmul", "inputs": ["x", "w"], "outputs": ["a"]},
    {"op": "sin", "name": "act", "inputs": ["a"], "outputs": ["b"]},
    {"op": "reduce_sum", "inputs": ["b"], "outputs": ["c"], "attributes": {"dims": [0, 1]}},
    {"op": "write", "inputs": ["c", "n"], "no_grad": true}]},
  {"op": "module", "name": "h1", "nodes": [
    {"op": "matmul", "inputs": ["b", "w"], "outputs": ["d"]},
    {"op": "exp", "name": "act", "inputs": ["d"], "outputs": ["e"]}]},
  {"op": "reduce_sum", "inputs": ["e"], "outputs": ["loss"], "attributes": {"dims": [0, 1]}}],
 "outputs": [{"name": "loss", "value": "loss"}]}
JSON

# The names of what the forward saves.
saved() {
  "$tandem" compile "$@" --stop-after=partition |
    sed -n '/func.func @forward(/p' | grep -oE 'saved "[^"]*"' | sort -u |
    tr -d '\n'
}
is() {
  [ "$1" = "$2" ] || fail "expected $2, but got $1"
}

for partition in default min-cut; do
  plain=$(saved m.json --partition=$partition)
  # P06: of a module that writes, what can be computed again is; in no program
  # is a tag left.
  here=$(saved m.json --partition=$partition '--recompute=^h0\.')
  [[ "$plain" = *'saved "matmul.0"'* ]] || fail "plain saves $plain"
  [[ "$here" != *matmul.0* && "$here" != *sin.0* ]] || fail "h0 saves $here"
  is "$(saved m.json --partition=$partition '--recompute=act|matmul')" ''
  # P06: at every partition what is tagged is saved.
  [[ $(saved m.json --partition=$partition '--save=^h1\.act$') = \
    *'saved "exp.0"'* ]] || fail "--save saves nothing more"
done
# P06: and at every budget.
for budget in 0 0.5 1; do
  here=$(saved m.json --memory-budget=$budget '--save=^h1\.act$' \
    '--recompute=^h0\.')
  [[ "$here" = *'saved "exp.0"'* ]] || fail "at $budget is saved $here"
  [[ "$here" != *matmul.0* && "$here" != *sin.0* ]] ||
    fail "at $budget h0 saves $here"
done
"$tandem" compile m.json --recompute=h0 --stop-after=partition -o p.mlir
grep -qE '^ *%.*tandem.recompute[,}]' p.mlir && fail 'a tag is left in a program'
# P15: the write is the forward's alone.
grep '@backward' p.mlir | grep -q 'update of "n"' && fail 'two writes'

# Wrong expressions.
expect 2 "expected --recompute to be a regular expression, but got '\('" \
  "$tandem" compile m.json --stop-after=capture '--recompute=('
expect 2 "--save=h2 matches none of the paths of the model: 'h0.matmul', 'h0.act', 'h0.reduce_sum', 'h1.matmul', 'h1.act', 'reduce_sum'" \
  "$tandem" compile m.json --stop-after=capture --save=h2
expect 2 "--recompute=act matches 'h0.act', which is tagged 'tandem.save'" \
  "$tandem" compile m.json --stop-after=capture --save=h0 --recompute=act
expect 2 '--inference and --save exclude each other' \
  "$tandem" compile m.json --stop-after=capture --save=h0 --inference
expect 2 "--save has no effect on a module that is past 'partition'" \
  "$tandem" compile p.mlir --stop-after=plan --save=h0

# P02: tags that are edited in the printed joint are obeyed, and so are
# expressions; the same module gives the same text.
"$tandem" compile m.json --stop-after=joint -o joint.mlir
"$tandem" compile joint.mlir --stop-after=partition -o once.mlir
"$tandem" compile joint.mlir --stop-after=partition -o twice.mlir
cmp once.mlir twice.mlir || fail 'one module gives two partitions'
sed 's/\(tandem.matmul %arg0.*\){tandem.pass = "forward"}/\1{tandem.pass = "forward", tandem.recompute}/' \
  joint.mlir >edited.mlir
cmp -s joint.mlir edited.mlir && fail 'nothing was edited'
[[ $(saved edited.mlir) != *matmul.0* ]] || fail 'an edited tag is not obeyed'
is "$(saved joint.mlir '--recompute=act|matmul')" ''
# What is to be offloaded is saved in the host's memory, at every budget; for
# the host the expression changes nothing.
for budget in 0 1; do
  here=$("$tandem" compile m.json --target=cuda:sm_90 --memory-budget=$budget \
    '--offload=^h1\.act$' '--recompute=^h0\.' --stop-after=partition |
    grep 'func.func @forward(')
  [[ "$here" = *'saved "exp.0" {host, '* ]] || fail "at $budget stays $here"
done
"$tandem" compile m.json --stop-after=plan -o plain.mlir
expect 0 "m.json:[0-9:]+: in 'h1.act': remark: 'tandem.offload' on 'tandem.exp' says nothing" \
  "$tandem" compile m.json --stop-after=plan '--offload=^h1\.act$' -o away.mlir
cmp plain.mlir away.mlir || fail 'a program for the host is another'
expect 2 "--offload=h2 matches none of the paths of the model: 'h0.matmul'" \
  "$tandem" compile m.json --stop-after=capture --offload=h2
expect 2 "--recompute=act matches 'h0.act', which is tagged 'tandem.offload'" \
  "$tandem" compile m.json --stop-after=capture --offload=h0 --recompute=act
sed 's/"op": "exp",/"op": "exp", "offload": true,/' m.json >tagged.json
"$tandem" compile tagged.json --target=cuda:sm_90 --cubin=no -o tagged.tdm
expect 0 '^exp.0 .* 8.0 KiB .* host  ' "$tandem" inspect tagged.tdm
grep -qE '^beside, on the host +8.0 KiB$' <<<"$out" || fail "no host: $out"
grep -qE '^total .* 8.0 KiB on the host$' <<<"$out" || fail "no total: $out"

# What programs save and take agrees by name and type, or is refused.
sed '/@backward/s/saved "matmul.0"/saved "matmul.9"/' once.mlir >renamed.mlir
expect 1 "'saved \"matmul.9\"' in 'backward' that 'forward' does not save" \
  "$tandem" compile renamed.mlir --stop-after=plan
finish

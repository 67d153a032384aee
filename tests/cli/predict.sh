#!/bin/bash
# predict.sh BIN EXAMPLES - a trained model gives the scores of any number of
# rows, without labels; evaluation counts each row once; labels that the loss
# does not take are named. Data comes as tables, since every tool can write them.
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem mlp=$2/digits/mlp.mlir data=$2/digits/data
cd "$work" || exit 1

expect 0 '' "$tandem" compile "$mlp" -o mlp.tdm --optimizer=adamw:lr=2e-3
expect 0 '' "$tandem" compile "$mlp" -o lean.tdm --inference
expect 0 'eval.accuracy = 0.9' "$tandem" train mlp.tdm --epochs=4 --seed=0 \
  --data x=@"$data/train_images.npy" --data labels=@"$data/train_labels.npy" \
  --eval x=@"$data/test_images.npy" --eval labels=@"$data/test_labels.npy" \
  --accuracy=logits,labels --save=mlp.safetensors
eval_loss=$(sed -n 's/^eval.loss = //p' <<<"$out")

# For inference neither loss nor labels are left.
expect 2 "unknown argument 'labels'|has no such input" "$tandem" run lean.tdm \
  --params=mlp.safetensors --input labels=3
case $("$tandem" inspect lean.tdm) in *labels* | *loss*)
  fail '--inference keeps labels or loss' ;;
esac

# 1,003 rows, and no labels: the same scores from both artifacts and devices.
awk 'BEGIN { srand(7); for (i = 0; i < 64; i++) printf "p%d%s", i, i < 63 ? "," : "\n"
  for (r = 0; r < 1003; r++) for (i = 0; i < 64; i++) printf "%d%s", rand() * 17, i < 63 ? "," : "\n" }' >x.csv
for artifact in mlp lean; do
  expect 0 '"rows": 1003' "$tandem" predict $artifact.tdm --params=mlp.safetensors \
    --data x=@x.csv --output logits=@$artifact.csv --json
  [ "$(wc -l <$artifact.csv)" -eq 1004 ] || fail "not 1003 rows from $artifact"
done
cmp mlp.csv lean.csv || fail '--inference gives other scores'
head -n 34 x.csv >x33.csv
expect 0 '' "$tandem" predict mlp.tdm --params=mlp.safetensors \
  --data x=@x33.csv:p0..p63 --output logits=@first.csv
cmp <(head -n 34 mlp.csv) first.csv || fail 'rows depend on how many there are'
expect 0 '^logits$' "$tandem" predict mlp.tdm --params=mlp.safetensors \
  --data x=@x33.csv --argmax --csv
[ "$(wc -l <<<"$out")" -eq 34 ] || fail 'not an index for each row'

# The mean loss of five rows, and of all, whatever the batch of the artifact.
sed 's/tensor<32x/tensor<4x/g; s/tensor<32xi64>/tensor<4xi64>/g' "$mlp" >four.mlir
expect 0 '' "$tandem" compile four.mlir -o four.tdm --optimizer=adamw:lr=2e-3
losses() { # ARTIFACT
  expect 0 '' "$tandem" train "$1" --steps=1 --lr=1e-30 --no-shuffle \
    --params=mlp.safetensors --data x=@"$data/train_images.npy" \
    --data labels=@"$data/train_labels.npy" --eval x=@five.csv:p0..p63 \
    --eval labels=@five.csv:label
  sed -n 's/^eval.loss = //p' <<<"$out"
}
awk 'NR == 1 { print $0 ",label" } NR > 1 && NR < 7 { print $0 "," NR % 10 }' x.csv >five.csv
[ "$(losses mlp.tdm)" = "$(losses four.tdm)" ] ||
  fail "means of five rows: $(losses mlp.tdm) and $(losses four.tdm)"
[ "${eval_loss#* (of}" = "$eval_loss" ] || fail "eval.loss = $eval_loss"

# The range follows from the op where the model does not declare it.
sed 's/ {high = 10 : i64}//' "$mlp" >open.mlir
expect 0 '' "$tandem" compile open.mlir -o open.tdm --optimizer=sgd:lr=0.1
sed '3s/,[0-9]*$/,10/' five.csv >few.csv
{ cat few.csv; for _ in 1 2 3 4 5 6 7; do sed 1d few.csv; done; } >wrong.csv
expect 2 "'labels': expected an integer from 0 to 9 but row 1 is 10" \
  "$tandem" train open.tdm --epochs=1 --data x=@wrong.csv:p0..p63 \
  --data labels=@wrong.csv:label --save=w.safetensors
[ -e w.safetensors ] && fail 'a training on wrong labels was saved'
expect 0 '' "$tandem" inspect open.tdm

# Labels of -100, which other losses ignore, were refused without a word on it.
sed 's/,10$/,-100/' wrong.csv >ignored.csv
expect 2 "but row 1 is -100; labels that do not count need a loss .* 'ignore_index'" \
  "$tandem" train open.tdm --epochs=1 --data x=@ignored.csv:p0..p63 \
  --data labels=@ignored.csv:label --save=w.safetensors

# A loss that ignores some labels is a mean over the others.
sed 's/tandem.cross_entropy %logits, %labels :/tandem.cross_entropy %logits, %labels {ignore_index = -100 : i64} :/' \
  "$mlp" >some.mlir
expect 0 '' "$tandem" compile some.mlir -o some.tdm --optimizer=adamw:lr=2e-3
whole=$(losses some.tdm)
[ "$whole" = "$(losses mlp.tdm)" ] || fail "no label is ignored, but $whole"
sed -n '3p;5p' five.csv | sed 's/,[0-9]*$/,-100/' >>five.csv
[ "$whole" = "$(losses some.tdm)" ] ||
  fail "ignored labels count: $whole and $(losses some.tdm)"
sed -i '$s/-100$/-101/' five.csv
expect 2 'from 0 to 9, or -100, which does not count but row 6 is -101' \
  "$tandem" train some.tdm --steps=1 --data x=@"$data/train_images.npy" \
  --data labels=@"$data/train_labels.npy" --eval x=@five.csv:p0..p63 \
  --eval labels=@five.csv:label

# Indices that count from the end are taken, and others that the table does not
# have are named; scores on an axis of a tensor are those of the axis asked for.
cat >tokens.json <<'EOF'
{"format": "tandem-graph", "version": 1, "name": "tokens",
 "inputs": [{"name": "x", "type": "i64", "shape": [2, 4]}],
 "params": [{"name": "table", "type": "f32", "shape": [5, 3], "init": {"kind": "uniform", "low": -1, "high": 1}}],
 "nodes": [{"op": "index_select", "inputs": ["table", "x"], "outputs": ["last"]},
           {"op": "transpose", "inputs": ["last"], "outputs": ["first"], "attributes": {"dim0": 1, "dim1": 2}}],
 "outputs": [{"name": "last", "value": "last"}, {"name": "first", "value": "first"}]}
EOF
expect 0 '' "$tandem" compile tokens.json -o tokens.tdm --inference
expect 0 'x .*in \[-5, 5\)' "$tandem" inspect tokens.tdm
printf '%s\n' a,b,c,d 0,1,2,3 4,-1,-5,0 1,1,1,1 >tokens.csv
tokens() { expect "$1" "$2" "$tandem" predict tokens.tdm --seed=1 --data x=@tokens.csv "${@:3}"; }
tokens 2 "expected --argmax=AXIS .* for 'last' with more than two axes" --argmax
tokens 2 "expected 'last' to have scores on axis 3" --argmax=3 --output last=@o.csv
tokens 2 "expected 'last' to have scores on axis x" --argmax=x --output last=@o.csv
tokens 0 '' --argmax=-1 --output last=@last.csv
tokens 0 '' --argmax=1 --output first=@other.csv
cmp <(sed 1d last.csv) <(sed 1d other.csv) || fail 'two axes give two indices'
for token in 5 -6; do
  sed "3s/^4/$token/" tokens.csv >bad.csv
  expect 2 "'x': expected an integer from -5 to 4 but element .1, 0. is $token" \
    "$tandem" predict tokens.tdm --data x=@bad.csv
done
expect 2 "a file is '@tokens.npy'" "$tandem" predict tokens.tdm --data x=tokens.npy
expect 1 "'tandem compile' makes one" "$tandem" predict tokens.json --data x=@tokens.csv

# Outputs that are another's value, or a view of one: the loss may be the second
# name of what it is, evaluation counts as many rows of both, and what is seen
# of an output needs what that one needs.
cat >names.json <<EOF
{"format": "tandem-graph", "version": 1, "name": "names",
 "inputs": [{"name": "x", "type": "f32", "shape": [4, 6]}, {"name": "t", "type": "f32", "shape": [4, 2]}],
 "params": [{"name": "w", "type": "f32", "shape": [2, 6], "init": {"kind": "uniform", "low": -1, "high": 1}}],
 "nodes": [{"op": "linear", "inputs": ["x", "w"], "outputs": ["h"]},
           {"op": "mse_loss", "inputs": ["h", "t"], "outputs": ["L"]},
           {"op": "slice", "inputs": ["h"], "outputs": ["c"], "attributes": {"starts": [0, 0], "limits": [4, 1], "strides": [1, 1]}},
           {"op": "reshape", "inputs": ["c"], "outputs": ["first"], "attributes": {"shape": [4]}}],
 "outputs": [{"name": "mse", "value": "L"}, {"name": "loss", "value": "L"}, {"name": "out", "value": "h"},
             {"name": "again", "value": "h"}, {"name": "first", "value": "first"}]}
EOF
awk 'BEGIN { srand(3); for (r = 0; r < 10; r++) for (i = 0; i < 6; i++) printf "%.3f%s", rand() * 4 - 2, i < 5 ? "," : "\n" }' >six.csv
awk 'BEGIN { srand(4); for (r = 0; r < 10; r++) printf "%.3f,%.3f\n", rand(), rand() }' >two.csv
expect 0 '' "$tandem" compile names.json -o names.tdm --optimizer=sgd:lr=0.1
expect 0 'loss = ' "$tandem" train names.tdm --epochs=1 --data x=@six.csv:header=no \
  --data t=@two.csv:header=no --save=names.safetensors
expect 0 '^eval.mae = ' "$tandem" train names.tdm --steps=0 --params=names.safetensors \
  --eval x=@six.csv:header=no --eval t=@two.csv:header=no --metric=mae:again,t
mse=$(sed -n 's/^eval.mse = //p' <<<"$out")
[ -n "$mse" ] && [ "$mse" = "$(sed -n 's/^eval.loss = //p' <<<"$out")" ] ||
  fail "the loss has two names and two numbers: $out"
expect 0 '^best = loss ' "$tandem" train names.tdm --epochs=2 --data x=@six.csv:header=no \
  --data t=@two.csv:header=no --eval x=@six.csv:header=no --eval t=@two.csv:header=no \
  --save-best=best.safetensors --log=names.csv
head -n1 names.csv | grep -q 'eval.mse,eval.loss' ||
  fail "the log leaves out a name of the loss: $(head -n1 names.csv)"
expect 0 '' "$tandem" predict names.tdm --params=names.safetensors \
  --data x=@six.csv:header=no --output first=@firsts.csv --output out=@outs.csv
[ "$(tail -n +2 firsts.csv)" = "$(tail -n +2 outs.csv | cut -d, -f1)" ] ||
  fail 'the first column is another'
expect 0 '' "$tandem" predict names.tdm --params=names.safetensors --data x=@six.csv:header=no
for name in out again first; do
  grep -q "^$name " <<<"$out" || fail "predict leaves out '$name': $out"
done
case $out in *'other rows'*) fail "these views keep rows: $out" ;; esac
finish

#!/bin/bash
# ranks.sh BIN EXAMPLES - the digits' models under plans, on 2 and 4
# processes: 20 steps have the losses of one process with the whole batch
# (relative 1e-5). Bad requests are refused, and a plan is shown.
source "$(dirname "$0")/expect.sh"
bin=$1 examples=$2 data=$2/digits/data
cd "$work" || exit 1
command -v mpirun >/dev/null || { echo 'no mpirun'; exit 77; }
[ -e "$bin/../lib/libtandem-mpi.so" ] || { echo 'no libtandem-mpi.so'; exit 77; }

compile() { # OUTPUT [options]
  local to=$1
  shift
  expect 0 '' "$bin/tandem" compile "$source" -o "$to.tdm" \
    --optimizer=adamw:lr=2e-3 --effort=0 "$@"
}

train() { # MODEL RANKS
  local model=$1 ranks=$2 launch=()
  [ "$ranks" = 1 ] ||
    launch=(timeout 120 mpirun --allow-run-as-root --oversubscribe -n "$ranks")
  expect 0 '' "${launch[@]}" "$bin/tandem-run" train "$model.tdm" \
    --data x=@"$data/train_images.npy" --data labels=@"$data/train_labels.npy" \
    --steps 20 --seed 0 --threads=1 --log="$model.log"
  grep -oE '"loss": ?[-+.e0-9]+' "$model.log" | head -n 20 |
    grep -oE '[-+.e0-9]+$' >"$model.losses"
}

# as_one MODEL RANKS [options]: compiled like that, it learns as one process.
as_one() {
  local model=$1 ranks=$2
  shift 2
  compile "$model" "$@"
  train "$model" "$ranks"
  paste one.losses "$model.losses" | awk '
    { d = $1 - $2; if (d < 0) d = -d; if (!(d <= 1e-5 * $1)) bad = 1 }
    END { exit bad || NR != 20 }' || fail "$model: $(paste one.losses "$model.losses")"
}

source=$examples/digits/mlp.mlir
compile one
train one 1
[ "$(wc -l <one.losses)" = 20 ] || fail 'no losses'
for kind in ddp zero1 zero2 fsdp; do
  as_one "$kind-2" 2 --mesh=data=2 --parallel=$kind
done
as_one zero2-4 4 --mesh=data=4 --parallel=zero2
cat >tp.json <<'JSON'
{"fc0\\.w": ["tensor", null], "fc0\\.b": ["tensor"], "fc1\\.w": [null, "tensor"]}
JSON
as_one tp-2 2 --mesh=tensor=2 --parallel=tp --shard=tp.json
as_one ddp-tp 4 --mesh=data=2,tensor=2 --parallel=ddp+tp --shard=tp.json
as_one fsdp-tp 4 --mesh=data=2,tensor=2 --parallel=fsdp+tp --shard=tp.json

# Gradients are clipped by the norm that one process finds (X07).
rm one.*
compile one --clip=norm:0.5
train one 1
for kind in ddp zero1 zero2 fsdp; do
  as_one "clip-$kind" 2 --mesh=data=2 --parallel=$kind --clip=norm:0.5
done
as_one clip-tp 2 --mesh=tensor=2 --parallel=tp --shard=tp.json --clip=norm:0.5
grep -q '"grad_norm": [0-9]' clip-tp.log || fail 'no norm in the log'

# Statistics of batch norm are those of the whole batch.
expect 0 '' "$bin/digits-cnn" cnn.mlir
source=cnn.mlir
rm one.*
compile one
train one 1
as_one cnn-ddp 2 --mesh=data=2 --parallel=ddp
as_one cnn-fsdp 2 --mesh=data=2 --parallel=fsdp

# What is wrong without a model is a usage error, and what a value cannot have
# stands at the value.
refused() { # CODE TEXT [options]
  local code=$1 text=$2
  shift 2
  expect "$code" "$text" "$bin/tandem" compile "$examples/digits/mlp.mlir" \
    -o no.tdm "$@"
}
refused 2 "needs an axis 'tensor'" --mesh=data=2 --parallel=tp
refused 2 'needs a plan that says how params are cut' --mesh=tensor=2 --parallel=tp
refused 2 'exclude each other' --mesh=data=2 --parallel=ddp+fsdp
refused 2 'expected a mesh' --mesh=data
refused 2 '--parallel needs --mesh' --parallel=ddp
refused 1 "has an axis 'data'|to be cut over axes of the mesh" \
  --mesh=data=2 --shard=tp.json

refused 2 'key "fc0..w" stands twice' --mesh=tensor=2 --parallel=tp \
  --shard=<(echo '{"fc0..w": [null, "tensor"], "fc0..w": ["tensor", null]}')
# Outputs that share a value, and views of others and of inputs, are values of
# their own where ranks have pieces of what they show.
cat >views.json <<'JSON'
{"format": "tandem-graph", "version": 1, "name": "views",
 "inputs": [{"name": "x", "type": "f32", "shape": [8, 6]}, {"name": "t", "type": "f32", "shape": [8, 4]}],
 "params": [{"name": "w", "type": "f32", "shape": [4, 6], "init": {"kind": "uniform", "low": -1, "high": 1}}],
 "nodes": [{"op": "linear", "inputs": ["x", "w"], "outputs": ["h"]},
           {"op": "mse_loss", "inputs": ["h", "t"], "outputs": ["L"]},
           {"op": "slice", "inputs": ["h"], "outputs": ["c"], "attributes": {"starts": [0, 1], "limits": [8, 3], "strides": [1, 1]}},
           {"op": "slice", "inputs": ["h"], "outputs": ["rows"], "attributes": {"starts": [1, 0], "limits": [6, 4], "strides": [1, 1]}},
           {"op": "reshape", "inputs": ["h"], "outputs": ["flat"], "attributes": {"shape": [32]}},
           {"op": "reshape", "inputs": ["x"], "outputs": ["seen"], "attributes": {"shape": [8, 2, 3]}}],
 "outputs": [{"name": "loss", "value": "L"}, {"name": "mse", "value": "L"}, {"name": "h", "value": "h"},
             {"name": "again", "value": "h"}, {"name": "columns", "value": "c"}, {"name": "rows", "value": "rows"},
             {"name": "flat", "value": "flat"}, {"name": "seen", "value": "seen"}]}
JSON
awk 'BEGIN { srand(3); for (r = 0; r < 8; r++) for (i = 0; i < 6; i++) printf "%.3f%s", rand() * 4 - 2, i < 5 ? "," : "\n" }' >x.csv
awk 'BEGIN { srand(4); for (r = 0; r < 8; r++) for (i = 0; i < 4; i++) printf "%.3f%s", rand(), i < 3 ? "," : "\n" }' >t.csv
echo '{"w": ["tensor", null], "h": [null, "tensor"], "columns": [null, "tensor"]}' >columns.json
viewed() { # NAME RANKS [options]
  expect 0 '' "$bin/tandem" compile views.json -o "$1.tdm" --optimizer=sgd:lr=0.1 \
    --effort=0 "${@:3}"
  local launch=()
  [ "$2" = 1 ] ||
    launch=(timeout 120 mpirun --allow-run-as-root --oversubscribe -n "$2")
  expect 0 '^eval.mse = ' "${launch[@]}" "$bin/tandem-run" train "$1.tdm" --steps=3 --seed=0 \
    --threads=1 --data x=@x.csv:header=no --data t=@t.csv:header=no --save="$1.safetensors" \
    --eval x=@x.csv:header=no --eval t=@t.csv:header=no
  grep -E '^(loss|eval.*) = ' <<<"$out" >"$1.numbers"
  local wanted=()
  for name in h again columns seen; do # what has rows
    wanted+=(--output "$name=@$1.$name.csv")
  done
  expect 0 '' "${launch[@]}" "$bin/tandem-run" predict "$1.tdm" --params=whole.safetensors \
    --threads=1 --data x=@x.csv:header=no --data t=@t.csv:header=no "${wanted[@]}"
}
viewed whole 1
for plan in 'data=2 --parallel=ddp' 'data=2 --parallel=fsdp' \
  'tensor=2 --parallel=tp --shard=columns.json'; do
  # shellcheck disable=SC2086 # a mesh and options
  viewed cut 2 --force --mesh=$plan
  cmp -s whole.numbers cut.numbers || fail "$plan: $(cat whole.numbers cut.numbers)"
  for name in h again columns seen; do
    paste -d, "whole.$name.csv" "cut.$name.csv" | awk -F, '
      NR == 1 { if (NF % 2) bad = 1; next }
      { for (i = 1; i <= NF / 2; i++) {
          d = $i - $(i + NF / 2)
          if (!(d <= 1e-5 && d >= -1e-5)) bad = 1 } }
      END { exit bad || NR != 9 }' || fail "$plan: another '$name'"
  done
done

# An axis that nothing cuts is a slip of a pen, or of no use.
idle() { # COUNT AXES [options]
  expect 0 '' "$bin/tandem" compile "$examples/digits/mlp.mlir" -o idle.tdm \
    --force --optimizer=adamw:lr=2e-3 --mesh="$2" "${@:3}"
  [ "$(grep -c 'warning: nothing is cut over the axis' <<<"$out")" = "$1" ] ||
    fail "expected $1 warnings for $2, but got $out"
}
idle 1 data=2,tensr=2 --parallel=ddp
[[ $out == *"axis 'tensr' of the mesh"*"its 2 ranks all do the same"* ]] ||
  fail "$out"
idle 1 data=2
idle 0 data=2,tensor=1 --parallel=ddp
idle 0 pipe=2,data=2 --parallel=pp+ddp
idle 0 data=2,tensor=2 --parallel=ddp+tp --shard=tp.json
# `tp` cuts what the plan says.
echo '{"fc0\\.w": ["data", null]}' >other.json
idle 1 data=2,tensor=2 --parallel=ddp+tp --shard=other.json

expect 0 'all_reduce +over tensor' "$bin/tandem" inspect \
  "$examples/digits/mlp.mlir" --mesh=tensor=2 --parallel=tp --shard=tp.json \
  --shardings
expect 2 'one process' "$bin/tandem" inspect "$examples/digits/mlp.mlir" \
  --shardings
finish

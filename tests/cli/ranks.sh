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
refused 2 'exclude each other' --mesh=data=2 --parallel=ddp+fsdp
refused 2 'expected a mesh' --mesh=data
refused 2 '--parallel needs --mesh' --parallel=ddp
refused 1 "has an axis 'data'|to be cut over axes of the mesh" \
  --mesh=data=2 --shard=tp.json

refused 2 'key "fc0..w" stands twice' --mesh=tensor=2 --parallel=tp \
  --shard=<(echo '{"fc0..w": [null, "tensor"], "fc0..w": ["tensor", null]}')
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

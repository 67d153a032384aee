#!/bin/bash
# prepare.sh BIN - `tandem compile --inference --prepare` as a user meets it: the
# numbers of a plain artifact, the same bytes from every dump, on all devices.
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem
cd "$work" || exit 1

# y = x + exp(w) * v, with a scalar x, since no file is at hand.
model() {
  cat <<EOF
{"format": "tandem-graph", "version": 1, "name": "scaled",
 "inputs": [{"name": "x", "type": "f32", "shape": []}],
 "params": [{"name": "w", "type": "f32", "shape": [32, 24], "init": {"kind": "uniform", "low": -1, "high": 1}},
            {"name": "v", "type": "f32", "shape": [32, 24]$1}],
 "nodes": [{"op": "exp", "inputs": ["w"], "outputs": ["e"]},
           {"op": "mul", "inputs": ["e", "v"], "outputs": ["s"]},
           {"op": "broadcast", "inputs": ["x"], "outputs": ["xs"], "attributes": {"shape": [32, 24], "dims": []}},
           {"op": "add", "inputs": ["xs", "s"], "outputs": ["y"]}],
 "outputs": [{"name": "y", "value": "y"}]}
EOF
}
model ', "init": {"kind": "uniform", "low": -1, "high": 1}' >scaled.json
model '' >unset.json

expect 0 '' "$tandem" compile scaled.json -o plain.tdm --inference
expect 0 '' "$tandem" compile scaled.json -o scaled.tdm --inference --prepare \
  --dump-phases=dumps
expect 0 '' "$tandem" compile scaled.json -o again.tdm --inference --prepare \
  --threads=1 --kernel-cache=off
cmp scaled.tdm again.tdm || fail 'two compilations that prepare differ'
for phase in 04.optimize 05.partition 06.plan 07.lower; do
  expect 0 '' "$tandem" compile dumps/scaled.$phase.mlir -o again.tdm
  cmp scaled.tdm again.tdm || fail "resuming from $phase prepares otherwise"
done
expect 0 'prepared "mul"' "$tandem" compile scaled.json --inference --prepare \
  --stop-after=partition
expect 0 '^prepare ' "$tandem" inspect scaled.tdm
expect 0 '^prepared +3' "$tandem" inspect scaled.tdm
expect 0 '--prepare ' "$tandem" compile --help

# The same bits, whatever the seed of the parameters.
for seed in 1 2; do
  for artifact in plain scaled; do
    expect 0 '' "$tandem" run $artifact.tdm --seed=$seed --input x=3.5 \
      --output y=@$artifact.$seed.npy
  done
  cmp plain.$seed.npy scaled.$seed.npy || fail 'what is prepared is wrong'
done
cmp -s plain.1.npy plain.2.npy && fail 'the parameters are the same'
expect 0 '^median' "$tandem" bench scaled.tdm --steps=2
expect 0 'prepare' "$tandem" bench scaled.tdm --steps=2 --program=prepare
expect 0 'exp' "$tandem" bench scaled.tdm --steps=2 --program=prepare --kernels

# product M K N SHAPE ATTRIBUTES PANELS: (x * u) W, of a W of that shape, has the
# same bits where W lies in panels, which it does if PANELS is "3 4" for both
# x86-64-v3 and x86-64-v4, "4" for the latter alone.
product() {
  local panels=$6
  cat >product.json <<EOF
{"format": "tandem-graph", "version": 1, "name": "product",
 "inputs": [{"name": "x", "type": "f32", "shape": []}],
 "params": [{"name": "u", "type": "f32", "shape": [$1, $2], "init": {"kind": "uniform", "low": -1, "high": 1}},
            {"name": "w", "type": "f32", "shape": $4, "init": {"kind": "uniform", "low": -1, "high": 1}},
            {"name": "b", "type": "f32", "shape": [$3], "init": {"kind": "uniform", "low": -1, "high": 1}}],
 "nodes": [{"op": "broadcast", "inputs": ["x"], "outputs": ["xs"], "attributes": {"shape": [$1, $2], "dims": []}},
           {"op": "mul", "inputs": ["xs", "u"], "outputs": ["l"]},
           {"op": "matmul", "inputs": ["l", "w"], "outputs": ["p"], "attributes": {$5}},
           {"op": "broadcast", "inputs": ["b"], "outputs": ["bs"], "attributes": {"shape": [$1, $3], "dims": [1]}},
           {"op": "add", "inputs": ["p", "bs"], "outputs": ["y"]}],
 "outputs": [{"name": "y", "value": "y"}]}
EOF
  local targets="" variant found=""
  case $(uname -m) in x86_64) targets=cpu:x86-64-v2+x86-64-v3+x86-64-v4 ;; esac
  for variant in ${targets:+2 3 4}; do
    expect 0 '' "$tandem" compile product.json -o p.mlir --inference --prepare \
      --target=cpu:x86-64-v$variant --stop-after=partition
    if grep -q 'prepare(.*w.panels' p.mlir; then found+=" $variant"; fi
  done
  [ -z "$targets" ] || [ "${found# }" = "$panels" ] ||
    fail "$*: expected panels on '$panels', but got them on '${found# }'"
  expect 0 '' "$tandem" compile product.json -o plain.tdm --inference \
    ${targets:+--target=$targets}
  expect 0 '' "$tandem" compile product.json -o packed.tdm --inference --prepare \
    ${targets:+--target=$targets}
  for variant in '' ${targets:+x86-64-v2 x86-64-v3}; do
    for artifact in plain packed; do
      rm -f $artifact.npy
      expect 0 '' "$tandem" run $artifact.tdm --seed=1 --input x=1.25 \
        --output y=@$artifact.npy ${variant:+--cpu-variant=$variant}
    done
    cmp plain.npy packed.npy || fail "$*: panels give other numbers for '$variant'"
  done
}
product 16 256 192 '[256, 192]' '' '3 4'
product 33 300 333 '[300, 333]' '' '3 4'
product 9 131 250 '[250, 131]' '"transpose_rhs": true' '3 4'
product 127 1030 128 '[128, 1030]' '"transpose_rhs": true' '3 4'
product 201 517 333 '[333, 517]' '"transpose_rhs": true' '3 4'
product 257 256 192 '[256, 192]' '' 3
product 1024 256 65 '[256, 65]' '' 3
product 1025 256 192 '[256, 192]' '' ''
product 9 4096 64 '[4096, 64]' '' '3 4'
product 9 4097 64 '[4097, 64]' '' 3
product 9 8193 64 '[8193, 64]' '' ''
product 8 256 192 '[256, 192]' '' ''
product 16 1024 17 '[1024, 17]' '' ''

# Mixed precision: the casts of weights, which are made once, give the same bits.
for rows in 24 130; do
  cat >mixed.json <<EOF
{"format": "tandem-graph", "version": 1, "name": "mixed",
 "inputs": [{"name": "x", "type": "f32", "shape": []}],
 "params": [{"name": "u", "type": "f32", "shape": [$rows, 96], "init": {"kind": "uniform", "low": -1, "high": 1}},
            {"name": "w", "type": "f32", "shape": [96, 192], "init": {"kind": "uniform", "low": -1, "high": 1}},
            {"name": "v", "type": "f32", "shape": [80, 192], "init": {"kind": "uniform", "low": -1, "high": 1}}],
 "nodes": [{"op": "broadcast", "inputs": ["x"], "outputs": ["xs"], "attributes": {"shape": [$rows, 96], "dims": []}},
           {"op": "mul", "inputs": ["xs", "u"], "outputs": ["xu"]},
           {"op": "cast", "type": "bf16", "inputs": ["xu"], "outputs": ["l"]},
           {"op": "cast", "type": "bf16", "inputs": ["w"], "outputs": ["wb"]},
           {"op": "matmul", "inputs": ["l", "wb"], "outputs": ["h"]},
           {"op": "relu", "inputs": ["h"], "outputs": ["r"]},
           {"op": "cast", "type": "bf16", "inputs": ["v"], "outputs": ["vb"]},
           {"op": "matmul", "inputs": ["r", "vb"], "outputs": ["p"], "attributes": {"transpose_rhs": true}},
           {"op": "cast", "type": "f32", "inputs": ["p"], "outputs": ["y"]}],
 "outputs": [{"name": "y", "value": "y"}]}
EOF
  expect 0 'prepared "w.cast".*prepared "v.cast"' "$tandem" compile mixed.json \
    --inference --prepare --stop-after=partition
  expect 0 '' "$tandem" compile mixed.json -o plain.tdm --inference
  expect 0 '' "$tandem" compile mixed.json -o mixed.tdm --inference --prepare
  for seed in 1 2; do
    for artifact in plain mixed; do
      rm -f $artifact.$seed.npy
      expect 0 '' "$tandem" run $artifact.tdm --seed=$seed --input x=1.25 \
        --output y=@$artifact.$seed.npy
    done
    cmp plain.$seed.npy mixed.$seed.npy ||
      fail "casts that are prepared give other numbers for $rows rows"
  done
  cmp -s plain.1.npy plain.2.npy && fail 'the parameters are the same'
done

# A parameter without a value is missing in the same words.
expect 0 '' "$tandem" compile unset.json -o plain.tdm --inference
expect 0 '' "$tandem" compile unset.json -o unset.tdm --inference --prepare
for artifact in plain unset; do
  expect 2 "'evaluate' has no value and no initial one: 'v'; expected --params" \
    "$tandem" run $artifact.tdm --input x=3.5
done

# A program for each processor and device.
if [ "$(uname -m)" = x86_64 ]; then
  expect 0 '' "$tandem" compile scaled.json -o variants.tdm --inference \
    --prepare --target=cpu:x86-64+x86-64-v2
  expect 0 '' "$tandem" run variants.tdm --seed=1 --input x=3.5 \
    --cpu-variant=x86-64 --output y=@variant.npy
fi
expect 0 '' "$tandem" compile scaled.json -o both.tdm --inference --prepare \
  --target=cpu+cuda:sm_80 --emulation --cubin=no
expect 0 'y ' "$tandem" run both.tdm --seed=1 --input x=3.5 --device=cuda-emu

# Wrong use.
expect 2 '--prepare needs --inference' \
  "$tandem" compile scaled.json -o x.tdm --prepare
expect 2 "--inference has no effect .* 'joint'.*--prepare has no effect on a module that is past 'partition'" \
  "$tandem" compile dumps/scaled.06.plan.mlir -o x.tdm --inference --prepare
sed 's/prepared "mul"/prepared "exp"/' dumps/scaled.05.partition.mlir |
  awk '/prepared "exp"/ && !done { sub(/prepared "exp"/, "prepared \"mul\""); done = 1 } 1' >other.mlir
expect 1 "prepared \"exp\"' in 'evaluate' that 'prepare' does not prepare" \
  "$tandem" compile other.mlir -o x.tdm
finish

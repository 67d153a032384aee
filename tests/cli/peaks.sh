#!/bin/bash
# peaks.sh BIN EXAMPLES MPI - X06: the memory that simulate predicts for a rank
# is to the byte what the runtime allocates there, for every plan, with and
# without accumulation; and bench prints the same as planned.
# shellcheck source=tests/cli/over-ranks.sh
source "$(dirname "$0")/over-ranks.sh"
expect 0 '' "$bin/addition-gpt" gpt.mlir
expect 0 '' "$bin/digits-cnn" cnn.mlir
cp "$digits/mlp.mlir" mlp.mlir
cat >tp.json <<'JSON'
{"fc0\\.w": ["tensor", null], "fc0\\.b": ["tensor"], "fc1\\.w": [null, "tensor"]}
JSON
cat >gpt-tp.json <<'JSON'
{".*\\.up\\.w": ["tensor", null], ".*\\.up\\.bias": ["tensor"],
 ".*\\.down\\.w": [null, "tensor"]}
JSON

# numbers FILE NAME: all of that name in a JSON text, in their order.
numbers() { grep -oE "\"$2\": [0-9]+" "$1" | sed 's/.*: //'; }

# peaks MODEL RANKS BATCHES [options]: of a model that is compiled like that.
peaks() {
  local model=$1 ranks=$2 batches=$3 accumulate=()
  shift 3
  local name="$model $*"
  [ "$batches" = 1 ] || accumulate=(--accumulate="$batches")
  case $* in *pp*) accumulate=(--accumulate="$batches") ;; esac
  over "$ranks" bench x.tdm --threads=1 --warmup=2 --steps=1 --json \
    "${accumulate[@]}"
  echo "$out" >bench.json
  "$bin/tandem" simulate x.tdm --rank-threads=1 --batches="$batches" \
    --json >simulate.json
  "$bin/tandem" simulate "$model.mlir" --optimizer=adamw:lr=2e-3 "$@" \
    --rank-threads=1 --batches="$batches" --json >model.json
  local planned actual
  planned=$(numbers simulate.json memory_bytes | head -n 1)
  actual=$(numbers bench.json actual_peak_bytes | head -n 1)
  echo "$name, $batches batches: $actual"
  [ -n "$actual" ] && [ "$planned" = "$actual" ] ||
    fail "$name, $batches batches: simulate says $planned, measured $actual"
  [ "$(numbers bench.json planned_peak_bytes)" = "$actual" ] ||
    fail "$name, $batches batches: bench plans $(numbers bench.json planned_peak_bytes)"
  [ "$(numbers model.json memory_bytes | head -n 1)" = "$actual" ] ||
    fail "$name, $batches batches: of the model $(numbers model.json memory_bytes)"
  # Of each place along the pipeline.
  paste <(numbers simulate.json memory_bytes | tail -n +2) \
    <(numbers simulate.json in_flight_bytes) | awk '{ print $1 + $2 }' |
    sort -u >each
  numbers bench.json actual_peak_bytes | tail -n +2 | sort -u | diff - each ||
    fail "$name, $batches batches: the ranks differ"
}

# plan MODEL RANKS [options]
plan() {
  local model=$1 ranks=$2
  shift 2
  compile x "$model.mlir" "$@"
  peaks "$model" "$ranks" 1 "$@"
  case $* in *--accumulate* | *pp*) peaks "$model" "$ranks" 3 "$@" ;; esac
}

for kind in ddp zero1 zero2 fsdp; do
  plan cnn 2 --mesh=data=2 --parallel=$kind
done
plan mlp 2 --mesh=data=2 --parallel=ddp --accumulate
plan mlp 4 --mesh=data=4 --parallel=fsdp --accumulate --clip=norm:1
plan mlp 2 --mesh=sequence=2 --parallel=sp
plan mlp 2 --mesh=tensor=2 --parallel=tp --shard=tp.json
plan gpt 4 --mesh=data=2,tensor=2 --parallel=fsdp+tp --shard=gpt-tp.json
plan cnn 2 --mesh=pipe=2 --parallel=pp
plan mlp 3 --mesh=pipe=3 --parallel=pp --clip=norm:1
plan mlp 2 --mesh=pipe=2 --parallel=pp:2
plan gpt 4 --mesh=pipe=2,data=2 --parallel=pp+zero1
finish

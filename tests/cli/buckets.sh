#!/bin/bash
# buckets.sh BIN EXAMPLES MPI - small sums over ranks wait for each other:
# --bucket-mb says for how long, inspect and simulate count the exchanges, and
# losses and checkpoints have the same bits for all sizes, and in two runs.
# shellcheck source=tests/cli/over-ranks.sh
source "$(dirname "$0")/over-ranks.sh"
expect 0 '' "$bin/digits-cnn" cnn.mlir
ddp=(--mesh=data=2 --parallel=ddp)

# exchanges ARTIFACT: of the program `step`, as inspect counts them.
exchanges() {
  "$bin/tandem-run" inspect "$1" | awk '$1 == "step" && $2 == "all" { print $3 }'
}
# simulated ARTIFACT: the same, as simulate counts them.
simulated() {
  "$bin/tandem" simulate "$1" --json |
    awk '/"count":/ { gsub(/[^0-9]/, ""); sum += $0 } END { print sum }'
}

compile usual cnn.mlir "${ddp[@]}"
for mib in 0.0001 0.01 1 64; do
  compile "$mib" cnn.mlir "${ddp[@]}" --bucket-mb=$mib
done
# Without the option it is 1 MiB, by the links of plans; the plan is the same.
expect 0 'small sums fill buckets of 1.0 MiB$' "$bin/tandem-run" inspect usual.tdm
expect 0 'fill buckets of 64.0 MiB$' "$bin/tandem-run" inspect 64.tdm
[ "$(exchanges usual.tdm)" = "$(exchanges 1.tdm)" ] || fail 'not 1 MiB'
alone=$("$bin/tandem-run" inspect 0.0001.tdm |
  awk '$1 == "step" && $3 == "all_reduce"' | wc -l)
echo "all_reduces: $alone; exchanges: $(exchanges 0.0001.tdm), \
$(exchanges 0.01.tdm), $(exchanges 1.tdm), $(exchanges 64.tdm)"
[ "$(exchanges 0.0001.tdm)" = "$alone" ] || fail 'tiny buckets join sums'
[ "$(exchanges 0.0001.tdm)" -gt "$(exchanges 0.01.tdm)" ] || fail '0.01 joins none'
[ "$(exchanges 0.01.tdm)" -gt "$(exchanges 1.tdm)" ] || fail '1 joins no more'
[ "$(exchanges 1.tdm)" -ge "$(exchanges 64.tdm)" ] || fail '64 joins fewer'

for mib in 0.0001 0.01 1 64; do
  [ "$(exchanges $mib.tdm)" = "$(simulated $mib.tdm)" ] ||
    fail "$mib: inspect has $(exchanges $mib.tdm), simulate $(simulated $mib.tdm)"
  for run in a b; do
    over 2 train $mib.tdm "${digitRows[@]}" --steps 12 --seed 0 --threads=1 \
      --log $mib$run.jsonl --save $mib$run.safetensors
  done
  cmp "${mib}a.safetensors" "${mib}b.safetensors" || fail "$mib: two runs differ"
  cmp 0.0001a.safetensors "${mib}a.safetensors" ||
    fail "$mib: other bits than with a size of 0.0001"
  diff <(losses 0.0001a.jsonl) <(losses "${mib}a.jsonl") ||
    fail "$mib: other losses"
done

# The model says the same as its artifact, and what a module has holds.
"$bin/tandem" simulate cnn.mlir --optimizer=adamw:lr=2e-3 "${ddp[@]}" \
  --bucket-mb=0.01 --json >model.json
"$bin/tandem" simulate 0.01.tdm --json >artifact.json
diff <(grep step_ms model.json) <(grep step_ms artifact.json) ||
  fail 'the model and its artifact differ'
expect 0 '' "$bin/tandem" compile cnn.mlir -o dump.mlir --stop-after=plan \
  --optimizer=adamw:lr=2e-3 "${ddp[@]}" --bucket-mb=0.01
expect 0 '' "$bin/tandem" compile dump.mlir -o again.tdm
[ "$(exchanges again.tdm)" = "$(exchanges 0.01.tdm)" ] || fail 'a dump forgets it'

# In stages, too.
compile stages cnn.mlir --mesh=pipe=2,data=2 --parallel=pp+ddp --bucket-mb=64
expect 0 'fill buckets of 64.0 MiB$' "$bin/tandem-run" inspect stages.tdm

refused() { # CODE TEXT [options]
  expect "$1" "$2" "$bin/tandem" compile cnn.mlir -o no.tdm \
    --optimizer=adamw:lr=2e-3 "${@:3}"
  [ ! -e no.tdm ] || fail "no.tdm was written"
}
for wrong in 0 -1 0.000001 1025 1e300 nan one '' 1MiB; do
  refused 2 "bucket-mb" "${ddp[@]}" --bucket-mb="$wrong"
done
refused 2 "--bucket-mb needs --mesh" --bucket-mb=1
finish

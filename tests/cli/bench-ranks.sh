#!/bin/bash
# bench-ranks.sh BIN ROOT - the benchmark of ranks explains itself, refuses what
# it does not know, and measures without a peer. Its losses are those of one
# process, under plans and models that no other test trains together.
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
source "$(dirname "$0")/expect.sh"
bin=$1 run=$2/tools/bench/ranks/run
command -v mpirun >/dev/null || { echo 'skipped: no mpirun'; exit 77; }
[ -e "$bin/../lib/libtandem-mpi.so" ] || { echo 'no libtandem-mpi.so'; exit 77; }
expect 0 '--torch' "$run" --help
expect 2 "got 'nothing'" "$run" --plans=nothing --out="$work/none"
losses() { # MODEL PLANS
  expect 0 "\| ${2%%,*} \| [0-9.]+e-[01]" "$run" --bin="$bin" --out="$work/$1" \
    --stages=losses --models="$1" --plans="$2"
}
losses addition sp,fsdp+sp
losses resnet8 ddp
grep -q 'same bits again' "$work/resnet8/table.md" || fail 'other bits'
# Exit code 1 is one that a bar is missed: other programs run beside this one.
"$run" --bin="$bin" --out="$work/steps" --stages=measure --workloads=mlp \
  --rounds=1 --seconds=0.1 --patience=0 >"$work/steps.txt" 2>&1
case $? in
  0 | 1) ;;
  *) fail "$(cat "$work/steps.txt")" ;;
esac
python3 - "$work/steps/results.json" <<'CHECK' || fail "expected other JSON in results.json"
import json
import sys

with open(sys.argv[1]) as file:
    results = json.load(file)
runs = {run["parallel"]: run for run in results["runs"]}
assert set(runs) == {"one", "apart", "ddp", "fsdp"}, runs
for run in runs.values():
    assert run["workload"] == "mlp" and run["step_ms"] > 0 and run["peak_mb"] > 0 and run["rows_per_rank"] == 256, run
    assert run["ranks"] == (1 if run["parallel"] == "one" else 2), run
assert runs["ddp"]["exposed_ms"] > 0, runs
efficiency = {one["parallel"]: one for one in results["efficiency"]}
assert set(efficiency) == {"apart", "ddp", "fsdp"}, results
assert efficiency["apart"]["of_communication"] is None and efficiency["ddp"]["of_communication"] > 0, results
CHECK
finish

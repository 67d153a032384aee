#!/bin/bash
# bench-steps.sh BIN ROOT - the benchmark of whole steps explains itself, refuses
# what it does not know, and measures a small workload without any peer: a table,
# and JSON that says the same. Adding a round keeps the earlier one.
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
source "$(dirname "$0")/expect.sh"
bin=$1 run=$2/tools/bench/cpu/run
expect 0 '--workloads' "$run" --help
expect 2 "got 'nothing'" "$run" --workloads=nothing --out="$work/none"
expect 0 '\| mnist-fc \| train \|' "$run" --quick --bin="$bin" --out="$work/results"
expect 0 '"turns": 2' "$run" --quick --bin="$bin" --out="$work/results" \
  --stages=measure,report --phases=train --json
python3 - "$work/results/results.json" <<'CHECK' || fail "expected other JSON in results.json"
import json
import sys

with open(sys.argv[1]) as file:
    rows = {row["phase"]: row for row in json.load(file)["rows"]}
assert set(rows) == {"train", "infer"}, rows
assert all(row["workload"] == "mnist-fc" and row["tandem"]["ms"] > 0 for row in rows.values()), rows
assert [rows[phase]["tandem"]["turns"] for phase in ("train", "infer")] == [2, 1], rows
CHECK
finish

#!/bin/bash
# random-programs.sh BIN EXAMPLES ROOT - a few random programs over some hundred operations
# agree with the reference.
source "$(dirname "$0")/expect.sh"
command -v python3 >/dev/null || { echo 'skipped: no python3'; exit 77; }
export TMPDIR=$work
expect 0 '^[0-9]+ programs .* 0 wrong' "$3/tools/random-programs" --bin="$1" --programs=8 --seed=7
for law in linear rows-alike; do
  expect 0 '^[0-9]+ programs .* 0 wrong' "$3/tools/random-programs" --bin="$1" --programs=6 --seed=11 --law=$law
done

# A row that is kept was read at its first element where a result is one column of it:
# the gradient of a column that is scattered before a layer_norm was another one's.
cd "$work" || exit 1
cat >column.json <<'END'
{"format": "tandem-graph", "version": 1, "name": "column",
 "inputs": [{"name": "y", "type": "f32", "shape": [24, 24]}],
 "params": [{"name": "x", "type": "f32", "shape": [24, 24], "init": {"kind": "uniform", "low": -1.2, "high": 1.2}},
            {"name": "column", "type": "f32", "shape": [24, 1], "init": {"kind": "uniform", "low": -1.2, "high": 1.2}},
            {"name": "w", "type": "f32", "shape": [24], "init": {"kind": "uniform", "low": -1.2, "high": 1.2}}],
 "nodes": [{"op": "slice_scatter", "inputs": ["x", "column"], "outputs": ["v"], "attributes": {"dim": 1, "start": 18, "end": 19}},
           {"op": "native_layer_norm", "inputs": ["v", "w", "w"], "outputs": ["n"], "attributes": {"eps": 0.001}},
           {"op": "multiply", "inputs": ["n", "y"], "outputs": ["p"]},
           {"op": "sum", "inputs": ["p"], "outputs": ["s"]}],
 "outputs": [{"name": "loss", "value": "s"}]}
END
expect 0 '3 gradients checked' "$1/tandem" check column.json
finish

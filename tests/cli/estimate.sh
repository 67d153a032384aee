#!/bin/bash
# estimate.sh BIN EXAMPLES DOCS CHECK - what kernels would take on a GPU: of an
# artifact and its model the same, corrected by a measurement, in the schema;
# what is no GPU, or runs no such code, is refused.
source "$(dirname "$0")/expect.sh"
bin=$1 schemas=$3/schemas check=$4
model=$2/digits/mlp.mlir
cd "$work" || exit 1
options=(--optimizer=adamw:lr=2e-3 --target=cuda:sm_90a --cubin=no)

expect 0 '' "$bin/tandem" compile "$model" -o x.tdm "${options[@]}"
expect 0 '^step: [0-9.]+ ms on h100 \(sm_90a, 132 multiprocessors\)' \
  "$bin/tandem" inspect x.tdm --estimate
expect 0 '^products by threads' "$bin/tandem" inspect x.tdm --estimate=h200
"$bin/tandem" inspect x.tdm --estimate=h200 >artifact.txt
"$bin/tandem" inspect "$model" "${options[@]}" --estimate=h200 >model.txt
cmp artifact.txt model.txt || fail 'an artifact and its model differ'
"$bin/tandem" inspect x.tdm --estimate --json >estimate.json
[ ! -x "$check" ] ||
  expect 0 '' "$check" "$schemas/estimate.schema.json" estimate.json
"$bin/tandem" inspect x.tdm --json >inspect.json
[ "$(grep -c '"kernel": "' estimate.json)" = \
  "$(grep -cE '^ +"kernel": [0-9]' inspect.json)" ] ||
  fail 'launches are missing'

# Measured: each kernel of the step thrice as slow.
awk 'BEGIN { printf "{\"device\": \"h100\", \"artifact\": \"x.tdm\", \"kernels\": [" }
  /"kernel": "/ { gsub(/[",]/, "", $2); name = $2 }
  /"seconds"/ && name { printf "%s{\"kernel\": \"%s\", \"ms\": %.9f}", more, name, 3000 * $2
    more = ", "; name = "" }
  END { print "]}" }' estimate.json >measured.json
expect 0 '^products by threads took 3\.00 times the estimate' \
  "$bin/tandem" inspect x.tdm --estimate=h100 --calibrate=measured.json
expect 2 "was measured on 'h100', but the estimate is for 'h200'" \
  "$bin/tandem" inspect x.tdm --estimate=h200 --calibrate=measured.json
echo '{"kernels": [{"kernel": "gone", "ms": 1}]}' >gone.json
expect 2 "the artifact has no kernel 'gone'" \
  "$bin/tandem" inspect x.tdm --estimate --calibrate=gone.json
expect 1 "cannot read 'none.json'" \
  "$bin/tandem" inspect x.tdm --estimate --calibrate=none.json

# Machines of one's own.
cat >ours.json <<'F'
{"devices": {"ours": {"target": "cuda:sm_90", "memory": 1e12, "capacity": 1e10,
 "host": 1e10, "launches": 1e5, "multiprocessors": 66, "f32": 3e13,
 "narrow": 5e14, "links": "pcie4", "source": "a guess"}}}
F
expect 0 'on ours \(sm_90a, 66 multiprocessors\)' \
  "$bin/tandem" inspect x.tdm --estimate=ours --machines=ours.json

# Which code runs where.
expect 2 "needs code that 'a100' \(cuda:sm_80\) runs, but got code for cuda:sm_90a" \
  "$bin/tandem" inspect x.tdm --estimate=a100
expect 2 "'b200' \(cuda:sm_100\) runs" "$bin/tandem" inspect x.tdm --estimate=b200
expect 0 'on h100 \(sm_90a,' "$bin/tandem" inspect "$model" \
  --target=cuda:sm_80+sm_90a --cubin=no --inference --estimate=h100
expect 0 'on b200 \(sm_80,' "$bin/tandem" inspect "$model" \
  --target=cuda:sm_80+sm_90a --cubin=no --inference --estimate=b200
expect 2 'is of code for cuda, but there is none' \
  "$bin/tandem" inspect "$model" --inference --estimate
expect 2 "is of GPUs, but 'cpu' is none" \
  "$bin/tandem" inspect x.tdm --estimate=cpu
expect 2 "unknown device 'h10'" "$bin/tandem" inspect x.tdm --estimate=h10
expect 2 '--calibrate needs --estimate' \
  "$bin/tandem" inspect x.tdm --calibrate=measured.json
finish

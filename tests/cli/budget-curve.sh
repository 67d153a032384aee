#!/bin/bash
# budget-curve.sh BIN EXAMPLES - what `tandem inspect` shows of memory: the bytes
# of a step, what is saved and computed again, and the curve over all budgets.
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem
model=$2/digits/mlp.mlir
cd "$work" || exit 1

expect 0 '^peak +[0-9.]+ [KM]iB$' "$tandem" inspect "$model"
expect 0 '^saved +type +bytes +again +reason; made by$' \
  "$tandem" inspect "$model"
expect 0 '; [a-z_]+ at .*mlp\.mlir:[0-9]+:[0-9]+$' "$tandem" inspect "$model"
expect 0 '^computed again +bytes +time +reason$' "$tandem" inspect "$model"
expect 0 '"step_memory"' "$tandem" inspect "$model" --json

# A table of eleven budgets, whose peaks do not fall.
"$tandem" inspect "$model" --optimizer=sgd:lr=1e-2 \
  --budget-curve=curve.json --measure=0.1 >table || fail 'no curve'
[ "$(grep -cE '^[01]\.[0-9] .* [0-9.]+ +[0-9.]+$' table)" -eq 11 ] ||
  fail "the table is: $(cat table)"
[ "$(grep -c '"measured_ms"' curve.json)" -eq 11 ] ||
  fail 'expected eleven measured times'
grep -oP '"peak_bytes": \K[0-9]+' curve.json >peaks
sort -n peaks | cmp - peaks || fail "the peaks are: $(tr '\n' ' ' <peaks)"

# Without an optimizer: forward and backward, not measured.
expect 0 '^1\.0 .* -$' "$tandem" inspect "$model" --budget-curve=curve.svg
[ "$(grep -c '</svg>' curve.svg)" -eq 1 ] || fail 'the picture has no end'
[ "$(grep -c '<circle' curve.svg)" -ge 12 ] || fail 'the picture lacks marks'

expect 2 'to end in .json or .svg' "$tandem" inspect "$model" \
  --budget-curve=curve.png
expect 2 'needs --optimizer' "$tandem" inspect "$model" --budget-curve \
  --measure=1
expect 2 '--measure needs --budget-curve' "$tandem" inspect "$model" \
  --measure=1
expect 0 '' "$tandem" compile "$model" -o a.tdm
expect 2 '--budget-curve has no effect on an artifact' "$tandem" inspect a.tdm --budget-curve
expect 1 'nowhere' "$tandem" inspect "$model" --budget-curve=nowhere/a.svg
finish

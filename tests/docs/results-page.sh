#!/usr/bin/env bash
# tests/docs/results-page.sh: columns that tools/bench/results-page computes are
# right, and a table that lacks a column that they need is an error.
set -euo pipefail
page=$(cd "$(dirname "$0")/../.." && pwd)/tools/bench/results-page
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

printf '%s\n' '# title: Steps' '# date: today' '# machine: one' '# command: run' \
  '# over: ours / floor' '# ratio: a|b / ours' >"$folder/head"
{
  cat "$folder/head"
  printf 'w\tours\tfloor\ta\tb\n'
  printf 'x\t2 [1 to 3]\t1.6\t9 (eager)\t4\n'
  printf 'y\t4\t4\t-\t2\n'
} >"$folder/steps.tsv"
"$page" "$folder" >"$folder/page"
# shellcheck disable=SC2016
for line in '## Steps' '`run`, today, one.' \
  '| x | 2 [1 to 3] | 1.6 | 9 (eager) | 4 | 1.25 | 2.00 |' \
  '| y | 4 | 4 | - | 2 | 1.00 | 0.50 |' \
  'The geometric mean of the ratios is 1.00.'; do
  grep -qxF -- "$line" "$folder/page" ||
    { echo "expected '$line', but got:"; cat "$folder/page"; exit 1; }
done

{ cat "$folder/head"; printf 'w\tours\ta\tb\nx\t2\t4\t4\n'; } >"$folder/steps.tsv"
if "$page" "$folder" >"$folder/page" 2>"$folder/error"; then
  echo "expected an error without the column 'floor'"
  exit 1
fi
grep -q 'no column floor' "$folder/error"

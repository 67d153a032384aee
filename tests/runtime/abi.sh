#!/usr/bin/env bash
# tests/runtime/abi.sh check|write LIBRARY LAYOUT LIST NM: what libtandem.so
# gives to compiled programs (its name, its symbols with their versions, and the
# structs and numbers that LAYOUT prints) is what LIST says. A line that is
# another or is gone breaks programs that were linked before: it asks for a new
# SOVERSION (docs/rationale/versions.md). A new line is written by `write`.
set -euo pipefail

mode=$1 library=$2 layout=$3 list=$4 nm=$5
now=$(mktemp)
trap 'rm -f "$now"' EXIT
{
  readelf -d "$library" | sed -nE 's/.*SONAME.*\[(.*)\].*/library \1/p'
  # GNU nm lists the versions themselves too, as absolute symbols.
  "$nm" -D --defined-only "$library" |
    awk '$2 != "A" { print "symbol " $NF }' | LC_ALL=C sort
  "$layout"
} >"$now"
if [ "$mode" = write ]; then
  cp "$now" "$list"
elif ! diff -u --label "$list" --label built "$list" "$now"; then
  echo "the C API is not what '$list' says: a line that changed or is gone" \
    "breaks programs that were linked before" >&2
  exit 1
fi

#!/usr/bin/env bash
# tests/docs/planted.sh: a stale, a missing and an empty page are found, and
# writing makes a page fresh.
set -euo pipefail

page=$(cd "$(dirname "$0")" && pwd)/generated-page.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# expect CODE ARGUMENT...: the script ends with CODE.
expect() {
  local expected=$1 code=0
  shift
  "$page" "$@" >"$folder/output" 2>&1 || code=$?
  if [ $code -ne "$expected" ]; then
    echo "expected exit code $expected but got $code from: $*"
    cat "$folder/output"
    exit 1
  fi
}

expect 1 check "$folder/a.md" echo one
expect 0 write "$folder/a.md" echo one
expect 0 check "$folder/a.md" echo one
expect 1 check "$folder/a.md" echo two
grep -q '^+two' "$folder/output"
expect 1 check "$folder/a.md" true
expect 1 write "$folder/a.md" false
expect 0 check "$folder/a.md" echo one
echo "stale pages are found"

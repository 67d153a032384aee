#!/usr/bin/env bash
# tests/docs/generated-page.sh write|check FILE COMMAND...: FILE is what COMMAND
# prints. `write` writes it, whole or not at all; `check` fails with the
# difference when FILE is another.
set -euo pipefail

mode=$1
file=$2
shift 2
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT

if ! "$@" >"$fresh"; then
  echo "the generator of '$file' failed: $*" >&2
  exit 1
fi
if [ ! -s "$fresh" ]; then
  echo "the generator of '$file' printed nothing: $*" >&2
  exit 1
fi
case $mode in
  write)
    if ! cmp -s "$fresh" "$file"; then
      cat "$fresh" >"$file.new"
      mv "$file.new" "$file"
    fi
    ;;
  check)
    if ! diff -u --label "$file" --label generated "$file" "$fresh"; then
      echo "'$file' is not what its generator prints;" \
        "'ninja -C build docs' writes it" >&2
      exit 1
    fi
    ;;
  *)
    echo "expected 'write' or 'check' but got '$mode'" >&2
    exit 2
    ;;
esac

#!/bin/bash
# usage.sh PROGRAM - an example of workers refuses what it does not understand.
source "$(dirname "$0")/../../../cli/expect.sh"
for wrong in --threads=0 --threads=-1 --threads= --threads=2x --threads=1001 \
  --threads=99999999999 --workers=2; do
  expect 2 'with N from 1 to 1000' timeout 20 "$1" "$wrong"
done
expect 1 'at least 2 workers' timeout 20 "$1" --threads=1
finish

#!/bin/bash
# cuda-resources.sh BIN EXAMPLES TABLE - what ptxas gives the products and attention of a
# small GPT in bf16: registers, shared memory, spills, and the blocks that a
# multiprocessor holds by these (228 KiB of sm_90, 164 KiB of sm_80, 1 KiB of a
# block its own). TABLE has them; its first line names the ptxas that it is of,
# and with another one nothing is compared. `UPDATE=1` writes it anew.
source "$(dirname "$0")/expect.sh"
bin=$1 table=$(realpath "$3")
cd "$work" || exit 1
need_ptxas
version="ptxas $("$ptxas" --version | grep -oE 'V[0-9.]+$')"
if [ -z "${UPDATE:-}" ] && [ "$(head -n 1 "$table")" != "$version" ]; then
  echo "skipped: the table is of $(head -n 1 "$table"), and this is $version"
  exit 77
fi

# resources ARCH BYTES: rows of the table, whose multiprocessors have so much
# shared memory.
resources() {
  expect 0 '' "$bin/tandem" compile gpt.mlir -o "$1.tdm" --target="cuda:$1" \
    --cubin=no --optimizer=adamw:lr=1e-3
  expect 0 '^kernel +block +registers +declared +given +stack +spills' \
    "$bin/tandem" inspect "$1.tdm" --kernels
  awk -v arch="$1" -v memory="$2" '
    NR > 1 && $1 ~ /matmul|attention/ {
      registers = int(($3 + 7) / 8) * 8
      by[1] = int(65536 / (registers * $2))
      by[2] = int(memory / ($4 + $5 + 1024))
      by[3] = int(2048 / $2)
      blocks = 32
      for (i in by) if (by[i] < blocks) blocks = by[i]
      print arch, $1, $2, $3, $4 + $5, $7, blocks
    }' <<<"$out"
}

expect 0 '' "$bin/tandem-workload" write gpt --type=bf16 -o gpt.mlir
{
  echo "$version"
  echo 'target kernel threads registers shared_bytes spill_bytes blocks'
  resources sm_80 167936
  resources sm_90a 233472
} >now
[ "$(wc -l <now)" -gt 20 ] || fail "expected kernels: $(<now)"
# The forward of attention spilled 12 to 36 bytes.
spilled=$(awk 'NR > 2 && $6 > 0' now)
[ -z "$spilled" ] || fail "products or attention spill: $spilled"
if [ -n "${UPDATE:-}" ] && [ "$failures" -eq 0 ]; then
  cp now "$table"
  finish
fi
diff "$table" now || fail 'registers, memory or spills are others; UPDATE=1 writes the table if that is meant'
finish

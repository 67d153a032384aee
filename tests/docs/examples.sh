#!/bin/sh
# examples.sh PAGE: compiles each ```mlir block of a page as its first lines say:
#   // PHASE gives: TEXT   the module after PHASE has TEXT
#   // error: TEXT         compiling fails, and says TEXT
# A block without such a line is an error, and so is a page without blocks.
set -u
page=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
awk -v folder="$folder" '
  /^```mlir$/ { inside = 1; ++count; file = sprintf("%s/%02d.mlir", folder, count); next }
  /^```$/ { inside = 0 }
  inside { print > file }' "$page"
failed=0 blocks=0
complain() {
  echo "$page: example $(basename "$file" .mlir) ($(sed -n 's/^module @\([a-z_]*\).*/\1/p' "$file")): $*" >&2
  failed=1
}
for file in "$folder"/*.mlir; do
  [ -e "$file" ] || break
  blocks=$((blocks + 1))
  grep -q '^// .* gives: \|^// error: ' "$file" || complain "says nothing of what it gives"
  sed -n 's/^\/\/ error: //p' "$file" > "$folder/errors"
  if [ -s "$folder/errors" ]; then
    if tandem compile "$file" -o "$folder/out.tdm" > "$folder/said" 2>&1; then
      complain "expected an error, but it compiles"
    fi
    while read -r text; do
      grep -qF -- "$text" "$folder/said" ||
        complain "expected the error '$text', but got: $(cat "$folder/said")"
    done < "$folder/errors"
    continue
  fi
  sed -n 's/^\/\/ \([a-z]*\) gives: /\1 /p' "$file" > "$folder/gives"
  while read -r phase text; do
    if ! tandem compile "$file" --stop-after="$phase" -o "$folder/out.mlir" > "$folder/said" 2>&1; then
      complain "$(cat "$folder/said")"
    elif ! grep -qF -- "$text" "$folder/out.mlir"; then
      complain "expected '$text' after $phase, but got: $(cat "$folder/out.mlir")"
    fi
  done < "$folder/gives"
  # All of it compiles, not only what was looked at.
  tandem compile "$file" -o "$folder/out.tdm" > "$folder/said" 2>&1 || complain "$(cat "$folder/said")"
done
[ "$blocks" -gt 0 ] || { echo "$page: no examples" >&2; exit 1; }
[ "$failed" = 0 ] && echo "$blocks examples"
exit "$failed"

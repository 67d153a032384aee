#!/bin/sh
# blocks-in.sh PAGE SOURCE: each ```cpp block of a page stands in SOURCE, line
# by line, whatever its indentation there.
awk -v page="$1" -v source="$2" '
  function stripped(text) { sub(/^[ \t]+/, "", text); return text }
  BEGIN {
    while ((getline line < source) > 0)
      text = text stripped(line) "\n"
    while ((getline line < page) > 0) {
      if (line == "```cpp") { inside = 1; block = ""; continue }
      if (line == "```" && inside) {
        ++blocks
        inside = 0
        if (!index(text, block)) {
          print page ": block " blocks " is not in " source ":\n" block
          failed = 1
        }
      } else if (inside)
        block = block stripped(line) "\n"
    }
    if (!blocks) { print page ": no cpp block"; failed = 1 }
    exit failed
  }'

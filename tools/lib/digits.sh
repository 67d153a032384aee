# shellcheck shell=bash
# Draws handwritten digits on a terminal, for tools/quickstart. Sourced.
#
# The files are npy (version 1) in C order: images uint8 [n, 64] with values 0
# to 16, labels uint8 [n], scores float32 [n, 10].

# npy_values FILE TYPE WIDTH: the elements as text, WIDTH bytes a line.
npy_values() {
  local header
  header=$(od -An -t u2 -j 8 -N 2 "$1")
  od -An -v -t "$2" -w"$3" -j $((10 + header)) "$1"
}

# npy_rows FILE COUNT WIDTH: the first COUNT rows of a uint8 file with WIDTH
# elements a row (1: the file has one dimension), as npy on standard output.
npy_rows() {
  local header shape="($2, $3)"
  if [ "$3" -eq 1 ]; then shape="($2,)"; fi
  header=$(od -An -t u2 -j 8 -N 2 "$1")
  # A header of 128 bytes, as NumPy writes it: magic, version, length, text.
  printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' \
    "{'descr': '|u1', 'fortran_order': False, 'shape': $shape, }"
  tail -c +$((11 + header)) "$1" | head -c $(($2 * $3))
}

# draw_digits IMAGES LABELS SCORES FIRST COUNT: COUNT images from FIRST (1 is the
# first of the file), four a row, each over what the network read in it.
draw_digits() {
  local shades=ascii
  case ${LC_ALL:-${LC_CTYPE:-${LANG:-}}} in
    *UTF-8* | *utf8*) shades=blocks ;;
  esac
  {
    npy_values "$1" u1 64
    npy_values "$2" u1 1
    npy_values "$3" f4 40
  } | awk -v rows="$(npy_values "$1" u1 64 | wc -l)" -v first="$4" \
    -v count="$5" -v shades="$shades" '
    BEGIN {
      # By bytes, so that any awk can: one string a shade, two columns wide.
      if (shades == "blocks")
        split("  |░░|▒▒|▓▓|██", shade, "|")
      else
        split("  |..|::|++|##", shade, "|")
    }
    { row = (NR - 1) % rows + 2 - first }
    row < 1 || row > count { next }
    NR <= rows {
      for (i = 1; i <= 64; ++i)
        pixel[row, i] = shade[int($i / 16 * 4 + 0.5) + 1]
      next
    }
    NR <= 2 * rows { label[row] = $1; next }
    {
      best = 1
      for (i = 2; i <= 10; ++i)
        if ($i + 0 > $best + 0)
          best = i
      seen[row] = best - 1
    }
    END {
      for (left = 1; left <= count; left += 4) {
        right = left + 3 < count ? left + 3 : count
        print ""
        for (line = 0; line < 8; ++line) {
          text = "        "
          for (n = left; n <= right; ++n) {
            for (column = 1; column <= 8; ++column)
              text = text pixel[n, line * 8 + column]
            text = text "  "
          }
          print text
        }
        text = "        "
        for (n = left; n <= right; ++n)
          text = text sprintf("%-18s", seen[n] == label[n] \
            ? "read " seen[n] ", right" \
            : "read " seen[n] ", it is " label[n])
        print text
      }
      print ""
    }'
}

# shellcheck shell=bash
# Draws handwritten digits on a terminal, for tools/quickstart. Sourced.
#
# The files are npy (version 1) in C order: images uint8 [n, 64] with values 0
# to 16, labels uint8 [n], scores float32 [m, 10] with m <= n.

# npy_values FILE TYPE WIDTH: the elements as text, WIDTH bytes a line.
npy_values() {
  local header
  header=$(od -An -t u2 -j 8 -N 2 "$1")
  od -An -v -t "$2" -w"$3" -j $((10 + header)) "$1"
}

# npy_rows IMAGES COUNT: the first COUNT rows of a [n, 64] file, as npy on
# standard output.
npy_rows() {
  local header
  header=$(od -An -t u2 -j 8 -N 2 "$1")
  # A header of 128 bytes, as NumPy writes it: magic, version, length, text.
  printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' \
    "{'descr': '|u1', 'fortran_order': False, 'shape': ($2, 64), }"
  tail -c +$((11 + header)) "$1" | head -c $(($2 * 64))
}

# draw_digits IMAGES LABELS SCORES COUNT: the first COUNT images, four a row,
# each over what the network read in it.
draw_digits() {
  local shades=' .:+#'
  case ${LC_ALL:-${LC_CTYPE:-${LANG:-}}} in
    *UTF-8* | *utf8*) shades='blocks' ;;
  esac
  {
    npy_values "$1" u1 64 | head -n "$4"
    npy_values "$2" u1 1 | head -n "$4"
    npy_values "$3" f4 40 | head -n "$4"
  } | awk -v count="$4" -v shades="$shades" '
    BEGIN {
      # By bytes, so that any awk can: one string a shade, two columns wide.
      if (shades == "blocks")
        split("  |░░|▒▒|▓▓|██", shade, "|")
      else
        split("  |..|::|++|##", shade, "|")
    }
    NR <= count {
      for (i = 1; i <= 64; ++i)
        pixel[NR, i] = shade[int($i / 16 * 4 + 0.5) + 1]
      next
    }
    NR <= 2 * count { label[NR - count] = $1; next }
    {
      best = 1
      for (i = 2; i <= 10; ++i)
        if ($i + 0 > $best + 0)
          best = i
      seen[NR - 2 * count] = best - 1
    }
    END {
      for (first = 1; first <= count; first += 4) {
        last = first + 3 < count ? first + 3 : count
        print ""
        for (row = 0; row < 8; ++row) {
          text = "        "
          for (n = first; n <= last; ++n) {
            for (column = 1; column <= 8; ++column)
              text = text pixel[n, row * 8 + column]
            text = text "  "
          }
          print text
        }
        text = "        "
        for (n = first; n <= last; ++n)
          text = text sprintf("%-18s", seen[n] == label[n] \
            ? "read " seen[n] ", right" \
            : "read " seen[n] ", it is " label[n])
        print text
      }
      print ""
    }'
}

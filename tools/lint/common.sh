# shellcheck shell=bash
# What the lints share. A lint is a bash script that takes the tree to look at
# as its argument (default: this repository), prints 'FILE:LINE: what is wrong'
# for everything it finds, and exits with 0 (clean), 1 (found something) or 77
# (cannot look, with the reason printed).
#
# Needs bash, awk, sed, grep and git; no Python.

set -euo pipefail
export LC_ALL=C.UTF-8
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/../..}"

# sources [PATTERN...]: the files of the tree that match a pattern of `case`
# (default: all), one a line. In a git checkout those that git does not ignore,
# the ones not yet added included; elsewhere (an unpacked archive) all but build
# folders.
sources() {
  if [ -e .git ]; then
    git -c safe.directory='*' ls-files --cached --others --exclude-standard
  else
    find . \( -name 'build' -o -name 'build-*' \) -prune -o -type f -print |
      sed 's|^\./||'
  fi | sort -u | while IFS= read -r file; do
    if [ ! -f "$file" ]; then continue; fi
    if [ $# -eq 0 ]; then
      printf '%s\n' "$file"
      continue
    fi
    for pattern in "$@"; do
      # shellcheck disable=SC2254
      case $file in
        $pattern) printf '%s\n' "$file"; break ;;
      esac
    done
  done
}

# finish COUNT: the exit code and, when nothing was found, a line that says so.
finish() {
  if [ "$1" -gt 0 ]; then
    printf '%s: %d found\n' "$(basename "$0")" "$1" >&2
    exit 1
  fi
  printf '%s: clean\n' "$(basename "$0")"
}

# report: passes standard input (one finding a line) on and finishes.
report() {
  local count=0 line
  while IFS= read -r line; do
    printf '%s\n' "$line"
    count=$((count + 1))
  done
  finish $count
}

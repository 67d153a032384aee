# expect.sh - sourced by the scripts that use the tools as a user would.
#
#   expect CODE PATTERN COMMAND...
#
# runs the command and fails unless it exits with CODE and prints, on stdout or
# stderr, a line that matches the extended regular expression PATTERN ('' for
# any). What was printed stays in $out. `finish` ends the script.
set -u
failures=0
out=
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

expect() {
  local code=$1 pattern=$2
  shift 2
  out=$("$@" 2>&1 </dev/null)
  local got=$?
  if [ "$got" -ne "$code" ]; then
    printf 'FAILED: %s\n  expected exit code %s but got %s\n%s\n' \
      "$*" "$code" "$got" "$out" | head -n 30
    failures=$((failures + 1))
  elif [ -n "$pattern" ] && ! grep -qE -- "$pattern" <<<"$out"; then
    printf 'FAILED: %s\n  expected a line that matches: %s\n%s\n' \
      "$*" "$pattern" "$out" | head -n 30
    failures=$((failures + 1))
  fi
}

fail() {
  printf 'FAILED: %s\n' "$*"
  failures=$((failures + 1))
}

# need_ptxas: sets $ptxas to the assembler that tandem finds, or skips the test.
need_ptxas() {
  unset TANDEM_PTXAS
  ptxas=$(command -v ptxas || echo "${CUDA_HOME:-/usr/local/cuda}/bin/ptxas")
  [ -x "$ptxas" ] && return
  echo 'skipped: there is no ptxas'
  exit 77
}

finish() {
  if [ "$failures" -ne 0 ]; then
    printf '%s failures\n' "$failures"
    exit 1
  fi
  exit 0
}

#!/usr/bin/env bash
# tests/commands/commands.sh: the commands of tools/ refuse a wrong command line
# with exit code 2, and when a step fails they say what and end with 1.
#
# They run in a copy of tools/ in a temporary folder, with stand-ins for the
# programs that would change the machine.
set -euo pipefail

source=$(cd "$(dirname "$0")/../.." && pwd)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/tools" "$root/bin"
cp -r "$source"/tools/{install,test,quickstart,lib} "$root/tools/"
cp "$source/CMakePresets.json" "$root/"
export PATH=$root/bin:$PATH
unset TANDEM_CLOCK
failures=0

# stand_in NAME: the program NAME is standard input from now on.
stand_in() {
  { echo '#!/bin/sh'; cat; } >"$root/bin/$1"
  chmod +x "$root/bin/$1"
}

# expect CODE TEXT COMMAND...: COMMAND ends with CODE and its output has TEXT.
expect() {
  local expected=$1 text=$2 code=0 output
  shift 2
  output=$("$root/tools/$1" "${@:2}" 2>&1 </dev/null) || code=$?
  if [ $code -ne "$expected" ] || ! grep -qF -- "$text" <<<"$output"; then
    echo "expected exit code $expected and '$text' but got $code from: $*"
    sed 's/^/    /' <<<"$output"
    failures=$((failures + 1))
  fi
}

expect 0 'Installs what is missing' test --help
expect 0 'From a fresh Debian 12' quickstart --help
expect 0 '--runtime' install --help
# The help of tools/test ended with a line that is for shellcheck.
for tool in install test quickstart; do
  if "$root/tools/$tool" --help | grep -q shellcheck; then
    echo "the help of $tool has a line for shellcheck"
    failures=$((failures + 1))
  fi
done
expect 2 "unknown argument '--wrong'" install --wrong
expect 2 "unknown argument 'x'" test x
expect 2 "unknown preset 'none'" test --preset=none
expect 2 "expected a number of jobs but got '0'" test --jobs=0
expect 2 "expected a number of epochs but got 'many'" quickstart --epochs=many

# Nothing is installed, and the user is not root.
stand_in dpkg-query <<<'exit 1'
stand_in id <<<'echo 1000'
expect 1 'only root can install them' install
expect 1 'missing 14 of 14 packages' install --runtime --check
# Root, without a network; then with one and without the packages.
stand_in id <<<'echo 0'
stand_in apt-get <<<'echo "E: no network"; exit 100'
expect 1 'E: no network' install
expect 1 "'apt-get update' failed" test
stand_in apt-get <<<'exit 0'
stand_in apt-cache <<<'exit 100'
expect 1 'do not have: cmake ninja-build' install
stand_in apt-cache <<<'exit 0'
stand_in apt-get <<'END'
case " $* " in *' install '*) echo 'E: disk full'; exit 100 ;; esac
END
expect 1 "'apt-get install' failed" quickstart
stand_in apt-get <<<'exit 0'
expect 1 'still missing after the installation: cmake' install
# Everything is installed.
stand_in dpkg-query <<'END'
for name do case $name in -*|*'{'*) ;; *) echo "installed $name:amd64" ;; esac; done
END
expect 0 'packages are installed' install

# CMake, then the build, then the tests fail.
stand_in cmake <<<'echo "CMake says no"; exit 1'
expect 1 'CMake says no' test
expect 1 "the configuration of 'build' failed" test
stand_in cmake <<<'exit 0'
stand_in ninja <<<'echo "@1/2@ Building"; echo "a.cpp:1: error: no"; exit 1'
expect 1 'a.cpp:1: error: no' test
expect 1 "the build of 'build' failed" quickstart
stand_in ninja <<<'exit 0'
stand_in ctest <<<'echo "50% tests passed"; exit 8'
expect 8 '50% tests passed' test
stand_in ctest <<<'echo "$@"'
expect 0 '--test-dir build-asan' test --preset=asan
expect 0 '-R lint' test --filter=lint
mkdir -p "$root/build/bin"
for program in tandem tandem-run; do
  cat >"$root/build/bin/$program" <<<'exit 3'
  chmod +x "$root/build/bin/$program"
done
expect 1 'failed with exit code' quickstart

if [ $failures -gt 0 ]; then
  echo "$failures failed"
  exit 1
fi
echo "the commands fail as they should"

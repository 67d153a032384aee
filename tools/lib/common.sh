# shellcheck shell=bash
# What tools/install, tools/quickstart and tools/test share: elapsed time,
# progress, failing with a message, configuring and building.
#
# Sourced by bash scripts only. It changes to the repository's root, so that
# every path below is relative to it. TANDEM_CLOCK (the second the outermost
# command started) is exported, so that the commands it calls go on counting.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

export TANDEM_CLOCK=${TANDEM_CLOCK:-$EPOCHSECONDS}
command_name=tools/$(basename "$0")

# say TEXT: one line with the elapsed time. On a terminal it first wipes the
# progress line that may stand there.
say() {
  if [ -t 1 ]; then printf '\r\033[K'; fi
  printf '[%4d s] %s\n' $((EPOCHSECONDS - TANDEM_CLOCK)) "$*"
}

# progress TEXT: on a terminal, one line that is overwritten; elsewhere a line
# every ten seconds at most.
progress_said=$EPOCHSECONDS
progress() {
  if [ -t 1 ]; then
    printf '\r\033[K[%4d s] %s' $((EPOCHSECONDS - TANDEM_CLOCK)) "$*"
  elif [ $((EPOCHSECONDS - progress_said)) -ge 10 ]; then
    progress_said=$EPOCHSECONDS
    say "$*"
  fi
}

# fail TEXT...: says what went wrong, one line an argument, and ends.
fail() {
  if [ -t 1 ]; then printf '\r\033[K'; fi
  printf '[%4d s] %s: error: %s\n' $((EPOCHSECONDS - TANDEM_CLOCK)) \
    "$command_name" "$1" >&2
  shift
  if [ $# -gt 0 ]; then printf '         %s\n' "$@" >&2; fi
  exit 1
}

# usage_error TEXT: a wrong command line ends with exit code 2.
usage_error() {
  printf '%s: error: %s\n' "$command_name" "$1" >&2
  printf "run '%s --help' for the options\n" "$command_name" >&2
  exit 2
}

# print_help FILE: the comment that opens FILE is its help text.
print_help() {
  awk 'NR > 1 && !/^#/ { exit } /^# shellcheck / { next }
    NR > 1 { sub(/^# ?/, ""); print }' "$1"
}

# Jobs that fit the cores and the memory: sources that include MLIR and are compiled
# as one take up to 1.3 GiB.
jobs_that_fit() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ { print int($2 / 1.3 / 1048576) }' /proc/meminfo)
  if [ "${memory:-1}" -lt 1 ]; then memory=1; fi
  echo $((cores < memory ? cores : memory))
}

# build_folder PRESET: where CMakePresets.json puts the preset's build.
build_folder() {
  case $1 in
    release) echo build ;;
    runtime-only) echo build-runtime ;;
    *) echo "build-$1" ;;
  esac
}

# toolchain_options PRESET: the parts of a configuration that depend on the
# machine, one a line: ccache where it is installed, and the system's compiler
# where the preset's clang 22 is not (another compiler may warn of other things,
# so its warnings are not errors).
toolchain_options() {
  if command -v ccache >/dev/null; then
    # A precompiled header of 290 MB is known by its sum (tools/lib/precompile), a
    # file is not preprocessed before it is compiled, and another clone finds what
    # this one compiled, also if another locale is set there.
    local launcher="env;LC_ALL=C.UTF-8;CCACHE_BASEDIR=$PWD;CCACHE_NOHASHDIR=1"
    launcher+=';CCACHE_MAXSIZE=5G;CCACHE_INODECACHE=1;CCACHE_DEPEND=1;CCACHE_PCH_EXTSUM=1'
    launcher+=';CCACHE_SLOPPINESS=pch_defines,time_macros'
    launcher+=',include_file_mtime,include_file_ctime;ccache'
    printf '%s\n' "-DCMAKE_C_COMPILER_LAUNCHER=$launcher" \
      "-DCMAKE_CXX_COMPILER_LAUNCHER=$launcher"
  fi
  case $1 in
    gcc | runtime-only | portable | aarch64 | asan | ubsan | tsan | fuzz) return ;;
  esac
  if ! command -v clang++-22 >/dev/null; then
    printf '%s\n' -DCMAKE_C_COMPILER=cc -DCMAKE_CXX_COMPILER=c++ \
      -DCMAKE_EXE_LINKER_FLAGS= -DCMAKE_SHARED_LINKER_FLAGS= \
      -DCMAKE_COMPILE_WARNING_AS_ERROR=OFF
  fi
}

# configure PRESET [OPTION...]: runs CMake; its output goes to a log and is
# shown when it fails.
configure() {
  local preset=$1 folder log options
  shift
  folder=$(build_folder "$preset")
  mkdir -p "$folder/logs"
  log=$folder/logs/configure.log
  mapfile -t options < <(toolchain_options "$preset")
  say "configuring $folder (preset $preset)"
  if ! cmake --preset "$preset" "${options[@]}" "$@" </dev/null >"$log" 2>&1
  then
    cat "$log" >&2
    fail "the configuration of '$folder' failed (log: $log)" \
      "if the folder holds another configuration, remove it and run again"
  fi
}

# build PRESET [TARGET...]: builds with Ninja; what compilers say is shown as it
# comes, the rest is one line of progress.
build() {
  local preset=$1 folder log
  shift
  folder=$(build_folder "$preset")
  log=$folder/logs/build.log
  say "building $folder${*:+ ($*)}"
  if ! NINJA_STATUS='@%f/%t@ ' ninja -C "$folder" -j "$(jobs_that_fit)" "$@" \
    </dev/null 2>&1 | tee "$log" | show_ninja "$folder"; then
    fail "the build of '$folder' failed (log: $log)"
  fi
  say "built $folder"
}

# show_ninja FOLDER: standard input is Ninja's output with the status
# '@done/all@ '. With one edge a line and hundreds of edges, a loop of bash is
# fast enough.
show_ninja() {
  local line steps
  while IFS= read -r line; do
    case $line in
      @*/*@\ *)
        steps=${line#@}
        steps=${steps%%@*}
        progress "building $1 ($steps)"
        ;;
      'ninja: Entering directory'* | 'ninja: no work to do.') ;;
      *)
        if [ -t 1 ]; then printf '\r\033[K'; fi
        printf '%s\n' "$line"
        ;;
    esac
  done
}

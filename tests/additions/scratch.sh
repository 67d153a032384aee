# shellcheck shell=bash
# tests/additions/scratch.sh, sourced: a copy of the tree in which a guide of docs/
# is followed. That the addition works is shown without a second build: sources of
# the copy are compiled with the commands of the build, and linked in front of the
# build's libraries, whose own objects of the same symbols are left out then.
#
#   $source, $build   the tree and its build, which are only read
#   $scratch          the copy, in $folder, which is removed at the end
#   $fresh            what is generated and compiled of it

source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
scratch=$folder/tree
fresh=$folder/build

fail() {
  echo "$*" >&2
  exit 1
}

# copy_tree BUILD: copies the tree, without builds.
copy_tree() {
  build=$(cd "$1" && pwd)
  mkdir -p "$scratch" "$fresh"
  (
    # shellcheck source=tools/lint/common.sh
    source "$source/tools/lint/common.sh" "$source"
    sources '*' | tar -T - -cf -
  ) | tar -xf - -C "$scratch"
}

# add_after FILE TEXT: what stands on the standard input comes after the one line
# of the copy's file that has TEXT.
add_after() {
  local file=$scratch/$1 text=$2 count
  count=$(grep -cF -- "$text" "$file") || true
  [ "$count" = 1 ] || fail "$1: expected one line with '$text', but got $count"
  added=$(cat) awk -v text="$text" '
    { print }
    index($0, text) { print ENVIRON["added"] }' "$file" >"$file.new"
  mv "$file.new" "$file"
}

# expect_touches LIMIT GUIDE: changed by hand were at most LIMIT files, each of
# which the guide names. Others are written by programs.
expect_touches() {
  local limit=$1 guide=$2 file hands=0
  while read -r file; do
    if [[ $file = tests/oracle/fixtures/* ]] ||
      head -5 "$scratch/$file" | grep -q 'ninja -C build docs'; then
      echo "written by a program: $file"
      continue
    fi
    echo "touched: $file"
    hands=$((hands + 1))
    grep -qF "\`$file\`" "$scratch/$guide" || fail "$guide does not name $file"
  done < <(diff -rq "$source" "$scratch" | sed -n "s|^Files $source/\(.*\) and .* differ\$|\1|p")
  [ $hands -gt 0 ] || fail "no file was touched"
  [ $hands -le "$limit" ] || fail "expected at most $limit touched files, but got $hands"
}

# compile [--afresh] FILE [LIKE]: compiles a source of the copy, or of $folder, to
# $fresh/NAME.o by the build's command for LIKE, a source too (the file itself by
# default). The copy's headers, and what was generated of it, come before the
# build's; the ops' classes are the build's, which the precompiled header has,
# unless it is left out (--afresh), which is without optimization, too.
compile() {
  local pch=1
  if [ "$1" = --afresh ]; then
    pch=
    shift
  fi
  local file=$1 like=${2:-$1} command path=$scratch/$1
  [ -e "$path" ] || path=$folder/$file
  command=$(awk -v file="\"file\": \"$source/$like\"" '
    /"command":/ { command = $0 }
    index($0, file) { print command; exit }' "$build/compile_commands.json" |
    sed -E 's/^ *"command": "//; s/",$//; s/\\(.)/\1/g
      s| -I[^ ]+| -I'"$scratch -I$fresh"'&|
      s| -I'"$source"' | |; s|"'"$source/|\"$scratch/"'|g; s| -o [^ ]+ -c [^ ]+$||')
  [ -n "$command" ] || fail "the build does not compile $like"
  [ -n "$pch" ] || command=$(sed -E 's| -include-pch [^ ]+||g
    s| -include [^ ]*cmake_pch[^ ]*||g; s| -Winvalid-pch||; s|$| -O0|' <<<"$command")
  eval "$command -c $path -o $fresh/$(basename "$file" .cpp).o" ||
    fail "$file does not compile"
}

# link TARGET OUT [--only] OBJECT...: links a program of the build anew as OUT,
# with objects of $fresh in front of the libraries and in place of its own objects
# of the same names (--only: of all its own).
link() {
  local target=$1 out=$2 only='' word words=()
  shift 2
  if [ "$1" = --only ]; then
    only=1
    shift
  fi
  for word in $(ninja -C "$build" -t commands "$target" | tail -1 |
    sed 's/^: && //; s/ && .*$//; s/ -o [^ ]*/ -o/'); do
    case $word in
      *CMakeFiles/*.cpp.o)
        if [ -n "$only" ] || [[ " $* " = *" $(basename "$word" .cpp.o).o "* ]]; then
          continue
        fi
        ;;
      -o) word="${*/#/$fresh/} -o $out" ;;
    esac
    words+=("$word")
  done
  (cd "$build" && eval "${words[*]}") || fail "$target does not link"
}

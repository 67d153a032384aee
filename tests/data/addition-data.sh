#!/bin/sh
# addition-data.sh PROGRAM: what examples/addition/generate.cpp promises of the
# files it writes: every row is a right sum, no pair of the eval files is in
# the train files in any order, no row stands twice, the same options give the
# same bytes, and wrong options and places are refused.
set -u
program=$1
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
failed=0

fail() {
  echo "failed: $*"
  failed=1
}

# expect CODE ARGUMENTS...: runs the program, compares its exit code.
expect() {
  code=$1
  shift
  "$program" "$@" >"$work/out" 2>"$work/err"
  got=$?
  [ "$got" -eq "$code" ] || fail "'$*': expected exit code $code but got $got"
}

# rows DIR/PART: the part's rows, the 11 tokens and then the 11 labels.
rows() {
  for kind in tokens labels; do
    tail -c +129 "$1_$kind.npy" | od -An -v -w88 -t d8 >"$work/$kind"
  done
  paste "$work/tokens" "$work/labels"
}

# Prints the operands of right rows, and 'wrong' for others.
sums='{
  a = 100 * $1 + 10 * $2 + $3; b = 100 * $5 + 10 * $6 + $7
  text = a "+" b "=" a + b "."; ok = a >= 100 && b >= 100
  for (i = 1; i <= 11; ++i) {
    ok = ok && index("0123456789+=.", substr(text, i, 1)) == $i + 1
    label = i < 8 ? -1 : index("0123456789+=.", substr(text, i + 1, 1)) - 1
    ok = ok && $(11 + i) == label
  }
  print ok ? a " " b : "wrong: " $0
}'

expect 0 "$work/one" --train 3000 --eval=500 --seed 7
expect 0 "$work/two" --train=3000 --eval 500 --seed=7
expect 0 "$work/other" --train 3000 --eval 500 --seed 8
for part in train eval; do
  rows "$work/one/$part" | awk "$sums" >"$work/$part"
  grep -q wrong "$work/$part" && fail "$part: $(grep -m 1 wrong "$work/$part")"
  [ -z "$(sort "$work/$part" | uniq -d)" ] || fail "$part: a row stands twice"
  for kind in tokens labels; do
    file=${part}_$kind.npy
    cmp -s "$work/one/$file" "$work/two/$file" ||
      fail "$file: two runs with one seed differ"
  done
  cmp -s "$work/one/${part}_tokens.npy" "$work/other/${part}_tokens.npy" &&
    fail "$part: two seeds give the same rows"
done
[ "$(wc -l <"$work/train")" -eq 3000 ] || fail "expected 3000 rows to train"
[ "$(wc -l <"$work/eval")" -eq 500 ] || fail "expected 500 rows to evaluate"

# Half of all unordered pairs unseen: if the parts were not kept apart, about
# ten thousand rows would be in both.
expect 0 "$work/half" --train 20000 --eval 200000
for part in train eval; do
  rows "$work/half/$part" | awk "$sums" >"$work/$part"
done
shared=$(awk '{ key = $1 < $2 ? $1 " " $2 : $2 " " $1 }
  NR == FNR { train[key] = 1; next }
  key in train' "$work/train" "$work/eval")
[ -z "$shared" ] || fail "both to train and unseen: $(echo "$shared" | wc -l)"
[ "$(wc -l <"$work/eval")" -eq 200000 ] || fail "expected 200000 unseen sums"

# The largest parts there can be.
expect 0 "$work/last" --train 1 --eval 405449
expect 2
grep -q 'expected a directory' "$work/err" || fail "no directory: not said"
expect 2 "$work/no" --train=many --nosuch 1
grep -q "'--train' expected a number but got 'many'" "$work/err" &&
  grep -q "unknown option '--nosuch'" "$work/err" || fail "not all errors said"
expect 2 "$work/no" --eval 405450
expect 2 "$work/no" --train 810001
expect 2 "$work/no" --train 0
[ -e "$work/no" ] && fail "refused options leave a directory"
: >"$work/file"
expect 1 "$work/file"
grep -q "cannot write '$work/file/" "$work/err" || fail "no place: not said"
exit $failed

#!/bin/bash
# tune.sh BIN EXAMPLES - `tandem compile --tune`: measured schedules, the file
# that keeps them, and what can be wrong.
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem
model=$2/digits/mlp.mlir
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/caches

# Measured once, then found in the file: the same bytes, nothing is measured.
expect 0 '^tuned [1-9][0-9]* kernels' \
  "$tandem" compile "$model" -o a.tdm --tune=1e4 --tune-cache=cache.json \
  --optimizer=sgd:lr=0.1
expect 0 '' "$tandem" compile "$model" -o b.tdm --tune=1e4 \
  --tune-cache=cache.json --optimizer=sgd:lr=0.1
[[ $out == *tuned* ]] && fail "tuned again: $out"
cmp a.tdm b.tdm || fail 'the file gives other bytes than the measurement'
expect 0 '' "$tandem" compile "$model" -o c.tdm --tune=0 \
  --tune-cache=cache.json --optimizer=sgd:lr=0.1
cmp a.tdm c.tdm || fail '--tune=0 gives other bytes than the measurement'
grep -q '"format": "tandem schedules"' cache.json || fail 'no cache was written'
expect 0 'median' "$tandem" bench a.tdm --program=evaluate --steps=2
expect 0 '' "$tandem" check "$model" --tune=0 --tune-cache=cache.json

# The default file; --remarks says what was found; no time is a warning.
expect 0 "remark: (a launch takes|no schedule is faster)" "$tandem" compile "$model" -o d.tdm \
  --inference --tune=1e4 --remarks
[ -s caches/tandem/schedules.json ] || fail 'the default file was not written'
expect 0 'warning: --tune: .* keep the model' \
  "$tandem" compile "$model" -o e.tdm --tune=0 --tune-cache=none.json

# What is wrong.
expect 2 "'--tune' expected a number from 0 to 1e\+06 but got 'soon'" \
  "$tandem" compile "$model" -o x.tdm --tune=soon
expect 2 "'--tune' expected a number from 0 to 1e\+06 but got '-1'" \
  "$tandem" compile "$model" -o x.tdm --tune=-1
expect 2 "'--tune' expected a number from 0 to 1e\+06 but got 'nan'" \
  "$tandem" compile "$model" -o x.tdm --tune=nan
expect 2 '--tune-cache needs --tune' \
  "$tandem" compile "$model" -o x.tdm --tune-cache=cache.json
expect 2 "--tune has no effect with '--target=cuda': it is for the target 'cpu'" \
  "$tandem" compile "$model" -o x.tdm --tune=1 --target=cuda
echo '{"format": "other"}' >other.json
expect 2 "'other.json': expected schedules of '--tune' but got a file" \
  "$tandem" compile "$model" -o x.tdm --tune=1 --tune-cache=other.json
grep -q other other.json || fail 'a file that is no cache was overwritten'
expect 1 "cannot write 'cache.json.below.json'" \
  "$tandem" compile "$model" -o x.tdm --tune=1e4 --inference \
  --tune-cache=cache.json/below.json
[ -e x.tdm ] && fail 'a failed compilation left an artifact'
finish

#!/bin/bash
# tool.sh ROOT BIN - tools/fuzz runs a target for a while, and says what it found.
source "$1/tests/cli/expect.sh"
fuzz=$1/tools/fuzz
cd "$work" || exit 1
expect 0 '^\| fuzz-csv \| driver \| [1-9][0-9]* \| 0\.03 \| - \| 0 \|$' "$fuzz" --bin="$2" \
  --keep="$work/kept" --minutes=0.03 --seed=1 fuzz-csv
[ -z "$(find kept -name 'fuzz-*')" ] || fail 'an input is left where none was found'

# A target that ends by a signal with one seed.
mkdir bad
cat >bad/fuzz-bad <<'END'
#!/bin/bash
for word; do
  case $word in
    --last=*) printf 'the input' >"${word#*=}" ;;
    --seed=*) seed=${word#*=} ;;
    --seconds=*) seconds=${word#*=} ;;
  esac
done
[ "$seed" = 4 ] && kill -ABRT $$
sleep "$seconds"
echo '7 inputs'
END
chmod +x bad/fuzz-bad
echo 'fuzz-bad --any=8' >bad/fuzz-targets.txt
expect 1 '^\| fuzz-bad \| driver \| 7 \| 0\.1 \| - \| 1 \|$' "$fuzz" --bin="$work/bad" --keep="$work/kept" \
  --minutes=0.1 --seed=4 fuzz-bad
grep -q 'seed 4 ended with an input that is in ' <<<"$out" || fail "no input is named: $out"
[ "$(cat kept/fuzz-bad-4)" = 'the input' ] || fail 'the input is not kept'
expect 0 '^fuzz-bad$' "$fuzz" --bin="$work/bad" --list
expect 2 "no target 'fuzz-none'" "$fuzz" --bin="$work/bad" fuzz-none
expect 2 "expected a target or 'all'" "$fuzz" --bin="$work/bad"
expect 2 "expected --minutes to be a number but got 'x'" "$fuzz" --minutes=x all
finish

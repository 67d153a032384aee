#!/bin/bash
# reduce.sh BIN EXAMPLES - a fault in a large model was cut down by hand.
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem
model=$2/digits/mlp.mlir
cd "$work" || exit 1

# What is planted: a relu whose result a matmul or linear reads, in a model that
# compiles.
{
  echo '#!/bin/bash'
  echo "'$tandem' compile \"\$1\" --stop-after=functionalize -o /dev/null 2>/dev/null || exit 1"
  echo "grep -q 'tandem.relu' \"\$1\""
} >interesting
chmod +x interesting
ops() { grep -c ' = tandem\.' "$1"; }

expect 0 'wrote the smallest module to .small.mlir. \(1 op, ' "$tandem" reduce \
  "$model" --test=./interesting -o small.mlir
grep -q '^the model: ' <<<"$out" || fail 'no size of the model'
grep -q ' tests)$' <<<"$out" || fail 'no progress'
[ "$(ops "$model")" -ge 4 ] || fail 'the model has few ops to begin with'
[ "$(ops small.mlir)" -le 2 ] || fail "left are: $(cat small.mlir)"
./interesting small.mlir || fail 'the smallest module is not interesting'
# Outputs and arguments went with their roles.
grep -q 'param' small.mlir && fail "parameters are left: $(cat small.mlir)"
expect 0 '' "$tandem" compile small.mlir --stop-after=capture -o again.mlir

# A dump is valid at its phase all the way: what programs hand over goes from
# both.
"$tandem" compile "$model" --stop-after=partition -o p.mlir \
  --optimizer=sgd:lr=0.1 || fail 'the dump'
cat >at-partition <<'SH'
#!/bin/bash
grep -q 'func @step' "$1" && grep -q 'tandem.relu' "$1"
SH
chmod +x at-partition
expect 0 'wrote the smallest' "$tandem" reduce p.mlir --test=at-partition \
  -o q.mlir
[ "$(wc -c <q.mlir)" -lt $(($(wc -c <p.mlir) / 2)) ] || fail 'a dump stays large'
expect 0 '' "$tandem" compile q.mlir --stop-after=partition -o /dev/null

# What is wrong.
printf '#!/bin/sh\nexit 1\n' >never
chmod +x never
expect 2 "'./never' does not exit with 0 for the model itself" "$tandem" reduce \
  "$model" --test=./never -o x.mlir
expect 2 "cannot run './nowhere'" "$tandem" reduce "$model" --test=./nowhere \
  -o x.mlir
expect 2 'expected --test' "$tandem" reduce "$model" -o x.mlir
cp "$model" own.mlir
expect 2 'would replace .own.mlir., which the model reads' "$tandem" reduce \
  own.mlir --test=./never -o own.mlir
expect 2 'stop-after=capture' "$tandem" reduce m.onnx --test=./never -o x.mlir
# What a script had started went on when its time was over.
printf '#!/bin/sh\nsleep 200 & echo $! >pid\nwait\n' >slow
chmod +x slow
expect 2 'does not end within 1 seconds \(--test-timeout\)' timeout 15 \
  "$tandem" reduce "$model" --test=./slow -o x.mlir --test-timeout=1
sleep 0.2
state=$(awk '{ print $3 }' "/proc/$(cat pid)/stat" 2>/dev/null)
case $state in
  '' | Z | X) ;;
  *) fail "what the script started is still there ($state)"; kill "$(cat pid)" ;;
esac
finish

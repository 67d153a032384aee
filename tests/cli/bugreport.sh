#!/bin/bash
# bugreport.sh BIN EXAMPLES - what a report of a bug needs was asked for in mails,
# and weights were sent where zeros would have done.
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem
model=$2/digits/mlp.mlir
cd "$work" || exit 1

# has FILE PATTERN: a line of the report's file matches.
has() {
  grep -qE -- "$2" "$1" || fail "no '$2' in $1: $(head -c 600 "$1")"
}

expect 0 'nothing was sent anywhere' "$tandem" bugreport "$model" -o report \
  --optimizer=sgd:lr=0.1 --command='run nowhere.tdm --input "x y=1"'
for file in README.txt version.txt doctor.txt environment.txt model.mlir \
  compile-given.txt compile-model.txt command.txt \
  phases/digits_mlp.01.capture.mlir phases/digits_mlp.07.lower.mlir; do
  [ -s "report/$file" ] || fail "no $file"
  grep -q "^$file " <<<"$out" || fail "$file is not listed: $out"
done
has report/version.txt '^tandem [0-9]'
has report/doctor.txt '^processor '
has report/README.txt "tandem compile .*mlp.mlir -o .* --optimizer=sgd:lr=0.1"
has report/README.txt 'ended with exit code 0; it printed compile-given.txt'
has report/README.txt 'ended with exit code 1; it printed command.txt'
has report/command.txt 'nowhere.tdm'
[ -e report/x.tdm ] && fail 'the artifact is in the report'
expect 0 '' "$tandem" compile report/model.mlir -o x.tdm

# The weights of a model in ONNX were in its report, as x.safetensors.
expect 0 'nothing was sent anywhere' "$tandem" bugreport \
  "$2/onnx/digits.onnx" -o onnx-report --dim=batch=4
find onnx-report -type f | grep -E 'x\.|safetensors' &&
  fail 'weights are in the report'

# What --input changes is in model.mlir, and was changed again: no phases.
expect 0 'nothing was sent anywhere' "$tandem" bugreport "$model" -o input-report \
  --optimizer=sgd:lr=0.1 --input=x:u8,scale=0.0625
grep -q 'end differently' <<<"$out" && fail "what --input makes is another model: $out"
[ -s input-report/phases/digits_mlp.07.lower.mlir ] || fail 'no phases with --input'

# Constants are left out, and the model still compiles; or they are there.
{
  echo 'module @c {'
  echo '  func.func @graph(%x: tensor<512xf32> {tandem.role = #tandem.role<input "x">})'
  echo '      -> (tensor<512xf32> {tandem.role = #tandem.role<output "y">}) {'
  printf '    %%c = tandem.constant dense<['
  for i in $(seq 511); do printf '%s.5, ' "$i"; done
  echo '777.25]> : tensor<512xf32>'
  echo '    %y = tandem.add %x, %c : tensor<512xf32>'
  echo '    return %y : tensor<512xf32>'
  echo '  }'
  echo '}'
} >c.mlir
expect 0 '' "$tandem" compile c.mlir -o c.tdm --inference
expect 0 '' "$tandem" bugreport c.mlir -o without --inference
# The last one is 00504244 where MLIR prints bytes.
grep -rqiE '777\.25|7\.7725|00504244' without && fail 'a constant is in the report'
has without/model.mlir 'a constant of 2048 bytes was left out'
has without/README.txt 'zeros in model.mlir: 1'
expect 0 '' "$tandem" bugreport c.mlir -o with --inference --with-constants
grep -rqiE '777\.25|7\.7725|00504244' with/model.mlir || fail '--with-constants has none'

# A model that fails: what was said, in both runs.
sed 's/tandem.add/tandem.addd/' c.mlir >bad.mlir
expect 0 '' "$tandem" bugreport bad.mlir -o bad
has bad/compile-given.txt "tandem.addd"
has bad/README.txt 'the model is not in the report'

# An artifact has its manifest, and constants only where they are asked for.
expect 0 '' "$tandem" bugreport c.tdm -o artifact
has artifact/inspect.txt '"kind": "artifact"'
has artifact/README.txt 'bench .*ended|bench'
[ -e artifact/artifact.tdm ] && fail 'the artifact has its constants'
expect 0 'artifact.tdm' "$tandem" bugreport c.tdm -o whole --with-constants

# Packed, with a name of its own; twice the same bytes but for what was measured.
expect 0 "wrote the report to 'c.bugreport.tar.gz'" "$tandem" bugreport c.mlir \
  --inference
tar tzf c.bugreport.tar.gz >listed || fail 'tar does not read it'
grep -qx 'c.bugreport/README.txt' listed || fail "in it are: $(cat listed)"
expect 2 "-o would replace 'c.bugreport.tar.gz'" "$tandem" bugreport c.mlir
expect 0 '' "$tandem" bugreport c.mlir --inference --force
expect 2 "-o would replace 'without'" "$tandem" bugreport c.mlir -o without
expect 2 '--optimizer has no effect on an artifact' "$tandem" bugreport c.tdm \
  --optimizer=sgd
expect 1 'cannot read .nowhere.mlir' "$tandem" bugreport nowhere.mlir

# Files that stood in the folder were listed as parts of the report.
mkdir mine
echo secret >mine/other.txt
expect 0 'model.mlir' "$tandem" bugreport c.mlir -o mine --inference --force
grep -q other.txt <<<"$out" && fail 'a file of the user is listed'
[ "$(cat mine/other.txt)" = secret ] || fail 'a file of the user is gone'

# A command that does not end was waited for without end.
forever="--command=bench c.tdm --steps=100000000"
expect 0 '' "$tandem" bugreport c.tdm "$forever" --timeout=2 -o late
has late/README.txt 'did not end within 2 s'

# A report that was interrupted left its folder behind, and what it had started.
mkdir tmp
TMPDIR=$PWD/tmp "$tandem" bugreport c.tdm "$forever" -o never 2>said &
report=$!
for _ in $(seq 600); do
  if compgen -G 'tmp/*/command.txt' >/dev/null; then break; fi
  sleep 0.1
done
# Other processes end meanwhile: files that were listed are gone.
started=$(cat /proc/[0-9]*/stat 2>/dev/null |
  sed -n "s/^\([0-9]*\) (.*) [A-Z] $report .*/\1/p" | head -n 1)
kill -TERM $report
wait $report && fail 'an interrupted report ends with exit code 0'
grep -q 'interrupted: no report was written' said || fail "it says: $(cat said)"
[ -z "$(ls tmp)" ] || fail "it leaves $(ls tmp)"
[ -e never ] && fail 'it leaves a report'
[ -n "$started" ] || fail 'the command did not run'
state=$(awk '{ print $3 }' "/proc/$started/stat" 2>/dev/null)
case $state in
  '' | Z | X) ;;
  *) fail "what it started is still there ($state)" ;;
esac
finish

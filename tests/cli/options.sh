#!/bin/bash
# options.sh BIN EXAMPLES - options as a user meets them: what contradicts the
# model, help, completions, pages of the manual, doctor, and what compile says.
# Contradictions among options alone are OptionPairsTest's.
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem
run=$1/tandem-run
model=$2/digits/mlp.mlir
onnx=$2/onnx/digits.onnx
cd "$work" || exit 1

# `compile` printed nothing when it was done.
expect 0 "^wrote the artifact to 'a.tdm' \([0-9.]+ KiB\)$" "$tandem" compile \
  "$model" -o a.tdm --optimizer=sgd:lr=0.1 --dump-phases=dumps
grep -q "^wrote the module of each phase to 'dumps'$" <<<"$out" ||
  fail "dumps are not said: $out"
expect 0 "^wrote the module after 'joint' to 'j.mlir' \(.*\)$" "$tandem" compile \
  "$model" --stop-after=joint -o j.mlir
expect 0 "^wrote 14 weights to 'o.safetensors' \(.*\)$" "$tandem" compile \
  "$onnx" -o o.tdm --dim=batch=64 --loss=cross_entropy:logits,labels \
  --optimizer=sgd:lr=0.1

# A16: options that a module is past passed in silence.
dump=dumps/digits_mlp.06.plan.mlir
expect 2 "--inference has no effect on a module that is past 'joint'" \
  "$tandem" compile $dump -o x.tdm --inference
expect 2 "--partition has no effect on a module that is past 'partition'" \
  "$tandem" compile $dump -o x.tdm --partition=default
expect 2 "--libraries is for the target 'cuda', but this one is 'cpu'" \
  "$tandem" compile "$model" -o x.tdm --libraries=yes
expect 2 "--matmul-precision is for the target 'cuda'" \
  "$tandem" compile "$model" -o x.tdm --matmul-precision=tf32
expect 2 "--no-cuda-graph has no effect on device 'cpu'" \
  "$run" bench a.tdm --no-cuda-graph
expect 2 "batch=64 says|says 64" "$tandem" compile "$onnx" -o x.tdm \
  --dim=batch=64 --shape=x=32x64

# `help -o` was an unknown option.
expect 0 '^tandem compile -o X.tdm' "$tandem" help -o

# A wrong keyword of a known op: the op's own name was suggested.
cat >keyword.mlir <<'EOF'
#x = #tandem.role<input "x">
#y = #tandem.role<output "y">
module attributes {tandem.phase = "capture"} {
  func.func @graph(%x: tensor<4xf32> {tandem.role = #x})
      -> (tensor<f32> {tandem.role = #y}) {
    %y = tandem.reduce_sum %x dims [0] : tensor<4xf32> -> tensor<f32>
    return %y : tensor<f32>
  }
}
EOF
expect 1 "custom op 'tandem.reduce_sum' expected 'over'$" \
  "$tandem" compile keyword.mlir -o x.tdm

# B6: a wrong optimizer ended with a place in the model and exit code 1.
expect 2 "^tandem: error: --optimizer: unknown optimizer 'AdamW' \(did you" \
  "$tandem" compile "$model" -o x.tdm --optimizer=AdamW:lr=1e-3
expect 2 "^tandem: error: .*--loss: the model has no output 'los' \(did you mean" \
  "$tandem" compile "$model" -o x.tdm --loss=los

# B10: that a handwritten model has no paths said nothing of how to get one.
expect 2 'it has none \(in .mlir an op gets one by loc' \
  "$tandem" compile "$model" -o x.tdm --save=relu

# A21: TANDEM_PTXAS with a wrong path was taken for none.
expect 2 "expected TANDEM_PTXAS to name a program" env TANDEM_PTXAS=nowhere \
  "$tandem" compile "$model" -o x.tdm --target=cuda

# An escape sequence in a name reached the terminal.
expect 2 "'--.x1b\[31m'" "$tandem" compile "$model" $'--\e[31m'
expect 1 ".x1b\[31mm.mlir" "$tandem" compile $'\e[31mm.mlir' -o x.tdm
[ -e x.tdm ] && fail 'a wrong use left a file'

# Help: `help train` ignored its argument, and nothing said the defaults of
# optimizers; check's and inspect's repeated all of compile's.
expect 0 '^usage: tandem train' "$tandem" help train
expect 0 '^  beta2 +0.999 ' "$tandem" help optimizers
for topic in losses paths targets arrays devices exit-codes; do
  expect 0 '' "$tandem" help $topic
  [ -n "$out" ] || fail "no help about $topic"
done
expect 2 "no help about 'trian' \(did you mean 'train'" "$tandem" help trian
expect 2 "unknown command 'inpsect' \(did you mean 'inspect'" "$tandem" inpsect
for command in check inspect; do
  expect 0 "'tandem help compile'" "$tandem" $command --help
  [ "$(wc -l <<<"$out")" -le 49 ] || fail "long help of $command: $out"
done
expect 0 '^tandem [0-9.]+ ' "$tandem" -V

# Completions: each shell's own parser takes them; bash's complete.
for tool in "$tandem" "$run"; do
  "$tool" completion bash >completion.bash || fail 'no completions'
  bash -n completion.bash || fail 'bash does not read its completions'
  if type zsh >/dev/null 2>&1; then
    "$tool" completion zsh >_tool && zsh -n _tool ||
      fail 'zsh does not read its completions'
  fi
  if type fish >/dev/null 2>&1; then
    "$tool" completion fish >c.fish && fish -n c.fish ||
      fail 'fish does not read its completions'
  fi
done
# Values were mixed with the files of the folder where their pattern had "...".
"$tandem" completion fish | grep -q -- "-l optimizer -x -a 'sgd " ||
  fail 'fish completes optimizers as files'
completes() {
  local wanted=$1
  shift
  local got
  got=$("$tandem" completion bash >c.bash; bash -c 'source c.bash
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tandem 2>/dev/null
    echo "${COMPREPLY[*]}"' bash "$@")
  [ "$got" = "$wanted" ] || fail "expected '$*' to complete to $wanted: $got"
}
completes 'compile completion' tandem comp
completes '--partition=' tandem compile --parti
completes 'min-cut default' tandem compile --partition =
completes 'default' tandem compile --partition = de
completes 'bash zsh fish --help' tandem completion ''
expect 2 'expected SHELL to be bash, zsh or fish' "$tandem" completion csh

# Pages of the manual, without a warning of groff where it is installed.
for command in '' compile train run bench inspect check doctor; do
  expect 0 '^\.TH TANDEM' "$tandem" help --man $command
  if type groff >/dev/null 2>&1; then
    warnings=$(groff -man -Tutf8 -ww -z <<<"$out" 2>&1)
    [ -z "$warnings" ] || fail "the page of '$command': $warnings"
  fi
done

# doctor, in both tools.
for tool in "$tandem" "$run"; do
  expect 0 '^processor ' "$tool" doctor
  [ "$(nproc)" -eq 1 ] || expect 0 \
    '^caches +(a line takes [0-9]+ ns from|two threads did not run)' "$tool" doctor
  expect 0 '^ "usable": true' "$tool" doctor --json
done
expect 0 '^compiler +LLVM ' "$tandem" doctor
expect 5 '^ptxas +broken: expected TANDEM_PTXAS' env TANDEM_PTXAS=nowhere \
  "$tandem" doctor

# inspect: initial values and checkpoints could not be seen, and tandem-run had
# none.
expect 0 '^param +fc0.w .* requires grad +uniform from ' "$run" inspect a.tdm
expect 0 '^param +conv1.weight .* to be given by --params' \
  "$tandem" inspect o.tdm
for tool in "$tandem" "$run"; do
  expect 0 '^conv1.weight +f32 ' "$tool" inspect o.safetensors
  expect 0 '^ "kind": "checkpoint"' "$tool" inspect o.safetensors --json
  expect 0 '^ "manifests": \[' "$tool" inspect a.tdm --json
done
expect 2 'no effect on a checkpoint' "$tandem" inspect o.safetensors --ptx

# B7: what has no value did not mention --params; bench wanted it, too.
expect 2 '14 parameters and states .*expected --params' "$run" train o.tdm \
  --data x=@"$2/digits/data/train_images.npy" --steps 1 \
  --data labels=@"$2/digits/data/train_labels.npy"
expect 0 '14 parameters and states have no value; they are made up' \
  "$run" bench o.tdm --steps=1 --warmup=0
expect 0 '^1\.0 ' "$tandem" inspect "$onnx" --dim=batch=8 \
  --loss=cross_entropy:logits,labels --optimizer=sgd --budget-curve \
  --measure=0.1 --params=o.safetensors
finish

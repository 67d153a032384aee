#!/bin/bash
# adapters.sh BIN EXAMPLES - --lora as a user meets it: adapters beside the
# weights of an earlier training, folded into them and written alone (T12).
source "$(dirname "$0")/expect.sh"
source "$(dirname "$0")/train-digits.sh"

refused 2 '--lora: expected REGEX:rank=N' --lora='.*'
refused 2 "unknown option 'rang' \\(did you mean 'rank'\\?\\)" --lora='.*:rang=2'
refused 2 "matches no weight that is the right factor of a product; there are" \
  --lora='nothing:rank=2'
adamw=--optimizer=adamw:lr=2e-3
compile base $adamw
compile lora $adamw --lora='w:rank=4,alpha=8'
train 0 '' base --steps=60 --seed=0 --save=base.st
train 0 '' lora --steps=30 --seed=1 --init-from=base.st --save=lora.st

expect 0 '' "$bin/tandem" checkpoint merge lora.st -o folded.safetensors \
  --fold-adapters
expect 0 '"peft_type": "LORA"' "$bin/tandem" checkpoint adapters lora.st \
  -o adapter_model.safetensors
expect 0 '"lora_alpha": 8' "$bin/tandem" checkpoint adapters lora.st \
  -o adapter_model.safetensors
expect 0 'base_model.model.fc1.w.lora_A' "$bin/tandem" checkpoint show \
  adapter_model.safetensors
expect 1 'has no adapters' "$bin/tandem" checkpoint merge base.st \
  -o no.safetensors --fold-adapters
expect 2 'does not take --fold-adapters' "$bin/tandem" checkpoint show lora.st \
  --fold-adapters

# The averages of adapters are in no sum, and were left out without a word.
compile averaged $adamw --lora='w:rank=4,alpha=8' --ema=0.9
train 0 '' averaged --steps=2 --seed=1 --init-from=base.st --save=averaged.st
expect 0 'note: averages are left out \(--ema\)' \
  "$bin/tandem" checkpoint merge averaged.st -o averaged.safetensors --fold-adapters

# A head that is trained whole beside the adapters, and saved with them.
refused 2 "modules_to_save 'nothing' matches no parameter.*there are 'fc0.w'" \
  --lora='w:rank=2,modules_to_save=nothing'
refused 2 'modules_to_save of --lora are not compiled together' --mesh=pipe=2 \
  --parallel=pp $adamw --lora='w:rank=2,modules_to_save=fc2'
refused 2 "option 'alpha' is given twice" \
  --lora='w:rank=2,alpha=2,modules_to_save=fc2,alpha=3'
compile head $adamw --lora='fc1:rank=4,alpha=8,modules_to_save=fc2[.]'
# Options behind the expression were taken for a part of it.
compile behind $adamw --kernel-cache=off --lora='fc1:modules_to_save=fc2[.],rank=4,alpha=8'
cmp head.tdm behind.tdm || fail 'the order of options counts'
train 0 '' head --steps=30 --seed=1 --init-from=base.st --save=head.st
expect 0 '^    "fc2"' "$bin/tandem" checkpoint adapters \
  head.st -o head.safetensors
expect 0 '' "$bin/tandem" checkpoint show head.safetensors
[ "$(grep -oE 'base_model[^ ]*' <<<"$out" | sort | xargs)" = "$(printf \
  'base_model.model.%s ' fc1.w.lora_A fc1.w.lora_B fc2.b fc2.w | xargs)" ] ||
  fail "other names than PEFT's: $out"
expect 0 '' "$bin/tandem" checkpoint merge head.st -o folded-head.safetensors \
  --fold-adapters
# Its averages stayed beside parameters that were folded, and --average mixed them.
compile mean $adamw --ema=0.5 --lora='fc1:rank=4,alpha=8,modules_to_save=fc2[.]'
train 0 '' mean --steps=3 --seed=1 --init-from=base.st --save=mean.st
expect 0 'note: averages are left out \(--ema\)' "$bin/tandem" checkpoint merge mean.st \
  -o folded-mean.safetensors --fold-adapters
expect 0 'fc2.w' "$bin/tandem" checkpoint show folded-mean.safetensors
grep -q 'ema' <<<"$out" && fail "averages were folded: $out"

# Where a part is missing: one tensor [1, 1] of f32.
header='{"l.lora_B":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]}}'
while [ $((${#header} % 8)) -ne 0 ]; do header+=' '; done
{
  printf "\\x$(printf %02x ${#header})\\0\\0\\0\\0\\0\\0\\0"
  printf '%s\0\0\0\0' "$header"
} >part.safetensors
expect 1 "'l.lora_B' is a part of an adapter whose other parts are not there" \
  "$bin/tandem" checkpoint merge part.safetensors -o no.safetensors --fold-adapters
expect 0 '' "$bin/tandem-run" inspect folded.safetensors
case $out in *adamw*) fail 'states of the optimizer are left' ;; esac

# The model with folded weights predicts what the one with adapters does, and
# something else than the base.
predict() { # MODEL PARAMS OUTPUT
  expect 0 '' "$bin/tandem-run" predict "$1.tdm" --params="$2" \
    --data x=@"$data/test_images.npy" --output logits=@"$3"
}
predict lora lora.st lora.csv
predict head head.st head.csv
predict base folded-head.safetensors folded-head.csv
predict base folded.safetensors folded.csv
predict base base.st base.csv
# Without a place for them they were left out in silence.
for command in "predict base.tdm --params=lora.st --output logits=@no.csv" \
  "train base.tdm --steps=1 --params=lora.st --data labels=@$data/test_labels.npy"; do
  # shellcheck disable=SC2086
  expect 2 "lora.st.*has an adapter 'fc0.w.lora_A' of 'fc0.w', which the artifact has none for.*fold-adapters" \
    "$bin/tandem-run" $command --data x=@"$data/test_images.npy"
done
largest_difference() {
  paste -d, "$1" "$2" | awk -F, 'NR > 1 { for (i = 1; i <= NF / 2; i++) {
    d = $i - $(i + NF / 2); if (d < 0) d = -d; if (d > most) most = d } }
    END { print most + 0 }'
}
awk -v d="$(largest_difference lora.csv folded.csv)" \
  'BEGIN { exit !(d < 1e-4) }' || fail 'folded adapters give other scores'
awk -v d="$(largest_difference head.csv folded-head.csv)" \
  'BEGIN { exit !(d < 1e-4) }' || fail 'a folded checkpoint has another head'
awk -v d="$(largest_difference lora.csv base.csv)" \
  'BEGIN { exit !(d > 1e-2) }' || fail 'nothing was trained'

# The base of the training has its bytes, and adapters go on where they were.
expect 0 '' "$bin/tandem-run" train lora.tdm --steps=5 --resume=lora.st \
  --data x=@"$data/train_images.npy" --data labels=@"$data/train_labels.npy" \
  --save=more.st
# A piece of the index that is read was replaced by what was made of it.
expect 0 '' "$bin/tandem" checkpoint reshard base.st -o pieces.safetensors.index.json --shards=2
pieces=(pieces-*.safetensors)
for read in pieces.safetensors.index.json .; do
  expect 2 "-o would replace .*${pieces[0]}.*which FILE reads" "$bin/tandem" checkpoint merge $read -o "${pieces[0]}"
done
expect 0 '' "$bin/tandem" checkpoint show pieces.safetensors.index.json

# What a file calls a tensor moved the cursor of a terminal.
header='{"w\u001b]0;x\u0007":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"fc2.b":{"dtype":"F32","shape":[10],"data_offsets":[4,44]}}'
while [ $((${#header} % 8)) -ne 0 ]; do header+=' '; done
{
  printf "\\x$(printf %02x ${#header})\\0\\0\\0\\0\\0\\0\\0"
  printf %s "$header"
  head -c 44 /dev/zero
} >escape.safetensors
train 0 'note: .*w\\x1b\]0;x\\x07' base --steps=1 --init-from=escape.safetensors --save=no.st
grep -q $'\e' <<<"$out" && fail "an escape sequence is printed: $out"

for file in base lora more; do
  expect 0 '' "$bin/tandem-run" inspect $file.st --json
  grep -oE '"(w[0-9]|b[0-9])": ?\{[^}]*\}' <<<"$out" >$file.txt
done
cmp base.txt lora.txt && cmp lora.txt more.txt || fail 'the base has moved'
finish

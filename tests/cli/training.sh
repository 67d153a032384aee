#!/bin/bash
# training.sh BIN EXAMPLES - T09, T10, T14, T15, T17: the loop of `train` as a
# user meets it. What is resumed has the bits and the numbers of the undisturbed
# training; the best checkpoint is that of the best evaluation; evaluations are
# the same for every batch size; a NaN is followed to its row, or parameter.
source "$(dirname "$0")/expect.sh"
bin=$1 digits=$2/digits data=$2/digits/data
cd "$work" || exit 1
compile() { # OUTPUT [options]
  expect 0 '' "$bin/tandem" compile "${model:-$digits/mlp.mlir}" -o "$1.tdm" \
    --optimizer=adamw:lr=2e-3 "${@:2}"
}
train() { # CODE TEXT [options]
  expect "$1" "$2" "$bin/tandem-run" train mlp.tdm \
    --data x=@"$data/train_images.npy" --data labels=@"$data/train_labels.npy" \
    "${@:3}"
}
evaluates=(--eval x=@"$data/test_images.npy" --eval
  labels=@"$data/test_labels.npy" --accuracy=logits,labels)
number() { # KEY: of what was printed as JSON
  grep -oE "\"$1\": ?[-+.e0-9]+" <<<"$out" | tail -n 1 | grep -oE '[-+.e0-9]+$'
}
metadata() { "$bin/tandem-run" inspect "$1" --json | grep -oE "\"tandem.$2\":.*"; }
compile mlp

# T09: stopped in the middle of a pass of 44 steps, twice.
train 0 '' --epochs=3 --seed=0 --json --save=whole.st
loss=$(number loss)
train 0 '' --steps=50 --seed=0 --save=part.st
train 0 '' --steps=20 --resume=part.st --save=part.st
train 0 '' --epochs=2 --resume=part.st --json --save=rest.st
cmp whole.st rest.st || fail 'T09: a resumed training has other bits'
[ "$(number loss)" = "$loss" ] ||
  fail "T09: the loss of the last pass is $(number loss), not $loss"
# The same of random numbers, and of a schedule of updates.
expect 0 '' "$bin/digits-cnn" cnn.mlir
model=cnn.mlir compile cnn --loss-scale=dynamic:interval=7 --accumulate
cnn() {
  expect 0 '' "$bin/tandem-run" train cnn.tdm --accumulate=3 \
    --data x=@"$data/train_images.npy" --data labels=@"$data/train_labels.npy" \
    "$@"
}
cnn --steps=50 --seed=0 --save=whole-cnn.st
cnn --steps=16 --seed=0 --save=part-cnn.st
cnn --steps=34 --resume=part-cnn.st --save=rest-cnn.st
cmp whole-cnn.st rest-cnn.st || fail 'T09: other bits of random numbers'

# Killed in the middle of whatever it does, and resumed.
train 0 '' --steps=3000 --seed=0 --save=quiet.st
for i in 1 2 3 4 5; do
  resume=()
  [ ! -e killed.st ] || resume=(--resume=killed.st)
  "$bin/tandem-run" train mlp.tdm --data x=@"$data/train_images.npy" \
    --data labels=@"$data/train_labels.npy" --epochs=100000 --seed=0 \
    --save=killed.st --save-every=1 "${resume[@]}" >killed.out 2>&1 &
  pid=$!
  sleep "0.$i"
  kill -9 $pid
  wait $pid 2>/dev/null
done
done=$(metadata killed.st total_steps | grep -oE '"[0-9]+"' | tr -d '"')
[ "${done:-0}" -gt 0 ] && [ "$done" -lt 3000 ] || fail "T09: killed after $done"
train 0 '' --steps=$((3000 - done)) --resume=killed.st --save=killed.st
cmp quiet.st killed.st || fail 'T09: a killed training has other bits'

# T10: at a rate that is too high the last evaluation is not the best one.
train 0 'best = accuracy ' --epochs=7 --seed=0 --lr=0.02 "${evaluates[@]}" \
  --eval-every=1 --save-best=best.st --save=last.st --log=best.log
best=$(grep -oE '"accuracy": [0-9.]+' best.log | sort -k2 -g | tail -n 1)
step=$(grep "$best" best.log | head -n 1 | grep -oE '"step": [0-9]+')
[ "$(tail -n 1 best.log | grep -oE '"accuracy": [0-9.]+')" != "$best" ] ||
  fail 'T10: the last is the best'
metadata best.st total_steps | grep -q "\"${step#*: }\"" ||
  fail "T10: the best is of $step, $best, and saved was $(metadata best.st total_steps)"
best=${best#*: }
expect 0 "accuracy = ${best:0:7}" "$bin/tandem-run" train mlp.tdm --steps=0 \
  --params best.st "${evaluates[@]}"
# The same in pieces: what was best before counts, and is not written over.
train 0 '' --epochs=4 --seed=0 --lr=0.02 "${evaluates[@]}" --eval-every=1 \
  --save-best=best2.st --save=last2.st
train 0 '' --epochs=3 --resume=last2.st "${evaluates[@]}" --eval-every=1 \
  --save-best=best2.st --save=last2.st
cmp best.st best2.st || fail 'T10: a resumed training has another best'
# Patience counts evaluations.
train 0 'stopped early: 2 evaluations were not better' --epochs=80 --seed=0 \
  --lr=0.02 "${evaluates[@]}" --eval-every=1 --patience=2 --log=early.log
evaluations=$(grep -c '"eval"' early.log)
[ "$evaluations" -lt 80 ] || fail "T10: $evaluations evaluations"
worse=$(grep -oE '"accuracy": [0-9.]+' early.log | tail -n 3 | sort -k2 -g |
  tail -n 1)
[ "$(grep -oE '"accuracy": [0-9.]+' early.log | tail -n 3 | head -n 1)" = \
  "$worse" ] || fail 'T10: stopped at another evaluation'
train 2 "no number 'acuracy' \(did you mean 'accuracy'" --steps=1 \
  "${evaluates[@]}" --best=acuracy --save-best=no.st
train 0 'best = loss ' --steps=1 "${evaluates[@]}" --best=min:loss

# --keep has the last ones, the best stays, and so do files that look like them.
cp "$digits/mlp.mlir" w-1.st
train 0 '' --steps=50 --seed=0 --save=w.st --save-every=10 --keep=2 \
  "${evaluates[@]}" --save-best=w-best.st
[ "$(echo w-*.st)" = 'w-1.st w-40.st w-50.st w-best.st' ] ||
  fail "T10: kept: $(echo w-*.st)"
cmp w.st w-50.st || fail 'the last one is another'
train 0 '' --steps=10 --resume=w-40.st --save=again.st "${evaluates[@]}" \
  --save-best=again-best.st
cmp again.st w-50.st || fail 'a kept checkpoint has other bits'
# What is read, and other outputs, have none of the names that --keep writes: a
# training replaced or removed its own --params, and the best checkpoint.
mkdir kn kn/in && cp w-40.st kn/in/first.st && ln -s kn linked
ln -s ../w-40.st kn/kn-3.st && cp w-40.st kn/kn-4.st && ln -s kn/kn-4.st far.st
kept=(--seed=0 --save=kn/kn.st --save-every=1 --keep=2)
for read in kn/kn-3.st linked/kn-3.st kn/kn-4.st far.st ./kn//in/../kn-4.st; do
  for option in params init-from; do
    train 2 "keep would replace or remove '$read', .* and --$option reads" \
      "${kept[@]}" --steps=6 --$option=$read --log=kn/log.st
  done
done
for option in log save-best; do
  train 2 "keep would replace or remove 'linked/kn-7.st', .* and --$option writes" \
    "${kept[@]}" --steps=6 --$option=linked/kn-7.st --force "${evaluates[@]}"
done
[ "$(echo kn/*)" = 'kn/in kn/kn-3.st kn/kn-4.st' ] || fail "done: $(echo kn/*)"
cmp w-40.st kn/kn-4.st || fail '--keep replaced what was read'
rm kn/kn-*
# Names that no checkpoint gets are anyone's, and F is often a link to the last.
for read in kn/in/first.st kn/kn-03.st kn/kn-+3.st kn/kn.st; do
  [ -e $read ] || cp w-40.st $read
  train 0 '' "${kept[@]}" --steps=3 --params=$read --force
done
train 0 '' --resume=kn/kn.st --steps=1 --save=kn/kn.st --save-every=1 --keep=2
cp kn/kn-03.st kn/kn.st && rm kn/kn-*
# A training that goes on from a kept one leaves that where it is.
train 0 '' "${kept[@]}" --steps=3 --force
cp kn/kn-2.st second.st
for read in kn/kn-2.st linked/kn-2.st; do
  train 0 '' "${kept[@]}" --resume=$read --steps=4
  [ "$(cd kn && echo kn-*)" = 'kn-2.st kn-5.st kn-6.st' ] ||
    fail "kept: $(cd kn && echo kn-*)"
  cmp second.st kn/kn-2.st || fail '--keep replaced what --resume read'
done
# Through a link, each is one of its own step.
mv kn/kn.st kn/in/kn.st && ln -s in/kn.st kn/kn.st
train 0 '' "${kept[@]}" --resume=kn/kn-6.st --steps=2
cmp kn/kn-8.st kn/in/kn.st || fail 'through a link: not the last one'
metadata kn/kn-7.st total_steps | grep -q '"7"' ||
  fail "through a link: $(metadata kn/kn-7.st total_steps)"
train 2 'keep needs a checkpoint in one file' --steps=1 --save-every=1 --keep=1 \
  --save=w.safetensors.index.json

# --max-time ends a training that would take hours.
train 0 'max-time is over after [0-9]+ steps; to go on' --epochs=1000000 \
  --max-time=0.5s --save=timed.st
train 2 'max-time' --epochs=1 --max-time=5x
# Units that came in any order, or twice, were added up.
for time in 1m1h 1h1h 30s1m 1s1d; do
  train 2 "'--max-time' expected .* from larger to smaller units, but got '$time'" --epochs=1 --max-time=$time
done

# What fits of another model, with more classes.
sed 's/\<10x128xf32/12x128xf32/g; s/<10xf32>/<12xf32>/g; s/32x10xf32/32x12xf32/g
  s/fc0\.b/fc0.bias/' "$digits/mlp.mlir" >wider.mlir
model=wider.mlir compile wider
expect 0 "gives 3 of 6 .*missing: 'fc0.bias'; of another shape or type: 'fc2.w' \
\(expected f32 \[12, 128\] but got f32 \[10, 128\]\), 'fc2.b'.*; extra: 'fc0.b'" \
  "$bin/tandem-run" train wider.tdm --steps=1 --init-from=whole.st --seed=0 \
  --data x=@"$data/train_images.npy" --data labels=@"$data/train_labels.npy"
expect 2 'expected something that fits' "$bin/tandem-run" train wider.tdm \
  --steps=1 --init-from=part-cnn.st --seed=0 --data x=@"$data/train_images.npy" \
  --data labels=@"$data/train_labels.npy"
train 2 'exclude' --steps=1 --init-from=whole.st --params=whole.st

# Options from a file; those of the command line win.
cat >run.toml <<TOML
# The digits.
steps = 7
seed = 3
no-shuffle = false
save = "config.st" # replaced by the next one
[data]
x = "@$data/train_images.npy"
labels = '@$data/train_labels.npy'
TOML
sed '/data/,$d' run.toml >lists.toml
cat >>lists.toml <<TOML
data = ["x=@$data/train_images.npy", # two
  "labels=@$data/train_labels.npy"]
TOML
configured() { # CODE TEXT FILE [options]
  expect "$1" "$2" "$bin/tandem-run" train mlp.tdm --config="$3" "${@:4}"
}
train 0 '' --steps=7 --seed=3 --save=plain.st
configured 0 '' run.toml
cmp plain.st config.st || fail 'options of a file do something else'
configured 0 '' lists.toml --save=lists.st
cmp plain.st lists.st || fail 'a list does something else'
configured 0 "step 44/44 " run.toml --epochs=1 --force --seed 4 # not 7 steps
# Also where it excludes what the file says.
{ echo 'params = "plain.st"'; cat run.toml; } >params.toml
configured 0 'step 9' params.toml --resume=plain.st --steps=2 --save=resumed.st
# A value may be a word of its own: it was not seen that it excludes the data.
printf '[data]\nx = "@%s/train_images.npy"\nlabels = "@%s/train_labels.npy"\n' \
  "$2/digits/data" "$2/digits/data" >data.toml
configured 0 'accuracy' data.toml --params=plain.st --steps 0 "${evaluates[@]}"
# What is wrong is said at its line and column, all of it at once.
printf 'seed = 1\nstepz = 3\n[data]\nx = [1]\n' >wrong.toml
configured 2 "wrong.toml:2:9: there is no option 'stepz' here \(did you mean \
'steps'.*; wrong.toml:4:5: expected a text or a number for 'x'" wrong.toml
printf 'steps = 3\nseed 4\n' >wrong.toml
configured 2 'wrong.toml:2:[0-9]+: .*expected' wrong.toml
printf 'steps = 3\nsteps = 4\n' >wrong.toml
configured 2 'wrong.toml:2:[0-9]+: .*redefine' wrong.toml
printf 'steps = true\nno-shuffle = 1\nsave = 1979-05-27\nlog = ["a", "b"]\n' \
  >wrong.toml
configured 2 "1:9: 'steps' is no flag.*2:14: expected true or false for \
'no-shuffle'.*3:8: expected a text.*4:7: 'log' has one value" wrong.toml
# A value that the option refuses was not said to be the file's.
printf 'seed = 1\nsteps = "three"\non-nan = "stopp"\n[data]\nx = "@a.npy"\n' >wrong.toml
configured 2 "wrong.toml:2:9: option '--steps' expected an integer from 0 to .* but got 'three'; wrong.toml:3:10: option \
'--on-nan' expected stop, skip or report but got 'stopp' \(did you mean 'stop'" wrong.toml
# A path ended at its NUL.
printf 'log = "a\\u0000b"\n' >wrong.toml
configured 2 'wrong.toml:1:7: expected a text without NUL' wrong.toml
configured 1 'No such file' none.toml
{ echo 'steps = 3'; printf '['; printf 'a.%.0s' {1..100000}; echo 'b]'; } >deep.toml
configured 2 'deep.toml:2:1: expected at most 1000 dots' deep.toml

# What was resolved lies beside the checkpoint, and says the same training. It
# replaces what such a training wrote, and nothing else.
cat >hand.toml <<TOML
steps = 9
seed = 5
data.x = "@$data/train_images.npy"
data.labels = "@$data/train_labels.npy"
TOML
configured 0 '' hand.toml --steps=7 --save=kept.st --lr=1e-3 --no-shuffle
cp kept.st first.st
grep -qx 'steps = 7' kept.st.toml || fail "resolved: $(cat kept.st.toml)"
grep -q 'config' kept.st.toml && fail 'a file of options names another'
configured 0 '' kept.st.toml
cmp first.st kept.st || fail 'resolved options do something else'
cp kept.st.toml kept.toml
configured 0 '' kept.toml
cmp kept.st.toml kept.toml || fail 'resolved options are resolved otherwise'
echo 'seed = 1' >kept.st.toml
configured 2 "would replace 'kept.st.toml': expected a training's options" \
  kept.toml
grep -qx 'seed = 1' kept.st.toml || fail "somebody's options are gone"
# Nor where it is what the command reads.
configured 2 "would replace 'kept.st.toml'" kept.st.toml --save=kept.st --steps=1 \
  --data x=@"$data/train_images.npy" --data labels=@"$data/train_labels.npy"
grep -qx 'seed = 1' kept.st.toml || fail 'the options that were read are gone'
# A path of more than 1000 dots was written as no file may have them.
dotted=/$(printf './%.0s' {1..1100})
configured 0 '' hand.toml --steps=2 --save=dotted.st \
  --data x=@"$dotted${data#/}/train_images.npy" \
  --data labels=@"$data/train_labels.npy"
cp dotted.st first.st
configured 0 '' dotted.st.toml
cmp first.st dotted.st || fail 'options with many dots do something else'
configured 0 '' kept.toml --save=/dev/null
[ ! -e /dev/null.toml ] || fail 'options beside a device'

# Files of tokens: windows of the model's length, and the next token of each.
cat >tokens.json <<'M'
{"format": "tandem-graph", "version": 1, "name": "tokens",
 "inputs": [{"name": "x", "type": "i64", "shape": [4, 8], "high": 16},
  {"name": "y", "type": "i64", "shape": [4, 8], "high": 16}],
 "params": [{"name": "table", "type": "f32", "shape": [16, 16], "init": {"kind": "uniform", "low": -0.1, "high": 0.1}}],
 "nodes": [
  {"op": "take", "inputs": ["table", "x"], "outputs": ["logits"]},
  {"op": "cross_entropy", "inputs": ["logits", "y"], "outputs": ["loss"]}],
 "outputs": [{"name": "loss", "value": "loss"}]}
M
model=tokens.json compile tokens
bytes=
for ((i = 0; i < 200; ++i)); do
  printf -v byte '\\x%02x\\x00' $((i * i % 13))
  bytes+=$byte
done
printf "$bytes" >t.bin
for shift in 0 1; do # 24 windows: of 199 tokens that have a next one
  awk -v s=$shift 'BEGIN { for (i = 0; i < 192; ++i)
    printf "%d%s", (i + s) * (i + s) % 13, i % 8 == 7 ? "\n" : "," }' >t$shift.csv
done
tokens() { # CODE TEXT [options]
  expect "$1" "$2" "$bin/tandem-run" train tokens.tdm --epochs=3 --seed=0 "${@:3}"
}
tokens 0 '' --data x=@t.bin:u16 --data y=@t.bin:u16,shift=1 --log=bin.log
tokens 0 '' --data x=@t0.csv:header=no --data y=@t1.csv:header=no --log=csv.log
losses() { grep -oE '"loss": ?[-+.e0-9]+' "$1"; }
cmp <(losses bin.log) <(losses csv.log) || fail 'tokens are others'
[ "$(losses bin.log | wc -l)" = 18 ] || fail 'other windows'
tokens 2 "expected ':u16' or ':u32'" --data x=@t.bin --data y=@t.bin:u8
printf x >>t.bin
tokens 2 'expected tokens of 2 bytes, but the file has 401' --data x=@t.bin:u16 \
  --data y=@t.bin:u16
printf '\x11\x01' >large.bin
for i in 1 2 3 4 5 6; do cat large.bin large.bin large.bin >l; mv l large.bin; done
tokens 2 "expected an integer from 0 to 15.* is 273" --data x=@large.bin:u16 \
  --data y=@large.bin:u16,shift=1

# The log as a table, which a resumed training continues.
train 0 '' --steps=44 --seed=0 --log=log.csv "${evaluates[@]}" --save=csv.st
train 0 '' --steps=3 --resume=csv.st --log=log.csv "${evaluates[@]}"
head -n 1 log.csv | grep -qx 'epoch,step,loss,lr,.*,eval.loss,eval.accuracy' ||
  fail "columns: $(head -n 1 log.csv)"
[ "$(wc -l <log.csv)" = 50 ] || fail "$(wc -l <log.csv) lines"
awk -F, 'NR > 1 && NF != 11 { exit 1 }' log.csv || fail "cells: $(head -3 log.csv)"
train 2 'has other columns' --steps=1 --resume=csv.st --log=log.csv

# As a picture, with the steps of both calls, and as events, a file for each call.
train 0 '' --steps=44 --seed=0 --log=seen.jsonl "${evaluates[@]}" --save=seen.st \
  --metric=f1:logits,labels --plot=seen.svg --tensorboard=runs/seen
train 0 '' --steps=3 --resume=seen.st --log=seen.jsonl "${evaluates[@]}" \
  --metric=f1:logits,labels --plot=seen.svg --tensorboard=runs/seen
for name in loss eval.loss eval.accuracy eval.f1 lr; do
  grep -q ">$name<" seen.svg || fail "the picture has no $name"
done
[ "$(find runs/seen -name 'events.out.tfevents.*' | wc -l)" = 2 ] ||
  fail "events: $(ls runs/seen)"
for file in runs/seen/*; do # records of a version, 44 or 3 steps, and one more
  [ "$(grep -ao 'eval/f1' "$file" | wc -l)" = 1 ] || fail "$file has no eval/f1"
done
train 2 "--plot' needs|needs.*--log" --steps=1 --plot=no.svg
train 2 'expected a name as' --steps=1 --log=a.log --plot=no.png
train 2 'can be read again' --steps=1 --log=/dev/null --plot=no.svg
train 1 'it is a file|Not a directory|exists' --steps=1 --tensorboard=mlp.tdm
echo x >other.svg
train 2 "would replace 'other.svg'" --steps=1 --log=a.log --plot=other.svg
# Of a training that is interrupted, too.
"$bin/tandem-run" train mlp.tdm --data x=@"$data/train_images.npy" \
  --data labels=@"$data/train_labels.npy" --steps=1000000 --save=stopped.st \
  --log=stopped.log --plot=stopped.svg >stopped.txt 2>&1 &
stopped=$!
for ((turn = 0; turn < 600; ++turn)); do # until it trains, on a busy machine, too
  [ -s stopped.log ] && break
  sleep 0.1
done
kill -TERM $stopped
wait $stopped
grep -q 'interrupted at' stopped.txt || fail "not interrupted: $(tail -n 2 stopped.txt)"
grep -q '</svg>' stopped.svg || fail 'interrupted, it draws nothing'
# A metric of numbers that are all one is none, which is said.
awk 'BEGIN { for (r = 0; r < 360; ++r) print "1,1,1,1,1,1,1,1,1,1" }' >ones.csv
train 0 "the metric 'r2' is not defined by these rows" --steps=1 "${evaluates[@]}" \
  --eval t=@ones.csv:header=no --metric=r2:logits,t

# A schedule from a file, which is compiled in.
printf '0,0.5\n10,1\n20,0\n' >rates.csv
expect 0 '' "$bin/tandem" compile "$digits/mlp.mlir" -o rates.tdm \
  --optimizer=sgd:lr=0.25 --lr-schedule=table:@rates.csv
rm rates.csv
expect 0 '' "$bin/tandem-run" train rates.tdm --steps=22 --log=rates.log \
  --data x=@"$data/train_images.npy" --data labels=@"$data/train_labels.npy"
rates=$(grep -oE '"lr": [0-9.e-]+' rates.log | cut -d' ' -f2 |
  sed -n '1p;6p;11p;16p;22p' | xargs)
[ "$rates" = '0.125 0.1875 0.25 0.125 0' ] || fail "T08: rates $rates"
# After a warm-up that rises to the first part.
printf '0,0.5\n10,0\n' >rates.csv
expect 0 '' "$bin/tandem" compile "$digits/mlp.mlir" -o rates.tdm --force \
  --optimizer=sgd:lr=0.25 --lr-schedule=table:@rates.csv,warmup=4
expect 0 '' "$bin/tandem-run" train rates.tdm --steps=15 --log=rates.log \
  --data x=@"$data/train_images.npy" --data labels=@"$data/train_labels.npy"
rates=$(grep -oE '"lr": [0-9.e-]+' rates.log | cut -d' ' -f2 |
  sed -n '1p;3p;5p;10p;15p' | xargs)
[ "$rates" = '0 0.0625 0.125 0.0625 0' ] || fail "T08: rates $rates"
expect 2 "expected option 'warmup' to be" "$bin/tandem" compile \
  "$digits/mlp.mlir" -o no.tdm --optimizer=sgd --lr-schedule=table:@rates.csv,warmup=x
# A mark of UTF-8 in front made the first point a row of names.
printf '\xef\xbb\xbf0,0.5\n10,0\n' >rates.csv
expect 0 'wrote the artifact' "$bin/tandem" compile "$digits/mlp.mlir" \
  -o rates.tdm --force --optimizer=sgd --lr-schedule=table:@rates.csv
printf '0,1\n0,2\n' >rates.csv
expect 2 'rise from 0' "$bin/tandem" compile "$digits/mlp.mlir" -o no.tdm \
  --optimizer=sgd --lr-schedule=table:@rates.csv
printf '1\n2\n' >rates.csv
expect 2 'expected lines of UPDATES,PART' "$bin/tandem" compile \
  "$digits/mlp.mlir" -o no.tdm --optimizer=sgd --lr-schedule=table:@rates.csv
expect 1 'No such file' "$bin/tandem" compile "$digits/mlp.mlir" -o no.tdm \
  --optimizer=sgd --lr-schedule=table:@none.csv

# T14, T15: of batches of 1, 7 and 32 rows, which leave some over.
for batch in 1 7 32; do
  sed -E "s/32x64xf32/${batch}x64xf32/g; s/32x128xf32/${batch}x128xf32/g
    s/32x10xf32/${batch}x10xf32/g; s/<32xi64>/<${batch}xi64>/g" \
    "$digits/mlp.mlir" >batch.mlir
  model=batch.mlir compile "batch-$batch"
  expect 0 '' "$bin/tandem-run" train "batch-$batch.tdm" --steps=0 \
    --params whole.st "${evaluates[@]}" --json
  echo "$(number right) $(number counted) $(number loss)" >>metrics
done
awk '{ d = $3 - l; if (NR > 1 && ($1 != r || $2 != c || d * d > 1e-12)) bad = 1
       r = $1; c = $2; l = $3 } END { exit bad || NR != 3 || c != 360 }' metrics ||
  fail "T15: $(cat metrics)"

# A loss that is no mean over rows is of the first ones; the log did not say so.
cat >norm.json <<'M'
{"format": "tandem-graph", "version": 1, "name": "norm",
 "inputs": [{"name": "x", "type": "f32", "shape": [4, 2]}],
 "params": [{"name": "w", "type": "f32", "shape": [4, 2], "init": {"kind": "constant", "value": 0.5}}],
 "nodes": [{"op": "mul", "inputs": ["x", "w"], "outputs": ["z"]},
  {"op": "norm", "inputs": ["z"], "outputs": ["loss"]}],
 "outputs": [{"name": "loss", "value": "loss"}]}
M
model=norm.json compile norm
printf '%s\n' 2,1 4,3 6,5 8,7 9,1 2,2 >six.csv
expect 0 'of the first 4 of 6 rows' "$bin/tandem-run" train norm.tdm \
  --data x=@six.csv --eval x=@six.csv --steps=1 --log=norm.jsonl
grep -q '"outputs": {"loss": [0-9.]*}, "rows_of_outputs": {"loss": 4}' norm.jsonl ||
  fail "log: $(cat norm.jsonl)"

# T17: the row, its file, the parameter, the step.
awk 'BEGIN { for (r = 0; r < 1437; ++r) for (c = 0; c < 64; ++c)
  printf "%s%s", r == 1000 && c == 5 ? "nan" : (r * c) % 17,
    c == 63 ? "\n" : "," }' >nan.csv
nan=(--data x=@nan.csv:header=no --data labels=@"$data/train_labels.npy")
expect 1 "'x': element \[1000, 5\] of 'nan.csv' is nan" "$bin/tandem-run" \
  train mlp.tdm "${nan[@]}" --steps=44 --seed=0
expect 0 '' "$bin/tandem-run" train mlp.tdm "${nan[@]}" --steps=44 --seed=0 \
  --on-nan=report
grep -qE "the loss is nan at step [0-9]+.*row 1000 of --data 'x' \('nan.csv'\); \
parameters 'fc0" <<<"$out" || fail "T17: $out"
compile mlp --clip=norm:1 # its update is left out
expect 0 "row 1000 of --data 'x' \('nan.csv'\); outputs 'logits'; gradients of 'fc0" \
  "$bin/tandem-run" train mlp.tdm "${nan[@]}" --steps=44 --seed=0 \
  --on-nan=skip --save=skipped.st
finish

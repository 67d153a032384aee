#!/bin/bash
# recipes.sh BIN EXAMPLES - schedules, groups, frozen parameters and averages as a
# user meets them: in the log, in checkpoints, resumed (T05, T07, T08, T18).
source "$(dirname "$0")/expect.sh"
source "$(dirname "$0")/train-digits.sh"

eval=(--eval x=@"$data/test_images.npy" --eval labels=@"$data/test_labels.npy")
adamw=--optimizer=adamw:lr=2e-3

# T05: what is wrong with a group.
refused 2 "group: unknown option 'rate'" $adamw --group='.*w:rate=1'
refused 2 'expected a regular expression' $adamw --group='(w:lr=1'
refused 2 "--group: 'w' has no member: .*'fc0.w', 'fc0.b'" $adamw --group='w:lr=1'
refused 2 'is of groups before it' $adamw --group='.*b:lr=1' --group='fc0.b:lr=2'
refused 2 'needs' --group='.*b:lr=1'
refused 2 "lr-schedule: unknown schedule 'cos'" $adamw --lr-schedule=cos
refused 2 "option 'total'" $adamw --lr-schedule=cosine
refused 2 'ema: expected a decay' $adamw --ema=1
refused 2 "unknown option 'begin'" $adamw --swa=begin=1
refused 2 'gradient-noise: expected a variance' $adamw --gradient-noise=1,2
refused 2 'needs' --centralize
# What does not fit the model is a wrong use, too, and no phase that failed.
grouped="--group: 'w' has no member"
refused 2 "$grouped" $adamw --group='w:lr=1'
grep -q 'phase' <<<"$out" && fail "a phase is said: $out"
refused 2 "--loss: optimizer 'sgd:lr=1' needs a loss of one element, but 'logits'" \
  --optimizer=sgd:lr=1 --loss=logits
# The least rate is one.
least="expected 'min', the least rate, to be at most 'lr', the rate"
refused 2 "--lr-schedule: $least \\(0.1\\), but got 5" --optimizer=sgd:lr=.1 \
  --lr-schedule=linear:total=10,min=5
refused 2 "--group: $least \\(0.01\\), but got 0.05" --optimizer=sgd:lr=.1 \
  --lr-schedule=linear:total=10,min=.05 --group='.*b:lr=.01'
refused 2 "--group: $least \\(0.1\\), but got 0.5" --optimizer=sgd:lr=.1 \
  --group='.*b:lr_schedule=cosine:total=10,min=.5'
compile least --optimizer=sgd:lr=.1 --lr-schedule=linear:total=10,min=.1 \
  --group='.*b:weight_decay=.1'
# What nothing that is trained would be changed by.
refused 2 '--centralize has no effect: .* no param that is trained has rows' \
  $adamw --freeze='[.]w' --centralize
compile centered $adamw --freeze='[.]b' --centralize
refused 2 '--lr-schedule has no effect: every param that is trained' \
  $adamw --lr-schedule=linear:total=9 --group='.*:lr_schedule=cosine:total=10'
compile scheduled $adamw --lr-schedule=linear:total=9 \
  --group='.*b:lr_schedule=cosine:total=10'
refused 2 "--optimizer: 'match_rms' has no effect: optimizer 'muon'" \
  --optimizer=muon:match_rms=true,matrices=false
compile ofgroup --optimizer=muon:match_rms=true,matrices=false \
  --group='fc0.w:matrices=true'
refused 2 '--batch-norm=per-rank has no effect: the model has no batch norm' \
  $adamw --mesh=data=2 --parallel=ddp --batch-norm=per-rank
refused 2 "unknown option '' of optimizer" --optimizer=adamw:,
[ "$(grep -o "unknown option ''" <<<"$out" | wc -l)" = 1 ] ||
  fail "the same is said twice: $out"
refused 2 "--group: '.*b' has no effect: optimizer 'muon' .* without 'momentum'" \
  --optimizer=muon --group='.*b:momentum=.5'
refused 2 "without 'momentum' and 'nesterov'" --optimizer=muon \
  --group='.*b:momentum=.5,nesterov=false'
compile grouped --optimizer=muon --group='.*w:momentum=.5' \
  --group='.*b:beta1=.5,momentum=.5'

# T08: the rate of each step is in the log and in the lines of progress, and goes
# on where a training stopped, as does the noise in gradients.
compile scheduled $adamw --lr-schedule=cosine:warmup=4,total=16,min=1e-4 \
  --group='.*b:weight_decay=0' --ema=0.5 --swa=start=4,every=2 \
  --gradient-noise=1e-6,gamma=0.5 --centralize
train 0 'lr 0.0005' scheduled --steps=20 --report-interval=1 --log=whole.log \
  --save=whole.st
[ "$(grep -oE '"lr": [^,]*' whole.log | sed -n '1p;5p;17p;20p' | tr '\n' ' ')" = \
  '"lr": 0 "lr": 0.002 "lr": 0.0001 "lr": 0.0001 ' ] ||
  fail "other rates: $(grep -oE '"lr": [^,]*' whole.log)"
train 0 '' scheduled --steps=10 --log=part.log --save=part.st
train 0 '' scheduled --steps=10 --log=part.log --resume=part.st --save=rest.st
cmp whole.st rest.st || fail 'a resumed training has other numbers'
diff <(losses whole.log) <(losses part.log) || fail 'other losses'

# T07: either average can be evaluated, while it is trained and afterwards, and
# none is read by a step.
train 0 '' scheduled --steps=20 --save=ema.st "${eval[@]}" --average=ema
cmp whole.st ema.st || fail 'evaluation by averages changed the training'
of() { grep -oE 'eval.loss = .*' <<<"$out"; }
during=$(of)
alone() { # [options]
  expect 0 'eval.loss' "$bin/tandem-run" train scheduled.tdm --steps=0 \
    "${eval[@]}" --params=whole.st "$@"
}
alone --average=ema
[ "$(of)" = "$during" ] || fail "of the file $(of), but $during in training"
alone
[ "$(of)" = "$during" ] && fail 'parameters are their averages'
alone --average=swa
[ "$(of)" = "$during" ] && fail 'both averages are one'
compile inference --inference
predict() { # FILE [options]
  local to=$1
  shift
  expect 0 '' "$bin/tandem-run" predict inference.tdm --params=whole.st \
    --data x=@"$data/test_images.npy" --output logits=@"$to" "$@"
}
predict plain.npy
predict ema.npy --average=ema
cmp -s plain.npy ema.npy && fail 'predict by averages gives the same'
compile plain $adamw
train 2 "no averages 'ema'" plain --steps=1 "${eval[@]}" --average=ema
train 0 '' plain --steps=5 --save=plain.st
expect 2 "has no averages 'ema'" "$bin/tandem-run" predict inference.tdm \
  --params=plain.st --data x=@"$data/test_images.npy" --output logits=@no.npy --average=ema

# A checkpoint without them goes on with a schedule and averages that begin.
train 0 "the schedule begins" scheduled --steps=2 --resume=plain.st
grep -q "lacks averages 'ema', which begin" <<<"$out" || fail "nothing: $out"

# T18: what is frozen keeps its bytes and has neither gradients nor states; later
# it is trained with states that begin.
expect 2 'freeze needs --loss' "$bin/tandem" compile "$2/onnx/digits.onnx" \
  -o no.tdm --dim=batch=64 --freeze=conv
refused 2 'matches no part' $adamw --freeze=fc7
refused 2 'leaves no param' $adamw --freeze=fc
compile frozen $adamw --freeze='^fc[01]\.'
expect 0 '' "$bin/tandem" inspect frozen.tdm
grep -qE 'adamw.[mv]:fc0' <<<"$out" && fail "states of what is frozen: $out"
train 0 '' frozen --steps=5 --save=frozen.st
train 0 "has no states of the optimizer for 'fc0.w', 'fc0.b', 'fc1.w', 'fc1.b'" \
  plain --steps=5 --resume=frozen.st --save=free.st
[ "$(grep -c 'begin anew' <<<"$out")" = 1 ] || fail "said more than once: $out"
train 0 '' plain --steps=5 --resume=free.st
grep -q 'begin anew' <<<"$out" && fail "said again: $out"
finish

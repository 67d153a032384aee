#!/bin/bash
# clipping.sh BIN EXAMPLES - --clip and --loss-scale as a user meets them: what
# they refuse, norm and scale in the log, and updates that are left out (T02, T03,
# T17, G07).
source "$(dirname "$0")/expect.sh"
source "$(dirname "$0")/train-digits.sh"
trains=(--seed 0)

for wrong in norm:-1 norm:0 norm:nan norm:inf norm:0x1 norm:1e39 value:-0.5; do
  refused 2 'followed by a number from' --optimizer=sgd --clip=$wrong
done
for wrong in 1.0 global:1 norm value:; do
  refused 2 'clip: expected' --optimizer=sgd --clip=$wrong
done
refused 2 "clip' needs '--optimizer'|--clip needs --optimizer" --clip=norm:1
refused 2 'inference|optimizer' --clip=norm:1 --inference

for wrong in 0 -1 nan inf 1e39 dynamic:init=0 dynamic:growth=0.5 dynamic:backoff=2 \
  dynamic:interval=0 dynamic:interval=1.5 dynamic:rate=2 dynamic: auto; do
  refused 2 'loss-scale: ' --optimizer=sgd --loss-scale=$wrong
done
refused 2 'optimizer' --loss-scale=dynamic

# A norm that clips nothing changes no loss, and every step has it in the log.
compile plain --optimizer=adamw:lr=2e-3
compile clipped --optimizer=adamw:lr=2e-3 --clip=norm:1e6
train 0 '' plain --steps=20 --log=plain.log
train 0 '' clipped --steps=20 --log=clipped.log --save=clipped.st
cmp <(losses plain.log) <(losses clipped.log) || fail 'the losses differ'
[ "$(grep -c '"grad_norm": [0-9]' clipped.log)" = 20 ] || fail 'no norms'
grep -q grad_norm plain.log && fail 'a norm that nobody asked for'

train 2 'compile with --clip=norm' plain --steps=1 --on-nan=skip

# A rate that makes numbers overflow: the updates that would ruin parameters
# are left out, counted and said, and what is saved is finite.
compile wild --optimizer=sgd:lr=1e6 --clip=norm:1e30
train 1 'the loss is' wild --steps=20 --save=stopped.st
train 0 'updates were left out' wild --steps=20 --on-nan=skip --log=wild.log \
  --save=wild.st
grep -q 'its update is left out' <<<"$out" || fail "nothing said: $out"
grep -q '"skipped": true' wild.log || fail 'no skipped step in the log'

# A scale that is a power of two changes no loss; it is in the log and resumed.
compile scaled --optimizer=adamw:lr=2e-3 --loss-scale=dynamic:interval=15
train 0 '' scaled --steps=20 --log=scaled.log --save=scaled.st
cmp <(losses plain.log) <(losses scaled.log) || fail 'scaled losses differ'
grep -q '"loss_scale": 131072' scaled.log || fail 'no scale in the log'
train 0 '' scaled --steps=12 --save=part.st
train 0 '' scaled --steps=8 --resume=part.st --save=rest.st
cmp scaled.st rest.st || fail 'a resumed training has another scale'

# A checkpoint of an artifact that does not clip goes on in one that does.
train 0 '' plain --steps=5 --save=plain.st
train 0 '' clipped --steps=5 --resume=plain.st --log=resumed.log
finish

#!/bin/bash
# accumulate.sh BIN EXAMPLES - --accumulate as a user meets it: one update for K
# batches, one for the rest of a pass, and a training that goes on in the middle
# of an accumulation has the bits of the undisturbed one (T04, T09).
source "$(dirname "$0")/expect.sh"
source "$(dirname "$0")/train-digits.sh"

refused 2 'optimizer' --accumulate
compile plain --optimizer=adamw:lr=2e-3
compile sums --optimizer=adamw:lr=2e-3 --accumulate --clip=norm:100
train 2 'compile with --accumulate' plain --steps=1 --accumulate=2
train 2 'accumulate' sums --steps=1 --accumulate=0
expect 0 '^accumulate ' "$bin/tandem-run" inspect sums.tdm

# One batch for an update is what there was before.
train 0 '' plain --steps=50 --seed=0 --log=plain.log
train 0 '' sums --steps=50 --seed=0 --accumulate=1 --log=one.log
cmp <(losses plain.log) <(losses one.log) || fail 'the losses differ'

# The low copies of weights that accumulate and step share, made where an update
# was, are those that a step without accumulation casts for itself: also behind
# evaluations of averages, for which weights are set and set back.
for kind in '' --accumulate; do
  compile "low$kind" --optimizer=adamw:lr=2e-3 --amp=bf16 --ema=0.9 $kind
  train 0 '' "low$kind" --steps=50 --seed=0 --log="low$kind.log" \
    --save="low$kind.st" --save-every=7 --average=ema --eval-every=1 \
    --eval x=@"$data/test_images.npy" --eval labels=@"$data/test_labels.npy"
done
expect 0 'prepared ' "$bin/tandem-run" inspect low--accumulate.tdm
cmp <(losses low.log) <(losses low--accumulate.log) || fail 'the losses differ'

# 44 batches are a pass: eight updates of five, and one of four.
train 0 '' sums --epochs=1 --seed=0 --accumulate=5 --log=five.log
norms=$(grep -n grad_norm five.log | cut -d: -f1 | tr '\n' ' ')
[ "$norms" = '5 10 15 20 25 30 35 40 44 ' ] || fail "updates after $norms"

# A schedule has made no rate before the first update: the log's lines up to it
# named the one that the artifact was compiled with.
compile warm --optimizer=adamw:lr=2e-3 --accumulate \
  --lr-schedule=constant:warmup=10
train 0 '' warm --steps=8 --seed=0 --accumulate=4 --log=warm.jsonl
rates=$(grep -oE '"lr": [^,]*' warm.jsonl | tr -d '\n')
[ "$(grep -c '"lr"' warm.jsonl)" = 5 ] || fail "rates before an update: $rates"
tail -1 warm.jsonl | grep -q '"lr": 0.0002' || fail "rates $rates"
train 0 '' warm --steps=8 --seed=0 --accumulate=4 --log=warm.csv
[ "$(sed -n 4p warm.csv | cut -d, -f4)" = "" ] || fail 'a rate in the table'

# In the middle of an accumulation.
train 0 '' sums --steps=53 --seed=0 --accumulate=5 --save=whole.st
train 0 '2 batches wait for an update' sums --steps=7 --seed=0 --accumulate=5 \
  --save=part.st
train 0 '' sums --steps=46 --resume=part.st --accumulate=5 --save=rest.st
cmp whole.st rest.st || fail 'a resumed training has other bits'

grep -q 'accumulate' <<<"$out" && fail "as it was: $out"
# Another number of batches is said, and what becomes of those that wait.
train 0 "'part.st' was trained with --accumulate=5 but got 3; the 2 batches that wait for an update" \
  sums --steps=2 --resume=part.st --accumulate=3
train 0 'with --accumulate=5 but got 1; the 2 batches' sums --steps=1 \
  --resume=part.st
train 0 '' sums --steps=5 --seed=0 --accumulate=5 --save=even.st
train 0 'with --accumulate=5 but got 2$' sums --steps=1 --accumulate=2 \
  --resume=even.st
train 2 'no sums for the 2 batches that wait .*; --force goes on' plain \
  --steps=1 --resume=part.st
train 0 'no sums for the 2 batches that wait' plain --steps=1 \
  --resume=part.st --force
# A checkpoint of before does not say.
sed 's/tandem\.accumulate/tandem.xccumulate/' part.st >before.st
train 0 '' sums --steps=2 --resume=before.st --accumulate=3 --force
grep -q 'with --accumulate' <<<"$out" && fail "of before: $out"
sed 's/"tandem\.accumulate":"5"/"tandem.accumulate":"x"/' part.st >bad.st
train 2 "'tandem.accumulate': expected an integer" sums --steps=2 \
  --resume=bad.st --accumulate=3

# A checkpoint without sums goes on with sums of nothing.
train 0 '' plain --steps=5 --seed=0 --save=plain.st
train 0 'with --accumulate=1 but got 2$' sums --steps=5 --resume=plain.st \
  --accumulate=2
finish

#!/bin/bash
# histograms.sh BIN EXAMPLES - `train --histograms`: parameters, gradients and
# activations counted again from what other commands give, the steps that are
# looked at, and that what is trained does not change.
source "$(dirname "$0")/expect.sh"
bin=$1
model=$2/digits/mlp.mlir
check=$(realpath "$(dirname "$0")")/histograms.py
if ! command -v python3 >/dev/null; then
  echo 'skipped: python3 is not installed'
  exit 77
fi
cd "$work" || exit 1
again() {
  python3 "$check" "$@" || fail "histograms.py $*"
}

again data
expect 0 '' "$bin/tandem" compile "$model" -o a.tdm --optimizer=momentum:lr=0.1 \
  --effort=0
train=("$bin/tandem-run" train a.tdm --data x=@x.npy --data labels=@y.npy
  --no-shuffle)

# After a step that moves nothing the parameters are the first ones, and the
# velocity is the gradient.
expect 0 '' "${train[@]}" --steps=1 --lr=0 --save=first.safetensors
expect 0 '' "$bin/tandem-run" run a.tdm --program=forward --input x=@x32.npy \
  --input labels=@y32.npy --output logits=@logits.npy
expect 0 '' "${train[@]}" --steps=7 --histograms=. --histograms-every=3 \
  --log=h.jsonl --tensorboard=events --save=with.safetensors
again steps h.jsonl 1 3 6
for name in fc0.w fc0.b fc2.w; do
  again numbers h.jsonl "param/$name" "first.safetensors:$name"
  again numbers h.jsonl "grad/$name" \
    "first.safetensors:momentum.velocity:$name"
done
again numbers h.jsonl activation/logits logits.npy
grep -q '"activation/relu.0": {"count": 4096, "nonfinite": 0, "min": 0,' h.jsonl ||
  fail 'what is saved is no activation'
again events events h.jsonl

# Others see nothing of it: neither the training, whose programs draw numbers,
# nor who goes on with it.
expect 0 '' "$bin/tandem" compile "$model" -o m.tdm --optimizer=adamw:lr=1e-3 \
  --mixup=x,labels:alpha=0.4 --clip=norm:1 --effort=0
for watch in no yes; do
  more=()
  [ "$watch" = yes ] && more=(--histograms='^(grad|activation)/'
    --histograms-every=1 --log=m.jsonl)
  expect 0 '' "$bin/tandem-run" train m.tdm --data x=@x.npy --data labels=@y.npy \
    --epochs=2 --save="$watch.safetensors" "${more[@]}"
done
cmp <("$bin/tandem-run" inspect no.safetensors) \
  <("$bin/tandem-run" inspect yes.safetensors | sed 's/yes/no/') ||
  fail 'histograms change the training'
again steps m.jsonl 1 2 3 4 5 6
expect 0 '' "${train[@]}" --steps=5 --resume=with.safetensors \
  --save=with.safetensors --histograms=fc --histograms-every=4 --log=h.jsonl
again steps h.jsonl 1 3 6 8 12

# What is NaN is counted, and nothing else is.
expect 0 '' python3 -c "
text = open('x.npy', 'rb').read()
open('nan.npy', 'wb').write(text[:128] + b'\0\0\xc0\x7f' + text[132:])"
expect 0 '' "$bin/tandem-run" train a.tdm --data x=@nan.npy \
  --data labels=@y.npy --no-shuffle --steps=1 --on-nan=report \
  --histograms=logits --log=nan.jsonl --tensorboard=nan
grep -q '"activation/logits": {"count": 310, "nonfinite": 10,' nan.jsonl ||
  fail 'NaN is not counted'

# Words for what is not there.
expect 2 "matches no part of a name .did you mean 'fc0.w'..: there are 'activation/add.2'" \
  "${train[@]}" --steps=1 --histograms=fc9.w --log=n.jsonl
expect 2 "expected an extended regular expression, but got '.': Unmatched" \
  "${train[@]}" --steps=1 --histograms='(' --log=n.jsonl
expect 2 'histograms needs --log or --tensorboard or --dashboard' \
  "${train[@]}" --steps=1 --histograms=.
expect 0 "a table has no histograms: they are not in 'n.csv'" \
  "${train[@]}" --steps=1 --histograms=. --log=n.csv
[ "$(wc -l <n.csv)" = 2 ] || fail 'a table has histograms'
finish

#!/bin/bash
# torch.sh BIN EXAMPLES FIXTURES - archives of torch.export as a user meets them:
# sizes that are not given yet, and what is random.
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem
fixtures=$3
cd "$work" || exit 1
cp "$fixtures"/{cnn,random}.pt2 "$fixtures"/random.safetensors .

# Sizes that are symbols are shown, with what can be given for them.
expect 0 '^input +x +float32\[s77, 1, 8, 8\]$' "$tandem" inspect cnn.pt2
for line in '^output +pooled +float32\[s77, 4, 4, 4\]$' \
  '^6 parameters, 4 buffers$' \
  "^dimension +s77 +dimension 0 of 'x': 4 when it was exported, at least 2$" \
  '--dim=s77=N$'; do
  grep -qE -- "$line" <<<"$out" || fail "no line $line: $out"
done
expect 0 '^input +x +f32\[6, 1, 8, 8\]' "$tandem" inspect cnn.pt2 --dim=s77=6
expect 2 "has a dimension of no fixed size; give it with --dim=s77=N" \
  "$tandem" inspect cnn.pt2 --json
expect 2 "no dimension of this name .did you mean 's77'" \
  "$tandem" inspect cnn.pt2 --dim=s7=6
expect 2 'dimension 0: 4 when it was exported, at least 2' \
  "$tandem" compile cnn.pt2 -o x.tdm

# Adapters are not in the archive: --params of the weights is refused, and what
# takes them is said.
expect 0 "note: .*'train --init-from=F' takes the file" "$tandem" compile \
  cnn.pt2 -o a.tdm --dim=s77=6 --loss=loss --optimizer=sgd --lora=head:rank=1
expect 0 '^wrote 10 weights' "$tandem" compile cnn.pt2 -o b.tdm --dim=s77=6
grep -q 'init-from' <<<"$out" && fail "a note without adapters: $out"

# Each step draws another order, the same for the same seed.
expect 0 '' "$tandem" compile random.pt2 -o r.tdm --loss=loss --optimizer=sgd:lr=0
draw() {
  expect 0 '' "$tandem" run r.tdm --program=forward --params r.safetensors \
    --input "x=@random.safetensors:in.x" --seed "$1" \
    --output "random_order=@$2.npy"
}
draw 1 a
draw 1 b
draw 2 c
cmp a.npy b.npy || fail "the same seed gives another order"
cmp -s a.npy c.npy && fail "another seed gives the same order"
finish

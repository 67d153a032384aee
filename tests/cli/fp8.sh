#!/bin/bash
# fp8.sh BIN EXAMPLES - --fp8 as a user meets it: what it refuses, what it says
# of the target, what a training keeps and resumes, what is saved (T01).
source "$(dirname "$0")/expect.sh"
source "$(dirname "$0")/train-digits.sh"

adamw=--optimizer=adamw:lr=2e-3
refused 2 '--fp8: expected REGEX\[' --fp8='w:'
refused 2 '--fp8: expected a regular expression' --fp8='(w'
refused 2 "unknown option 'history' ?.*known are 'amax_history_len', 'margin'" \
  --fp8='w:history=4'
refused 2 "unknown option 'margim' \\(did you mean 'margin'\\?\\)" \
  --fp8='w:margim=4'
refused 2 "option 'margin' is given twice" --fp8='w:margin=1,margin=1'
refused 2 "amax_history_len to be from 1 to 65536, but got '0'" \
  --fp8='w:amax_history_len=0'
refused 2 "amax_history_len to be from 1 to 65536, but got '65537'" \
  --fp8='w:amax_history_len=65537'
refused 2 "margin to be from 0 to 16, but got '17'" --fp8='w:margin=17'
refused 2 "'nothing' matches no weight that is the right factor.*'fc0.w'" \
  --fp8=nothing
refused 2 "b' matches no weight that is the right factor" --fp8='[.]b'
refused 2 '--fp8.*--order=2|--order=2.*--fp8' --fp8=w --order=2
refused 2 '--fp8.*--mesh|--mesh.*--fp8' --fp8=w --mesh=data=2 --parallel=ddp
refused 2 '--fp8.*--precision=backward|--precision=backward.*--fp8' --fp8=w \
  --precision=backward:f32
expect 3 '--fp8: .* products are of f32' \
  "$bin/tandem" check "$digits/mlp.mlir" --fp8=w

# A class of characters has colons.
refused 2 'matches no weight' --fp8='[[:digit:]]x'
compile fp8 $adamw --fp8='w:amax_history_len=4'
grep -qE "remark: --fp8: 3 products have .* 'cpu' multiplies f8 values in f32" \
  <<<"$out" || fail "no remark: $out"
expect 0 'linear +f8E4M3FN +.* f32: exact, but slower' \
  "$bin/tandem" inspect "$digits/mlp.mlir" --fp8=w --types
! grep -q custom_vjp <<<"$out" || fail 'what stands in a product is shown'
expect 0 '3 ops in f8E4M3FN' cat <(printf '%s' "$out")

# Resumed in the middle, to the bit, with all histories.
train 0 '' fp8 --steps=12 --seed=0 --log=whole.log --save=whole.st
train 0 '' fp8 --steps=6 --seed=0 --log=part.log --save=part.st
train 0 '' fp8 --steps=6 --log=part.log --resume=part.st --save=rest.st
cmp whole.st rest.st || fail 'a resumed training has other numbers'
diff <(losses whole.log) <(losses part.log) || fail 'other losses'
expect 0 'fp8[.]grad:fc1[.]w' "$bin/tandem-run" inspect whole.st
expect 0 'fp8[.]x:fc0[.]w' "$bin/tandem-run" inspect whole.st

# Evaluation on the way changes nothing; a checkpoint of f32 begins one.
train 0 '' fp8 --steps=12 --seed=0 --save=seen.st --eval-every=3 \
  --eval x=@"$data/test_images.npy" --eval labels=@"$data/test_labels.npy"
cmp whole.st seen.st || fail 'evaluation changed the training'
compile plain $adamw
train 0 '' plain --steps=6 --seed=0 --save=plain.st
train 0 "fp8[.]x:fc0[.]w" fp8 --steps=2 --init-from=plain.st --save=from.st

# What is saved has a byte an element.
expect 0 'f8E4M3FN\[' "$bin/tandem" inspect fp8.tdm
expect 0 'fp8[.]' "$bin/tandem" diff plain.tdm fp8.tdm
expect 0 '' "$bin/tandem" explain fp8.tdm --value=fp8.grad:fc1.w

# Tensor cores multiply the bytes: all three products of a weight, by the row
# that says so, at a rate of their own.
ada=("$digits/mlp.mlir" $adamw --fp8=w --target=cuda:sm_89)
expect 0 "'sm_89' multiplies f8 values by tensor cores" \
  "$bin/tandem" compile "${ada[@]}" --cubin=no -o ada.tdm
expect 0 '^matmul 32x[0-9]+xf8E4M3FN [0-9]+x[0-9]+xf8E4M3FN -> 32x[0-9]+ ' \
  "$bin/tandem" inspect "${ada[@]}" --methods
expect 0 '^matmul [0-9x]+f8E5M2 [0-9x]+f8E4M3FN -> ' cat <(printf '%s' "$out")
expect 0 '^  mma +[0-9.]+ +[0-9.]+  chosen$' cat <(printf '%s' "$out")
expect 0 '^8-bit products by mma.sync' "$bin/tandem" inspect ada.tdm --estimate
! grep -q '^products' <<<"$out" || fail 'products of other types are left'
expect 0 "'cuda' multiplies f8 values in f32" "$bin/tandem" compile \
  "${ada[@]/sm_89/sm_80}" --cubin=no -o ampere.tdm
finish

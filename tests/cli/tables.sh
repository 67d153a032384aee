#!/bin/bash
# tables.sh BIN EXAMPLES FIXTURES - Parquet and Arrow as rows: the bits of the same rows in
# .npy files, in memory and streamed, also resumed in the middle of a pass; what is wrong is
# named. The files of FIXTURES are those that make-fixtures writes.
source "$(dirname "$0")/expect.sh"
bin=$1 f=$3
command -v python3 >/dev/null || { echo 'skipped: no python3'; exit 77; }
cd "$work" || exit 1
cp "$f"/*.parquet "$f"/*.arrow "$f"/*.feather .
# The same numbers as make-fixtures writes.
python3 - <<'DATA'
import struct
def save(path, kind, shape, numbers, letter):
    text = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, shape)
    text = text.ljust(117) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode())
        for row in numbers:
            file.write(struct.pack("<%d%s" % (len(row), letter), *row))
save("x.npy", "<f4", "(24, 4)", [[(3 * i + j) % 11 / 4 for j in range(4)] for i in range(24)], "f")
save("c.npy", "<f4", "(24, 4)", [[(3 * i + j) % 11 for j in range(4)] for i in range(24)], "f")
save("labels.npy", "<i8", "(24,)", [[i % 3] for i in range(24)], "q")
save("large.npy", "<f8", "(2112, 4096)", [[float(i * 7 % 251)] * 4096 for i in range(2112)], "d")
save("large-labels.npy", "<i8", "(2112,)", [[i % 3] for i in range(2112)], "q")
DATA
model() { # NAME WIDTH
  sed "s/WIDTH/$2/g" >"$1.mlir" <<'MODEL'
module attributes {tandem.phase = "capture"} {
  func.func @graph(%x: tensor<8xWIDTHxf32> {tandem.role = #tandem.role<input "x">},
                   %labels: tensor<8xi64> {tandem.role = #tandem.role<input "labels">},
                   %w: tensor<3xWIDTHxf32> {tandem.role = #tandem.role<param "w" {init = {kind = "constant", value = 0.0 : f64}, requires_grad}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">},
          tensor<8x3xf32> {tandem.role = #tandem.role<output "logits">}) {
    %logits = tandem.linear %x, %w : (tensor<8xWIDTHxf32>, tensor<3xWIDTHxf32>) -> tensor<8x3xf32>
    %loss = tandem.cross_entropy %logits, %labels : tensor<8x3xf32>, tensor<8xi64> -> tensor<f32>
    return %loss, %logits : tensor<f32>, tensor<8x3xf32>
  }
}
MODEL
  expect 0 '' "$bin/tandem" compile "$1.mlir" -o "$1.tdm" --optimizer=sgd:lr=1e-5
}
model small 4
model large 4096
train() { # MODEL X LABELS [options]
  local model=$1 x=$2 labels=$3 seed=--seed=3
  shift 3
  [[ " $* " = *' --no-shuffle'* ]] && seed=--on-nan=stop
  "$bin/tandem-run" train "$model.tdm" --data "x=@$x" --data "labels=@$labels" $seed "$@"
}
losses() { grep -oE '"loss": ?[-+.e0-9]+' "$1"; }
# What a checkpoint has beside its header, in which data are told by other digests where they
# are streamed.
tensors() { tail -c +$(($(od -An -N8 -tu8 "$1") + 9)) "$1"; }
alike() { cmp -s <(tensors "$1") <(tensors "$2"); }
same() { # X LABELS [NPY]: trains as NPY does, to the bit
  expect 0 '' train small "$1" "$2" --epochs=2 --log=table.log --save=table.st
  cmp -s table.st "${3-x}.st" && cmp -s <(losses table.log) <(losses "${3-x}.log") ||
    fail "$1, $2: other bits than ${3-x}.npy"
  rm table.log table.st
}
for name in x c; do
  expect 0 '' train small $name.npy labels.npy --epochs=2 --log=$name.log --save=$name.st
done

# How many rows there are is read of the smaller column.
same lists.arrow:x labels.npy
# Files, types of numbers and of lists; columns by name, number and range.
for file in all.parquet all.arrow all.feather 'part-{0,1}.parquet' 'part-{0..1}.parquet'; do
  same "$file" "$file"
done
for column in lengths square large; do same all.parquet:$column all.arrow:labels; done
for column in uint8 int16 int32 uint32 uint64; do same all.feather:x all.parquet:$column; done
same all.parquet:c0,c1,c2,c3 all.parquet:labels c
same all.arrow:c0..c3 all.feather:2 c
same all.arrow:x 'part-{0,1}.parquet:labels'
expect 0 '' train small all.parquet labels.npy --epochs=1
# A command that takes one batch, and one that predicts.
expect 0 '' "$bin/tandem-run" predict small.tdm --params=x.st --data x=@all.arrow --output logits=@a.npy
expect 0 '' "$bin/tandem-run" predict small.tdm --params=x.st --data x=@x.npy --output logits=@b.npy
cmp a.npy b.npy || fail 'tables are predicted otherwise'
# Shares are of the same rows, and weights may come out of a table.
expect 0 '' train small x.npy labels.npy --epochs=1 --shard=1/2 --save=one.st
expect 0 '' train small all.parquet all.parquet --epochs=1 --shard=1/2 --save=two.st
cmp one.st two.st || fail '--shard takes other rows'
expect 0 '' train small x.npy labels.npy --epochs=1 --weights=@labels.npy --save=one.st --force
expect 0 '' train small all.parquet all.parquet --epochs=1 --weights=@all.parquet:labels --save=two.st --force
cmp one.st two.st || fail '--weights draws other rows'
# The wheel's libraries lie where the sandbox does not look.
output=$(train small all.parquet all.feather --epochs=2 --sandbox --save=boxed.st 2>&1)
if ! grep -q 'sandbox needs' <<<"$output"; then
  cmp boxed.st x.st || fail "with --sandbox: $output"
fi

# More than 64 MiB stay in the files.
big='large-{0,1}.parquet'
expect 0 '' train large large.npy large-labels.npy --epochs=2 --log=npy.log --save=npy.st
expect 0 'waited for data' train large "$big" "$big" --epochs=2 --log=big.log --save=big.st
alike npy.st big.st && cmp -s <(losses npy.log) <(losses big.log) || fail 'streamed rows train otherwise'
expect 0 'waited for data' train large "$big" "$big" --steps=100 --save=part.st
expect 0 '' train large "$big" "$big" --epochs=2 --resume=part.st --save=part.st
cmp part.st big.st || fail 'what was resumed has other bits'
expect 0 "was trained on other data: the rows of 'labels', 'x' differ" train large 'large-{1,0}.parquet' 'large-{1,0}.parquet' \
  --steps=1 --resume=part.st --save=no.st
# Other numbers in a file of Arrow of equal size, whose end says nothing of them. Its batch is larger than 64 MiB.
python3 - "$f/frame" <<'DATA'
import sys
frame, numbers = open(sys.argv[1], "rb").read(), bytes(2112 * 4096 * 8)
open("still.arrow", "wb").write(frame.replace(b"NUMBERS", numbers))
DATA
expect 0 '' train large still.arrow:x large-labels.npy --steps=5 --save=still.st
expect 0 '' train large still.arrow:x large-labels.npy --steps=6 --resume=still.st --save=still.st
[[ $out != *'other data'* ]] || fail "equal rows are said to differ: $out"
python3 - <<'DATA'
with open("still.arrow", "r+b") as file:
    file.seek(30 << 20)
    file.write(bytes([1]) * (4 << 20))
DATA
expect 0 "was trained on other data: the rows of 'x' differ" train large still.arrow:x large-labels.npy --steps=7 \
  --resume=still.st --save=no.st --force
# Where nothing is kept, of groups that are read again: the same bits.
expect 0 '' train large large.npy large-labels.npy --steps=20 --save=npy20.st
expect 0 '' env TMPDIR=/proc "$bin/tandem-run" train large.tdm --data "x=@$big" --data "labels=@$big" --seed=3 \
  --steps=20 --save=big20.st
alike npy20.st big20.st || fail 'rows that are not kept train otherwise'
# In the sandbox, too, they are kept in /tmp unless TMPDIR names a folder; it is said where that cannot be.
boxed() { # [VARIABLES]: what is said of rows that are kept
  output=$(env -u TMPDIR "$@" "$bin/tandem-run" train large.tdm --data "x=@$big" --data "labels=@$big" --seed=3 --steps=20 \
    --sandbox --save=boxed20.st --force 2>&1) || grep -q 'sandbox needs' <<<"$output" || fail "--sandbox, $*: $output"
  grep -q 'sandbox needs' <<<"$output" || alike npy20.st boxed20.st || fail "--sandbox, $*: rows train otherwise"
  grep 'are decoded in each pass' <<<"$output"
}
boxed && fail "with --sandbox: $output"
mkdir kept
boxed TMPDIR="$PWD/kept" && fail "with --sandbox and TMPDIR: $output"
# All of a folder with the home in it is not the artifact's to write.
boxed HOME=/tmp >said.txt
grep -q "decoded rows cannot be kept in '/tmp': Permission denied (TMPDIR names" said.txt || grep -q 'sandbox needs' <<<"$output" || fail "where /tmp is not allowed: $output"
# Memory is bounded: 64 MiB of groups, and what libraries have.
(ulimit -d 250000; train large "$big" "$big" --steps=60 --shuffle-buffer=100) >out.txt 2>&1 ||
  fail "with 250 MB: $(cat out.txt)"
for order in --shard=1/3 --shuffle-buffer=100 --no-shuffle; do
  expect 0 '' train large large.npy large-labels.npy --epochs=1 "$order" --save=npy-o.st --force
  expect 0 '' train large "$big" "$big" --epochs=1 "$order" --save=big-o.st --force
  alike npy-o.st big-o.st || fail "$order takes other rows"
done

# What is wrong.
refused() { # CODE TEXT X [LABELS]
  expect "$1" "$2" train small "$3" "${4-labels.npy}" --steps=1
}
refused 2 "all.parquet': column 'word': expected numbers, or lists of them, but it is of the type 'string'" all.parquet:word
refused 2 "all.arrow': column 'day': .* the type 'date32\[day\]'" all.arrow:c0,day
refused 2 "all.parquet': has no column 'nope'; it has 'x', 'labels'" all.parquet:nope
refused 2 "column 'missing', row 13: expected a number, but it is null" all.parquet:missing
refused 2 "column 'missing', row 13: expected a number, but it is null" all.arrow:c0,missing
refused 2 "column 'holes', row 11: expected a number, but it is null" all.feather:holes
refused 2 "column 'ragged', row 17: expected a list of 4 values, as in the first row, but it has 3" all.parquet:ragged
refused 2 "column 'ragged', row 17: " all.arrow:ragged
refused 2 "column 'huge', row 5: 9007199254740993 is an integer that f64 does not hold" all.parquet:c0,huge,c1,c2
refused 2 "other-1.parquet': column 'labels': expected the type 'int64', as in 'part-0.parquet', but it is 'int32'" \
  x.npy '{part-0,other-1}.parquet'
refused 2 "part-0.parquet': column 'flag': expected one, as in 'all.parquet', but it has 0" x.npy '{all,part-0}.parquet:flag'
refused 2 'expected f32 \[N, 4\] but got f32 \[24, 2\]' all.parquet:c0,c0
refused 2 "expected 24 rows, as 'x' has, but got 10" all.parquet part-0.parquet
refused 2 'expected at least one row' empty.parquet empty.parquet
refused 2 "lists.arrow': " lists.arrow:wide
for column in x x,y; do # 2^58 rows of nothing: for years in a loop
  expect 2 "void.arrow': column 'x': expected at least one number in a row, but its lists have \[0\]" timeout 60 \
    "$bin/tandem-run" train small.tdm --data "x=@void.arrow:$column" --data labels=@labels.npy --seed=3 --steps=1
done
refused 2 "stream.arrow': it is a stream of Arrow: expected a file" stream.arrow
refused 1 "cannot read 'part-2.parquet'" 'part-{0..2}.parquet'
refused 2 "'part-\{0.parquet': expected braces" 'part-{0.parquet'
expect 2 "expected '@FILE' with a file named" "$bin/tandem-run" predict small.tdm --params=x.st --data x=@x.npy \
  --output logits=@out.parquet
cp x.npy npy.parquet
refused 2 "npy.parquet': it is neither Parquet nor a file of Arrow" npy.parquet
for file in all.parquet all.arrow all.feather; do
  for size in 3 7 100 5000; do
    head -c $size $file >cut.${file#*.}
    refused 2 "cut\..*': " cut.${file#*.}
  done
done
# A group that is damaged ends the training, which is saved.
python3 - <<'DATA'
data = bytearray(open("large-1.parquet", "rb").read())
for i in range(len(data) // 3, len(data) // 3 + 60):
    data[i] ^= 0x5a
open("hurt-1.parquet", "wb").write(data)
DATA
ln -s large-0.parquet hurt-0.parquet
expect 2 "'hurt-1.parquet': .*; saved to 'hurt.st'; to go on" train large 'hurt-{0,1}.parquet:x' large-labels.npy \
  --epochs=1 --no-shuffle --save=hurt.st
[ -s hurt.st ] || fail 'hurt.st was not saved'
finish

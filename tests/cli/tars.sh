#!/bin/bash
# tars.sh BIN - samples of tars as rows: the bits of the same rows in .npy files, in
# memory and streamed, also resumed in the middle of a pass; damaged tars are named.
source "$(dirname "$0")/expect.sh"
bin=$1 images=$(cd "$(dirname "$0")/../data/images" && pwd)
command -v python3 >/dev/null || { echo 'skipped: no python3'; exit 77; }
cd "$work" || exit 1
# 2112 samples of 32 KiB in three tars, 66 MiB, and the first 64 of them in another one;
# and the same rows in .npy files.
python3 - <<'DATA'
import io, struct, tarfile
def header(shape, kind="|u1"):
    text = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, shape)
    text = text.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()
def row(i):
    return (bytes((i * 7 + j) % 251 for j in range(64)) * 512)
def add(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))
def write(path, rows, form):
    with tarfile.open(path, "w", format=form) as tar:
        folder = tarfile.TarInfo("train")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for i in rows:
            name = "train/%s%05d" % ("long-" * (30 if i % 100 == 0 else 0), i)
            add(tar, name + ".cls", b"%d\n" % (i % 3))
            add(tar, name + ".x.npy", header("(32768,)") + row(i))
            add(tar, name + ".json", b"{}")
        add(tar, "train/.hidden", b"")
write("large-0.tar", range(0, 704), tarfile.PAX_FORMAT)
write("large-1.tar", range(704, 1408), tarfile.GNU_FORMAT)
write("large-2.tar", range(1408, 2112), tarfile.PAX_FORMAT)
write("small.tar", range(0, 64), tarfile.PAX_FORMAT)
for name, count in (("large", 2112), ("small", 64)):
    with open(name + ".npy", "wb") as file:
        file.write(header("(%d, 32768)" % count))
        for i in range(count):
            file.write(row(i))
    with open(name + "-labels.npy", "wb") as file:
        file.write(header("(%d,)" % count, "<i8"))
        file.write(b"".join(struct.pack("<q", i % 3) for i in range(count)))
DATA
cat >model.mlir <<'MODEL'
module attributes {tandem.phase = "capture"} {
  func.func @graph(%x: tensor<8x32768xf32> {tandem.role = #tandem.role<input "x">},
                   %labels: tensor<8xi64> {tandem.role = #tandem.role<input "labels">},
                   %w: tensor<3x32768xf32> {tandem.role = #tandem.role<param "w" {init = {kind = "constant", value = 0.0 : f64}, requires_grad}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">},
          tensor<8x3xf32> {tandem.role = #tandem.role<output "logits">}) {
    %logits = tandem.linear %x, %w : (tensor<8x32768xf32>, tensor<3x32768xf32>) -> tensor<8x3xf32>
    %loss = tandem.cross_entropy %logits, %labels : tensor<8x3xf32>, tensor<8xi64> -> tensor<f32>
    return %loss, %logits : tensor<f32>, tensor<8x3xf32>
  }
}
MODEL
expect 0 '' "$bin/tandem" compile model.mlir -o model.tdm --optimizer=sgd:lr=1e-5 --input=x:u8,scale=1/255
train() { # ROWS LABELS [options]
  local rows=$1 labels=$2
  shift 2
  "$bin/tandem-run" train model.tdm --data "x=@$rows" --data "labels=@$labels" --seed=3 "$@"
}
losses() { grep -oE '"loss": ?[-+.e0-9]+' "$1"; }
for size in small large; do
  tar=$size; [ $size = large ] && tar='large-{0..2}'
  expect 0 '' train $size.npy $size-labels.npy --epochs=2 --log=$size-npy.log --save=$size-npy.st
  expect 0 '' train "$tar.tar:x.npy" "$tar.tar:cls" --epochs=2 --log=$size-tar.log --save=$size-tar.st
  cmp -s <(losses $size-npy.log) <(losses $size-tar.log) || fail "$size: samples of tars train otherwise"
done
grep -q '"waited": ' large-tar.log || fail 'how long steps waited for data is not in the log'
grep -q '"waited": ' small-tar.log && fail 'rows in memory are not waited for'
# Resumed in the middle of a pass, and over its end.
expect 0 'waited for data' train 'large-{0..2}.tar:x.npy' 'large-{0..2}.tar:cls' --steps=100 --save=part.st
expect 0 '' train 'large-{0..2}.tar:x.npy' 'large-{0..2}.tar:cls' --epochs=2 --resume=part.st --save=part.st
cmp part.st large-tar.st || fail 'what was resumed has other bits'
# Nothing of the streamed rows is kept: the memory that a process may have for itself.
(ulimit -d 120000; train 'large-{0,1,2}.tar:x.npy' 'large-{0,1,2}.tar:cls' --steps=60) >out.txt 2>&1 ||
  fail "with 120 MB: $(cat out.txt)"
expect 0 '' "$bin/tandem-run" predict model.tdm --params=part.st --data 'x=@large-{0..2}.tar:x.npy' \
  --output logits=@tar.npy
expect 0 '' "$bin/tandem-run" predict model.tdm --params=part.st --data x=@large.npy --output logits=@npy.npy
cmp tar.npy npy.npy || fail 'samples of tars are predicted otherwise'

# What is wrong.
refused() { # CODE TEXT ROWS LABELS
  expect "$1" "$2" train "$3" "$4" --steps=1
}
refused 2 "expected the ending of a sample's files" small.tar:txt small.tar:cls
refused 2 "expected the ending of a sample's files" small.tar small.tar:cls
refused 2 "small.tar': sample 'train/.*' has no file '.png'" small.tar:png small.tar:cls
refused 2 "'small-\{0..2.tar:x.npy': expected braces" 'small-{0..2.tar:x.npy' small.tar:cls
refused 1 "cannot read 'small-0.tar'" 'small-{0..1}.tar:x.npy' small.tar:cls
refused 2 "its samples are others than those of 'x'" small.tar:x.npy large-1.tar:cls
head -c 100000 small.tar >cut.tar
refused 2 "cut.tar': at byte .* the archive is cut off after" cut.tar:x.npy small.tar:cls
cat small.tar small.tar >two.tar
refused 2 "two.tar': at byte .* something follows the end" two.tar:x.npy small.tar:cls
python3 - <<'DATA'
import io, tarfile
data = bytearray(open("small.tar", "rb").read())
open("noend.tar", "wb").write(data[: len(data) // 10240 * 10240 - 10240 * 2 or None])
data[600] ^= 1
open("sum.tar", "wb").write(data)
def tar(path, *members):
    with tarfile.open(path, "w") as file:
        for name, content, kind in members:
            info = tarfile.TarInfo(name)
            info.type, info.size, info.linkname = kind, len(content), "elsewhere"
            file.addfile(info, io.BytesIO(content))
F = tarfile.REGTYPE
tar("twice.tar", ("a.cls", b"1", F), ("a.cls", b"1", F))
tar("word.tar", ("a.cls", b"cat", F))
tar("far.tar", ("a.cls", b"99999999999999999999", F))
tar("link.tar", ("a.cls", b"", tarfile.SYMTYPE))
tar("pipe.tar", ("a.cls", b"", tarfile.FIFOTYPE))
tar("none.tar")
tar("unlike.tar", ("a.x.npy", open("small-labels.npy", "rb").read(), F))
DATA
refused 2 "sum.tar': at byte .* expected a header of tar" sum.tar:x.npy small.tar:cls
refused 2 "twice.tar': sample 'a' has two files '.cls'" small.tar:x.npy twice.tar:cls
refused 2 "word.tar': 'a.cls': expected an integer" small.tar:x.npy word.tar:cls
refused 2 "far.tar': 'a.cls': expected an integer" small.tar:x.npy far.tar:cls
refused 2 "link.tar': 'a.cls' is a link" small.tar:x.npy link.tar:cls
# It was skipped without a word.
refused 2 "pipe.tar': 'a.cls' is a device or a pipe" small.tar:x.npy pipe.tar:cls
refused 2 'there is no sample' none.tar:x.npy none.tar:cls
refused 2 'expected rows of u8 \[8, 32768\] but got i64 \[1, 64\]' unlike.tar:x.npy small.tar:cls

# A row that cannot be made on the way ends the training, which is saved.
python3 - <<'DATA'
data = bytearray(open("large-1.tar", "rb").read())
at = data.index(b"\x93NUMPY", len(data) // 2)
data[at] = 0
open("broken-1.tar", "wb").write(data)
DATA
ln -s large-0.tar broken-0.tar
ln -s large-2.tar broken-2.tar
expect 1 "'broken-1.tar': 'train/[0-9]*.x.npy': .*; saved to 'broken.st'; to go on" \
  "$bin/tandem-run" train model.tdm --data 'x=@broken-{0..2}.tar:x.npy' \
  --data 'labels=@broken-{0..2}.tar:cls' --epochs=1 --no-shuffle --save=broken.st
[ -s broken.st ] || fail 'broken.st was not saved'

# Images, as those of a folder.
[ -e "$bin/../lib/libtandem-images.so" ] || finish
tar cf photos.tar -C "$images/dog" a.png c.png
differ='module attributes {tandem.phase = "capture"} {
  func.func @graph(%x: tensor<1x3x16x16xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<1x3x16x16xf32> {tandem.role = #tandem.role<output "y">}) {
    return %x : tensor<1x3x16x16xf32>
  }
}'
echo "${differ/return %x/%y = tandem.neg %x : tensor<1x3x16x16xf32>
    return %y}" >image.mlir
expect 0 '' "$bin/tandem" compile image.mlir -o image.tdm --inference --input=x:u8
mkdir dogs && cp "$images/dog/a.png" "$images/dog/c.png" dogs
expect 0 '' "$bin/tandem-run" predict image.tdm --data x=@photos.tar:png,resize=19 --output y=@tar-y.npy
expect 0 '' "$bin/tandem-run" predict image.tdm --data x=@dogs/:resize=19 --output y=@folder-y.npy
cmp tar-y.npy folder-y.npy || fail 'images of a tar are others than those of a folder'
finish

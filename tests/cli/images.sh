#!/bin/bash
# images.sh BIN EXAMPLES - folders of PNG and JPEG as rows and classes: the bytes
# that Pillow and torchvision make of them, and what is no image is named.
source "$(dirname "$0")/expect.sh"
bin=$1 data=$(cd "$(dirname "$0")/../data" && pwd)
[ -e "$bin/../lib/libtandem-images.so" ] || { echo 'no libtandem-images.so'; exit 77; }
command -v python3 >/dev/null || { echo 'skipped: no python3'; exit 77; }
cd "$work" || exit 1

# differ SHAPE: a model that says how far each row of x is from that of t.
differ() {
  cat >"$1.mlir" <<MODEL
module attributes {tandem.phase = "capture"} {
  func.func @graph(%x: tensor<$1xf32> {tandem.role = #tandem.role<input "x">},
                   %t: tensor<$1xf32> {tandem.role = #tandem.role<input "t">})
      -> (tensor<2xf32> {tandem.role = #tandem.role<output "most">}) {
    %d = tandem.sub %x, %t : tensor<$1xf32>
    %a = tandem.abs %d : tensor<$1xf32>
    %most = tandem.reduce_max %a over [1, 2, 3] : tensor<$1xf32> -> tensor<2xf32>
    return %most : tensor<2xf32>
  }
}
MODEL
  expect 0 '' "$bin/tandem" compile "$1.mlir" -o "$1.tdm" --inference --input=x:u8 --input=t:u8
}
# fits SHAPE EXPECTED OPTION [FOLDER ROWS]: PNG to the bit; libraries may decode
# JPEG, which are rows 1 and 4 of the first folder, a little otherwise.
fits() {
  local folder=${4-images} rows=${5-6}
  differ "$1"
  expect 0 '' "$bin/tandem-run" predict "$1.tdm" --data x=@"$data/$folder/:$3" \
    --data t=@"$data/images-expected/$2.npy" --output most=@"$2.csv"
  awk -F, -v rows="$rows" '
    NR > 1 && $1 > (rows == 6 && (NR - 2) % 3 == 1 ? 2 : 0) { wrong = 1 }
    END { exit wrong || NR != rows + 1 }' "$2.csv" ||
    fail "$2 differs: $(tr '\n' ' ' <"$2.csv")"
}
fits 2x3x16x16 crop3 crop
fits 2x3x16x16 shorter3 resize=19
fits 2x1x16x12 stretch1 resize
# Sizes on both sides of where Pillow begins with the columns.
fits 2x3x12x16 stretch-order3 resize images-order 16
fits 2x3x16x16 shorter-order3 resize=19 images-order 16

# A classifier of three rows, of which the labels are the folders.
cat >model.mlir <<'MODEL'
module attributes {tandem.phase = "capture"} {
  func.func @graph(%x: tensor<3x16x16x3xf32> {tandem.role = #tandem.role<input "x">},
                   %labels: tensor<3xi64> {tandem.role = #tandem.role<input "labels">},
                   %w: tensor<2x768xf32> {tandem.role = #tandem.role<param "w" {init = {high = 0.01 : f64, kind = "uniform", low = -0.01 : f64}, requires_grad}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">},
          tensor<3x2xf32> {tandem.role = #tandem.role<output "logits">}) {
    %flat = tandem.reshape %x to [3, 768] : tensor<3x16x16x3xf32> -> tensor<3x768xf32>
    %logits = tandem.linear %flat, %w : (tensor<3x768xf32>, tensor<2x768xf32>) -> tensor<3x2xf32>
    %loss = tandem.cross_entropy %logits, %labels : tensor<3x2xf32>, tensor<3xi64> -> tensor<f32>
    return %loss, %logits : tensor<f32>, tensor<3x2xf32>
  }
}
MODEL
expect 0 '' "$bin/tandem" compile model.mlir -o model.tdm --optimizer=sgd:lr=0.1 \
  --input=x:u8,scale=1/255,mean=0.5,std=0.25
cp -r "$data/images" own
train() { # CODE TEXT FOLDER [options]
  local code=$1 text=$2 folder=$3
  shift 3
  expect "$code" "$text" "$bin/tandem-run" train model.tdm --data x=@"$folder/:resize=20" \
    --data labels=@"$folder/:labels" --steps=4 "$@"
}
train 0 "2 classes: 0 'cat' \(3\), 1 'dog' \(3\)" own --save=one.st --log=one.jsonl \
  --eval x=@own/:resize=20 --eval labels=@own/:labels --accuracy=logits,labels --augment=x:flip
train 0 '' own --save=other.st --log=other.jsonl --augment=x:flip
cmp one.st other.st || fail 'one folder trains in two ways'

# A number means one folder.
mkdir -p eval/cow eval/dog
cp own/cat/a.png eval/cow && cp own/dog/*.png eval/dog
train 2 "class 0 is 'cow' in 'eval/' and 'cat' in 'own/'" own \
  --eval x=@eval/:crop --eval labels=@eval/:labels --accuracy=logits,labels

# What is wrong with a folder.
refused() { # TEXT [OPTION]
  expect 2 "$1" "$bin/tandem-run" train model.tdm --data x=@"bad/:${2-crop}" \
    --data labels=@bad/:labels --steps=1
  rm -rf bad && cp -r own bad
}
cp -r own bad
refused "expected 'labels', 'crop', 'resize' or 'resize=N'" resize=0
refused "cat/a.png': expected 16 rows of 16, but it has 20 rows of 30; ':crop'" ''
refused "when it is resized" resize=12
ln -s self bad/self
refused "self' is in no class"
mkdir bad/empty
refused "the class 'empty' has no image"
touch bad/notes.txt
refused "bad/notes.txt' is in no class"
echo text >bad/cat/notes.txt
refused "bad/cat/notes.txt' is no .png, .jpg or .jpeg"
mkdir bad/cat/deeper.png
refused "bad/cat/deeper.png' is no .png"
: >bad/dog/a.png
echo text >bad/dog/b.jpeg
refused "dog/a.png': it is neither .*; '.*dog/b.jpeg': it is neither a PNG nor a JPEG"
for file in cat/a.png dog/a.png dog/c.png; do
  head -c 200 "own/$file" >"bad/$file"
  refused "$file': the file ends too early"
done
for file in cat/b.jpg dog/b.jpeg; do
  head -c 600 "own/$file" >"bad/$file"
  refused "$file': Premature end of JPEG file"
done
# A header that promises what nobody has room for, and a byte that changed.
python3 - <<'BOMB'
import struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
for name, side in (("large", 30000), ("long", 100000)):
    with open(name + ".png", "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)))
        file.write(chunk(b"IDAT", zlib.compress(bytes(1 << 20))) + chunk(b"IEND", b""))
with open("thin.png", "wb") as file:
    file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 4000, 8, 0, 0, 0, 0)))
    file.write(chunk(b"IDAT", zlib.compress(bytes(8000))) + chunk(b"IEND", b""))
data = bytearray(open("own/cat/a.png", "rb").read())
data[len(data) // 2] ^= 1
open("changed.png", "wb").write(data)
BOMB
cp large.png bad/cat/a.png
refused "cat/a.png': expected at most 67108864 pixels and .*, but it has 30000 rows of 30000"
cp long.png bad/cat/a.png
refused "cat/a.png': .*(exceeds user limit|Invalid IHDR)"
cp thin.png bad/cat/a.png
refused "cat/a.png': it has 4000 rows of 1, and with a shorter side of 1000 more than 2.26 pixels" resize=1000
cp changed.png bad/cat/a.png
refused "cat/a.png': "
rm -r bad/*/*
expect 2 'has no image' "$bin/tandem-run" train model.tdm --data x=@bad/ --data labels=@bad/:labels --steps=1
expect 1 'cannot read' "$bin/tandem-run" train model.tdm --data x=@nowhere/ --data labels=@nowhere/:labels --steps=1

# What grows beyond 64 MiB is decoded when its rows are needed, and what was decoded is
# kept where there is room: the bits are those of the same images in memory. Of a rank's
# batches only its own rows are decoded.
mkdir -p many/cat many/dog few/cat few/dog
for i in $(seq 1000 1499); do
  ln "own/cat/c.PNG" "many/cat/$i.png" && ln "own/dog/c.png" "many/dog/$i.png"
done
for i in $(seq 1000 1003); do
  ln "own/cat/c.PNG" "few/cat/$i.png" && ln "own/dog/c.png" "few/dog/$i.png"
done
sed 's/16x16x3/160x160x3/g; s/768/76800/g' model.mlir >wide.mlir
expect 0 '' "$bin/tandem" compile wide.mlir -o wide.tdm --optimizer=sgd:lr=1e-4 \
  --input=x:u8,scale=1/255,mean=0.5,std=0.25
wide() { # FOLDER OUTPUT [options]
  local folder=$1 output=$2
  shift 2
  "$bin/tandem-run" predict wide.tdm --data x=@"$folder/:resize=160" --output "logits=@$output" "$@"
}
expect 0 '' wide many many.npy
expect 0 'no room for 73.2 MiB of decoded images .*in each pass' env TMPDIR=/proc \
  "$bin/tandem-run" predict wide.tdm --data x=@many/:resize=160 --output logits=@again.npy
cmp many.npy again.npy || fail 'what is kept of decoded images is others'
expect 0 '' wide few few.npy
cmp <(tail -c 32 few.npy) <(tail -c 32 many.npy) || fail 'images that are decoded later are others'
long() { # OUTPUT
  "$bin/tandem-run" train wide.tdm --data x=@many/:resize=160 --data labels=@many/:labels \
    --steps=20 --save="$1" --augment=x:flip
}
expect 0 'waited for data' long one-long.st
expect 0 '' env TMPDIR=/proc "$bin/tandem-run" train wide.tdm --data x=@many/:resize=160 \
  --data labels=@many/:labels --steps=20 --save=other-long.st --augment=x:flip
cmp one-long.st other-long.st || fail 'images that are decoded later train in two ways'
head -c 200 own/cat/c.PNG >cut.png && mv cut.png many/cat/1250.png
expect 2 "many/cat/1250.png': the file ends too early; saved to 'cut.st'; to go on" \
  "$bin/tandem-run" train wide.tdm --data x=@many/:resize=160 --data labels=@many/:labels \
  --epochs=1 --no-shuffle --save=cut.st
finish

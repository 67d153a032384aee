#!/bin/bash
# mapped.sh BIN - an .npy of more than 64 MiB is mapped and not read whole, with the
# losses of the same rows in memory.
source "$(dirname "$0")/expect.sh"
bin=$1
command -v python3 >/dev/null || { echo 'skipped: no python3'; exit 77; }
cd "$work" || exit 1
cat >model.mlir <<'MODEL'
module attributes {tandem.phase = "capture"} {
  func.func @graph(%x: tensor<8x65536xf32> {tandem.role = #tandem.role<input "x">},
                   %w: tensor<1x65536xf32> {tandem.role = #tandem.role<param "w" {init = {kind = "constant", value = 0.0 : f64}, requires_grad}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}) {
    %y = tandem.linear %x, %w : (tensor<8x65536xf32>, tensor<1x65536xf32>) -> tensor<8x1xf32>
    %one = tandem.constant dense<1.0> : tensor<8x1xf32>
    %loss = tandem.mse_loss %y, %one : tensor<8x1xf32>, tensor<8x1xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
MODEL
expect 0 '' "$bin/tandem" compile model.mlir -o model.tdm --optimizer=sgd:lr=1e-5 \
  --input=x:u8,scale=1/255
# 4096 rows of 64 KiB, most of which no disk has; and the last 512 of them. A row
# begins with its number.
python3 - <<'DATA'
def write(path, first, last):
    text = "{'descr': '|u1', 'fortran_order': False, 'shape': (%d, 65536), }" % (last - first)
    header = text.ljust(117) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
        begin = file.tell()
        for row in range(first, last):
            file.seek(begin + (row - first) * 65536)
            file.write((row % 251).to_bytes(1, "little") * 64 + b"\x01")
        file.truncate(begin + (last - first) * 65536)
write("large.npy", 0, 4096)
write("small.npy", 0, 512)
DATA
steps=(--no-shuffle --steps=60)
expect 0 '' "$bin/tandem-run" train model.tdm --data x=@small.npy "${steps[@]}" --log=small.log
# The memory that a process may map for itself, as the file's bytes would be.
(ulimit -d 200000; "$bin/tandem-run" train model.tdm --data x=@large.npy "${steps[@]}" --log=large.log \
  --save=large.st) >out.txt 2>&1 || fail "with 200 MB: $(cat out.txt)"
losses() { grep -oE '"loss": ?[-+.e0-9]+' "$1"; }
diff <(losses small.log) <(losses large.log) || fail 'mapped rows are others'
expect 0 '' "$bin/tandem-run" train model.tdm --data x=@large.npy "${steps[@]}" --resume=large.st
finish

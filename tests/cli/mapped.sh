#!/bin/bash
# mapped.sh BIN - an .npy of more than 64 MiB is mapped and not read whole, with the
# losses of the same rows in memory. What is looked at before the first step does not
# stay in memory, as all tokens, labels and numbers that are converted did.
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

# Of tokens each is looked at: 256 MB, of which few stay.
cat >tokens.json <<'MODEL'
{"format": "tandem-graph", "version": 1, "name": "tokens",
 "inputs": [{"name": "x", "type": "i64", "shape": [8, 4096]},
            {"name": "y", "type": "i64", "shape": [8, 4096]}],
 "params": [{"name": "table", "type": "f32", "shape": [4, 4], "init": {"kind": "uniform", "low": -1, "high": 1}}],
 "nodes": [{"op": "index_select", "inputs": ["table", "x"], "outputs": ["wide"]},
           {"op": "reshape", "inputs": ["wide"], "outputs": ["logits"], "attributes": {"shape": [32768, 4]}},
           {"op": "reshape", "inputs": ["y"], "outputs": ["labels"], "attributes": {"shape": [32768]}},
           {"op": "cross_entropy_loss", "inputs": ["logits", "labels"], "outputs": ["loss"]}],
 "outputs": [{"name": "loss", "value": "loss"}]}
MODEL
expect 0 '' "$bin/tandem" compile tokens.json -o tokens.tdm --optimizer=sgd:lr=1e-2
truncate -s 256M text.bin
resident() { # at the end, in MB
  python3 -c 'import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print("resident", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
sys.exit(code)' "$@"
}
expect 0 'resident [0-9]{1,2}$' resident "$bin/tandem-run" train tokens.tdm \
  --data x=@text.bin:u16 --data y=@text.bin:u16,shift=1 --steps=3 --save=tokens.st
# A token far behind is named by its place.
printf '\7' | dd of=text.bin bs=1 seek=200000000 conv=notrunc status=none
expect 2 "'x': expected an integer from .* but element \[24414, 256\] is 7;.*'y': .* element \[24414, 255\] is 7" \
  "$bin/tandem-run" train tokens.tdm --data x=@text.bin:u16 --data y=@text.bin:u16,shift=1 --steps=3
# And so is the first number that is rounded, of f64.
python3 - <<'DATA'
import struct
text = "{'descr': '<f8', 'fortran_order': False, 'shape': (16, 1048576), }"
header = text.ljust(117) + "\n"
with open("f64.npy", "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
    begin = file.tell()
    for row in 9, 12:
        file.seek(begin + (row * 1048576 + 5) * 8)
        file.write(struct.pack("<d", 0.1))
    file.truncate(begin + 16 * 1048576 * 8)
DATA
sed 's/65536/1048576/g' model.mlir >wide.mlir
expect 0 '' "$bin/tandem" compile wide.mlir -o wide.tdm --optimizer=sgd:lr=1e-9
expect 0 'element \[9, 5\] of f64 is 0.1' "$bin/tandem-run" train wide.tdm --data x=@f64.npy --steps=2
[ "$(grep -c 'of f64 is' <<<"$out")" = 1 ] || fail "rounding is said more than once: $out"
finish

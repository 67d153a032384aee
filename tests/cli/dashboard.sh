#!/bin/bash
# dashboard.sh BIN EXAMPLES - `train --dashboard`: the page and its events, who
# is refused, and that a training waits for nobody who looks at it.
source "$(dirname "$0")/expect.sh"
bin=$1
model=$2/digits/mlp.mlir
check=$(realpath "$(dirname "$0")")/dashboard.py
if ! command -v python3 >/dev/null; then
  echo 'skipped: python3 is not installed'
  exit 77
fi
cd "$work" || exit 1

python3 - <<'PYTHON' || exit 1
import random, struct
random.seed(1)
def write(name, descr, shape, data):
    head = repr({"descr": descr, "fortran_order": False, "shape": shape})
    head += " " * (117 - len(head)) + "\n"
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) +
                   head.encode() + data)
rows = 320
write("x.npy", "<f4", (rows, 64),
      struct.pack(f"<{rows * 64}f", *(random.random() for _ in range(rows * 64))))
write("y.npy", "<i8", (rows,),
      struct.pack(f"<{rows}q", *(random.randrange(10) for _ in range(rows))))
PYTHON
expect 0 '' "$bin/tandem" compile "$model" -o a.tdm --optimizer=adamw:lr=1e-3 \
  --effort=0
train=("$bin/tandem-run" train a.tdm --data x=@x.npy --data labels=@y.npy
  --threads=1)

timeout 120 python3 "$check" "${train[@]}" --epochs=100000000 --eval x=@x.npy \
  --eval labels=@y.npy --accuracy=logits,labels --eval-every=50 --dashboard ||
  fail 'the dashboard is not what it should be'

# It is for this machine alone.
for address in 0.0.0.0:8080 127.0.0.2:8080 '[::]:8080' 8080 127.0.0.1 \
  127.0.0.1:65536 127.0.0.1:-1 127.0.0.1:80x example.org:80; do
  expect 2 'shows on this machine alone: expected 127.0.0.1:PORT' \
    "${train[@]}" --epochs=1 --dashboard="$address"
done
expect 2 'exclude each other: it leaves no network' "${train[@]}" --epochs=1 \
  --dashboard --sandbox
expect 0 'can be watched on this machine at http://127.0.0.1:[0-9]+/' \
  "${train[@]}" --epochs=1 --dashboard=localhost:0

# Who is not watched trains the same.
expect 0 '' "${train[@]}" --epochs=2 --save one.safetensors
expect 0 '' "${train[@]}" --epochs=2 --save two.safetensors --dashboard
cmp <("$bin/tandem-run" inspect one.safetensors) \
  <("$bin/tandem-run" inspect two.safetensors | sed 's/two/one/') ||
  fail 'a dashboard changes the training'
finish

#!/bin/bash
# bench-training.sh BIN ROOT - the benchmark of training recipes explains itself,
# refuses what it does not know, says what it lacks without PyTorch, trains a
# recipe from files that lie in its folder, and measures what features add.
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
source "$(dirname "$0")/expect.sh"
bin=$1 run=$2/tools/bench/training/run
expect 0 '--torch' "$run" --help
expect 2 "got 'nothing'" "$run" --recipes=nothing --out="$work/none"
expect 1 'has no init-0.safetensors; --torch names' "$run" --bin="$bin" \
  --out="$work/none" --stages=metrics --recipes=lstm --seeds=1

# In the place of the U-Net one convolution, which needs no PyTorch: masks are
# where the pixels are above 0.
mkdir -p "$work/out/unet"
python3 - "$work/out/unet" <<'FILES'
import json
import random
import struct
import sys

folder, draw = sys.argv[1], random.Random(0)


def array(name, kind, shape, values, code):
    head = str(dict(descr=kind, fortran_order=False, shape=shape))
    head = head.ljust(118 - 1) + "\n"
    with open(f"{folder}/{name}.npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode("ascii"))
        file.write(struct.pack(f"<{len(values)}{code}", *values))


for name, rows in (("train", 64), ("eval", 32)):
    pixels = [draw.gauss(0, 1) for _ in range(rows * 1024)]
    array(f"{name}-x", "<f4", (rows, 1, 32, 32), pixels, "f")
    array(f"{name}-mask", "<i8", (rows, 32, 32), [int(x > 0) for x in pixels], "q")
weights = struct.pack("<2f", -0.1, 0.1)
head = json.dumps({"w": dict(dtype="F32", shape=[2, 1, 1, 1], data_offsets=[0, len(weights)])}).encode()
for seed in range(2):
    with open(f"{folder}/init-{seed}.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head + weights)
with open(f"{folder}/model.json", "w") as file:
    json.dump(dict(
        format="tandem-graph", version=1, name="masks",
        inputs=[dict(name="x", type="f32", shape=[32, 1, 32, 32]), dict(name="mask", type="i64", shape=[32, 32, 32], high=2)],
        params=[dict(name="w", type="f32", shape=[2, 1, 1, 1], init=dict(kind="constant", value=0.0))],
        nodes=[dict(op="conv2d", inputs=["x", "w"], outputs=["logits"]),
               dict(op="dice_loss", inputs=["logits", "mask"], outputs=["loss"])],
        outputs=[dict(name="loss", value="loss"), dict(name="logits", value="logits", no_grad=True)]), file)
FILES
# Exit code 1 is one that a bar is missed: other programs run beside this one.
run() { # STAGES [options]
  "$run" --bin="$bin" --out="$work/out" --stages="$1" --recipes=unet --seeds=2 \
    --workloads=mlp --rounds=2 --seconds=0.05 --patience=0 "${@:2}" \
    >"$work/out.txt" 2>&1
  case $? in
    0 | 1) ;;
    *) fail "$(cat "$work/out.txt")" ;;
  esac
}
run metrics --steps=4
run steps,features
python3 - "$work/out/results.json" "$2/tools/bench" <<'CHECK' || fail "expected other numbers: $(cat "$work/out.txt")"
import json
import sys

with open(sys.argv[1]) as file:
    results = json.load(file)
[seeds] = results["seeds"]
assert seeds["recipe"] == "unet" and seeds["metric"] == "iou" and seeds["tandem"] == [1.0, 1.0], seeds
assert results["steps"]["unet"]["tandem"]["ms"] > 0, results["steps"]
assert set(results["added"]["mlp"]) == {"clipping", "EMA", "schedule", "accumulation"}, results["added"]
assert results["features"]["mlp"]["plain"]["turns"] >= 1, results["features"]

sys.path[:0] = [sys.argv[2] + "/" + name for name in ("training", "cpu", "ranks")]
sys.dont_write_bytecode = True
import summary
# scipy.stats.ttest_ind(a, b, equal_var=False).pvalue
a, b = [1.0, 2.0, 3.0, 4.0, 5.5], [2.5, 3.5, 4.5, 5.0, 7.25]
assert abs(summary.welch(a, b) - 0.2308313215743486) < 1e-6, summary.welch(a, b)
assert summary.welch([1.0, 1.0], [1.0, 1.0]) == 1.0
CHECK
finish

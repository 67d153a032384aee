#!/usr/bin/env python3
"""Prints what each --parallel does to memory and time: the table of docs/DISTRIBUTED.md.

    plans.py build/bin/tandem
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SIZE = ["--layers", "24", "--width", "2048", "--heads", "16", "--time", "2048", "--vocabulary", "50304"]
RUN = ["--device=a100", "--links=a100-nvlink+ib200", "--amp=bf16", "--optimizer=adamw:lr=1e-4"]
ROWS = [  # mesh, plan, batches for an update
    ("data=16", "ddp", 1),
    ("data=16", "zero1", 1),
    ("data=16", "zero2", 1),
    ("data=16", "fsdp", 1),
    ("tensor=8", "tp", 1),
    ("data=2,tensor=8", "ddp+tp", 1),
    ("data=2,tensor=8", "fsdp+tp", 1),
    ("pipe=8", "pp", 8),
]


def main():
    tandem = sys.argv[1]
    print("| `--mesh` | `--parallel` | GPUs | memory of a GPU | step | exposed communication | bubble | bound by |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        model, shard = os.path.join(folder, "gpt.mlir"), os.path.join(folder, "tp.json")
        for mesh, plan, batches in ROWS:
            rows = 32 // batches
            subprocess.run([sys.executable, os.path.join(HERE, "gpt.py"), *SIZE, "--batch", str(rows), "-o", model,
                            "--shard", shard], check=True)
            more = [f"--shard={shard}"] if "tp" in plan else []
            made = subprocess.run([tandem, "simulate", model, "--json", f"--mesh={mesh}", f"--parallel={plan}",
                                   f"--batches={batches}", *more, *RUN], check=True, stdout=subprocess.PIPE)
            found = json.loads(made.stdout)
            slowest = max(found["rank_kinds"], key=lambda rank: rank["kernels_ms"])
            part = {key: 100 * slowest[key + "_ms"] / found["step_ms"] for key in ("exposed", "bubble")}
            print(f"| `{mesh}` | `{plan}` | {found['ranks']} | {found['memory_bytes'] / 2**30:.1f} GiB | "
                  f"{found['step_ms']:.0f} ms | {part['exposed']:.1f} % | {part['bubble']:.1f} % | "
                  f"{found['bound_by']} |", flush=True)


if __name__ == "__main__":
    main()

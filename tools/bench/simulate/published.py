#!/usr/bin/env python3
"""Simulates published trainings of GPTs, and prints the table of docs/SIMULATION.md.

    published.py build/bin/tandem [--only NAME]

Each row is a measured throughput with all settings that decide it. Nothing here
is fitted to them: rates, and what programs see of these, are in
passes/target/Machines.json, with their sources.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
VOCABULARY, TIME = 50368, 2048
MODELS = {  # layers, width, heads of MPT
    "125m": (12, 768, 12),
    "350m": (24, 1024, 16),
    "760m": (24, 1536, 12),
    "1b": (24, 2048, 16),
    "3b": (32, 2560, 20),
    "7b": (32, 4096, 32),
    "13b": (40, 5120, 40),
}

# github.com/mosaicml/llm-foundry, scripts/train/benchmarking/README.md: MPT,
# 2048 tokens, fully sharded, bf16, without activation checkpointing. GPUs, rows
# of a GPU in a batch, batches for an update, tokens a second of a GPU, MFU.
ROWS = [
    ("125m", "a100", "a100-nvlink", 8, 40, 2, 142830, 44.79),
    ("125m", "a100", "a100-nvlink", 8, 32, 2, 141737, 44.45),
    ("350m", "a100", "a100-nvlink", 8, 32, 2, 58782, 51.62),
    ("760m", "a100", "a100-nvlink", 8, 24, 2, 32434, 56.85),
    ("1b", "a100", "a100-nvlink", 8, 14, 4, 20513, 59.86),
    ("3b", "a100", "a100-nvlink", 8, 10, 2, 10811, 62.11),
    ("7b", "a100", "a100-nvlink", 8, 6, 2, 4641, 64.23),
    ("13b", "a100", "a100-nvlink", 8, 2, 3, 2262, 59.57),
    ("3b", "a100-40gb", "a100-nvlink+ib200", 128, 6, 1, 9538, 54.8),
    ("760m", "h100", "h100-nvlink", 8, 24, 2, 63147, 34.90),
    ("760m", "h100", "h100-nvlink+ib400", 16, 24, 1, 68551, 37.89),
    ("760m", "h100", "h100-nvlink+ib400", 32, 24, 1, 67971, 37.57),
    ("1b", "h100", "h100-nvlink", 8, 14, 1, 45455, 41.82),
    ("1b", "h100", "h100-nvlink+ib400", 16, 20, 1, 46037, 42.36),
    ("1b", "h100", "h100-nvlink+ib400", 32, 20, 1, 45130, 41.52),
    ("1b", "h100", "h100-nvlink+ib400", 64, 20, 1, 44402, 40.85),
    ("3b", "h100", "h100-nvlink+ib400", 16, 10, 3, 24142, 43.73),
    ("3b", "h100", "h100-nvlink+ib400", 32, 6, 3, 23021, 41.70),
    ("3b", "h100", "h100-nvlink+ib400", 64, 6, 3, 22525, 40.8),
    ("7b", "h100", "h100-nvlink", 8, 6, 1, 10643, 46.44),
    ("13b", "h100", "h100-nvlink", 8, 2, 1, 4792, 39.79),
    ("13b", "h100", "h100-nvlink+ib400", 16, 2, 1, 4767, 39.58),
    ("13b", "h100", "h100-nvlink+ib400", 32, 2, 1, 4811, 39.95),
    ("13b", "h100", "h100-nvlink+ib400", 64, 2, 1, 4800, 39.86),
]


def simulate(tandem, folder, row):
    name, device, links, gpus, rows, batches, _, _ = row
    layers, width, heads = MODELS[name]
    model = os.path.join(folder, "gpt.mlir")
    subprocess.run([sys.executable, os.path.join(HERE, "gpt.py"), "--layers", str(layers), "--width", str(width),
                    "--heads", str(heads), "--time", str(TIME), "--batch", str(rows * gpus), "--vocabulary",
                    str(VOCABULARY), "-o", model], check=True)
    made = subprocess.run([tandem, "simulate", model, "--json", f"--mesh=data={gpus}", "--parallel=fsdp",
                           f"--device={device}", f"--links={links}", "--amp=bf16", "--optimizer=adamw:lr=1e-4",
                           "--accumulate", f"--batches={batches}"], check=True, stdout=subprocess.PIPE)
    return json.loads(made.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tandem")
    parser.add_argument("--only", help="a model")
    arguments = parser.parse_args()
    print("| model | GPUs | rows x batches | published tokens/s/GPU | simulated | difference | published MFU | "
          "simulated | bound by |")
    print("|---|---|---|---|---|---|---|---|---|")
    near, count = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for row in ROWS:
            name, device, links, gpus, rows, batches, published, mfu = row
            if arguments.only not in (None, name):
                continue
            found = simulate(arguments.tandem, folder, row)
            rate = rows * TIME * batches / (found["step_ms"] / 1e3)
            away = rate / published - 1
            near += abs(away) <= 0.2
            count += 1
            print(f"| {name} | {gpus} {device} | {rows} x {batches} | {published} | {rate:.0f} | {100 * away:+.1f} % | "
                  f"{mfu:.1f} % | {mfu * (1 + away):.1f} % | {found['bound_by']} |", flush=True)
    print(f"\n{near} of {count} within 20 %.")


if __name__ == "__main__":
    main()

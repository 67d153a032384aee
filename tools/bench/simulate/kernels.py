#!/usr/bin/env python3
"""Estimates kernels and steps that others have measured on GPUs, and prints the tables of docs/ESTIMATE.md.

    kernels.py build/bin/tandem

What was measured is other people's code: the tables say how Tandem's kernels are expected to compare, not how well the estimate
foretells its own. Nothing is fitted to them.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

FAST = "github.com/pranjalssh/fast.cu"
FLASH = "FlashAttention-3 (Shah et al., arXiv:2407.08608), its chart"
PRODUCTS = [  # size, what, TFLOP/s, source
    (8192, "cuBLAS", 797.8, FAST),
    (8192, "bulk copies and wgmma, a block a tile", 635.4, FAST + ", kernel 4"),
    (8192, "the same, persistent, with mbarriers", 777.5, FAST + ", kernel 6"),
    (6144, "cuBLAS", 741.1, FAST),
    (6144, "bulk copies and wgmma, a block a tile", 651.2, FAST + ", kernel 4"),
]
ATTENTIONS = [  # tokens, FlashAttention-2, FlashAttention-3: forward, heads of 64, without a mask, 16,384 tokens
    (1024, 306, 392),
    (4096, 321, 476),
    (16384, 324, 497),
]
WIDE = "github.com/pytorch/benchmark, pull request 2391"
WIDE_ATTENTIONS = [  # tokens, FlashAttention-3: the same, heads of 128
    (512, 430.3),
    (1024, 517.1),
    (4096, 590.2),
    (16384, 620.7),
]


def product(size):
    square = f"tensor<{size}x{size}xbf16>"
    return f"""module @product attributes {{tandem.phase = "capture"}} {{
  func.func @graph(%a: {square} {{tandem.role = #tandem.role<input "a">}}, %b: {square} {{tandem.role = #tandem.role<input "b">}})
      -> ({square} {{tandem.role = #tandem.role<output "y">}}) {{
    %y = tandem.matmul %a, %b {{transpose_rhs}} : {square}, {square} -> {square}
    return %y : {square}
  }}
}}
"""


def attention(tokens, width=64):
    one = f"tensor<{16384 // tokens}x{2048 // width}x{tokens}x{width}xbf16>"
    roles = ", ".join(f'%{name}: {one} {{tandem.role = #tandem.role<input "{name}">}}' for name in "qkv")
    return f"""module @attention attributes {{tandem.phase = "capture"}} {{
  func.func @graph({roles}) -> ({one} {{tandem.role = #tandem.role<output "y">}}) {{
    %y = tandem.attention %q, %k, %v : {one}, {one}, {one} -> {one}
    return %y : {one}
  }}
}}
"""


class Estimates:
    def __init__(self, tandem, folder):
        self.tandem, self.folder = tandem, folder

    def of(self, model, device, *options):
        made = subprocess.run([self.tandem, "inspect", model, f"--estimate={device}", "--json", "--cubin=no", *options],
                              stdout=subprocess.PIPE, check=True)
        return {program["name"]: program for program in json.loads(made.stdout)["programs"]}

    def forward(self, text, device):
        path = os.path.join(self.folder, "model.mlir")
        with open(path, "w") as file:
            file.write(text)
        return self.of(path, device, "--target=cuda:sm_90a", "--inference")["evaluate"]["all"]


def rate(found):
    return found["flops"] / found["seconds"] / 1e12


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tandem")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        estimates = Estimates(args.tandem, folder)
        print("| product of bf16 on H100 | measured | of | Tandem, estimated | difference |\n|---|---|---|---|---|")
        for size, what, measured, source in PRODUCTS:
            own = rate(estimates.forward(product(size), "h100"))
            print(f"| {size} x {size} x {size} | {measured:.0f} TFLOP/s, {what} | {source} | {own:.0f} TFLOP/s | "
                  f"{100 * (own / measured - 1):+.0f} % |", flush=True)
        print(f"\n{FLASH}: forward of heads of 64, without a mask, 16,384 tokens in all, on H100\n")
        print("| tokens | FlashAttention-2 | FlashAttention-3 | Tandem, estimated |\n|---|---|---|---|")
        for tokens, second, third in ATTENTIONS:
            own = rate(estimates.forward(attention(tokens), "h100"))
            print(f"| {tokens} | {second} TFLOP/s | {third} TFLOP/s | {own:.0f} TFLOP/s |", flush=True)
        print(f"\nHeads of 128, the same otherwise ({WIDE})\n")
        print("| tokens | FlashAttention-3 | Tandem, estimated | difference |\n|---|---|---|---|")
        for tokens, third in WIDE_ATTENTIONS:
            own = rate(estimates.forward(attention(tokens, 128), "h100"))
            print(f"| {tokens} | {third:.0f} TFLOP/s | {own:.0f} TFLOP/s | {100 * (own / third - 1):+.0f} % |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

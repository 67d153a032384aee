#!/usr/bin/env python3
"""Times a training step of a workload in PyTorch on a GPU; prints one line of JSON.

  torch_gpu.py WORKLOAD [--mode=eager|compile|compile-graphs] [--dtype=f32|bf16] [--steps=50] [--device=cuda]

A step clears the gradients, runs forward, backward and the optimizer. `compile` is torch.compile, `compile-graphs` the
same with CUDA graphs (mode "reduce-overhead"). f32 products are in full f32, as Tandem's. Median and spread of steps that
are timed by events, one by one, after a warm-up.
"""
import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn

import sizes


class Gpt(nn.Module):
    def __init__(self, layers, width, heads, time, batch, vocabulary, positions):
        super().__init__()
        self.heads = heads
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.randn(positions, width) * 0.02)
        self.blocks = nn.ModuleList(
            nn.ModuleDict(dict(ln1=nn.LayerNorm(width), qkv=nn.Linear(width, 3 * width), proj=nn.Linear(width, width),
                               ln2=nn.LayerNorm(width), fc=nn.Linear(width, 4 * width),
                               fcproj=nn.Linear(4 * width, width))) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, x, labels):
        batch, time = x.shape
        h = self.tokens(x) + self.positions[:time]
        for block in self.blocks:
            q, k, v = block["qkv"](block["ln1"](h)).view(batch, time, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            h = h + block["proj"](y.transpose(1, 2).reshape(batch, time, -1))
            h = h + block["fcproj"](F.gelu(block["fc"](block["ln2"](h)), approximate="tanh"))
        logits = self.norm(h) @ self.tokens.weight.T
        return F.cross_entropy(logits.float().view(-1, logits.shape[-1]), labels.view(-1))


class Mlp(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(layers, layers[1:]))

    def forward(self, x, labels):
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        return F.cross_entropy(self.layers[-1](x).float(), labels)


class ConvNorm(nn.Module):
    def __init__(self, out, inside, kernel, stride):
        super().__init__()
        self.conv = nn.Conv2d(inside, out, kernel, stride, kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(out, track_running_stats=False)

    def forward(self, x):
        return self.norm(self.conv(x))


class Resnet(nn.Module):
    def __init__(self, width, stages, blocks, batch):
        super().__init__()
        self.stem = ConvNorm(width, 3, 3, 1)
        self.blocks = nn.ModuleList()
        inside = width
        for s in range(stages):
            for b in range(blocks):
                out, stride = width << s, 2 if s > 0 and b == 0 else 1
                block = nn.ModuleDict(dict(c1=ConvNorm(out, inside, 3, stride), c2=ConvNorm(out, out, 3, 1)))
                if stride != 1 or inside != out:
                    block["shortcut"] = ConvNorm(out, inside, 1, stride)
                self.blocks.append(block)
                inside = out
        self.fc = nn.Linear(inside, 10)

    def forward(self, x, labels):
        x = F.relu(self.stem(x))
        for block in self.blocks:
            y = block["c2"](F.relu(block["c1"](x)))
            x = F.relu(y + (block["shortcut"](x) if "shortcut" in block else x))
        return F.cross_entropy(self.fc(x.mean((2, 3))).float(), labels)


class Normchain(nn.Module):
    def __init__(self, rows, columns, chain):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(columns) for _ in range(chain))

    def forward(self, x):
        for norm in self.norms:
            x = x + F.gelu(norm(x), approximate="tanh")
        return x.float().mean()


def build(name, device, dtype):
    """The model, its inputs, and its optimizer."""
    if name in sizes.GPT:
        g = sizes.GPT[name]
        model = Gpt(**g)
        shape = (g["batch"], g["time"])
        inputs = [torch.randint(g["vocabulary"], shape, device=device) for _ in range(2)]
        optimizer = "adamw"
    elif name in sizes.MLP:
        m = sizes.MLP[name]
        model = Mlp(m["sizes"])
        inputs = [torch.rand(m["batch"], m["sizes"][0], device=device, dtype=dtype),
                  torch.randint(10, (m["batch"],), device=device)]
        optimizer = m["optimizer"]
    elif name in sizes.RESNET:
        r = sizes.RESNET[name]
        model = Resnet(**r)
        inputs = [torch.rand(r["batch"], 3, 32, 32, device=device, dtype=dtype),
                  torch.randint(10, (r["batch"],), device=device)]
        optimizer = "momentum"
    else:
        n = sizes.NORMCHAIN[name]
        model = Normchain(**n)
        inputs = [torch.rand(n["rows"], n["columns"], device=device, dtype=dtype, requires_grad=True)]
        optimizer = "momentum"
    model = model.to(device=device, dtype=dtype)
    if optimizer == "adamw":
        fused = {} if device == "cpu" else {"fused": True}
        step = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0, **fused)
    else:
        step = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=True)
    return model, inputs, step


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", choices=sizes.ALL)
    parser.add_argument("--mode", default="eager", choices=["eager", "compile", "compile-graphs"])
    parser.add_argument("--dtype", default="f32", choices=["f32", "bf16"])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    model, inputs, optimizer = build(args.workload, args.device, torch.bfloat16 if args.dtype == "bf16" else torch.float32)
    run = model
    if args.mode != "eager":
        run = torch.compile(model, mode="reduce-overhead" if args.mode == "compile-graphs" else None)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = run(*inputs)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(args.warmup):
        loss = step()
    times = []
    for _ in range(args.steps):
        if args.device == "cpu":
            begin = time.perf_counter()
            loss = step()
            times.append((time.perf_counter() - begin) * 1e3)
            continue
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        loss = step()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    times.sort()
    result = dict(peer=f"torch {torch.__version__} {args.mode}", workload=args.workload, dtype=args.dtype,
                  median_ms=statistics.median(times), min_ms=times[0], p90_ms=times[int(0.9 * (len(times) - 1))],
                  steps=len(times), loss=float(loss))
    if args.device != "cpu":
        result["peak_bytes"] = torch.cuda.max_memory_allocated()
    print(json.dumps(result))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Measures a workload's training step over several processes in PyTorch (2.x, gloo); one of these processes.

  RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 torch_ranks.py WORKLOAD --mode=ddp|fsdp|one [--rows=N]

ddp is DistributedDataParallel, fsdp is fully_shard of each layer and of the whole, one a single process. `--rows` is a
rank's part of the batch; its rows are its part of the workload's batch of all ranks' rows. Every process of the group reads
a number of seconds a line from its input and measures a turn; rank 0 prints a line of JSON, when it is ready and for each turn:
the median over steps of the slowest rank's time, and of each rank the peak of its memory. Batch norm has the statistics of
a rank's own rows, which is what DistributedDataParallel does.
"""
import argparse
import json
import os
import statistics
import sys
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("workload")
parser.add_argument("--mode", choices=["one", "ddp", "fsdp"], default="ddp")
parser.add_argument("--rows", type=int, help="of one rank (default: the workload's)")
args = parser.parse_args()
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import measure  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch_ops as ops  # noqa: E402
import workloads  # noqa: E402

RANK, RANKS = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
torch.set_num_threads(1)
LEAST_STEPS, MOST_STEPS = 5, 400


class Layer(torch.nn.Module):
    """Parameters of the workload, by their names, and what is done with them."""

    def __init__(self, weights, names, function):
        super().__init__()
        self.names, self.function = names, function
        for number, name in enumerate(names):
            self.register_parameter(f"p{number}", torch.nn.Parameter(torch.from_numpy(weights[name])))

    def forward(self, *values):
        return self.function({name: getattr(self, f"p{i}") for i, name in enumerate(self.names)}, *values)


def mlp_layers(w, weights):
    last = len(w.sizes) - 2

    def one(i):
        def run(p, x):
            y = ops.linear(x, p[f"w{i}"], p[f"b{i}"])
            return ops.relu(y) if i < last else y
        return Layer(weights, [f"w{i}", f"b{i}"], run)
    return [one(i) for i in range(last + 1)]


def resnet_layers(w, weights):
    def normed(p, x, name, stride):
        return ops.batch_norm(ops.convolution(x, p[name + ".w"], stride), p[name + ".g"], p[name + ".b"], True)

    def block(name, stride, project):
        def run(p, x):
            y = normed(p, ops.relu(normed(p, x, name + "c1", stride)), name + "c2", 1)
            return ops.relu(y + (normed(p, x, name + "sc", stride) if project else x))
        return Layer(weights, [n for n in weights if n.startswith(name)], run)

    stem = Layer(weights, [n for n in weights if n.startswith("stem.")], lambda p, x: ops.relu(normed(p, x, "stem", 1)))
    head = Layer(weights, ["fc.w", "fc.b"], lambda p, x: ops.linear(ops.image_mean(x), p["fc.w"], p["fc.b"]))
    return [stem, *(block(*b) for b in w.blocks), head]


def gpt_layers(w, weights):
    def block(i):
        def run(p, h):
            q = {name[len(f"h{i}."):]: value for name, value in p.items()}
            linear = lambda x, name: ops.linear(x, q[name + "w"], q[name + "b"])
            a = linear(ops.layer_norm(h, q["ln1w"], q["ln1b"]), "qkv")
            a = ops.attention(a.reshape(*a.shape[:2], 3, w.heads, -1))
            h = h + linear(a.reshape(h.shape), "proj")
            return h + linear(ops.gelu(linear(ops.layer_norm(h, q["ln2w"], q["ln2b"]), "fc")), "fcproj")
        return Layer(weights, [n for n in weights if n.startswith(f"h{i}.")], run)
    return [block(i) for i in range(w.layers)]


class Network(torch.nn.Module):
    def __init__(self, w, weights):
        super().__init__()
        make = dict(Mlp=mlp_layers, ResNet=resnet_layers, Gpt=gpt_layers)[type(w).__name__]
        self.layers = torch.nn.ModuleList(make(w, weights))
        self.time = getattr(w, "time", None)
        if self.time:  # the table is of the first and of the last layer
            self.rest = torch.nn.ParameterDict({n: torch.nn.Parameter(torch.from_numpy(weights[n]))
                                                for n in ("wte", "wpe", "lnfw", "lnfb")})

    def forward(self, x, labels):
        if self.time:
            x = ops.embedding(self.rest["wte"], x) + self.rest["wpe"][: self.time]
        for layer in self.layers:
            x = layer(x)
        if self.time:
            x = ops.linear(ops.layer_norm(x, self.rest["lnfw"], self.rest["lnfb"]), self.rest["wte"], None)
        return ops.cross_entropy(x, labels)


def distribute(network):
    if args.mode == "one":
        return network
    if args.mode == "ddp":
        # As its own page on speed says: gradients are views of the buckets.
        return torch.nn.parallel.DistributedDataParallel(network, gradient_as_bucket_view=True)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (RANKS,))
    for layer in network.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(network, mesh=mesh)
    return network


class Training:
    def __init__(self):
        w = workloads.named(args.workload)
        rows = args.rows or w.rows
        w.rows = rows * RANKS
        self.batches = [[torch.from_numpy(a.copy()[RANK * rows:(RANK + 1) * rows]) for a in w.batch(b)]
                        for b in range(workloads.BATCHES)]
        self.network = distribute(Network(w, w.weights()))
        kind, rate = w.optimizer
        make = torch.optim.AdamW if kind == "adamw" else torch.optim.SGD
        self.optimizer = make(self.network.parameters(), lr=rate, **(dict(foreach=True) if args.mode == "fsdp" else dict(fused=True)),
                              **(dict(weight_decay=0.0) if kind == "adamw" else dict(momentum=0.9)))

    def step(self, number):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.network(*self.batches[number % len(self.batches)])
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def together(value, op=None):
    made = torch.tensor(value, dtype=torch.float64)
    if RANKS > 1:
        dist.all_reduce(made, op=op or dist.ReduceOp.MAX)
    return made.tolist()


def turn(training, seconds):
    for number in range(2):
        training.step(number)
    times, begin, go_on = [], time.perf_counter(), True
    while go_on:
        start = time.perf_counter()
        training.step(len(times))
        times.append((time.perf_counter() - start) * 1e3)
        over = time.perf_counter() - begin > seconds and len(times) >= LEAST_STEPS
        go_on = len(times) < MOST_STEPS and not together(float(over))
    slowest = together(times)
    memory = [0.0] * RANKS
    memory[RANK] = measure.status("VmHWM")
    return dict(n=len(times), median_ms=statistics.median(slowest), best_ms=min(slowest),
                rank_peak_mb=together(memory), library_mb=LIBRARY)


def main():
    global LIBRARY
    if RANKS > 1:
        dist.init_process_group("gloo")
    LIBRARY = measure.status("VmRSS")  # before there is a model
    training = Training()
    losses = [training.step(number) for number in range(3)]
    losses = [total / RANKS for total in together([float(loss) for loss in losses], dist.ReduceOp.SUM)]
    if RANK == 0:
        print(json.dumps(dict(peer="torch", version=torch.__version__, mode=args.mode, losses=losses)), flush=True)
    for line in sys.stdin:
        result = turn(training, float(line))
        if RANK == 0:
            print(json.dumps(result), flush=True)
    if RANKS > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

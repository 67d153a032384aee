#!/usr/bin/env python3
"""Measures a workload's training step or inference in PyTorch (1.13 or 2.x) on the CPU; prints one line of JSON.

  torch_cpu.py WORKLOAD [--phase=train|infer] [--mode=MODE] [--threads=N] [--seconds=S]

Training (a step: clear gradients, forward, backward, optimizer):
  eager          autograd and torch.optim
  compile        torch.compile of forward and backward, and of the optimizer's step
  whole          torch.compile of one function: gradients by torch.func, update in place
  aot, aot-ts, aot-fusion
                 functorch of 1.13: min-cut partition without a compiler, with TorchScript, and memory_efficient_fusion
Inference: eager; jit (trace, freeze, optimize_for_inference); compile (torch.compile with frozen weights).
`-max` after a torch.compile mode is mode="max-autotune", `-last` after any mode channels_last.
"""
import measure

PLAIN = ["eager", "compile", "whole", "jit", "aot", "aot-ts", "aot-fusion"]
AUTOTUNED = ["compile-max", "whole-max"]
args = measure.arguments(__doc__, PLAIN + AUTOTUNED + [f"{m}-last" for m in ["eager", "compile", "whole", "jit", *AUTOTUNED]])

import warnings  # noqa: E402

import torch  # noqa: E402
import torch_ops as ops  # noqa: E402
import workloads  # noqa: E402

warnings.filterwarnings("ignore")
LAST = args.mode.endswith("-last")
MODE = args.mode[:-5] if LAST else args.mode
COMPILE = dict(mode="max-autotune") if MODE.endswith("-max") else {}
MODE = MODE[:-4] if COMPILE else MODE


def tensor(array):
    made = torch.from_numpy(array)
    return made.contiguous(memory_format=torch.channels_last) if LAST and made.dim() == 4 else made


class Training:
    def __init__(self, workload):
        self.workload = workload
        self.initial = {name: tensor(array) for name, array in workload.weights().items()}
        self.params = {name: value.clone().requires_grad_(True) for name, value in self.initial.items()}
        self.updated = [p for name, p in self.params.items() if name not in workload.fixed]
        self.batches = [[tensor(array) for array in workload.batch(b)] for b in range(workloads.BATCHES)]
        self.prepare()

    def loss(self, values, x, labels):
        return self.workload.loss(ops, dict(zip(self.params, values)), x, labels)

    def prepare(self):
        self.function, self.update = self.loss, lambda: self.optimizer.step()
        if MODE == "compile":
            self.function = torch.compile(self.loss, **COMPILE)
        elif MODE.startswith("aot"):
            import functorch.compile as fc

            compiler = fc.nop if MODE == "aot" else fc.ts_compile
            extra = dict(decompositions=fc.default_decompositions) if MODE == "aot-fusion" else {}
            self.function = fc.aot_function(self.loss, fw_compiler=compiler, bw_compiler=compiler,
                                            partition_fn=fc.min_cut_rematerialization_partition, **extra)

    def make_optimizer(self):
        kind, rate = self.workload.optimizer
        extra = dict(fused=True) if torch.__version__[0] != "1" and MODE == "eager" else {}
        if kind == "adamw":
            self.optimizer = torch.optim.AdamW(self.updated, lr=rate, weight_decay=0.0, **extra)
        else:
            self.optimizer = torch.optim.SGD(self.updated, lr=rate, momentum=0.9, **extra)
        if MODE == "compile":
            self.update = torch.compile(self.optimizer.step, **COMPILE)

    def restart(self):
        with torch.no_grad():
            for name, p in self.params.items():
                p.copy_(self.initial[name])
        if not hasattr(self, "optimizer"):
            self.make_optimizer()
        for state in self.optimizer.state.values():
            for value in state.values():
                if torch.is_tensor(value):
                    value.zero_()

    def step(self, number):
        for p in self.params.values():
            p.grad = None
        loss = self.function(list(self.params.values()), *self.batches[number % len(self.batches)])
        loss.backward()
        self.update()
        return loss.detach()


class WholeTraining(Training):
    """One compiled function, the update as torch.optim calculates it."""

    def prepare(self):
        kind, rate = self.workload.optimizer
        names, fixed = list(self.params), self.workload.fixed
        self.params = {name: p.detach() for name, p in self.params.items()}
        zeros = lambda: [torch.zeros_like(p) for name, p in self.params.items() if name not in fixed]
        self.state = [zeros(), zeros()] if kind == "adamw" else [zeros()]
        self.count = torch.zeros(())

        def whole(values, state, count, x, labels):
            grads, loss = torch.func.grad_and_value(lambda v: self.loss(v, x, labels))(values)
            # A gradient that no update reads is a result, so that it is calculated.
            results = [g for g, name in zip(grads, names) if name in fixed]
            grads = [g for g, name in zip(grads, names) if name not in fixed]
            values = [p for p, name in zip(values, names) if name not in fixed]
            if kind == "adamw":
                count.add_(1)
                first, second = 1 - 0.9**count, torch.sqrt(1 - 0.999**count)
                for p, g, m, v in zip(values, grads, *state):
                    m.lerp_(g, 0.1)
                    v.mul_(0.999).addcmul_(g, g, value=0.001)
                    p.sub_(rate / first * (m / (v.sqrt() / second + 1e-8)))
            else:
                for p, g, m in zip(values, grads, *state):
                    m.mul_(0.9).add_(g)
                    p.sub_(m, alpha=rate)
            return loss, results

        self.function = torch.compile(whole, fullgraph=True, **COMPILE)

    def restart(self):
        for name, p in self.params.items():
            p.copy_(self.initial[name])
        for value in [self.count, *(v for one in self.state for v in one)]:
            value.zero_()

    def step(self, number):
        with torch.no_grad():
            batch = self.batches[number % len(self.batches)]
            return self.function(list(self.params.values()), self.state, self.count, *batch)[0]


class Network(torch.nn.Module):
    """A model with its weights, for inference."""

    def __init__(self, workload):
        super().__init__()
        self.workload, weights = workload, workload.weights()
        self.names = list(weights)
        for number, array in enumerate(weights.values()):
            self.register_parameter(f"p{number}", torch.nn.Parameter(tensor(array), requires_grad=False))

    def forward(self, x):
        return self.workload.infer(ops, {name: getattr(self, f"p{i}") for i, name in enumerate(self.names)}, x)


class Inference:
    def __init__(self, workload):
        network = self.model = Network(workload).eval()
        self.inputs = [tensor(workload.infer_input(b)) for b in range(workloads.BATCHES)]
        with torch.no_grad():
            expected = network(self.inputs[0])
            if MODE == "jit":
                self.model = torch.jit.trace(network, self.inputs[0], check_trace=False)
                self.model = torch.jit.optimize_for_inference(torch.jit.freeze(self.model))
            elif MODE == "compile":
                from torch._inductor import config

                config.freezing = True
                self.model = torch.compile(network, **COMPILE)
            got = self.model(self.inputs[0])
            self.error = float((got - expected).abs().max() / expected.abs().max())

    def restart(self):
        pass

    def step(self, number):
        with torch.no_grad():
            self.model(self.inputs[number % len(self.inputs)])


def main():
    torch.set_num_threads(args.threads)
    workload = workloads.named(args.workload)
    about = dict(peer="torch", version=torch.__version__)
    if args.phase == "infer":
        peer = Inference(workload)
        about["error_against_eager"] = peer.error
    else:
        peer = (WholeTraining if MODE == "whole" else Training)(workload)
    measure.measure(args, about, peer)


if __name__ == "__main__":
    main()

"""The contenders of tools/bench/networks: training loops over copies of one network."""

import copy
import time

import tandem
import tandem.torch
import torch

RATE = 1e-4


def floating(inputs, change):
    return [change(x) if x.is_floating_point() else x for x in inputs]


def exact_gradients(net, inputs):
    """Of each parameter, in f64."""
    exact = copy.deepcopy(net).double()
    exact(*floating(inputs, torch.Tensor.double)).backward()
    return {name: parameter.grad for name, parameter in exact.named_parameters() if parameter.grad is not None}


class Loop:
    """What every contender has: a name, step(), the time to prepare and what the first step gave."""

    def __init__(self, name):
        self.name = name
        begin = time.monotonic()
        self.prepare()
        self.first = self.step()
        self.prepare_seconds = time.monotonic() - begin

    def turn(self, seconds):
        """Milliseconds of each step of a turn; the first one fills the caches again."""
        self.step()
        times, end = [], time.perf_counter() + seconds
        while len(times) < 3 or time.perf_counter() < end:
            begin = time.perf_counter()
            self.step()
            times.append(1e3 * (time.perf_counter() - begin))
        return times


class InPyTorch(Loop):
    """A loop of PyTorch over a module that may be compiled."""

    def __init__(self, name, net, inputs, args):
        self.net, self.inputs, self.args = copy.deepcopy(net), inputs, args
        super().__init__(name)

    def prepare(self):
        if self.name.endswith("-last"):
            self.net = self.net.to(memory_format=torch.channels_last)
            self.inputs = [x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x for x in self.inputs]
        self.parameters = dict(self.net.named_parameters())
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=RATE, fused=True)
        if self.name.startswith("compile"):
            self.net = torch.compile(self.net)
        elif self.name == "module":
            self.net = tandem.torch.optimize(self.net, tuple(self.inputs), fallback="refuse", **self.args.options)
        # Of the first point, before a step moves it: what gradient_error compares.
        self.gradients()
        self.first_gradients = {n: p.grad.clone() for n, p in self.parameters.items() if p.grad is not None}

    def gradients(self):
        self.optimizer.zero_grad()
        loss = self.net(*self.inputs)
        loss.backward()
        return loss.detach()

    def step(self):
        loss = self.gradients()
        self.optimizer.step()
        return loss

    def gradient_error(self, truth):
        """The worst parameter's: its largest error relative to its largest gradient."""
        worst = 0.0
        for name, right in truth.items():
            scale = right.abs().max().item()
            if scale > 0:
                worst = max(worst, (self.first_gradients[name].double() - right).abs().max().item() / scale)
        self.first_gradients = None
        return worst


class Named(torch.nn.Module):
    """A module whose output is named: tandem.compile trains on the output `loss`."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, *inputs):
        return {"loss": self.net(*inputs)}


class Whole(Loop):
    """The step of one artifact."""

    def __init__(self, name, net, inputs, args):
        self.module, self.inputs, self.args = Named(copy.deepcopy(net)), inputs, args
        super().__init__(name)

    def prepare(self):
        artifact = tandem.compile(self.module, tuple(self.inputs), optimizer=f"adamw:lr={RATE}", **self.args.options)
        self.module = None
        self.compiled = tandem.Step(artifact, threads=torch.get_num_threads())

    def step(self):
        return self.compiled(*self.inputs).loss


def contenders(net, inputs, args):
    """Those that the arguments ask for, and what is wrong with their numbers."""
    net = net.train()
    truth = exact_gradients(net, inputs) if "module" in args.contenders else {}
    made = [(Whole if name == "step" else InPyTorch)(name, net, inputs, args) for name in args.contenders]
    errors = {one.name: one.gradient_error(truth) for one in made if one.name in ("eager", "module")}
    wrong = []
    if "module" in errors and errors["module"] > max(1e-5, 4 * errors.get("eager", 0.0)):
        wrong.append(f"gradients are off by {errors['module']:.1e}, PyTorch's own by {errors.get('eager', 0.0):.1e}")
    first = {one.name: float(one.first) for one in made}
    expected = first.get("eager", next(iter(first.values())))
    wrong += [f"the first loss of {name} is {loss:.6g}, expected {expected:.6g}"
              for name, loss in first.items() if not abs(loss - expected) <= 1e-3 * abs(expected)]
    return made, wrong, errors

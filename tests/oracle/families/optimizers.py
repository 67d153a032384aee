"""One step of each optimizer, by torch.optim."""

import torch

from families.frame import Family, Input, given, real

family = Family("optimizers")


def scalar(value):
    """A number of f32, whatever the element type."""
    spec = given(value).fixed()
    spec.type = "f32"
    return spec


def stepped(make, state):
    """One step: `state` maps names of the optimizer's to those of operands."""

    def run(values):
        parameter = values["param"].clone().requires_grad_(False)
        parameter.grad = values["grad"].clone()
        optimizer = make([parameter])
        for name, value in state(values).items():
            optimizer.state[parameter][name] = value
        optimizer.step()
        return parameter, optimizer.state[parameter]

    return run


def add(op, name, operands, make, state, results, attributes, lr, step=None):
    shape = (2, 3)
    positive = {"v"}
    inputs = [real(*shape, low=0.25 if o in positive else -2).fixed()
              for o in operands]
    inputs += ([scalar(float(step))] if step else []) + [scalar(lr)]

    def function(*tensors):
        values = dict(zip(operands, [t.contiguous() for t in tensors]))
        parameter, after = stepped(make, lambda v: state(v, step))(values)
        return (parameter, *[after[r] for r in results])

    family.add(op, function, inputs, attributes, order=0, views=False)


for decay in (0.0, 0.125):
    a = {"weight_decay": decay}
    add("sgd", "", ["param", "grad"],
        lambda p, d=decay: torch.optim.SGD(p, lr=0.125, weight_decay=d),
        lambda v, s: {}, [], a, 0.125)
    for nesterov in (False, True):
        add("momentum", "", ["param", "grad", "velocity"],
            lambda p, d=decay, n=nesterov: torch.optim.SGD(
                p, lr=0.125, momentum=0.75, weight_decay=d, nesterov=n),
            lambda v, s: {"momentum_buffer": v["velocity"].clone()},
            ["momentum_buffer"],
            {**a, "momentum": 0.75, "nesterov": nesterov}, 0.125)
    for op, kind in (("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)):
        for step in (1, 7):
            add(op, "", ["param", "grad", "m", "v"],
                lambda p, d=decay, k=kind: k(
                    p, lr=0.125, betas=(0.875, 0.9375), eps=0.015625,
                    weight_decay=d),
                lambda v, s: {"step": torch.tensor(float(s - 1)),
                              "exp_avg": v["m"].clone(),
                              "exp_avg_sq": v["v"].clone()},
                ["exp_avg", "exp_avg_sq"],
                {**a, "beta1": 0.875, "beta2": 0.9375, "epsilon": 0.015625},
                0.125, step)

#!/usr/bin/env python3
"""Writes oracle.txt: random graphs of scalars with hooks, and what PyTorch does
with them: the order of all calls, and the gradients.

    python3 tests/runtime/graph/make-oracle.py > tests/runtime/graph/oracle.txt

A graph is a list of statements that both sides carry out in order:

    leaf NAME VALUE            add NAME A B      mul NAME A B
    scale NAME A FACTOR        cut NAME A        (its gradient is undefined)
    nest NAME A B              A, whose backward first runs one of B
    write A FACTOR             A is multiplied in place
    hook ID A FACTOR           a tensor hook; the gradient times FACTOR
    retain A                   pre ID A    post ID A    (of the node of A)
    accumulated ID A           after accumulation, of a leaf

and a call: `backward ROOTS` or `grad ROOTS : INPUTS`. What is expected follows:
`log` with ID:GRADIENT in order, and `gradient NAME VALUE` or `result N VALUE`;
`none` is an undefined one. In every second graph each node has a pre-hook, so
that the order of all nodes is seen. Numbers are small integers, so that all is exact.
"""
import random

import torch


class Cut(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return None


class Nest(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, inner):
        ctx.inner = inner
        ctx.set_materialize_grads(False)
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        torch.autograd.backward([ctx.inner[0]], retain_graph=True)
        return gradient, None


def text(value):
    return "none" if value is None else "%g" % (value.item() + 0.0)  # no -0


def node_of(tensor):
    return torch.autograd.graph.get_gradient_edge(tensor).node


class Graph:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.values, self.lines, self.log = {}, [], []
        self.kept = []  # nodes of leaves, which live as long as somebody holds them
        self.saved = set()  # must not be written
        self.hooks = self.nests = 0
        self.watches = seed % 2 == 1  # all nodes

    def say(self, *words):
        self.lines.append(" ".join(str(word) for word in words))

    def new_id(self):
        self.hooks += 1
        return "h%d" % self.hooks

    def pick(self):
        # Recent values, so that graphs are deep.
        names = list(self.values)
        return self.rng.choice(names[-6:])

    def leaf(self):
        name, value = "v%d" % len(self.values), self.rng.randint(-3, 3)
        self.values[name] = torch.tensor(float(value), requires_grad=True)
        self.say("leaf", name, value)
        if self.watches:
            self.node_hook("pre", name)

    def op(self):
        name, kind = "v%d" % len(self.values), self.rng.choice(
            ["add", "add", "mul", "scale", "scale", "cut", "write", "nest"])
        a, b = self.pick(), self.pick()
        x, y = self.values[a], self.values[b]
        factor = self.rng.choice([-1, 2, 3])
        if kind == "add":
            self.values[name] = x + y
            self.say(kind, name, a, b)
        elif kind == "mul":
            if abs(x.item()) > 50 or abs(y.item()) > 50:
                return
            self.values[name] = x * y
            self.saved |= {a, b}
            self.say(kind, name, a, b)
        elif kind == "scale":
            self.values[name] = x * factor
            self.say(kind, name, a, factor)
        elif kind == "cut" and self.rng.random() < 0.3:
            self.values[name] = Cut.apply(x)
            self.say(kind, name, a)
        elif kind == "nest" and self.nests < 3:
            self.nests += 1
            self.values[name] = Nest.apply(x, [y])
            self.saved.add(b)
            self.say(kind, name, a, b)
        elif kind == "write" and not x.is_leaf and a not in self.saved:
            x.mul_(factor)
            self.say(kind, a, factor)
            name = a
        else:
            return
        if self.watches:
            self.node_hook("pre", name)

    def hook(self):
        a = self.pick()
        x = self.values[a]
        kind = self.rng.choice(["hook", "hook", "retain", "pre", "post", "accumulated"])
        if kind == "retain":
            if not x.is_leaf:
                x.retain_grad()
                self.say(kind, a)
            return
        if kind == "accumulated" and not x.is_leaf:
            return
        if kind in ("pre", "post"):
            self.node_hook(kind, a)
            return
        key = self.new_id()
        if kind == "hook":
            factor = self.rng.choice([1, 2, -1])

            def call(gradient, key=key, factor=factor):
                self.log.append("%s:%s" % (key, text(gradient)))
                return None if gradient is None else gradient * factor

            x.register_hook(call)
            self.say(kind, key, a, factor)
        else:
            x.register_post_accumulate_grad_hook(
                lambda p, key=key: self.log.append("%s:%s" % (key, text(p.grad))))
            self.say(kind, key, a)

    def node_hook(self, kind, a):
        key, node = self.new_id(), node_of(self.values[a])
        self.kept.append(node)
        if kind == "pre":
            node.register_prehook(
                lambda g: self.log.append("%s:%s" % (key, text(g[0]))))
        else:
            node.register_hook(
                lambda o, g: self.log.append("%s:%s" % (key, text(g[0]))))
        self.say(kind, key, a)

    def call(self):
        names = list(self.values)
        last = [n for n in names[-4:] if self.values[n].requires_grad]
        roots = self.rng.sample(last, min(len(last), self.rng.choice([1, 1, 2])))
        if self.rng.random() < 0.6:
            self.say("backward", *roots)
            torch.autograd.backward([self.values[r] for r in roots],
                                    retain_graph=True)
            results = []
        else:
            inputs = self.rng.sample(names, min(len(names), self.rng.randint(1, 4)))
            self.say("grad", *roots, ":", *inputs)
            results = torch.autograd.grad([self.values[r] for r in roots],
                                          [self.values[i] for i in inputs],
                                          allow_unused=True, retain_graph=True)
        self.say("log", *self.log)
        for name, value in self.values.items():
            if value.is_leaf or value.retains_grad:
                self.say("gradient", name, text(value.grad))
        for index, value in enumerate(results):
            self.say("result", index, text(value))
        # Where nothing is reached, PyTorch calls the root's hooks all the same.
        return not results or any(value is not None for value in results)


def main():
    seed, graphs = 0, 0
    while graphs < 200:
        graph = Graph(seed)
        seed += 1
        for _ in range(graph.rng.randint(1, 3)):
            graph.leaf()
        for _ in range(graph.rng.randint(3, 40)):
            if graph.rng.random() < 0.35:
                graph.hook()
            else:
                graph.op()
        if graph.call():
            graphs += 1
            print("graph", seed)
            print("\n".join(graph.lines))


main()

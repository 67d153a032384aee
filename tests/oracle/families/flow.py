"""Branches and loops that data decides."""

import torch

from families.frame import Family, given, real

family = Family("flow")
add = family.add


def scan(x, h, w, trips):
    rows = []
    for i in range(trips):
        h = torch.tanh(h * w + x[i])
        rows.append(h)
    rows += [torch.zeros_like(h)] * (x.shape[0] - trips)
    return h, torch.stack(rows)


def loop(trips):
    return {"op": "scan", "carries": ["x1"], "inputs": ["x0"], "constants": ["x2"],
            "outputs": ["y0", "y1"], **trips, "body": {
                "inputs": ["h", "x", "w"],
                "nodes": [{"op": "mul", "inputs": ["h", "w"], "outputs": ["p"]},
                          {"op": "add", "inputs": ["p", "x"], "outputs": ["s"]},
                          {"op": "tanh", "inputs": ["s"], "outputs": ["next"]}],
                "outputs": ["next", "next"]}}


for steps in (1, 2, 4):
    add("scan", lambda x, h, w: scan(x, h, w, x.shape[0]),
        [real(steps, 3), real(3), real(3)], nodes=[loop({})])
for trips in (0, 2, 4):
    add("scan", lambda x, h, w, n: scan(x, h, w, int(n)),
        [real(4, 3), real(3), real(3), given(trips, "i64")], nodes=[
            loop({"trips": "x3"})], views=False)
for value in (True, False):
    add("if", lambda c, x, y: torch.exp(x) * y if c else torch.sin(x) - y,
        [given(value, "bool"), real(2, 3), real(2, 3)], nodes=[
            {"op": "if", "inputs": ["x0", "x1", "x2"], "outputs": ["y0"],
             "then": {"inputs": ["a", "b"], "nodes": [
                 {"op": "exp", "inputs": ["a"], "outputs": ["e"]},
                 {"op": "mul", "inputs": ["e", "b"], "outputs": ["r"]}],
                 "outputs": ["r"]},
             "else": {"inputs": ["a", "b"], "nodes": [
                 {"op": "sin", "inputs": ["a"], "outputs": ["e"]},
                 {"op": "sub", "inputs": ["e", "b"], "outputs": ["r"]}],
                 "outputs": ["r"]}}])

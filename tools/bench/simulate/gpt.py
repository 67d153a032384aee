#!/usr/bin/env python3
"""Writes a GPT as a model file for `tandem simulate`: shapes alone, no weights.

A decoder with learned positions, layer norms in front, gelu, and a table that
embeds tokens and gives the logits; queries, keys and values have weights of
their own, so that --shard can cut them by heads.

    gpt.py --layers 24 --width 2304 --heads 24 --time 2048 --batch 512 \\
        --vocabulary 51200 -o gpt.mlir [--shard tp.json]

--shard also writes the plan that cuts each layer over the axis `tensor` as
Megatron-LM does: columns of one product, rows of the next one.
"""
import argparse
import json


class Module:
    """Text of a module, op by op."""

    def __init__(self):
        self.arguments, self.body, self.count = [], [], 0

    def argument(self, role, kind):
        name = f"%a{len(self.arguments)}"
        self.arguments.append(f"{name}: {kind} {{tandem.role = #tandem.role<{role}>}}")
        return name

    def parameter(self, name, *shape):
        kind = tensor(*shape)
        role = f'param "{name}" {{requires_grad}}'
        return self.argument(role, kind), kind

    def op(self, text, path):
        value = f"%v{self.count}"
        self.count += 1
        self.body.append(f'{value} = {text} loc("{path}")')
        return value


def tensor(*shape, of="f32"):
    return "tensor<" + "".join(f"{n}x" for n in shape) + of + ">"


def write(size):
    module = Module()
    batch, time, width = size.batch, size.time, size.width
    heads, depth = size.heads, size.width // size.heads
    tokens = tensor(batch, time, of="i64")
    x = module.argument(f'input "x" {{high = {size.vocabulary} : i64}}', tokens)
    labels = module.argument(f'input "labels" {{high = {size.vocabulary} : i64}}', tokens)
    table, table_type = module.parameter("wte", size.vocabulary, width)
    positions, positions_type = module.parameter("wpe", time, width)
    rows = tensor(batch, time, width)

    def norm(value, path):
        scale, kind = module.parameter(path + ".scale", width)
        bias, _ = module.parameter(path + ".bias", width)
        return module.op(f"tandem.layer_norm {value}, {scale}, {bias} axis 2 : {rows}, {kind}, {kind} -> {rows}", path)

    def linear(value, path, inside, outside):
        weight, weight_type = module.parameter(path + ".w", outside, inside)
        bias, bias_type = module.parameter(path + ".bias", outside)
        return module.op(f"tandem.linear {value}, {weight}, {bias} : ({tensor(batch, time, inside)}, {weight_type}, "
                         f"{bias_type}) -> {tensor(batch, time, outside)}", path)

    def split(value, path):
        many = tensor(batch, time, heads, depth)
        value = module.op(f"tandem.reshape {value} to [{batch}, {time}, {heads}, {depth}] : {rows} -> {many}", path)
        return module.op(f"tandem.permute {value} by [0, 2, 1, 3] : {many} -> {tensor(batch, heads, time, depth)}", path)

    def add(a, b, path):
        return module.op(f"tandem.add {a}, {b} : {rows}", path)

    taken = module.op(f"tandem.take {table}, {x} : {table_type}, {tokens} -> {rows}", "embed")
    wide = module.op(f"tandem.broadcast {positions} to [{batch}, {time}, {width}] along [1, 2] : {positions_type} -> {rows}", "embed")
    h = add(taken, wide, "embed")
    for i in range(size.layers):
        path = f"h{i}"
        a = norm(h, path + ".ln1")
        q, k, v = (split(linear(a, f"{path}.attn.{name}", width, width), f"{path}.attn.{name}") for name in "qkv")
        per_head, many = tensor(batch, heads, time, depth), tensor(batch, time, heads, depth)
        o = module.op(f"tandem.attention {q}, {k}, {v} {{causal, scale = {depth ** -0.5:.9e} : f64}} : "
                      f"{per_head}, {per_head}, {per_head} -> {per_head}", path + ".attn.core")
        o = module.op(f"tandem.permute {o} by [0, 2, 1, 3] : {per_head} -> {many}", path + ".attn.core")
        o = module.op(f"tandem.reshape {o} to [{batch}, {time}, {width}] : {many} -> {rows}", path + ".attn.core")
        h = add(h, linear(o, path + ".attn.proj", width, width), path + ".attn.add")
        a = linear(norm(h, path + ".ln2"), path + ".mlp.up", width, 4 * width)
        a = module.op(f'tandem.gelu {a} {{approximate = "tanh"}} : {tensor(batch, time, 4 * width)}', path + ".mlp.gelu")
        h = add(h, linear(a, path + ".mlp.down", 4 * width, width), path + ".mlp.add")
    h = norm(h, "lnf")
    logits_type = tensor(batch, time, size.vocabulary)
    logits = module.op(f"tandem.linear {h}, {table} : ({rows}, {table_type}) -> {logits_type}", "head")
    loss = module.op(f"tandem.cross_entropy {logits}, {labels} : {logits_type}, {tokens} -> tensor<f32>", "head")
    arguments = ",\n    ".join(module.arguments)
    body = "\n    ".join(module.body)
    return (f'module @gpt attributes {{tandem.phase = "capture"}} {{\n  func.func @graph({arguments})\n'
            f'      -> (tensor<f32> {{tandem.role = #tandem.role<output "loss">}}) {{\n    {body}\n'
            f'    return {loss} : tensor<f32>\n  }}\n}}\n')


PLAN = {
    r".*\.attn\.[qkv]\.w": ["tensor", None],
    r".*\.attn\.[qkv]\.bias": ["tensor"],
    r".*\.attn\.proj\.w": [None, "tensor"],
    r".*\.mlp\.up\.w": ["tensor", None],
    r".*\.mlp\.up\.bias": ["tensor"],
    r".*\.mlp\.down\.w": [None, "tensor"],
    r"wte": ["tensor", None],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("layers", "width", "heads", "time", "batch", "vocabulary"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("-o", dest="output", required=True)
    parser.add_argument("--shard", help="where to write the plan of tensor parallelism")
    size = parser.parse_args()
    if size.width % size.heads:
        parser.error(f"expected --heads to divide --width, but got {size.heads} and {size.width}")
    with open(size.output, "w") as out:
        out.write(write(size))
    if size.shard:
        with open(size.shard, "w") as out:
            json.dump(PLAN, out, indent=1)


if __name__ == "__main__":
    main()

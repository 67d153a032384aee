#!/usr/bin/env python3
"""Times a training step of a workload in JAX on a GPU; prints one line of JSON.

  jax_gpu.py WORKLOAD [--dtype=f32|bf16] [--steps=50]

One jitted function is the whole step (value_and_grad and the optimizer), its state donated. f32 products are in full f32,
as Tandem's. Median and spread of steps that are waited for one by one, after a warm-up. Workloads: the perceptrons, the
transformers and normchain.
"""
import argparse
import json
import statistics
import time

import jax
import jax.numpy as jnp

import sizes


def norm(x, p):
    wide = x.astype(jnp.float32)
    mean = wide.mean(-1, keepdims=True)
    scaled = (wide - mean) * jax.lax.rsqrt(((wide - mean) ** 2).mean(-1, keepdims=True) + 1e-5)
    return scaled.astype(x.dtype) * p["g"] + p["b"]


def linear(x, p):
    return x @ p["w"].T + p["b"]


def cross_entropy(logits, labels):
    logits = logits.astype(jnp.float32)
    picked = jnp.take_along_axis(logits, labels[..., None], -1)[..., 0]
    return (jax.nn.logsumexp(logits, -1) - picked).mean()


class Maker:
    """Random parameters of one type."""

    def __init__(self, dtype):
        self.key, self.dtype = jax.random.key(1), dtype

    def normal(self, *shape, scale=0.02):
        self.key, key = jax.random.split(self.key)
        return (jax.random.normal(key, shape) * scale).astype(self.dtype)

    def linear(self, out, inside):
        return dict(w=self.normal(out, inside), b=jnp.zeros(out, self.dtype))

    def norm(self, size):
        return dict(g=jnp.ones(size, self.dtype), b=jnp.zeros(size, self.dtype))


def gpt(g, make):
    c, heads = g["width"], g["heads"]
    params = dict(tokens=make.normal(g["vocabulary"], c), positions=make.normal(g["positions"], c), norm=make.norm(c),
                  blocks=[dict(ln1=make.norm(c), qkv=make.linear(3 * c, c), proj=make.linear(c, c), ln2=make.norm(c),
                               fc=make.linear(4 * c, c), fcproj=make.linear(c, 4 * c)) for _ in range(g["layers"])])

    def loss(params, x, labels):
        h = params["tokens"][x] + params["positions"][: g["time"]]
        for p in params["blocks"]:
            qkv = linear(norm(h, p["ln1"]), p["qkv"]).reshape(*x.shape, 3, heads, c // heads)
            y = jax.nn.dot_product_attention(*(qkv[:, :, i] for i in range(3)), is_causal=True)
            h = h + linear(y.reshape(h.shape), p["proj"])
            h = h + linear(jax.nn.gelu(linear(norm(h, p["ln2"]), p["fc"])), p["fcproj"])
        return cross_entropy(norm(h, params["norm"]) @ params["tokens"].T, labels)

    shape = (g["batch"], g["time"])
    inputs = [jax.random.randint(jax.random.key(i), shape, 0, g["vocabulary"]) for i in range(2)]
    return params, loss, inputs, "adamw"


def mlp(m, make):
    params = [make.linear(b, a) for a, b in zip(m["sizes"], m["sizes"][1:])]

    def loss(params, x, labels):
        for p in params[:-1]:
            x = jax.nn.relu(linear(x, p))
        return cross_entropy(linear(x, params[-1]), labels)

    inputs = [make.normal(m["batch"], m["sizes"][0], scale=1), jax.random.randint(jax.random.key(0), (m["batch"],), 0, 10)]
    return params, loss, inputs, m["optimizer"]


def normchain(n, make):
    params = [make.norm(n["columns"]) for _ in range(n["chain"])]

    def loss(params, x):
        for p in params:
            x = x + jax.nn.gelu(norm(x, p))
        return x.astype(jnp.float32).mean()

    return params, loss, [make.normal(n["rows"], n["columns"], scale=1)], "momentum"


def updated(kind, params, grads, state):
    """The new parameters and the optimizer's state."""
    if kind == "momentum":
        state = jax.tree.map(lambda m, g: 0.9 * m + g, state, grads)
        return jax.tree.map(lambda p, m: p - 0.01 * m, params, state), state
    t = state[2] + 1
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state[0], grads)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, state[1], grads)
    rate = 1e-4 * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    new = jax.tree.map(lambda p, m, v: (p - rate * m / (jnp.sqrt(v) + 1e-8)).astype(p.dtype), params, m, v)
    return new, (m, v, t)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", choices=[*sizes.MLP, *sizes.GPT, *sizes.NORMCHAIN])
    parser.add_argument("--dtype", default="f32", choices=["f32", "bf16"])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--warmup", type=int, default=10)
    args = parser.parse_args()
    jax.config.update("jax_default_matmul_precision", "highest" if args.dtype == "f32" else "default")
    make = Maker(jnp.bfloat16 if args.dtype == "bf16" else jnp.float32)
    for table, builder in ((sizes.MLP, mlp), (sizes.GPT, gpt), (sizes.NORMCHAIN, normchain)):
        if args.workload in table:
            params, loss, inputs, kind = builder(table[args.workload], make)
    zeros = jax.tree.map(jnp.zeros_like, params)
    state = zeros if kind == "momentum" else (zeros, jax.tree.map(jnp.zeros_like, params), jnp.zeros(()))

    def step(params, state, *inputs):
        value, grads = jax.value_and_grad(loss)(params, *inputs)
        return (value, *updated(kind, params, grads, state))

    step = jax.jit(step, donate_argnums=(0, 1))
    times = []
    for i in range(args.warmup + args.steps):
        begin = time.perf_counter()
        value, params, state = step(params, state, *inputs)
        value.block_until_ready()
        if i >= args.warmup:
            times.append((time.perf_counter() - begin) * 1e3)
    times.sort()
    print(json.dumps(dict(peer=f"jax {jax.__version__}", workload=args.workload, dtype=args.dtype,
                          median_ms=statistics.median(times), min_ms=times[0], p90_ms=times[int(0.9 * (len(times) - 1))],
                          steps=len(times), loss=float(value))))


if __name__ == "__main__":
    main()

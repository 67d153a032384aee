"""Digits in JAX: a loop of its own whose loss is compiled by one line, and the
same training compiled whole.

    python loop.py [FOLDER OF THE DIGITS]

prints how many unseen digits each of the two gets right.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import tandem
import tandem.jax

BATCH, EPOCHS, RATE = 64, 8, 0.2
folder = Path(sys.argv[1] if len(sys.argv) > 1 else
              Path(__file__).resolve().parent.parent / "digits" / "data")


def digits(name):
    images = np.load(folder / f"{name}_images.npy").reshape(-1, 64)
    labels = np.load(folder / f"{name}_labels.npy")
    return images.astype(np.float32) / 16, labels.astype(np.int32)


def batches(x, y, seed):
    order = np.random.default_rng(seed).permutation(len(x))
    for rows in order[: len(x) // BATCH * BATCH].reshape(-1, BATCH):
        yield x[rows], y[rows]


def logits_of(params, x):
    hidden = jax.nn.relu(x @ params["in"]["w"] + params["in"]["b"])
    return hidden @ params["out"]["w"] + params["out"]["b"]


def loss_of(params, x, labels):
    logs = jax.nn.log_softmax(logits_of(params, x))
    return -(logs * jax.nn.one_hot(labels, 10)).sum() / x.shape[0]


keys = jax.random.split(jax.random.key(0))
begin = {
    "in": {"w": jax.random.normal(keys[0], (64, 64)) / 8, "b": jnp.zeros(64)},
    "out": {"w": jax.random.normal(keys[1], (64, 10)) / 8, "b": jnp.zeros(10)},
}
x, y = digits("train")
unseen, labels = digits("test")


def say(what, loss, params):
    right = (logits_of(params, unseen).argmax(1) == labels).mean()
    print(f"{what}: loss {float(loss):.4f}, {float(right):.1%} right")


# One line: the loss and its gradient are compiled, the loop stays as it is.
compiled = tandem.jax.wrap(loss_of)
params = begin
for epoch in range(EPOCHS):
    for images, classes in batches(x, y, epoch):
        loss, grads = jax.value_and_grad(compiled)(params, images, classes)
        params = jax.tree.map(lambda p, g: p - RATE * g, params, grads)
say("in a loop of JAX", loss, params)

# The whole step, with its optimizer, is one call.
artifact = tandem.compile(loss_of, (begin, x[:BATCH], y[:BATCH]),
                          optimizer=f"sgd:lr={RATE}")
step = tandem.Step(artifact)
for epoch in range(EPOCHS):
    for images, classes in batches(x, y, epoch):
        loss = step(images, classes)[0]
say("in one call a step", loss, tandem.jax.restore(step, begin))

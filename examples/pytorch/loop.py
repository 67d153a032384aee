"""Digits in PyTorch: a loop of its own whose network is compiled by one line, and
the same training compiled whole.

    python loop.py [FOLDER OF THE DIGITS]

prints how many unseen digits each of the two gets right.
"""

import copy
import sys
from pathlib import Path

import numpy as np
import torch

import tandem
import tandem.torch

BATCH, EPOCHS = 64, 8
folder = Path(sys.argv[1] if len(sys.argv) > 1 else
              Path(__file__).resolve().parent.parent / "digits" / "data")


def digits(name):
    images = np.load(folder / f"{name}_images.npy").reshape(-1, 1, 8, 8)
    labels = np.load(folder / f"{name}_labels.npy")
    return (torch.from_numpy(images.astype(np.float32) / 16),
            torch.from_numpy(labels.astype(np.int64)))


def batches(x, y, seed):
    order = np.random.default_rng(seed).permutation(len(x))
    for rows in order[: len(x) // BATCH * BATCH].reshape(-1, BATCH):
        yield x[rows], y[rows]


torch.manual_seed(0)
x, y = digits("train")
unseen, labels = digits("test")
net = torch.nn.Sequential(
    torch.nn.Conv2d(1, 16, 3, padding=1, bias=False),
    torch.nn.BatchNorm2d(16),
    torch.nn.ReLU(),
    torch.nn.Flatten(),
    torch.nn.Linear(16 * 64, 10),
)
other = copy.deepcopy(net)

# One line: forward and backward are compiled, the loop stays as it is.
net = tandem.torch.optimize(net, (x[:BATCH],))
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
for epoch in range(EPOCHS):
    for images, classes in batches(x, y, epoch):
        loss = torch.nn.functional.cross_entropy(net(images), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
tandem.torch.restore(net).eval()
right = (net(unseen).argmax(1) == labels).float().mean().item()
print(f"in PyTorch's loop: loss {loss.item():.4f}, {right:.1%} right")

# The whole step, with its loss and its optimizer, is one call.
artifact = tandem.compile(other, (x[:BATCH],),
                          loss="cross_entropy:output,labels",
                          optimizer="adamw:lr=2e-3")
step = tandem.Step(artifact)
for epoch in range(EPOCHS):
    for images, classes in batches(x, y, epoch):
        loss = step(images, classes).loss
other.load_state_dict(step.state_dict("torch"))
right = (other.eval()(unseen).argmax(1) == labels).float().mean().item()
print(f"in one call a step: loss {loss.item():.4f}, {right:.1%} right")

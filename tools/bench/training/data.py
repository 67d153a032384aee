"""The data of the recipes: made, but for the text, which is the standard library of the python3 that runs this."""

import os
import sysconfig

import numpy as np


def series(folder, rows):
    """A CSV: 24 values of a sum of waves with noise, x0..x23, and the next one, y."""
    random = np.random.default_rng(1)
    for name, count in rows.items():
        begin = random.uniform(0, 1000, (count, 1))
        t = begin + np.arange(25)
        clean = np.sin(t * 0.31) + 0.6 * np.sin(t * 0.083 + 1) + 0.3 * np.sin(t * 0.77) * np.sin(t * 0.019)
        table = clean + 0.1 * random.standard_normal(clean.shape)
        head = ",".join([f"x{i}" for i in range(24)] + ["y"])
        np.savetxt(os.path.join(folder, f"{name}.csv"), table, fmt="%.5f", delimiter=",", header=head, comments="")


def images(folder, rows):
    """Ten classes: coarse patterns that are moved and nearly drowned in noise."""
    random = np.random.default_rng(2)
    patterns = random.standard_normal((10, 3, 8, 8)).repeat(4, 2).repeat(4, 3)
    for name, count in rows.items():
        labels = random.integers(0, 10, count)
        x = np.stack([np.roll(patterns[k], random.integers(-3, 4, 2), (1, 2)) for k in labels])
        x = 0.5 * x + 1.5 * random.standard_normal(x.shape)
        np.save(os.path.join(folder, f"{name}-x.npy"), x.astype(np.float32))
        np.save(os.path.join(folder, f"{name}-labels.npy"), labels.astype(np.int64))


def text(folder, rows):
    """Bytes as tokens of 16 bits; what is evaluated is behind what is trained on."""
    source, library = b"", sysconfig.get_path("stdlib")
    wanted = {name: 64 * count + 1 for name, count in rows.items()}
    for name in sorted(os.listdir(library)):
        if name.endswith(".py"):
            with open(os.path.join(library, name), "rb") as file:
                source += file.read()
    begin = 0
    for name, size in wanted.items():
        part = np.frombuffer(source[begin : begin + size], np.uint8).astype(np.uint16)
        assert len(part) == size, f"the standard library has {len(source)} bytes"
        part.tofile(os.path.join(folder, f"{name}.bin"))
        begin += size


def sentences(folder, rows, seed=3):
    """Four classes, which differ in how often each of 64 words comes."""
    random = np.random.default_rng(seed)
    often = random.dirichlet(np.full(64, 4.0), 4)
    for name, count in rows.items():
        labels = random.integers(0, 4, count)
        tokens = np.stack([random.choice(64, 32, p=often[k]) for k in labels])
        np.save(os.path.join(folder, f"{name}-tokens.npy"), tokens.astype(np.int64))
        np.save(os.path.join(folder, f"{name}-labels.npy"), labels.astype(np.int64))


def masks(folder, rows):
    """Up to three ellipses in noise, and where they are."""
    random = np.random.default_rng(4)
    v, h = np.mgrid[:32, :32]
    for name, count in rows.items():
        mask = np.zeros((count, 32, 32), bool)
        for one in mask:
            for _ in range(random.integers(1, 4)):
                y, x = random.uniform(4, 28, 2)
                a, b = random.uniform(2, 8, 2)
                one |= ((v - y) / a) ** 2 + ((h - x) / b) ** 2 < 1
        x = mask[:, None] + 0.8 * random.standard_normal((count, 1, 32, 32))
        np.save(os.path.join(folder, f"{name}-x.npy"), x.astype(np.float32))
        np.save(os.path.join(folder, f"{name}-mask.npy"), mask.astype(np.int64))

"""Numbers of the counter generator, bit for bit those of the workloads in C++ (Workloads.h).

mix(z): z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9; z = (z ^ (z >> 27)) * 0x94D049BB133111EB; z ^ (z >> 31), modulo 2^64.
key = mix(seed * 2^32 + stream), bits(i) = mix(key + (i + 1) * 0x9E3779B97F4A7C15).
"""

import math

import numpy as np

CHUNK = 1 << 20  # so that the temporaries of a large tensor are small


def mix(z):
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def bits(stream, low, high, seed=1):
    key = mix(np.array([(seed << 32) + stream], dtype=np.uint64))
    return mix(key + np.arange(low + 1, high + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))


def uniform(stream, shape, scale):
    """f32 in (-scale/2, scale/2): 24 bits less a half, which is exact, times an f32 scale."""
    count = math.prod(shape)
    out = np.empty(count, dtype=np.float32)
    for low in range(0, count, CHUNK):
        high = min(count, low + CHUNK)
        unit = (bits(stream, low, high) >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
        out[low:high] = (unit - np.float32(0.5)) * np.float32(scale)
    return out.reshape(shape)


def integers(stream, shape, below):
    """i64 in [0, below)."""
    high = bits(stream, 0, math.prod(shape)) >> np.uint64(32)
    return ((high * np.uint64(below)) >> np.uint64(32)).astype(np.int64).reshape(shape)

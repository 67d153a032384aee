#!/usr/bin/env python3
"""compare.py ONE TWO BOUND - compares the tensors of two checkpoints; prints how
many numbers there are and how far they are apart at most, by the largest number
of their tensor, or 0.01 where that is less: gradients that are 0 but for rounding
move no further. Exit code 1: further than BOUND, or other tensors."""
import json
import struct
import sys


def tensors(path):
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    header, data = json.loads(data[8 : 8 + size]), data[8 + size :]
    header.pop("__metadata__", None)
    return {name: (row["dtype"], data[slice(*row["data_offsets"])]) for name, row in header.items()}


def numbers(dtype, data):
    if dtype == "BF16":
        return [struct.unpack("<f", b"\0\0" + data[i : i + 2])[0] for i in range(0, len(data), 2)]
    code, size = {"F64": ("d", 8), "F32": ("f", 4), "F16": ("e", 2), "I64": ("q", 8), "I32": ("i", 4),
                  "U8": ("B", 1), "BOOL": ("B", 1)}[dtype]
    return struct.unpack(f"<{len(data) // size}{code}", data)


one, two, bound = tensors(sys.argv[1]), tensors(sys.argv[2]), float(sys.argv[3])
if one.keys() != two.keys():
    sys.exit("the checkpoints do not have the same tensors")
count = unequal = 0
most, where = 0.0, ""
for name, (dtype, data) in one.items():
    other, others = two[name]
    if dtype != other or len(data) != len(others):
        sys.exit(f"'{name}' has another type or size")
    x, y = numbers(dtype, data), numbers(other, others)
    count += len(x)
    if data == others:
        continue
    unequal += sum(a != b for a, b in zip(x, y))
    largest = max(max(map(abs, x)), 1e-2)
    off = max((abs(a - b) if a == a and b == b else float("inf")) for a, b in zip(x, y) if a != b) / largest
    if off > most:
        most, where = off, name
print(f"{count} numbers compared, {unequal} differ, at most by {most:.2g} of their tensor's largest {where}")
sys.exit(0 if count and most <= bound else 1)

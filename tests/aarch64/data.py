#!/usr/bin/env python3
"""data.py KIND SHAPE [HIGH] FILE - random numbers as .npy, always the same: f32
between -1 and 1, or i64 from 0 below HIGH."""
import random
import struct
import sys

kind, shape, *rest = sys.argv[1:]
sizes = [int(size) for size in shape.split("x")]
count = 1
for size in sizes:
    count *= size
numbers = random.Random(26)
if kind == "f32":
    descr = "<f4"
    data = struct.pack(f"<{count}f", *(numbers.uniform(-1, 1) for _ in range(count)))
else:
    descr = "<i8"
    data = struct.pack(f"<{count}q", *(numbers.randrange(int(rest[0])) for _ in range(count)))
shape_text = "(" + ", ".join(map(str, sizes)) + ("," if len(sizes) == 1 else "") + ")"
header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape_text}, }}"
header += " " * (-(len(header) + 11) % 64) + "\n"
with open(rest[-1], "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)

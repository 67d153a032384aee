"""Counts again what `train --histograms` counted, for histograms.sh.

  histograms.py data                      writes x.npy and y.npy, and a batch
  histograms.py numbers LOG NAME FILE     the histogram NAME of the first step
      that LOG has it of is that of FILE (.npy, or .safetensors:TENSOR)
  histograms.py steps LOG STEP...         LOG has histograms of these steps
  histograms.py events FOLDER LOG         events say what LOG says
"""

import collections
import glob
import json
import math
import random
import struct
import sys


def data():
    random.seed(1)
    pixels = [random.random() for _ in range(96 * 64)]
    labels = [random.randrange(10) for _ in range(96)]
    for name, rows in (("", 96), ("32", 32)):
        write(f"x{name}.npy", "<f4", (rows, 64),
              struct.pack(f"<{rows * 64}f", *pixels[:rows * 64]))
        write(f"y{name}.npy", "<i8", (rows,),
              struct.pack(f"<{rows}q", *labels[:rows]))


def write(name, descr, shape, data):
    head = repr({"descr": descr, "fortran_order": False, "shape": shape})
    head += " " * (117 - len(head)) + "\n"
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) +
                   head.encode() + data)


def floats(name):
    path, _, tensor = name.partition(":")
    bytes_ = open(path, "rb").read()
    if tensor:
        size = struct.unpack("<Q", bytes_[:8])[0]
        about = json.loads(bytes_[8:8 + size])[tensor]
        assert about["dtype"] == "F32"
        begin, end = about["data_offsets"]
        bytes_ = bytes_[8 + size + begin:8 + size + end]
    else:
        head = struct.unpack("<H", bytes_[8:10])[0]
        assert b"'<f4'" in bytes_[:10 + head]
        bytes_ = bytes_[10 + head:]
    return struct.unpack(f"<{len(bytes_) // 4}f", bytes_)


def histograms(log):
    return [line for line in map(json.loads, open(log))
            if "histograms" in line]


def numbers(log, name, file):
    found = histograms(log)[0]["histograms"][name]
    values = floats(file)
    finite = [value for value in values if math.isfinite(value)]
    assert found["count"] == len(finite)
    assert found["nonfinite"] == len(values) - len(finite)
    assert found["min"] == min(finite) and found["max"] == max(finite)
    for field, power in (("sum", 1), ("squares", 2)):
        wanted = math.fsum(value ** power for value in finite)
        size = math.fsum(abs(value) ** power for value in finite)
        assert abs(found[field] - wanted) <= 1e-12 * size, (field, wanted)
    counts = collections.Counter()
    for value in finite:
        # Quarters of an octave: the first two bits behind the point.
        if abs(value) < 2.0 ** -40:
            counts[-2.0 ** -40, 2.0 ** -40] += 1
            continue
        fraction, exponent = math.frexp(abs(value))
        quarter = math.floor(8 * fraction)  # 4 to 7
        low, high = (math.ldexp(one / 8, exponent)
                     for one in (quarter, quarter + 1))
        counts[(low, high) if value > 0 else (-high, -low)] += 1
    assert {(low, high): count for low, high, count in found["buckets"]} == counts
    assert found["buckets"] == sorted(found["buckets"])


def steps(log, *wanted):
    assert [str(line["step"]) for line in histograms(log)] == list(wanted)


def fields(message):
    """The fields of a protocol buffer."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = {1: 8, 5: 4}[key & 7] if key & 7 != 2 else varint()
        yield key >> 3, message[at:at + size]
        at += size


def doubles(bytes_):
    return struct.unpack(f"<{len(bytes_) // 8}d", bytes_)


def events(folder, log):
    lines = histograms(log)
    seen = 0
    for path in glob.glob(folder + "/*tfevents*"):
        bytes_ = open(path, "rb").read()
        while bytes_:
            size = struct.unpack("<Q", bytes_[:8])[0]
            event = list(fields(bytes_[12:12 + size]))
            bytes_ = bytes_[16 + size:]
            step = dict(event).get(2)
            for _, value in (value for number, summary in event if number == 5
                             for value in fields(summary)):
                value = dict(fields(value))
                if 5 not in value:
                    continue
                line, = (one for one in lines if one["step"] == step)
                compare(dict(fields(value[5])),
                        line["histograms"][value[1].decode()])
                seen += 1
    assert seen == sum(len(line["histograms"]) for line in lines) > 0


def compare(proto, wanted):
    for number, name in enumerate(("min", "max", "count", "sum", "squares"), 1):
        assert doubles(proto[number])[0] == wanted[name], name
    limits, counts = doubles(proto[6]), doubles(proto[7])
    assert len(limits) == len(counts) and list(limits) == sorted(set(limits))
    begins = dict(zip(limits[1:], limits))
    assert [[begins[limit], limit, count]
            for limit, count in zip(limits, counts) if count] == wanted["buckets"]


globals()[sys.argv[1]](*sys.argv[2:])

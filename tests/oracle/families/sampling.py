"""Images of other sizes, samples of images, signals, quantized numbers."""

import torch
import torch.nn.functional as F

from families.frame import Family, few, given, integers, real

family = Family("sampling")
add = family.add


def squared(op, function, shape, attributes):
    add(op, lambda x: function(x * x), [real(*shape)], nodes=[
        {"op": "mul", "inputs": ["x0", "x0"], "outputs": ["q"]},
        {"op": op, "inputs": ["q"], "outputs": ["y0"], "attributes": attributes}])


MODES = {1: ["nearest", "nearest-exact", "linear"],
         2: ["nearest", "nearest-exact", "bilinear", "bicubic"],
         3: ["nearest", "nearest-exact", "trilinear"]}
for n, shape, size in ((1, (1, 2, 5), [8]), (1, (2, 1, 6), [4]),
                       (2, (1, 2, 3, 4), [5, 6]), (2, (1, 1, 5, 6), [3, 4]),
                       (2, (1, 1, 4, 3), [1, 3]), (3, (1, 1, 2, 3, 4), [3, 5, 2])):
    for mode in MODES[n]:
        squared("interpolate", lambda x, s=size, m=mode: F.interpolate(x, s, mode=m),
                shape, {"size": size, "mode": mode})
        if mode.startswith("nearest"):
            continue
        squared("interpolate", lambda x, s=size, m=mode: F.interpolate(
            x, s, mode=m, align_corners=True), shape,
            {"size": size, "mode": mode, "align_corners": True})
for shape, scale, mode in (((1, 2, 4), [2.0], "nearest"), ((1, 1, 5), [1.5], "linear"),
                           ((1, 1, 3, 4), [2.0, 0.5], "bilinear"),
                           ((1, 1, 4, 4), [1.5, 2.5], "nearest"),
                           ((1, 1, 4, 5), [1.5, 0.75], "bicubic")):
    squared("interpolate", lambda x, s=scale, m=mode: F.interpolate(
        x, scale_factor=s, mode=m), shape, {"scale_factor": scale, "mode": mode})
for mode, torch_mode in (("linear", "bilinear"), ("cubic", "bicubic"),
                         ("nearest", "nearest-exact")):
    squared("resize", lambda x, m=torch_mode: F.interpolate(x, [5, 3], mode=m),
            (1, 1, 3, 4), {"sizes": [5, 3], "dims": [2, 3], "mode": mode,
                           "rounding": "round_prefer_ceil"})
squared("resize", lambda x: F.interpolate(x, [2, 3], mode="bilinear", antialias=True),
        (1, 1, 5, 7), {"sizes": [2, 3], "dims": [2, 3], "mode": "linear",
                       "antialias": True, "exclude_outside": True})
squared("resize", lambda x: F.interpolate(x, [6, 5], mode="bilinear",
                                          align_corners=True),
        (1, 1, 3, 4), {"sizes": [6, 5], "dims": [2, 3], "mode": "linear",
                       "coordinates": "align_corners"})
# Which is nearest is rounded in f32.
for mode, size, result in (("nearest", 14, 18), ("nearest-exact", 14, 9)):
    squared("interpolate", lambda x, s=result, m=mode: F.interpolate(x, [s, 1], mode=m),
            (1, 1, size, 1), {"size": [result, 1], "mode": mode})
squared("resize", lambda x: F.interpolate(x, scale_factor=[0.3, 1.0], mode="nearest"),
        (1, 1, 30, 1), {"scales": [0.30000001192092896, 1.0], "dims": [2, 3],
                        "mode": "nearest", "coordinates": "asymmetric",
                        "rounding": "floor"})

# The places are multiples of 1/64, not between two pixels where images have a
# size of 3, 5 or 7; some lie outside.
for shape, places in (((1, 2, 5, 7), (1, 3, 2)), ((2, 1, 3, 5), (2, 2, 4))):
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            for align in (False, True):
                add("grid_sample", lambda x, g, m=mode, p=padding, a=align:
                    F.grid_sample(x, g, m, p, a),
                    [real(*shape, low=-1), real(*places, 2, low=-1.5, high=1.5)],
                    {"mode": mode, "padding_mode": padding, "align_corners": align},
                    order=1, strides=False)
add("grid_sample", lambda x, g: F.grid_sample(x, g, align_corners=False),
    [real(1, 1, 3, 3, 5), real(1, 2, 2, 1, 3, low=-1.5, high=1.5)],
    {"align_corners": False}, order=1, strides=False)
for size in ([2, 1, 3, 4], [1, 2, 2, 2]):
    for align in (False, True):
        add("affine_grid", lambda t, s=size, a=align: F.affine_grid(t, s, a),
            [real(size[0], 2, 3)], {"size": size, "align_corners": align})
add("affine_grid", lambda t: F.affine_grid(t, [1, 1, 2, 3, 2], False),
    [real(1, 3, 4)], {"size": [1, 1, 2, 3, 2]})


def roi_align(x, rois, batch, size, scale, ratio, aligned):
    """He et al., "Mask R-CNN", 2017: means of bilinear samples."""
    shift = 0.5 if aligned else 0.0
    height, width = x.shape[2:]
    results = []
    for r, b in zip(rois, batch.tolist()):
        x1, y1, x2, y2 = (r * scale - shift).unbind()
        w, h = x2 - x1, y2 - y1
        if not aligned:
            w, h = w.clamp(min=1.0), h.clamp(min=1.0)
        rows = []
        for i in range(size[0]):
            for j in range(size[1]):
                samples = []
                for m in range(ratio):
                    for n in range(ratio):
                        y = y1 + h / size[0] * (i + (m + 0.5) / ratio)
                        z = x1 + w / size[1] * (j + (n + 0.5) / ratio)
                        y = y.clamp(0, height - 1)
                        z = z.clamp(0, width - 1)
                        a, c = int(y), int(z)
                        a1, c1 = min(a + 1, height - 1), min(c + 1, width - 1)
                        image = x[b]
                        samples.append(
                            image[:, a, c] * (1 - (y - a)) * (1 - (z - c))
                            + image[:, a, c1] * (1 - (y - a)) * (z - c)
                            + image[:, a1, c] * (y - a) * (1 - (z - c))
                            + image[:, a1, c1] * (y - a) * (z - c))
                stack = torch.stack(samples)
                rows.append(stack.mean(0))
        results.append(torch.stack(rows, -1).reshape(-1, *size))
    return torch.stack(results)


for aligned in (False, True):
    add("roi_align", lambda x, r, b, a=aligned: roi_align(
        x, r, b, [2, 3], 0.5, 2, a),
        [real(2, 2, 7, 8), given([[1.25, 2.5, 8.75, 11.0], [3.0, 1.0, 12.5, 9.25]]).fixed(),
         given([0, 1], "i64")],
        {"output_size": [2, 3], "spatial_scale": 0.5, "sampling_ratio": 2,
         "aligned": aligned})

for periodic in (True, False):
    for n in (1, 8, 5):
        for op, function in (("hann_window", torch.hann_window),
                             ("hamming_window", torch.hamming_window),
                             ("blackman_window", torch.blackman_window)):
            add(op, lambda f=function, n=n, p=periodic: f(
                n, periodic=p, dtype=torch.float64), [],
                {"window_length": n, "periodic": periodic}, kinds=["f32"])


def spectrum(x, dim, n, onesided, inverse):
    whole = torch.view_as_complex(x.contiguous()) if x.shape[-1] == 2 else x[..., 0]
    if inverse:
        y = torch.fft.ifft(whole, n, dim)
    elif onesided:
        y = torch.fft.rfft(whole, n, dim)
    else:
        y = torch.fft.fft(whole, n, dim)
    return torch.view_as_real(y.resolve_conj())


for shape, dim, n in (((2, 6, 1), 1, 6), ((2, 5, 2), 1, 5), ((4, 3, 1), 0, 6),
                      ((8, 2, 2), 0, 5)):
    for onesided, inverse in ((False, False), (True, False), (False, True)):
        if onesided and shape[-1] == 2:
            continue
        add("dft", lambda x, d=dim, n=n, o=onesided, i=inverse: spectrum(
            x * x, d, n, o, i), [real(*shape)], nodes=[
                {"op": "mul", "inputs": ["x0", "x0"], "outputs": ["q"]},
                {"op": "dft", "inputs": ["q"], "outputs": ["y0"], "attributes": {
                    "dim": dim, "length": n, "onesided": onesided,
                    "inverse": inverse}}], strides=False)
for onesided in (True, False):
    add("stft", lambda x, w, o=onesided: torch.view_as_real(torch.stft(
        x[..., 0], 4, 2, 4, w, center=False, onesided=o, return_complex=True))
        .transpose(1, 2), [real(2, 10, 1), real(4, low=0.25)],
        {"frame_step": 2, "onesided": onesided}, strides=False)

for type, low, high in (("u8", 0, 255), ("i8", -128, 127)):
    for scale, zero in ((0.25, 3), (0.5, 100)):
        zero = zero if type == "u8" else zero - 50
        add("quantize_linear", lambda x, s, z, l=low, h=high: torch.clamp(
            torch.round(x / s) + z.double(), l, h).to(z.dtype),
            [real(4, 5, low=-40, high=40).fixed(), given(scale).fixed(),
             given(zero, type)], order=0)
        add("dequantize_linear", lambda q, s, z: (q.double() - z.double()) * s,
            [integers(4, 5, low=low, high=high + 1, type=type), given(scale),
             given(zero, type)])
    add("quantize_linear", lambda x, s, z, l=low, h=high: torch.clamp(
        torch.round(x / s[:, None]) + z.double()[:, None], l, h).to(z.dtype),
        [real(3, 4, low=-40, high=40).fixed(), given([0.25, 0.5, 1.0]).fixed(),
         given([0, 5, 10], type)], {"dim": 0}, order=0)
# Per channel.
add("dequantize_linear", lambda q, s: q.double() * s[:, None],
    [integers(3, 4, low=-128, high=128, type="i8"), real(3)], {"dim": 0})


def dynamic(x):
    high, low = x.max().clamp(min=0), x.min().clamp(max=0)
    scale = (high - low) / 255
    zero = torch.round(-low / scale).clamp(0, 255)
    q = (torch.round(x / scale) + zero).clamp(0, 255)
    return q.to(torch.uint8), scale, zero.to(torch.uint8)


add("dynamic_quantize_linear", dynamic, [real(3, 5).fixed()], order=0)
add("dynamic_quantize_linear", dynamic, [real(7, low=0.5).fixed()], order=0)


add("integer_matmul", lambda a, b: (a.int() @ b.int()),
    [integers(3, 4, high=256, type="u8"), integers(4, 2, low=-128, high=128, type="i8")])
add("integer_matmul", lambda a, b, z, w: (a.int() - z.int()) @ (b.int() - w.int()),
    [integers(3, 4, high=256, type="u8"), integers(4, 2, high=256, type="u8"),
     given(12, "u8"), given(7, "u8")])
add("quantized_matmul", lambda a, s, z, b, t, w, u, v: torch.clamp(torch.round(
    ((a.double() - z.double()) @ (b.double() - w.double())) * (s * t / u))
    + v.double(), 0, 255).to(torch.uint8),
    [integers(3, 4, high=256, type="u8"), given(0.0078125).fixed(), given(113, "u8"),
     integers(4, 2, high=256, type="u8"), given(0.015625).fixed(), given(114, "u8"),
     given(0.03125).fixed(), given(118, "u8")], order=0)

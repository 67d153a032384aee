"""Reads a folder of results, and makes the tables and the JSON.

A time is the median over turns of each turn's median step, with the least and the greatest of them. Where a cell has two
turns in which other programs kept at most 0.15 processors busy, only such turns count; else all do, marked `~`.
Floors: training max(FLOPs / peak, bytes of forward and backward / triad) + bytes of the update / triad, inference
max(FLOPs / peak, bytes / triad), at the roofs measured for as many threads. The update's bytes are left out where
parameters, gradients and moments fit half of the last-level cache. `ratio`: the fastest peer's time over Tandem's.
"""

import glob
import json
import math
import os
import statistics
import sys

import cells

sys.path.insert(0, cells.PEERS)
import workloads  # noqa: E402

MEANS = dict(ratio="times as fast as the fastest peer", times_floor="x floor",
             ratio_deployed="times as fast as the fastest of ONNX Runtime and PyTorch JIT")
FAMILY_TITLES = dict(torch1="PyTorch 1", torch2="PyTorch 2", jax="JAX", onnxruntime="ONNX Runtime",
                     hand="by hand")


def lines(path):
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [json.loads(line) for line in file if line.strip()]


def last_level_cache():
    best = 0
    for path in glob.glob("/sys/devices/system/cpu/cpu0/cache/*/size"):
        with open(path) as file:
            size = file.read().strip()
        best = max(best, int(size[:-1]) * {"K": 1 << 10, "M": 1 << 20}[size[-1]])
    return best


def roofs(out):
    """{threads: (peak in GFLOP/s, triad in GB/s)}: the best of all measurements."""
    best = {}
    for row in lines(os.path.join(out, "roofs.jsonl")):
        old = best.get(row["threads"], (0, 0))
        best[row["threads"]] = max(old[0], row["gflops"]), max(old[1], row["triad_gbs"])
    return best


def floor_ms(workload, phase, roof, cache):
    counts = workloads.named(workload).counts()
    peak, triad = roof[0] * 1e9, roof[1] * 1e9
    seconds = max(counts[phase + "_flops"] / peak, counts[phase + "_bytes"] / triad)
    if phase == "train" and counts["state_bytes"] >= cache / 2:
        seconds += counts["update_bytes"] / triad
    return seconds * 1e3


def summary(turns):
    clean = [t for t in turns if t["others_busy_cores"] <= 0.15]
    noisy = len(clean) < min(2, len(turns))
    used = [t["median_ms"] for t in (turns if noisy else clean)]
    return dict(ms=statistics.median(used), low=min(used), high=max(used), turns=len(turns), noisy=noisy)


def peers(out):
    """{cell: what was found when it was prepared last}."""
    return {cells.Cell(*(a[k] for k in cells.Cell._fields)): a for a in lines(os.path.join(out, "peers.jsonl"))}


def collect(out):
    rows, groups, roof, cache = [], {}, roofs(out), last_level_cache()
    for turn in lines(os.path.join(out, "turns.jsonl")):
        if "median_ms" in turn:
            key = turn["phase"], turn["workload"], turn["threads"]
            groups.setdefault(key, {}).setdefault((turn["family"], turn["mode"]), []).append(turn)
    order = lambda key: (key[0] != "train", -key[2], workloads.NAMES.index(key[1]))
    for key in sorted(groups, key=order):
        phase, workload, threads = key
        row = dict(workload=workload, phase=phase, threads=threads, peers={})
        for (family, mode), turns in groups[key].items():
            if family == "tandem":
                row["tandem"] = summary(turns)
            else:
                row["peers"][f"{family} {mode}"] = summary(turns)
        if threads in roof:
            row["floor_ms"] = floor_ms(workload, phase, roof[threads], cache)
        if "tandem" in row and "floor_ms" in row:
            row["times_floor"] = row["tandem"]["ms"] / row["floor_ms"]
        times = {name: cell["ms"] for name, cell in row["peers"].items() if not name.startswith("hand")}
        if times:
            row["fastest"] = min(times, key=times.get)
        if times and "tandem" in row:
            row["ratio"] = times[row["fastest"]] / row["tandem"]["ms"]
            deployed = [ms for name, ms in times.items() if name.startswith("onnx") or " jit" in name and "torch" in name]
            if deployed:
                row["ratio_deployed"] = min(deployed) / row["tandem"]["ms"]
        rows.append(row)
    about = peers(out)
    versions = {cell.family.replace("-max", ""): a["version"] for cell, a in about.items() if "version" in a}
    failed = [f"{' '.join(map(str, cell))}: {a['error']}" for cell, a in about.items() if "error" in a]
    return dict(roofs={str(t): dict(gflops=p, triad_gbs=b) for t, (p, b) in sorted(roof.items())}, last_level_cache=cache,
                versions=versions, rows=rows, means=means(rows), scaling=scaling(rows), failed=failed,
                other=lines(os.path.join(out, "other.jsonl")))


def geometric_mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def means(rows):
    made = []
    for phase, threads in dict.fromkeys((r["phase"], r["threads"]) for r in rows):
        chosen = [r for r in rows if (r["phase"], r["threads"]) == (phase, threads)]
        mean = dict(phase=phase, threads=threads)
        for field in ("ratio", "ratio_deployed", "times_floor"):
            values = [r[field] for r in chosen if field in r]
            if values:
                mean[field], mean[field + "_of"] = geometric_mean(values), len(values)
        mean["behind"] = [r["workload"] for r in chosen if r.get("ratio", 1) < 1]
        made.append(mean)
    return made


def scaling(rows):
    """How much faster all threads are than one."""
    times = {(r["phase"], r["workload"], r["threads"]): r["tandem"]["ms"] for r in rows if "tandem" in r}
    return [dict(phase=phase, workload=workload, threads=threads, times=times[phase, workload, 1] / ms)
            for (phase, workload, threads), ms in times.items() if threads > 1 and (phase, workload, 1) in times]


def time(cell):
    return f"{'~' if cell['noisy'] else ''}{cell['ms']:.4g} [{cell['low']:.4g}-{cell['high']:.4g}]" if cell else "-"


def best_of(row, family):
    found = {name: cell for name, cell in row["peers"].items() if name.split()[0].replace("-max", "") == family}
    if not found:
        return "-"
    name = min(found, key=lambda name: found[name]["ms"])
    return f"{found[name]['ms']:.4g} ({name.split()[1]})"


def markdown(titles, rows):
    rows = [titles, ["---"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def number(row, field, form=".2f"):
    return format(row[field], form) if field in row else "-"


def table(data):
    parts = [f"{t} threads: {r['gflops']:.1f} GFLOP/s, triad {r['triad_gbs']:.1f} GB/s\n" for t, r in data["roofs"].items()]
    families = [f for f in FAMILY_TITLES if any(name.split()[0].replace("-max", "") == f
                                                for row in data["rows"] for name in row["peers"])]
    titles = ["workload", "phase", "threads", "Tandem ms [low-high]", "floor ms", "x floor",
              *(f"{FAMILY_TITLES[f]} ({data['versions'].get(f, '')})" for f in families), "fastest", "ratio"]
    body = [[row["workload"], row["phase"], str(row["threads"]), time(row.get("tandem")), number(row, "floor_ms", ".3g"),
             number(row, "times_floor"), *(best_of(row, f) for f in families), row.get("fastest", "-"), number(row, "ratio")]
            for row in data["rows"]]
    parts.append(markdown(titles, body))
    for mean in data["means"]:
        text = [f"{mean[field]:.2f} {what} (of {mean[field + '_of']})"
                for field, what in MEANS.items() if field in mean]
        if text:
            behind = f"; behind on {', '.join(mean['behind'])}" if mean["behind"] else ""
            parts.append(f"{mean['phase']}, {mean['threads']} threads, geometric mean: {', '.join(text)}{behind}\n")
    if data["scaling"]:
        parts.append(markdown(["workload", "phase", "threads", "times as fast as one"],
                              [[s["workload"], s["phase"], str(s["threads"]), f"{s['times']:.2f}"] for s in data["scaling"]]))
    if data["other"]:
        parts.append(markdown(["what", "value", "unit"],
                              [[o["what"], f"{o['value']:.4g}", o["unit"]] for o in data["other"]]))
    if families:
        modes = [[row["workload"], row["phase"], str(row["threads"]), name, time(cell), str(cell["turns"])]
                 for row in data["rows"] for name, cell in sorted(row["peers"].items(), key=lambda item: item[1]["ms"])]
        parts.append(markdown(["workload", "phase", "threads", "peer", "ms [low-high]", "turns"], modes))
    parts += [f"failed: {text}" for text in data["failed"]]
    return "\n".join(parts)


def page_tables(data, date, machine):
    """{phase: a table as tools/bench/results-page takes it}, of the most threads."""
    tables = {}
    for phase, title in (("train", "Training steps"), ("infer", "Inference")):
        rows = [row for row in data["rows"] if row["phase"] == phase and "tandem" in row]
        rows = [row for row in rows if row["threads"] == max(r["threads"] for r in rows)]
        if not rows:
            continue
        families = [f for f in FAMILY_TITLES if f != "hand" and any(best_of(row, f) != "-" for row in rows)]
        names = [f"{FAMILY_TITLES[f]} ({data['versions'].get(f, '')})" for f in families]
        roof = data["roofs"].get(str(rows[0]["threads"]))
        note = f"f32, {rows[0]['threads']} threads, medians with the lowest and the highest."
        if roof:
            note += f" The floor is at {roof['gflops']:.0f} GFLOP/s and {roof['triad_gbs']:.1f} GB/s."
        head = dict(title=title, date=date, machine=machine, command=f"tools/bench/cpu/run --phases={phase}", note=note)
        floors = all("floor_ms" in row for row in rows)
        if floors:
            head["over"] = "Tandem, ms / floor, ms"
        if names:
            head["ratio"] = "|".join(names) + " / Tandem, ms"
        body = [["workload", "Tandem, ms", *(["floor, ms"] if floors else []), *names]]
        for row in rows:
            body.append([row["workload"], time(row["tandem"]).lstrip("~"), *([f"{row['floor_ms']:.3g}"] if floors else []),
                         *(best_of(row, f) for f in families)])
        tables[phase] = "".join(f"# {key}: {value}\n" for key, value in head.items()) + \
            "".join("\t".join(line) + "\n" for line in body)
    return tables

"""Reads a folder of results, and makes the tables and the JSON.

Numbers of seeds: mean and standard deviation, and the p of Welch's test that both sides have one mean. Times: medians over turns, with
the least and the greatest; where at least half of the turns were quiet (noise.py) only those count, else all do, marked `~`. What a
feature adds is the median over rounds of the ratio to the plain step of the same round.
"""

import json
import math
import os
import platform
import statistics

import noise
from recipes import RECIPES
from report import lines, markdown

LEVEL, FEATURE_BAR = 0.01, 1.03


def processor():
    with open("/proc/cpuinfo") as file:
        name = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), platform.machine())
    return f"{name}, {os.cpu_count()} processors"


def welch(a, b):
    """The two-sided p of Welch's t-test; 1 where nothing varies and the means are one."""
    va, vb = statistics.variance(a) / len(a), statistics.variance(b) / len(b)
    distance = abs(statistics.mean(a) - statistics.mean(b))
    if va + vb == 0:
        return 1.0 if distance == 0 else 0.0
    t = distance / math.sqrt(va + vb)
    freedom = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    factor = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    # With x = sqrt(freedom) tan(u), the tail of the density is an integral of cos^(freedom - 1) to a right angle: by Simpson's rule.
    begin, parts = math.atan(t / math.sqrt(freedom)), 2000
    width = (math.pi / 2 - begin) / parts
    value = lambda i: max(0.0, math.cos(begin + i * width)) ** (freedom - 1)
    area = value(0) + value(parts) + sum((4 if i % 2 else 2) * value(i) for i in range(1, parts))
    return min(1.0, 2 * factor * math.sqrt(freedom) * area * width / 3)


def seeds(out):
    """Of each recipe: the numbers of both sides, by seed; what was measured last counts."""
    found = {}
    for row in lines(os.path.join(out, "metrics.jsonl")):
        found.setdefault(row["recipe"], {}).setdefault(row["peer"], {})[row["seed"]] = row.get("value")
    made = []
    for name, peers in found.items():
        one = dict(recipe=name, metric=RECIPES[name].metric)
        for peer, values in peers.items():
            one[peer] = [values[seed] for seed in sorted(values)]
        whole = [one.get(peer, []) for peer in ("tandem", "torch")]
        if all(len(values) > 1 and None not in values for values in whole):
            one["p"] = welch(*whole)
        made.append(one)
    return made


def times(path):
    """By name and peer: the median, the least, the greatest and the rounds."""
    groups = {}
    for row in lines(path):
        if "median_ms" in row:
            groups.setdefault(row["name"], {}).setdefault(row["peer"], []).append(row)
    made = {}
    for name, peers in groups.items():
        for peer, rows in peers.items():
            quiet = [row for row in rows if row["noise"] <= noise.BAR]
            used = rows if 2 * len(quiet) < len(rows) else quiet
            values = [row["median_ms"] for row in used]
            made.setdefault(name, {})[peer] = dict(ms=statistics.median(values), low=min(values), high=max(values), turns=len(values),
                                                   noisy=used is rows and len(quiet) < len(rows), rounds={row["round"]: row["median_ms"] for row in rows})
    return made


def added(measured):
    """Of each workload and feature: the ratios to the plain step over rounds."""
    made = {}
    for name, peers in measured.items():
        plain = peers.get("plain", dict(rounds={}))["rounds"]
        for feature, one in peers.items():
            if feature in ("plain", "accumulate"):
                continue
            ratios = []
            for number, value in one["rounds"].items():
                if feature == "accumulation":
                    other = peers.get("accumulate", dict(rounds={}))["rounds"]
                    if number not in other:
                        continue
                    value = (3 * other[number] + value) / 4
                if number in plain:
                    ratios.append(value / plain[number])
            if ratios:
                made.setdefault(name, {})[feature] = dict(median=statistics.median(ratios), low=min(ratios), high=max(ratios), noisy=one["noisy"])
    return made


def collect(args):
    features = times(os.path.join(args.out, "features.jsonl"))
    steps = times(os.path.join(args.out, "steps.jsonl"))
    versions = [row["version"] for row in lines(os.path.join(args.out, "steps.jsonl")) if row.get("version")]
    return dict(processor=processor(), date=args.date, version=args.version, peer_version=versions[-1] if versions else None,
                threads=args.threads, realtime=args.realtime, seeds=seeds(args.out), steps=steps, features=features, added=added(features))


def spread(values):
    if not values or None in values:
        return "failed" if values else "-"
    deviation = f" ± {statistics.stdev(values):.2g}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.4g}{deviation}"


def time_text(one):
    return f"{'~' if one['noisy'] else ''}{one['ms']:.4g} [{one['low']:.4g} to {one['high']:.4g}]" if one else "-"


def seeds_table(data):
    rows = [[f"{one['recipe']}: {RECIPES[one['recipe']].about}", one["metric"], str(len(one.get("tandem", []))), spread(one.get("tandem")),
             spread(one.get("torch")), f"{one['p']:.2g}" if "p" in one else "-"] for one in data["seeds"]]
    return markdown(["recipe", "number", "seeds", "Tandem", "PyTorch", "p (Welch)"], rows)


def steps_table(data):
    rows = []
    for name, peers in data["steps"].items():
        ours, eager, compiled = (peers.get(peer) for peer in ("tandem", "torch eager", "torch compile"))
        ratio = lambda one: f"{one['ms'] / ours['ms']:.2f}" if one and ours else "-"
        rows.append([name, time_text(ours), time_text(eager), time_text(compiled), ratio(eager), ratio(compiled)])
    return markdown(["recipe", "Tandem, ms", "eager, ms", "torch.compile, ms", "faster than eager by", "than torch.compile by"], rows)


def features_table(data):
    names = list(dict.fromkeys(feature for one in data["added"].values() for feature in one))

    def cell(one):
        return f"{'~' if one['noisy'] else ''}{one['median']:.3f} [{one['low']:.3f} to {one['high']:.3f}]" if one else "-"
    rows = [[name, time_text(data["features"][name].get("plain")), *(cell(one.get(feature)) for feature in names)]
            for name, one in data["added"].items()]
    return markdown(["workload", "plain step, ms", *names], rows)


def failures(data):
    found = []
    for one in data["seeds"]:
        for peer in ("tandem", "torch"):
            if None in one.get(peer, []):
                found.append(f"{one['recipe']} failed with {peer}")
        if one.get("p", 1.0) < LEVEL:
            found.append(f"{one['recipe']}: the means differ (p {one['p']:.2g}, expected at least {LEVEL})")
    for name, peers in data["steps"].items():
        for peer, one in peers.items():
            if "tandem" in peers and one["ms"] < peers["tandem"]["ms"]:
                found.append(f"{name}: a step is slower than with {peer}")
    for name, one in data["added"].items():
        found += [f"{name}: {feature} makes a step {ratio['median']:.3f} as long, expected at most {FEATURE_BAR}"
                  for feature, ratio in one.items() if ratio["median"] > FEATURE_BAR]
    return found


def about(data):
    text = f"{data['processor']}; Tandem {data['version']}"
    if data["peer_version"]:
        text += f", PyTorch {data['peer_version']}"
    turns = " Turns were under SCHED_FIFO, while other programs ran." if data["realtime"] else ""
    return f"{data['date']}, {text}; times with {data['threads']} thread{'s' if data['threads'] > 1 else ''}.{turns}"


def tables(data):
    parts = []
    if data["seeds"]:
        parts.append("Numbers of the rows that were not trained on, mean ± standard deviation over seeds:\n\n" + seeds_table(data))
    if data["steps"]:
        parts.append("A step with all that its recipe has in it (of `gpt` with one batch), medians over turns with the least and the greatest:\n\n"
                     + steps_table(data))
    if data["added"]:
        parts.append("How long a step is with a feature, over that of the plain step (accumulation: the mean of four batches):\n\n"
                     + features_table(data))
    marked = [one for kind in ("steps", "features") for peers in data[kind].values() for one in peers.values() if one["noisy"]]
    if marked:
        parts.append(f"`~`: other programs kept processors busy in most of the turns (noise above {100 * noise.BAR:.0f} %).\n")
    return "\n".join(parts)


def text(data):
    return "\n".join([about(data) + "\n", tables(data), *(f"short of the bar: {one}" for one in failures(data))])


def write_page(path, data):
    """Replaces what stands between the two comments of the page."""
    begin, end = "<!-- tools/bench/training/run -->\n", "<!-- the end -->\n"
    with open(path) as file:
        before, rest = file.read().split(begin)
    after = rest.split(end, 1)[1]
    short = "".join(f"- {one}\n" for one in failures(data))
    short = f"\nShort of the bar:\n\n{short}" if short else ""
    with open(path, "w") as file:
        file.write(f"{before}{begin}{about(data)}\n\n{tables(data)}{short}{end}{after}")


def write(args, data):
    with open(os.path.join(args.out, "results.json"), "w") as file:
        json.dump(data, file, indent=1)
    with open(os.path.join(args.out, "table.md"), "w") as file:
        file.write(text(data) + "\n")

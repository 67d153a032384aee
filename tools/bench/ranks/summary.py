"""Reads a folder of results, and makes the tables and the JSON.

A time is the median over turns of each turn's median step, with the least and the greatest of them; memory is the most of a
rank. Where at least half of the turns were quiet (noise.py), only those count; else all do, marked `~`.
"""

import json
import os
import platform
import statistics

import noise
from report import lines, markdown

NAMES = {"one": "one process", "apart": "two processes apart", "ddp": "ddp", "ddp-synchronized": "ddp, batch norm of all rows", "fsdp": "fsdp"}
EFFICIENCY_BAR, MEMORY_BAR = 0.95, 0.8


def processor():
    with open("/proc/cpuinfo") as file:
        name = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), platform.machine())
    return f"{name}, {os.cpu_count()} processors"


def run_of(turns):
    quiet = [t for t in turns if t["noise"] <= noise.BAR]
    noisy = 2 * len(quiet) < len(turns)
    used = turns if noisy else quiet
    median = lambda key: statistics.median(t[key] for t in used if t.get(key) is not None)
    times = [t["step_ms"] for t in used]
    first = turns[0]
    made = dict(workload=first["workload"], peer=first["peer"], parallel=first["parallel"], ranks=first["ranks"],
                rows_per_rank=first["rows_per_rank"], step_ms=median("step_ms"), low_ms=min(times), high_ms=max(times),
                turns=len(turns), noisy=noisy, peak_mb=max(t["peak_mb"] for t in used))
    for key in ("exposed_ms", "library_mb", "planned_peak_bytes", "arena_peak_bytes"):
        if first.get(key) is not None:
            made[key] = median(key)
    return made


def collect(args, losses):
    groups = {}
    for turn in lines(os.path.join(args.out, "turns.jsonl")):
        if "step_ms" in turn:
            groups.setdefault((turn["workload"], turn["peer"], turn["parallel"], turn["ranks"]), []).append(turn)
    workloads = list(dict.fromkeys(key[0] for key in groups))
    runs = sorted((run_of(turns) for turns in groups.values()),
                  key=lambda run: (workloads.index(run["workload"]), list(NAMES).index(run["parallel"]), run["peer"]))
    peers = lines(os.path.join(args.out, "peers.jsonl"))
    return dict(processor=processor(), date=args.date, version=args.version,
                peer_version=peers[-1]["version"] if peers else None, runs=runs, efficiency=efficiencies(runs), losses=losses)


def find(runs, workload, peer, parallel):
    return next((r for r in runs if (r["workload"], r["peer"], r["parallel"]) == (workload, peer, parallel)), None)


def efficiencies(runs):
    """Of the same rows on each rank: one process's step over that of two; `of_communication` is that of two apart over it."""
    made = []
    for run in runs:
        one, apart = (find(runs, run["workload"], "tandem", kind) for kind in ("one", "apart"))
        if run["peer"] == "tandem" and run["ranks"] > 1 and one:
            made.append(dict(workload=run["workload"], parallel=run["parallel"], ranks=run["ranks"],
                             efficiency=one["step_ms"] / run["step_ms"],
                             of_communication=apart["step_ms"] / run["step_ms"] if apart and run is not apart else None,
                             noisy=one["noisy"] or run["noisy"]))
    return made


def time_text(run):
    return f"{'~' if run['noisy'] else ''}{run['step_ms']:.4g} [{run['low_ms']:.4g} to {run['high_ms']:.4g}]" if run else "-"


def steps_table(data):
    titles = ["workload", "parallel", "ranks", "rows a rank", "step, ms", "exposed, ms", "efficiency", "of two apart", "memory a rank, MB",
              "PyTorch, ms", "its memory, MB (library)", "time ratio", "memory ratio"]
    body = []
    for run in data["runs"]:
        if run["peer"] != "tandem":
            continue
        peer = find(data["runs"], run["workload"], "torch", run["parallel"])
        efficiency = next((e for e in data["efficiency"] if (e["workload"], e["parallel"]) == (run["workload"], run["parallel"])), {})
        ratio = lambda key: f"{efficiency[key]:.3f}" if efficiency.get(key) else "-"
        body.append([run["workload"], NAMES.get(run["parallel"], run["parallel"]), str(run["ranks"]), str(run["rows_per_rank"]),
                     time_text(run), f"{run['exposed_ms']:.3g}" if run.get("exposed_ms") else "-",
                     ratio("efficiency"), ratio("of_communication"), f"{run['peak_mb']:.0f}", time_text(peer),
                     f"{peer['peak_mb']:.0f} ({peer['library_mb']:.0f})" if peer else "-",
                     f"{peer['step_ms'] / run['step_ms']:.2f}" if peer else "-",
                     f"{run['peak_mb'] / peer['peak_mb']:.2f}" if peer else "-"])
    return markdown(titles, body)


def losses_table(rows):
    plans = list(dict.fromkeys(row["parallel"] for row in rows))
    models = list(dict.fromkeys(row["workload"] for row in rows))

    def cell(plan, model):
        row = next((r for r in rows if (r["parallel"], r["workload"]) == (plan, model)), None)
        if row is None:
            return "-"
        if "error" in row:
            return "failed"
        bits = "" if "same_bits" not in row else ", same bits again" if row["same_bits"] else ", OTHER BITS AGAIN"
        return f"{row['difference']:.1e}{bits}" + ("" if row["equal"] else " (TOO FAR)")
    return markdown(["plan", *models], [[plan, *(cell(plan, model) for model in models)] for plan in plans])


def failures(data):
    """What the table must not have."""
    found = [f"losses of {r['workload']} under {r['parallel']}: {r.get('error') or r['difference']}"
             for r in data["losses"] if not r.get("equal") or r.get("same_bits") is False]
    for e in data["efficiency"]:
        if e["parallel"] == "ddp" and e["workload"] in ("resnet8", "gpt") and e["efficiency"] < EFFICIENCY_BAR:
            found.append(f"efficiency of {e['workload']} under ddp: {e['efficiency']:.3f}, expected {EFFICIENCY_BAR}")
    for run in data["runs"]:
        peer = find(data["runs"], run["workload"], "torch", run["parallel"])
        if run["peer"] != "tandem" or not peer:
            continue
        if run["step_ms"] > peer["step_ms"]:
            found.append(f"{run['workload']} under {run['parallel']} is slower than PyTorch")
        if run["parallel"] == "fsdp" and run["peak_mb"] > MEMORY_BAR * peer["peak_mb"]:
            found.append(f"{run['workload']} under fsdp takes {run['peak_mb'] / peer['peak_mb']:.2f} of PyTorch's memory")
    return found


def text(data):
    about = f"{data['processor']}; Tandem {data['version']}"
    if data["peer_version"]:
        about += f", PyTorch {data['peer_version']} (gloo)"
    parts = [f"{about}; {data['date']}\n"]
    if data["runs"]:
        parts.append(steps_table(data))
        if any(run["noisy"] for run in data["runs"]):
            parts.append(f"~: other programs kept processors busy (noise above {100 * noise.BAR:.0f} %) in most of the turns.\n")
    if data["losses"]:
        parts.append("The largest relative difference of 20 losses from those of one process, on 4 ranks:\n")
        parts.append(losses_table(data["losses"]))
    parts += [f"short of the bar: {one}" for one in failures(data)]
    return "\n".join(parts)


def write_page(path, data):
    """Replaces what stands between the two comments of the page."""
    begin, end = "<!-- tools/bench/ranks/run -->\n", "<!-- the end -->\n"
    with open(path) as file:
        before, rest = file.read().split(begin)
    after = rest.split(end, 1)[1]
    about = f"{data['processor']}; Tandem {data['version']}"
    about += f", PyTorch {data['peer_version']} with gloo" if data["peer_version"] else ""
    noisy = any(run["noisy"] for run in data["runs"])
    note = f" `~`: other programs kept processors busy in most of the turns (noise above {100 * noise.BAR:.0f} %)." if noisy else ""
    with open(path, "w") as file:
        file.write(f"{before}{begin}{data['date']}, {about}. Medians, with the least and the greatest of the turns.{note}\n\n"
                   f"{steps_table(data)}{end}{after}")


def write(args, data):
    with open(os.path.join(args.out, "results.json"), "w") as file:
        json.dump(data, file, indent=1)
    with open(os.path.join(args.out, "table.md"), "w") as file:
        file.write(text(data) + "\n")

"""What tools/torch-networks and tools/jax-networks share: compiling a network,
comparing what it trains with the framework, and printing what came of it.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback

import numpy as np

# Of the largest element of a parameter's gradient, but of at least 1e-5 of all
# gradients' for those that are zero but for rounding, as of a bias in front of a
# normalization.
BOUND, BOUND_F64 = 1e-3, 1e-6
NOTHING = 1e-5
# Where a framework has no f64, what its f32 is off is not known: at least one
# rounding of the largest gradient of all, which is seen where a gradient is zero
# but for rounding.
ROUNDING = 2.0 ** -23
# How far off f32 may be, in times of the framework's own.
NOISE = 4
# The rate is a number of f32, in which models keep it: in f64, 1e-4 would be another one in the framework, by 3e-8.
RATE, BETA1, BETA2, DECAY = 2.0**-13, 0.9, 0.999, 0.01


class Refused(Exception):
    """What the compiler or the framework said, and of which kind it is."""

    def __init__(self, kind, why):
        super().__init__(why)
        self.kind, self.why = kind, why


def compiled(path, build, params, options):
    """A step of AdamW of the model in a file."""
    os.environ.setdefault("TANDEM_LIBRARY", str(build / "lib/libtandem.so"))
    import tandem

    run = subprocess.run(
        [str(build / "bin/tandem"), "compile", path, "-o", path.with_suffix(".tdm"), "--force",
         f"--optimizer=adamw:lr={RATE},weight_decay={DECAY}", *options],
        capture_output=True, text=True)
    if run.returncode:
        errors = [line for line in run.stderr.splitlines() if "error" in line] or [run.stderr]
        kind = "unsupported" if run.returncode == 3 else "refused" if run.returncode in (1, 2) else "crashed"
        raise Refused(kind, " / ".join(errors)[:600])
    return tandem.Step(str(path.with_suffix(".tdm")), params=params, threads=1)


def trained(step, inputs, loss, steps):
    """The losses of the steps, and the gradients of the first, which its moments have."""
    losses, gradients = [], {}
    for number in range(steps):
        losses.append(float(np.asarray(step(**inputs)[loss])))
        if number == 0:
            gradients = {
                name.split(":", 1)[1]: np.asarray(value, dtype="f8") / (1 - BETA1)
                for name, value in step.optimizer_state_dict().items()
                if name.startswith("adamw.m:")
            }
    return losses, gradients


def largest(x):
    return float(np.abs(x).max(initial=0))


def gradients_differ(found, wanted, narrow=None, bound=BOUND):
    """The largest difference, the framework's own, and the names of those that are too far off."""
    least = NOTHING * max(map(largest, wanted.values()), default=0.0)
    worst, noise, wrong = 0.0, 0.0, []
    for name, gradient in wanted.items():
        if name not in found:
            wrong.append(f"{name} has no moment")
            continue
        scale = max(largest(gradient), least, 1e-30)
        error = largest(found[name] - gradient) / scale
        own = largest(narrow[name] - gradient) / scale if narrow else 0.0
        if narrow is wanted:
            own = ROUNDING * least / NOTHING / scale
        worst, noise = max(worst, error), max(noise, own)
        if not error <= bound + NOISE * own:
            wrong.append(f"{name} by {error:.1e}, itself {own:.1e}")
    return worst, noise, wrong


def judge(found, wanted, narrow, again):
    """What came of a network: `found`, `wanted` (in f64, or as well as it can be had) and `narrow` (the framework's f32) are losses
    and gradients; `again` gives those of Tandem in f64, where f32 is not enough to tell."""
    losses, gradients = found
    came = {"result": "passed", "why": ""}
    if abs(narrow[0][0] - wanted[0][0]) > BOUND * abs(wanted[0][0]):
        # Another function: random numbers of JAX are others in f64.
        wanted = narrow
    came["gradients"], came["gradient noise"], wrong = gradients_differ(gradients, wanted[1], narrow[1])

    def off(list_, i):
        return abs(list_[i] - wanted[0][i]) / max(abs(wanted[0][i]), 1e-6)

    numbers = range(len(losses))
    why = []
    came["losses"] = max(off(losses, i) for i in numbers)
    came["loss noise"] = max(off(narrow[0], i) for i in numbers)
    if not all(off(losses, i) <= (BOUND if i else BOUND / 10) + NOISE * off(narrow[0], i) for i in numbers):
        why.append(f"losses {losses}, expected {wanted[0]}")
    if wrong:
        why.append(f"{len(wrong)} of {len(wanted[1])} gradients: " + ", ".join(wrong[:6]))
    if why:
        # One activation at 0 may be on the other side of it, and steps go elsewhere from there: then f64 decides.
        try:
            in_f64 = again()
        except Refused as refused:  # cells of Flax begin in f32
            return came | {"result": "wrong", "why": "; ".join([f"no f64 ({refused.why[:60]})", *why])}
        came["in f64"], _, wrong = gradients_differ(in_f64[1], wanted[1], bound=BOUND_F64)
        came["losses in f64"] = max(off(in_f64[0], i) for i in numbers)
        if wrong or not came["losses in f64"] <= BOUND_F64:
            came |= {"result": "wrong", "why": "; ".join([f"in f64 losses {in_f64[0]}", *wrong[:6], *why])}
    return came


def checked(check, name, options, folder):
    begun = time.monotonic()
    try:
        came = check(name, options.build, options.steps, folder)
    except Refused as refused:
        came = {"result": refused.kind, "why": refused.why}
    except Exception:  # noqa: BLE001: belongs to the network
        came = {"result": "failed", "why": traceback.format_exc()[-600:]}
    return {"name": name, **came, "seconds": round(time.monotonic() - begun, 1)}


def table(results):
    lines = ["| network | parameters | result | gradients | in f64 | losses | commit |", "|---|---|---|---|---|---|---|"]
    for r in results:
        pairs = (("gradients", "gradient noise"), ("losses", "loss noise"))
        figures = [f"{r[a]:.0e} ({r[b]:.0e})" if b in r else "" for a, b in pairs]
        in_f64 = [f"{r[k]:.0e}" for k in ("in f64", "losses in f64") if k in r]
        figures.insert(1, ", ".join(in_f64))
        why = "" if r["result"] == "passed" else ": " + r["why"].replace("|", "/").replace("\n", " ")[:200]
        lines.append(f"| {r['name']} | {r.get('parameters', 0) / 1e6:.2f} M | {r['result']}{why} | {' | '.join(figures)} | {r.get('commit', '')} |")
    return lines


class Results:
    """What came of each network: of this run, and of earlier ones where the file has them."""

    def __init__(self, path, networks):
        self.path = pathlib.Path(path) if path else None
        self.order = list(networks)
        kept = json.loads(self.path.read_text()) if self.path and self.path.exists() else []
        self.by_name = {r["name"]: r for r in kept if r["name"] in networks}

    def every(self):
        return sorted(self.by_name.values(), key=lambda r: self.order.index(r["name"]))

    def add(self, result):
        self.by_name[result["name"]] = result
        if self.path:  # after each, for what is stopped in between
            self.path.write_text(json.dumps(self.every(), indent=1) + "\n")


def main(usage, root, networks, check, head):
    """The command: `check(name, build, steps, folder)` compares one network, `head(results)` begins the page."""
    parser = argparse.ArgumentParser(usage=usage)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--build", default=root / "build", type=pathlib.Path)
    parser.add_argument("--steps", default=10, type=int)
    parser.add_argument("--jobs", default=1, type=int)
    parser.add_argument("--json")
    parser.add_argument("--page")
    parser.add_argument("--kept", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list:
        print("\n".join(networks))
        return
    unknown = [n for n in options.names if n not in networks]
    if unknown:
        parser.error(f"no network is called {', '.join(unknown)}; --list prints the names")
    options.build = options.build.resolve()
    commit = subprocess.run(["git", "-C", root, "describe", "--always", "--exclude=*"], capture_output=True, text=True).stdout.strip()
    before = Results(options.json, networks)
    folder = options.keep or pathlib.Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    results = []
    # Each in a process of its own, so that memory is given back.
    with concurrent.futures.ProcessPoolExecutor(options.jobs, max_tasks_per_child=1) as pool:
        asked = [] if options.kept else options.names or networks
        jobs = [pool.submit(checked, check, n, options, folder) for n in asked]
        for job in concurrent.futures.as_completed(jobs):
            r = job.result() | {"commit": commit}
            results.append(r)
            before.add(r)
            figures = " ".join(f"{k} {v:.1e}" for k, v in r.items() if isinstance(v, float) and k != "seconds")
            print(f"{r['name']:20} {r['result']:12} {figures} {r['seconds']} s {r['why']}", flush=True)
            if not options.keep:
                for file in folder.glob(f"{r['name']}.*"):
                    file.unlink()
    counts = collections.Counter(r["result"] for r in results)
    print(", ".join(f"{n} {kind}" for kind, n in counts.most_common()))
    if options.page:
        every = before.every()
        missing = [n for n in networks if n not in before.by_name]
        rest = ["", "These have no result yet: " + ", ".join(missing) + "."] if missing else []
        pathlib.Path(options.page).write_text("\n".join([*head(every), "", *table(every), *rest]) + "\n")
    sys.exit(counts["passed"] != len(results))

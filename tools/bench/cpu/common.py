"""What the stages of a run share: Tandem's programs, the folder of results, what is asked for and what is right."""

import fnmatch
import json
import os
import shlex
import subprocess
import sys

import cells


def say(text):
    print(text, file=sys.stderr, flush=True)


def add(args, name, row):
    with open(os.path.join(args.out, name), "a") as file:
        file.write(json.dumps(row) + "\n")


def require(args, *names):
    """Ends with what to do where a program is not built: tools/quickstart builds tandem and tandem-run alone."""
    missing = [name for name in names if not os.access(os.path.join(args.bin, name), os.X_OK)]
    if missing:
        say(f"run: error: '{args.bin}' has no {', '.join(missing)}; build it with 'ninja -C build {' '.join(missing)}'")
        raise SystemExit(2)


def tool(args, name, *words):
    require(args, name)
    command = [os.path.join(args.bin, name), *words]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{shlex.join(command)}: {done.stderr.strip() or 'failed'}")
    return done.stdout


def artifact(args, workload, phase):
    return os.path.join(args.out, "models", f"{workload}-{phase}.tdm")


def expected(workload):
    return os.path.join(os.path.dirname(cells.PEERS), "workloads", "expected", workload + ".json")


def tolerance(workload):
    """Relative. Which of a residual network's activations near zero pass the relu hangs on the last bits."""
    return 1e-3 if workload.startswith("resnet") else 1e-4


def wrong_losses(workload, losses):
    """A message where the first losses of a peer are not the expected ones."""
    with open(expected(workload)) as file:
        wanted = json.load(file)["losses"]
    if len(losses) >= 3 and all(abs(a - b) <= tolerance(workload) * abs(b) for a, b in zip(losses, wanted)):
        return None
    return f"losses {losses[:3]}, but expected {wanted}"


def chosen(args):
    return [(w, p, t) for w in args.workloads for p in args.phases for t in args.threads]


def asked_for(args, setting):
    return [cell for cell in cells.cells(*setting, args.pythons)
            if any(fnmatch.fnmatch(f"{cell.family} {cell.mode}", pattern) for pattern in args.only)]


def note_peer(args, cell, about):
    add(args, "peers.jsonl", dict(cell._asdict(), **{k: about[k] for k in about if k not in cell._fields}))


def compiled(args, source, name, *options):
    """The program; it is compiled first if it is C."""
    if not source.endswith(".c"):
        return source
    program = os.path.join(args.out, name)
    subprocess.run(["cc", "-O3", "-march=native", *options, "-fopenmp", source, "-o", program, "-lm"], check=True)
    return program

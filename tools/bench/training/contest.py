"""The recipes by commands alone, and the same in PyTorch: numbers over seeds, steps by turns, and what each feature adds to a step."""

import json
import os
import random
import subprocess

import cells
import noise
from common import add, require, say, tool
from recipes import RECIPES, compile_options
from turns import Peer, die_with_parent, run_once

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "torch_training.py")

# What is compiled into a step, over a plain one; `accumulate` is the mean of four batches, of which the last one updates.
FEATURES = {
    "clipping": ["--clip=norm:1.0"],
    "EMA": ["--ema=0.999"],
    "schedule": ["--lr-schedule=cosine:warmup=100,total=10000"],
    "accumulation": ["--accumulate"],
}
WORKLOADS = ["mlp", "resnet8", "gpt"]


def realtime(args):
    return ["chrt", "--fifo", "20"] if args.realtime else []


def environment(args, threads):
    return dict(os.environ, **cells.tuned("torch2", threads, args.out))


def folder(args, name):
    return os.path.join(args.out, name)


def prepare(args, name):
    """Data and models that PyTorch writes, unless they are there (a model.json counts, too); then the step by `tandem compile`."""
    require(args, "tandem", "tandem-run")
    place, last = folder(args, name), f"init-{args.seeds - 1}.safetensors"
    os.makedirs(place, exist_ok=True)
    if not os.path.exists(os.path.join(place, last)):
        if not args.torch:
            raise SystemExit(f"run: error: '{place}' has no {last}; --torch names a python3 with PyTorch that makes it")
        done = subprocess.run([args.torch, PROGRAM, "prepare", name, place, str(args.seeds)], capture_output=True, text=True,
                              env=environment(args, 1))
        if done.returncode:
            raise SystemExit(f"run: error: preparing {name}: {done.stderr.strip()[-600:]}")
    model = os.path.join(place, "model.json" if os.path.exists(os.path.join(place, "model.json")) else "model.pt2")
    options = compile_options(RECIPES[name])
    if model.endswith(".json"):  # such a model has its loss in it
        options = [option for option in options if not option.startswith("--loss=")]
    tool(args, "tandem", "compile", model, "-o", os.path.join(place, "step.tdm"), "--force", *options)


def arrays(option, place, named):
    return [f"--{option}={name}=@{os.path.join(place, of)}" for name, of in named.items()]


def train(args, name, seed):
    recipe, place = RECIPES[name], folder(args, name)
    length = [f"--steps={args.steps}"] if args.steps else [f"--epochs={recipe.epochs}"]
    command = [*realtime(args), os.path.join(args.bin, "tandem-run"), "train", os.path.join(place, "step.tdm"), *length, f"--seed={seed}",
               f"--threads={args.threads}", f"--init-from={os.path.join(place, f'init-{seed}.safetensors')}", *arrays("data", place, recipe.data),
               *arrays("eval", place, recipe.eval), *recipe.train, "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return dict(error=done.stderr.strip()[-600:])
    said = json.loads(done.stdout[done.stdout.index("{"):])
    value = find(said["eval"], recipe.metric)  # the loss of the training is another
    return dict(value=value) if value is not None else dict(error=f"no '{recipe.metric}' in {done.stdout.strip()}")


def find(said, name):
    """The number of an evaluation, however deep it is."""
    if name in said:
        return said[name]
    inner = [find(value, name) for value in said.values() if isinstance(value, dict)]
    return next((value for value in inner if value is not None), None)


def torch_train(args, name, seed):
    command = [*realtime(args), args.torch, PROGRAM, "train", name, folder(args, name), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(args, args.threads))
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines and not done.returncode else dict(error=done.stderr.strip()[-600:])


def metrics(args):
    for name in args.recipes:
        prepare(args, name)
        for seed in range(args.seeds):
            for peer, one in (("tandem", train), ("torch", torch_train)):
                if peer == "torch" and (not args.torch or args.steps):
                    continue
                result = one(args, name, seed)
                add(args, "metrics.jsonl", dict(recipe=name, peer=peer, seed=seed, **result))
                say(f"{name} {peer}, seed {seed}: {result.get('error') or result['value']}")


class Torch(Peer):
    """Steps in PyTorch; real-time in its turns alone, since compiling would stop the other programs for long."""

    def __init__(self, args, name, mode):
        self.peer, self.args = f"torch {mode}", args
        os.makedirs(os.path.join(args.out, "logs"), exist_ok=True)
        self.log = os.path.join(args.out, "logs", f"{name}-{mode}.log")
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([args.torch, PROGRAM, "steps", name, folder(args, name), mode], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=log, env=environment(args, args.threads),
                                            preexec_fn=die_with_parent)

    def turn(self, seconds):
        self.schedule(os.SCHED_FIFO, 20)
        return super().turn(seconds)

    def schedule(self, policy, priority):
        if self.args.realtime:
            for thread in os.listdir(f"/proc/{self.process.pid}/task"):
                os.sched_setscheduler(int(thread), policy, os.sched_param(priority))


class Tandem:
    def __init__(self, args, artifact, peer="tandem", program="step"):
        self.peer = peer
        self.command = [*realtime(args), os.path.join(args.bin, "tandem-run"), "bench", artifact, f"--program={program}",
                        f"--threads={args.threads}", "--json"]

    def turn(self, seconds):
        return run_once([*self.command, f"--seconds={seconds}"])

    def end(self):
        pass


def rounds(args, file, name, ready):
    """Turns, in another order each round, so that nobody always follows the same one."""
    for number in range(args.rounds):
        order = list(ready)
        random.Random(number).shuffle(order)
        for one in order:
            quiet = noise.wait(args)
            result = one.turn(args.seconds)
            kept = {key: result[key] for key in ("error", "median_ms") if key in result}
            add(args, file, dict(name=name, peer=one.peer, round=number, noise=quiet, version=getattr(one, "version", None), **kept))
            if "error" in result:
                say(f"{name} {one.peer}: {result['error']}")
                ready.remove(one)
        say(f"{name}: {number + 1} of {args.rounds} rounds")
    for one in ready:
        one.end()


def steps(args):
    for name in args.recipes:
        prepare(args, name)
        ready = [Tandem(args, os.path.join(folder(args, name), "step.tdm"))]
        for mode in ("eager", "compile") if args.torch else ():
            peer = Torch(args, name, mode)
            about = peer.ready(300)
            if "error" in about:
                say(f"{name} {mode}: {about['error']}")
            else:
                peer.version = about["version"]
                ready.append(peer)
        rounds(args, "steps.jsonl", name, ready)


def features(args):
    require(args, "tandem", "tandem-run", "tandem-workload")
    place = folder(args, "features")
    os.makedirs(place, exist_ok=True)
    for name in args.workloads:
        optimizer = tool(args, "tandem-workload", "optimizer", name).strip()
        model = os.path.join(place, f"{name}.mlir")
        tool(args, "tandem-workload", "write", name, "-o", model)
        ready = []
        for feature, options in {"plain": [], **FEATURES}.items():
            artifact = os.path.join(place, f"{name}-{feature}.tdm")
            tool(args, "tandem", "compile", model, "-o", artifact, "--force", f"--optimizer={optimizer}", *options)
            ready.append(Tandem(args, artifact, feature))
            if feature == "accumulation":
                ready.append(Tandem(args, artifact, "accumulate", "accumulate"))
        rounds(args, "features.jsonl", name, ready)

"""Twenty steps of three models under every plan on four ranks, against one process with the joined batch."""

import os
import struct
import subprocess

from common import require, say, tool

STEPS = 20
DATA, PIPE = "data=4", "pipe=4"
BATCHES = 4  # that a pipeline makes one update of

# Which dimension of a parameter is cut over the axis 'tensor', by the parameter's name: columns of a product, rows of the next.
CUTS = {
    "digits": {r"fc0\.w": ["tensor", None], r"fc0\.b": ["tensor"], r"fc1\.w": [None, "tensor"]},
    "addition": {r".*\.mlp\.up\.w": ["tensor", None], r".*\.mlp\.up\.bias": ["tensor"], r".*\.mlp\.down\.w": [None, "tensor"],
                 r".*\.attention\.out\.w": [None, "tensor"]},
    "resnet8": {r"s.*\.c1\.w": ["tensor", None, None, None], r"s.*\.c1\.[gb]": ["tensor"],
                r"s.*\.c2\.w": [None, "tensor", None, None]},
}
# (plan, mesh); those with 'tp' get the cuts.
PLANS = [("ddp", DATA), ("zero1", DATA), ("zero2", DATA), ("fsdp", DATA), ("tp", "tensor=4"), ("sp", "sequence=4"), ("pp", PIPE),
         ("ddp+tp", "data=2,tensor=2"), ("fsdp+sp", "data=2,sequence=2")]
# Of f32, rates at which 20 steps of a residual network do not blow up the last bits: which activations near zero pass the relu
# hangs on them. In f64 nothing hides behind that.
OPTIMIZERS = {"resnet8": "momentum:lr=2e-3,momentum=0.9"}
MODELS = [*CUTS, "resnet8-f64"]


def write_npy(path, shape, kind, data):
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    head = head.ljust(117) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)


def prepare(args, model, folder):
    """Writes the model and its data; returns (its file, the options that name the data)."""
    examples = os.path.join(args.root, "examples")
    path = os.path.join(folder, model + ".mlir")
    if model == "digits":
        data = os.path.join(examples, "digits", "data")
        return os.path.join(examples, "digits", "mlp.mlir"), [f"--data=x=@{data}/train_images.npy",
                                                              f"--data=labels=@{data}/train_labels.npy"]
    if model == "addition":
        tool(args, "addition-data", folder, "--train", str(128 * STEPS), "--eval", "128")
        tool(args, "addition-gpt", path)
        return path, [f"--data=tokens=@{folder}/train_tokens.npy", f"--data=labels=@{folder}/train_labels.npy"]
    rows = 32 * 5
    state, pixels = 1, bytearray()
    for _ in range(rows * 3 * 32 * 32):
        state = (state * 1664525 + 1013904223) % 2**32
        pixels.append(state >> 24)
    write_npy(folder + "/images.npy", (rows, 3, 32, 32), "|u1", bytes(pixels))
    write_npy(folder + "/classes.npy", (rows,), "|u1", bytes(i * 7 % 10 for i in range(rows)))
    tool(args, "tandem-workload", "write", "resnet8", "-o", path, "--type=f64" if model.endswith("f64") else "--type=f32")
    return path, [f"--data=x=@{folder}/images.npy", f"--data=labels=@{folder}/classes.npy"]


def launched(ranks, command, limit=120):
    """Runs a command in so many processes; returns what it said, after its end with code 0."""
    launcher = ["mpirun", "-n", str(ranks), "--oversubscribe", "--bind-to", "none"] if ranks > 1 else []
    if launcher and os.geteuid() == 0:
        launcher.append("--allow-run-as-root")
    # Ranks that share processors do not spin.
    env = dict(os.environ, OMPI_MCA_mpi_yield_when_idle="1", OMPI_MCA_btl="self,vader")
    done = subprocess.run([*launcher, *command], capture_output=True, text=True, timeout=limit, env=env)
    if done.returncode:
        raise RuntimeError((done.stderr.strip() or done.stdout.strip())[-400:])
    return done.stdout


def losses(path):
    import json

    with open(path) as file:
        return [row["loss"] for row in map(json.loads, file) if "loss" in row][:STEPS]


def train(args, artifact, ranks, data, more, name):
    log = name + ".jsonl"
    for old in (log, name + ".safetensors"):
        if os.path.exists(old):
            os.remove(old)
    launched(ranks, [os.path.join(args.bin, "tandem-run"), "train", artifact, *data, f"--steps={STEPS}", "--seed=0", "--threads=1",
                     f"--log={log}", f"--save={name}.safetensors", *more])
    return losses(log)


def compile_for(args, model, source, artifact, *more):
    optimizer = OPTIMIZERS.get(model, "adamw:lr=2e-3")
    tool(args, "tandem", "compile", source, "-o", artifact, f"--optimizer={optimizer}", "--force", *more)


def tolerance(model):
    return 1e-12 if model.endswith("f64") else 1e-5


def far(got, wanted):
    """The largest relative difference; infinite where losses are missing or no numbers."""
    if len(got) != STEPS or len(wanted) != STEPS or any(a != a or b != b for a, b in zip(got, wanted)):
        return float("inf")
    return max(abs(a - b) / abs(b) for a, b in zip(got, wanted))


def same_bytes(a, b):
    with open(a, "rb") as one, open(b, "rb") as other:
        return one.read() == other.read()


def measure(args):
    """One row a model and plan: the difference, or why there is none."""
    import json

    require(args, "tandem", "tandem-run", "tandem-workload", "addition-gpt", "addition-data")
    folder = os.path.join(args.out, "losses")
    os.makedirs(folder, exist_ok=True)
    rows = []
    for model in args.models:
        source, data = prepare(args, model, folder)
        cuts = os.path.join(folder, model + "-cuts.json")
        with open(cuts, "w") as file:
            json.dump(CUTS[model.removesuffix("-f64")], file)
        alone = {}
        for steps in {bool("pp" in plan) for plan, _ in PLANS if plan in args.plans}:
            accumulate = ["--accumulate"] if steps else []
            name = os.path.join(folder, f"{model}-one{'-accumulates' if steps else ''}")
            compile_for(args, model, source, name + ".tdm", *accumulate)
            alone[steps] = train(args, name + ".tdm", 1, data, [f"--accumulate={BATCHES}"] if steps else [], name)
        for plan, mesh in PLANS:
            if plan not in args.plans:
                continue
            name = os.path.join(folder, f"{model}-{plan}")
            is_pipe, row = "pp" in plan, dict(workload=model, parallel=plan, mesh=mesh, ranks=4)
            try:
                compile_for(args, model, source, name + ".tdm", f"--mesh={mesh}", f"--parallel={plan}",
                            *([f"--shard={cuts}"] if "tp" in plan else []))
                more = [f"--accumulate={BATCHES}"] if is_pipe else []
                got = train(args, name + ".tdm", 4, data, more, name)
                row["difference"] = far(got, alone[is_pipe])
                row["equal"] = row["difference"] <= tolerance(model)
                if plan == "ddp":
                    again = train(args, name + ".tdm", 4, data, more, name + "-again")
                    row["same_bits"] = again == got and same_bytes(name + ".safetensors", name + "-again.safetensors")
            except (RuntimeError, SystemExit, subprocess.TimeoutExpired) as error:
                row["error"] = str(error)[-300:]
            rows.append(row)
            say(f"{model} {plan}: {row.get('error') or row['difference']}")
    return rows

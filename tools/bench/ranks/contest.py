"""Steps of two processes, each on a processor of its own, by turns with PyTorch; and one process of Tandem for the efficiency.

Each rank has the rows that the workload has on one process, so that a step over two processes does twice the work, and would
take as long as one process's step if communication were free and processors shared nothing. They share caches and memory: so
there are two processes apart, too, which never talk, and what they take is what communication is compared with.
"""

import json
import os
import random
import select
import socket
import subprocess
import time

import cells
import noise
from common import add, require, say, tool
from turns import die_with_parent, last_line

RANKS = 2
KINDS = ["one", "ddp", "fsdp"]  # that have an artifact
ROWS = dict(mlp=256, resnet8=32, gpt=8)
# One of a name's options; batch norm of a rank's own rows is what PyTorch's DDP does, and what is compared.
MORE = dict(resnet8=["--batch-norm=per-rank"])
# A rank is on the processor with its number; one process is on each of them by turns, since they may differ.
ON_OWN_PROCESSOR = 'exec taskset -c "${OMPI_COMM_WORLD_LOCAL_RANK:-$ONLY}" "$@"'


def realtime(args):
    return ["chrt", "--fifo", "20"] if args.realtime else []


def launcher(args, ranks):
    words = ["sh", "-c", ON_OWN_PROCESSOR, "sh", *realtime(args)]
    if ranks == 1:
        return words
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return ["mpirun", "-n", str(ranks), "--bind-to", "none", "--oversubscribe", *root, "--mca", "btl", "self,vader", *words]


def artifact(args, workload, kind):
    return os.path.join(args.out, "models", f"{workload}-{kind}.tdm")


def prepare(args):
    require(args, "tandem", "tandem-run", "tandem-workload")
    os.makedirs(os.path.join(args.out, "models"), exist_ok=True)
    for workload in args.workloads:
        optimizer = tool(args, "tandem-workload", "optimizer", workload).strip()
        for kind in KINDS + (["ddp-synchronized"] if workload in MORE else []):
            ranks = 1 if kind == "one" else RANKS
            model = artifact(args, workload, kind)[:-4] + ".mlir"
            tool(args, "tandem-workload", "write", workload, f"--rows={ROWS[workload] * ranks}", "-o", model)
            mesh = [f"--mesh=data={RANKS}", f"--parallel={kind.split('-')[0]}"] if ranks > 1 else []
            batch_norm = MORE.get(workload, []) if ranks > 1 and kind != "ddp-synchronized" else []
            tool(args, "tandem", "compile", model, "-o", artifact(args, workload, kind), f"--optimizer={optimizer}", "--threads=2",
                 "--force", *mesh, *batch_norm)


def bench(args, workload, kind, ranks):
    return [*launcher(args, ranks), os.path.join(args.bin, "tandem-run"), "bench", artifact(args, workload, kind), "--program=step",
            "--threads=1", "--json"]


def start(command, seconds, processor):
    return subprocess.Popen([*command, f"--seconds={seconds}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=dict(os.environ, ONLY=str(processor)), preexec_fn=die_with_parent)


def finish(process, seconds):
    """What `bench` says, or an error."""
    with process:
        try:
            out, err = process.communicate(timeout=60 + 10 * seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            return dict(error="it was not over in time")
    if process.returncode:
        return dict(error=err.strip()[-300:] or f"exit code {process.returncode}")
    return json.loads(out)


class Tandem:
    turns = 0

    def __init__(self, args, workload, kind):
        self.workload, self.peer, self.kind, self.ranks = workload, "tandem", kind, 1 if kind == "one" else RANKS
        self.command = bench(args, workload, kind, self.ranks)

    def turn(self, seconds):
        self.turns += 1
        found = finish(start(self.command, seconds, self.turns % RANKS), seconds)
        if "error" in found:
            return found
        ranks = found.get("each_rank", [{}])
        return dict(step_ms=found["median_ms"], least_ms=found["min_ms"], steps=found["steps"],
                    exposed_ms=found.get("exposed_ms", 0.0), rank_ms=[one.get("median_ms", found["median_ms"]) for one in ranks],
                    planned_peak_bytes=found.get("planned_peak_bytes"), arena_peak_bytes=found["actual_peak_bytes"],
                    peak_mb=max(one.get("peak_rss_bytes", found.get("peak_rss_bytes", 0)) for one in ranks) / 2**20)

    def end(self):
        pass


class Apart:
    """One process's steps on each processor, both at once; a step is that of the slower one."""

    def __init__(self, args, workload):
        self.workload, self.peer, self.kind, self.ranks = workload, "tandem", "apart", RANKS
        self.command = bench(args, workload, "one", 1)

    def turn(self, seconds):
        both = [start(self.command, seconds, processor) for processor in range(RANKS)]
        found = [finish(process, seconds) for process in both]
        for one in found:
            if "error" in one:
                return one
        slowest = max(found, key=lambda one: one["median_ms"])
        return dict(step_ms=slowest["median_ms"], least_ms=slowest["min_ms"], steps=slowest["steps"],
                    rank_ms=[one["median_ms"] for one in found], peak_mb=max(one["peak_rss_bytes"] for one in found) / 2**20)

    def end(self):
        pass


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Torch:
    """Processes that are ready and wait for their turn."""

    def __init__(self, args, workload, kind):
        self.workload, self.peer, self.kind, self.ranks = workload, "torch", kind, 1 if kind == "one" else RANKS
        os.makedirs(os.path.join(args.out, "logs"), exist_ok=True)
        port, program = free_port(), os.path.join(cells.PEERS, "torch_ranks.py")
        self.logs = [os.path.join(args.out, "logs", f"torch-{workload}-{kind}-{rank}.log") for rank in range(self.ranks)]
        self.processes = []
        for rank in range(self.ranks):
            env = dict(os.environ, **cells.tuned("torch2", 1, args.out), RANK=str(rank), WORLD_SIZE=str(self.ranks),
                       MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
            with open(self.logs[rank], "w") as log:
                self.processes.append(subprocess.Popen(
                    ["taskset", "-c", str(rank), *realtime(args), args.torch, program, workload, f"--mode={kind}", f"--rows={ROWS[workload]}"],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=env, preexec_fn=die_with_parent))

    def answer(self, seconds):
        end, output = time.monotonic() + seconds, self.processes[0].stdout
        while time.monotonic() < end:
            if not select.select([output], [], [], max(0.0, end - time.monotonic()))[0]:
                break
            line = output.readline()
            if not line:
                return dict(error="ended: " + last_line(self.logs[0]))
            if line.startswith(b"{"):
                return json.loads(line)
        return dict(error=f"no answer in {seconds:.0f} s")

    def turn(self, seconds):
        for process in self.processes:
            process.stdin.write(f"{seconds}\n".encode())
            process.stdin.flush()
        result = self.answer(60 + 20 * seconds)
        if "error" in result:
            return result
        return dict(step_ms=result["median_ms"], least_ms=result["best_ms"], steps=result["n"], peak_mb=max(result["rank_peak_mb"]),
                    library_mb=result["library_mb"])

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()


def contestants(args, workload):
    kinds = KINDS + (["ddp-synchronized"] if workload in MORE else [])
    ready = [Apart(args, workload), *(Tandem(args, workload, kind) for kind in kinds)]
    if not args.torch:
        return ready
    for kind in ("ddp", "fsdp"):
        peer = Torch(args, workload, kind)
        about = peer.answer(120)
        if "error" in about:
            say(f"{workload} torch {kind}: {about['error']}")
            peer.end()
        else:
            add(args, "peers.jsonl", dict(about, workload=workload))
            ready.append(peer)
    return ready


def measure(args):
    """Turns; what is known of each stands in turns.jsonl."""
    for workload in args.workloads:
        ready = contestants(args, workload)
        for number in range(args.rounds):
            order = list(ready)
            random.Random(number).shuffle(order)  # nobody always follows the same one
            for one in order:
                quiet = noise.wait(args)
                result = one.turn(args.seconds)
                add(args, "turns.jsonl", dict(workload=workload, peer=one.peer, parallel=one.kind, ranks=one.ranks, round=number,
                                              rows_per_rank=ROWS[workload], noise=quiet, **result))
                said = result.get("error") or f"{result['step_ms']:.3f} ms"
                say(f"round {number} {workload} {one.peer} {one.kind}: {said}, noise {100 * quiet:.1f} %")
                if "error" in result:
                    one.end()
                    ready.remove(one)
        for one in ready:
            one.end()

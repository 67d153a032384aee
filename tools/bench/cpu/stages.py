"""The stages of a run. Each reads and adds to the folder of results, so that they can run apart:

prepare   compiles the workloads, compares losses, exports ONNX, lets every peer compile what it keeps on disk (a peer that
          was not prepared is measured as well, if it gets ready within a minute and a half)
roofs     measures the machine, by bench-cpu unless another program is given
measure   rounds
kernels   single kernels, by bench-cpu
other     what is no step: compile time and memory, the cost of a call
"""

import json
import os
import subprocess
import time

import cells
import report
import turns
from common import add, artifact, asked_for, chosen, compiled, expected, note_peer, say, tolerance, tool, wrong_losses
from rounds import measure  # noqa: F401  (one of the stages)

ORDER = ["prepare", "roofs", "measure", "kernels", "other"]


def prepare(args):
    os.makedirs(os.path.join(args.out, "models"), exist_ok=True)
    os.makedirs(os.path.join(args.out, "onnx"), exist_ok=True)
    for workload in args.workloads:
        for phase in args.phases:
            prepare_tandem(args, workload, phase)
        onnx = os.path.join(args.out, "onnx", workload + ".onnx")
        if args.pythons.get("torch1") and "infer" in args.phases and not os.path.exists(onnx):
            say(f"{workload}: exporting ONNX")
            subprocess.run([args.pythons["torch1"], os.path.join(cells.PEERS, "export_onnx.py"), workload, onnx], check=True,
                           stdout=subprocess.DEVNULL)
    known = {cell for cell, about in report.peers(args.out).items() if "error" not in about}
    for setting in chosen(args):
        for cell in asked_for(args, setting):
            if cell not in known:
                prepare_peer(args, cell)


def prepare_tandem(args, workload, phase):
    path, model = artifact(args, workload, phase), os.path.join(args.out, "models", f"{workload}-{phase}.mlir")
    if os.path.exists(path) and os.path.getmtime(path) > os.path.getmtime(os.path.join(args.bin, "tandem")):
        return
    say(f"{workload} {phase}: compiling")
    infer = ["--inference"] if phase == "infer" else []
    tool(args, "tandem-workload", "write", workload, *infer, "-o", model)
    optimizer = tool(args, "tandem-workload", "optimizer", workload).strip()
    tool(args, "tandem", "compile", model, "-o", path, *(infer or [f"--optimizer={optimizer}"]))
    if phase == "train":
        tool(args, "tandem-workload", "check", workload, path, f"--expected={os.path.dirname(expected(workload))}",
             f"--tolerance={tolerance(workload)}")


def prepare_peer(args, cell):
    """Runs a peer for one short turn, and keeps whether it works and calculates what it should."""
    begin = time.monotonic()
    # Its threads do not spin: nothing is measured, and others may work beside it.
    peer = turns.Peer(cell, args.pythons, args.out, OMP_WAIT_POLICY="passive")
    about = peer.ready(900)
    if "error" not in about:
        result = peer.turn(0.01)
        peer.end()
        wrong = wrong_losses(cell.workload, result.get("check_losses", [])) if cell.phase == "train" else None
        if "error" in result or wrong:
            about["error"] = result.get("error") or wrong
    note_peer(args, cell, dict(about, ready_seconds=round(time.monotonic() - begin, 1)))
    say(f"{' '.join(map(str, cell))}: {about.get('error', 'works')}, {time.monotonic() - begin:.0f} s")


def roofs(args):
    both = sorted({1, os.cpu_count()})
    if not args.roof:
        if os.path.exists(os.path.join(args.bin, "bench-cpu")):  # --filter: no kernels
            seen = tool(args, "bench-cpu", "--filter=roofs alone", "--json", f"--threads={','.join(map(str, both))}")
            for row in json.loads(seen)["roofs"]:
                add(args, "roofs.jsonl", dict(threads=row["threads"], gflops=row["f32_gflops"], triad_gbs=row["triad_gbs"]))
        return
    command = [compiled(args, args.roof, "roof"), str(os.cpu_count()), "128", "20"]
    seen = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    for threads in both:
        peak = [e for e in seen["gflops_f32"] if e["what"] == "fma_wide" and e["threads"] == threads]
        triad = [e for e in seen["gbytes_per_s"] if e["what"] == "triad" and e["huge_pages"] and e["threads"] == threads]
        rate = lambda entry: entry["best"] or entry["median_all"]
        add(args, "roofs.jsonl", dict(threads=threads, gflops=rate(peak[0]), triad_gbs=rate(triad[0])))


def kernels(args):
    if os.path.exists(os.path.join(args.bin, "bench-cpu")):
        path = os.path.join(args.out, "kernels")
        with open(path + ".txt", "w") as file:
            subprocess.run([os.path.join(args.bin, "bench-cpu"), f"--json={path}.json"], stdout=file)


def other(args):
    """Compiling the largest workload, and a call of a program of one small op."""
    model = os.path.join(args.out, "models", "gpt2-124m-train.mlir")
    if os.path.exists(model):
        optimizer = tool(args, "tandem-workload", "optimizer", "gpt2-124m").strip()
        begin = time.monotonic()
        process = subprocess.Popen([os.path.join(args.bin, "tandem"), "compile", model, f"--optimizer={optimizer}", "-o",
                                    os.path.join(args.out, "models", "compiled.tdm")])
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise SystemExit("tandem compile: gpt2-124m failed")
        add(args, "other.jsonl", dict(what="compiling gpt2-124m: time", value=time.monotonic() - begin, unit="s"))
        add(args, "other.jsonl", dict(what="compiling gpt2-124m: peak memory", value=usage.ru_maxrss / 2**20, unit="GiB"))
    if os.path.exists(os.path.join(args.bin, "bench-call-overhead")):
        seen = json.loads(tool(args, "bench-call-overhead", "--json"))
        add(args, "other.jsonl", dict(what="a call of a program of one small op", value=seen["one_op_us"], unit="us"))

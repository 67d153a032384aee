#!/usr/bin/env python3
"""Measures steps on 2 and 4 processes of this machine, calibrates by one of them, and
predicts the other: the table of docs/SIMULATION.md.

    local.py build/bin [--realtime] [--workloads gpt,mlp,resnet8] [--plans ddp,fsdp]

Exit code 1: a prediction is off by more than 15 %, or the planned peak is not the measured
one. A step is what `tandem-run bench` measures, each a few times in turns, of which the
median counts. --realtime gives the processes priority over all others, for a
machine that somebody else uses.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

ROUNDS = 3
LIMIT = 15  # percent


class Bench:
    def __init__(self, tools, folder, realtime):
        self.tools, self.folder = tools, folder
        self.before = ["chrt", "-r", "5"] if realtime else []

    def tool(self, name, *arguments):
        return subprocess.run([os.path.join(self.tools, name), *arguments], cwd=self.folder, check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True).stdout

    def compile(self, workload, plan, ranks):
        artifact = f"{workload}-{plan}-{ranks}.tdm"
        optimizer = self.tool("tandem-workload", "optimizer", workload).strip()
        self.tool("tandem", "compile", workload + ".mlir", "-o", artifact, f"--optimizer={optimizer}",
                  f"--mesh=data={ranks}", f"--parallel={plan}")
        return artifact

    def bench(self, artifact, ranks, *more):
        command = [*self.before, "mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks),
                   os.path.join(self.tools, "tandem-run"), "bench", artifact, "--program=step", "--threads=1",
                   "--seconds=1", "--json", *more]
        made = subprocess.run(command, cwd=self.folder, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=120)
        return json.loads(made.stdout)

    def simulate(self, artifact, *more):
        return json.loads(self.tool("tandem", "simulate", artifact, "--json", "--rank-threads=1", *more))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("tools")
    parser.add_argument("--realtime", action="store_true")
    parser.add_argument("--workloads", default="gpt,mlp,resnet8")
    parser.add_argument("--plans", default="ddp,fsdp")
    arguments = parser.parse_args()
    print("| workload | plan | 2 processes | 4 processes | 4 predicted from 2 | difference | 2 predicted from 4 | "
          "difference |")
    print("|---|---|---|---|---|---|---|---|")
    short = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(os.path.abspath(arguments.tools), folder, arguments.realtime)
        for workload in arguments.workloads.split(","):
            bench.tool("tandem-workload", "write", workload, "-o", workload + ".mlir")
            for plan in arguments.plans.split(","):
                artifacts = {ranks: bench.compile(workload, plan, ranks) for ranks in (2, 4)}
                times = {2: [], 4: []}
                peaks = {}
                for _ in range(ROUNDS):
                    for ranks, artifact in artifacts.items():
                        found = bench.bench(artifact, ranks)
                        times[ranks].append(found["median_ms"])
                        peaks[ranks] = found["actual_peak_bytes"]
                measured = {ranks: statistics.median(all) for ranks, all in times.items()}
                row = f"| {workload} | {plan} | {measured[2]:.1f} ms | {measured[4]:.1f} ms |"
                for by, of in ((2, 4), (4, 2)):
                    path = os.path.join(folder, "measured.json")
                    kernels = bench.bench(artifacts[by], by, "--kernels")["kernels"]
                    with open(path, "w") as out:
                        json.dump({"step_ms": measured[by], "ranks": by, "artifact": artifacts[by],
                                   "processors": os.cpu_count(), "kernels": [row for row in kernels if row["ms"] > 0]}, out)
                    simulated = bench.simulate(artifacts[of], f"--calibrate={path}")
                    predicted = simulated["step_ms"]
                    off = 100 * (predicted / measured[of] - 1)
                    row += f" {predicted:.1f} ms | {off:+.1f} % |"
                    if abs(off) > LIMIT:
                        short.append(f"{workload}, {plan}, {of} processes: {off:+.1f} %")
                    if simulated["memory_bytes"] != peaks[of]:
                        short.append(f"{workload}, {plan}, {of} processes: the planned peak is "
                                     f"{simulated['memory_bytes']}, the measured one {peaks[of]}")
                print(row, flush=True)
    print("\n".join(short) or "All peaks are the planned ones, and no difference is above 15 %.")
    return bool(short)


if __name__ == "__main__":
    raise SystemExit(main())

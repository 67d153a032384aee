"""What the peers on the CPU share: arguments, timing, and taking turns.

A peer gives `restart()` (fresh weights and moments) and `step(number)` (one step or call, waited for; the loss as something
that float() takes, or None). By itself it is measured once. With --turns it gets ready, prints a line, and then for every
line of its input, a number of seconds, prints what that turn measured: so several peers that are all ready can be measured
by turns, and none pays for its start. Every turn begins with fresh weights, so all of them do the same work.
"""

import argparse
import json
import os
import statistics
import sys
import time

import workloads

MOST_STEPS = 400  # of a turn


def arguments(description, modes):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", choices=workloads.NAMES)
    parser.add_argument("--phase", default="train", choices=["train", "infer"])
    parser.add_argument("--mode", default=modes[0], choices=modes)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=2.0, help="how long to measure")
    parser.add_argument("--turns", action="store_true", help="read how long to measure from the input, line by line")
    parser.add_argument("--onnx", help="the model's file (ONNX Runtime)")
    args = parser.parse_args()
    # OpenMP and BLAS libraries read these once, when they are loaded.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(args.threads)
    return args


def status(key):
    """A figure of /proc/self/status, in MB."""
    with open("/proc/self/status") as file:
        return next((int(line.split()[1]) / 1024 for line in file if line.startswith(key + ":")), 0.0)


def turn(peer, seconds, train):
    peer.restart()
    begin, warm = time.perf_counter(), 0
    losses = []
    while warm < 2 or (warm < 10 and time.perf_counter() - begin < 0.2 * seconds):
        losses.append(peer.step(warm))
        warm += 1
    times, begin = [], time.perf_counter()
    while len(times) < MOST_STEPS and (len(times) < 3 or time.perf_counter() - begin < seconds):
        start = time.perf_counter()
        value = peer.step(warm + len(times))
        times.append((time.perf_counter() - start) * 1e3)
        if len(losses) < 3:
            losses.append(value)
    times.sort()
    at = lambda part: times[min(len(times) - 1, int(part * len(times)))]
    result = dict(n=len(times), median_ms=statistics.median(times), best_ms=times[0], p10_ms=at(0.1), p90_ms=at(0.9))
    if train:
        result["check_losses"] = [float(loss) for loss in losses[:3]]
        result["final_loss"] = float(value)
    return result


def measure(args, about, peer):
    """`about`: peer, version and what else the result should say."""
    about.update(workload=args.workload, phase=args.phase, mode=args.mode, threads=args.threads)
    train = args.phase == "train"
    if not args.turns:
        about.update(turn(peer, args.seconds, train), peak_rss_mb=status("VmHWM"))
        print(json.dumps(about))
        return
    peer.restart()
    for number in range(3):  # traces and compiles
        peer.step(number)
    print(json.dumps(about), flush=True)
    for line in sys.stdin:
        print(json.dumps(dict(turn(peer, float(line), train), peak_rss_mb=status("VmHWM"))), flush=True)

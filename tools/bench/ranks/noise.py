"""How much the machine does beside what is measured: the same little work, again and again, on two processors at once.

The noise is how much longer the 80th percentile of its repetitions takes than the fastest tenth, on the worse processor.
"""

import json
import multiprocessing
import os
import re
import shutil
import subprocess
import time

REPETITIONS, PIECE = 60, 40_000
BAR = 0.05


def work():
    total = 0
    for i in range(PIECE):
        total += i * i
    return total


def spread(where):
    processor, is_realtime = where
    os.sched_setaffinity(0, {processor})
    if is_realtime:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
    times = []
    for _ in range(REPETITIONS):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    times.sort()
    return times[int(0.8 * REPETITIONS)] / times[REPETITIONS // 10] - 1


_pool = None


def now(args):
    global _pool
    processors = sorted(os.sched_getaffinity(0))[:2]
    if _pool is None:
        _pool = multiprocessing.get_context("fork").Pool(len(processors))
    return max(_pool.map(spread, [(p, args.realtime) for p in processors], chunksize=1))


def wait(args):
    """The noise, once it is below the bar or the patience is over."""
    end = time.monotonic() + args.patience
    seen = now(args)
    while seen > BAR and time.monotonic() < end:
        time.sleep(1)
        seen = now(args)
    return seen


def distance():
    """What `tandem-run doctor` says a line of the caches takes from one processor to another and back, in ns; None where it does not."""
    tandem = os.environ.get("TANDEM") or shutil.which("tandem") or ""
    program = os.path.join(os.path.dirname(tandem), "tandem-run")
    if not os.path.exists(program):
        return None
    said = json.loads(subprocess.run([program, "doctor", "--json"], capture_output=True, text=True).stdout)
    texts = [one["text"] for one in said["findings"] if one["name"] == "caches"]
    found = re.search(r"([0-9]+) ns", texts[0]) if texts else None
    return int(found[1]) if found else None


def wait_near(bar, patience):
    """The distance, once it is at most `bar` or the patience is over: processors of a virtual machine move."""
    end = time.monotonic() + patience
    seen = distance()
    while seen is not None and seen > bar and time.monotonic() < end:
        time.sleep(1)
        seen = distance()
    return seen

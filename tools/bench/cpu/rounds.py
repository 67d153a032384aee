"""The rounds of a run: every peer and Tandem by turns."""

import os
import random
import time

import cells
import report
import turns
from common import add, artifact, asked_for, chosen, compiled, note_peer, say, wrong_losses

KEPT = ["error", "n", "steps", "median_ms", "best_ms", "min_ms", "p10_ms", "p90_ms", "others_busy_cores", "peak_rss_mb",
        "final_loss"]
LEAST_MEMORY = 3.0  # GiB that a peer must find free to be started


def worth_measuring(args, setting):
    """The peers that work, but those that were far behind their family's fastest mode."""
    failed = {cell for cell, about in report.peers(args.out).items() if "error" in about}
    best, family = {}, {}
    for turn in report.lines(os.path.join(args.out, "turns.jsonl")):
        if "median_ms" in turn:
            cell = cells.Cell(*(turn[k] for k in cells.Cell._fields))
            best[cell] = min(best.get(cell, 1e9), turn["median_ms"])
    for cell, ms in best.items():
        key = cell._replace(family=cell.family.replace("-max", ""), mode="")
        family[key] = min(family.get(key, 1e9), ms)
    near = lambda c: best.get(c, 0) <= args.near * family.get(c._replace(family=c.family.replace("-max", ""), mode=""), 1e9)
    return [cell for cell in asked_for(args, setting) if cell not in failed and near(cell)]


def free_memory():
    """In GiB."""
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) / 2**20 for line in file if line.startswith("MemAvailable"))


def start_peers(args, setting):
    """Those that get ready, each standing still; two start at a time, on two processors."""
    known = report.peers(args.out)
    ready, waiting, todo = [], [], worth_measuring(args, setting)
    while todo or waiting:
        while todo and len(waiting) < 2:
            cell = todo.pop(0)
            if free_memory() < LEAST_MEMORY:
                say(f"{' '.join(map(str, cell))}: left out, less than {LEAST_MEMORY} GiB are free")
            else:
                waiting.append(turns.Peer(cell, args.pythons, args.out))
        if not waiting:
            break
        peer = waiting.pop(0)
        about = peer.ready(90)
        if "error" in about:
            say(f"{' '.join(map(str, peer.cell))}: {about['error']}")
            continue
        ready.append(peer)
        if peer.cell not in known:
            note_peer(args, peer.cell, about)
    return ready


def measure(args):
    end = time.monotonic() + args.limit
    for setting in chosen(args):
        measure_setting(args, setting, end)


def take_turn(args, one, number):
    """Whether it went well."""
    result = one.turn(args.seconds)
    wrong = "check_losses" in result and wrong_losses(one.cell.workload, result.pop("check_losses"))
    if wrong:
        result = dict(error=wrong)
    kept = {field: result[field] for field in KEPT if field in result}
    add(args, "turns.jsonl", dict(one.cell._asdict(), round=number, **kept))
    said = f"{result['median_ms']:.3f} ms" if "median_ms" in result else result["error"]
    say(f"round {number} {' '.join(map(str, one.cell))}: {said}")
    return "error" not in result


def measure_setting(args, setting, end):
    earlier = [turn["round"] for turn in report.lines(os.path.join(args.out, "turns.jsonl"))
               if (turn["workload"], turn["phase"], turn["threads"]) == setting]
    peers = start_peers(args, setting)
    others = [turns.Tandem(cells.Cell(*setting, "tandem", ""), args.bin, artifact(args, *setting[:2]))]
    if args.hand and setting[0] == "normchain":
        program = compiled(args, args.hand, "normchain-hand", "-ffast-math")
        others.append(turns.Hand(cells.Cell(*setting, "hand", "C"), program))
    for number in range(max(earlier, default=-1) + 1, max(earlier, default=-1) + 1 + args.rounds):
        near = worth_measuring(args, setting)
        for peer in [peer for peer in peers if peer.cell not in near]:
            peer.end()
            peers.remove(peer)
        order = [*others, *peers]
        random.Random(number).shuffle(order)  # nobody always follows the same one
        for one in order:
            if time.monotonic() > end or take_turn(args, one, number):
                continue
            if one in peers:
                one.end()
            (peers if one in peers else others).remove(one)
    for peer in peers:
        peer.end()

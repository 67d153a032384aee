"""Peers that are ready and measured by turns, and Tandem, which starts anew for each of its turns."""

import ctypes
import json
import os
import resource
import select
import signal
import subprocess
import time

import cells

PR_SET_PDEATHSIG = 1


def die_with_parent():
    """In the child: also a stopped one ends when this program does."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def busy_seconds():
    """Processor time that everything on the machine has taken."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, softirq, stolen = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + stolen) / os.sysconf("SC_CLK_TCK")


class Others:
    """How many processors everything else kept busy: `own` gives this measurement's processor time."""

    def __init__(self, own):
        self.own = own

    def __enter__(self):
        self.begin = time.perf_counter(), busy_seconds(), self.own()
        return self

    def __exit__(self, *_):
        wall, busy, own = time.perf_counter() - self.begin[0], busy_seconds() - self.begin[1], self.own() - self.begin[2]
        self.cores = round(max(0.0, busy - own) / max(wall, 1e-9), 3)


class Peer:
    """A peer's process, stopped while it is not its turn."""

    def __init__(self, cell, pythons, out, **environment):
        self.cell = cell
        os.makedirs(os.path.join(out, "logs"), exist_ok=True)
        self.log = os.path.join(out, "logs", "-".join(map(str, cell)) + ".log")
        env = {**os.environ, **cells.tuned(cell.family, cell.threads, out), **environment}
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([*cells.command(cell, pythons, out), "--turns"], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=log, env=env, preexec_fn=die_with_parent)

    def answer(self, seconds):
        """The next line that the process prints, or an error."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))[0]:
                break
            line = self.process.stdout.readline()
            if not line:
                return dict(error="ended: " + last_line(self.log))
            if line.startswith(b"{"):
                return json.loads(line)
        return dict(error=f"no answer in {seconds:.0f} s")

    def ready(self, seconds):
        about = self.answer(seconds)
        if "error" in about:
            self.end()
        else:
            self.process.send_signal(signal.SIGSTOP)
        return about

    def time(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def turn(self, seconds):
        self.process.send_signal(signal.SIGCONT)
        with Others(self.time) as others:
            self.process.stdin.write(f"{seconds}\n".encode())
            self.process.stdin.flush()
            result = self.answer(60 + 20 * seconds)
        if "error" in result:
            self.end()
        else:
            self.process.send_signal(signal.SIGSTOP)
        return dict(result, others_busy_cores=others.cores)

    def end(self):
        self.process.kill()
        self.process.wait()


def last_line(path):
    with open(path, errors="replace") as file:
        lines = [line.strip() for line in file if line.strip()]
    return lines[-1][:200] if lines else "no message"


def children_time():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run_once(command):
    """What a program that starts anew for each turn prints as JSON."""
    with Others(children_time) as others:
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return dict(error=(done.stderr.strip() or "failed")[-200:])
    return dict(json.loads(done.stdout), others_busy_cores=others.cores)


class Tandem:
    """One compiled program; `step_ms` is what a step took last, for choosing how many to time."""

    step_ms = 0.0

    def __init__(self, cell, binaries, artifact):
        self.cell, program = cell, "step" if cell.phase == "train" else "evaluate"
        self.command = cells.pinned(cell.threads) + [os.path.join(binaries, "tandem-run"), "bench", artifact,
                                                     f"--program={program}", f"--threads={cell.threads}", "--json"]

    def turn(self, seconds):
        result = run_once([*self.command, "--steps=3" if self.step_ms * 3e-3 > seconds else f"--seconds={seconds}"])
        self.step_ms = result.get("median_ms", 0.0)
        return result


class Hand:
    """A C program that does what normchain does; it is no peer, but says what is possible."""

    def __init__(self, cell, program):
        self.cell = cell
        self.command = cells.pinned(cell.threads) + [program, cell.phase, str(cell.threads), "400"]

    def turn(self, seconds):
        return run_once([*self.command, str(seconds)])

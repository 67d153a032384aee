"""What a command leaves where the power fails: tools/faults --kind=power."""

import collections
import json
import os
import pathlib
import random
import shutil
import struct
import sys

import recorded_disk


def tensors(data):
    """Names and bytes of a safetensors file; None of what is none."""
    try:
        size, = struct.unpack("<Q", data[:8])
        header = json.loads(data[8:8 + size])
        body = data[8 + size:]
        facts = header.pop("__metadata__", {})
        ends = [entry["data_offsets"][1] for entry in header.values()]
        if max(ends, default=0) != len(body):
            return None
        parts = {name: body[slice(*entry["data_offsets"])] for name, entry in header.items()}
    except (struct.error, ValueError, KeyError, TypeError, AttributeError):
        return None
    return facts, parts


class PowerCuts:
    """What is left of one command's files after each of its changes."""

    def __init__(self, faults, name, command, outputs):
        self.faults, self.name, self.words, self.outputs = faults, name, command, outputs
        self.record = os.path.join(os.path.dirname(faults.base), "record")
        self.library = os.path.join(os.path.dirname(faults.args.library), "librecord-files.so")
        self.random, self.tally, self.seen = random.Random(faults.args.seed), collections.Counter(), set()

    def read(self, folder, output):
        """The content of an output; of an index that of all its tensors. None: it is not there. False: it is broken."""
        data = folder.get(output)
        if data is None or not output.endswith(".index.json"):
            return data
        try:
            place = json.loads(data)["weight_map"]
        except (ValueError, KeyError, TypeError):
            return False
        files = {file: tensors(folder.get(file, b"")) for file in set(place.values())}
        if None in files.values() or any(name not in files[file][1] for name, file in place.items()):
            return False
        return b"".join(name.encode() + files[file][1][name] for name, file in sorted(place.items()))

    def wrong(self, folder, isEnd):
        for output in self.outputs:
            data = self.read(folder, output)
            if output.endswith(".jsonl"):
                continue
            if isEnd and data != self.whole[output]:
                return f"'{output}' is not what the command said that it wrote"
            if data is None and self.before[output] is not None:
                return f"'{output}' is gone"
            if data is False or data not in self.versions[output]:
                return f"'{output}' is neither an older nor a whole new one"
        log, checkpoint = folder.get("out.jsonl", b""), folder.get("out.safetensors")
        if "out.jsonl" in self.outputs and checkpoint:
            steps = [json.loads(line)["step"] for line in log.split(b"\n")[:-1] if line.startswith(b"{") and line.endswith(b"}")]
            for step in range(1, int(tensors(checkpoint)[0]["tandem.total_steps"]) + 1):
                if step not in steps:
                    return f"the checkpoint is ahead of its log, which has no step {step}"
        return ""

    def goesOn(self, folder):
        """Goes on with the training of what is left; what is wrong with its end."""
        shutil.rmtree(self.faults.work)
        os.mkdir(self.faults.work)
        for name, data in folder.items():
            with open(os.path.join(self.faults.work, name), "wb") as file:
                file.write(data)
        command, data = self.words, folder.get("out.safetensors")
        if data:
            done = int(tensors(data)[0]["tandem.total_steps"])
            command = [word for word in command if not word.startswith(("--steps", "--seed", "--resume"))]
            command += ["--resume=out.safetensors", f"--steps={3 - done}"]
        if data is None or done < 3:
            code, text = self.faults.call(command)
            if code != 0:
                return f"goes not on: {code}, {text.strip()[-200:]}"
            if self.faults.read(self.faults.work, "out.safetensors") != self.whole["out.safetensors"]:
                return "goes on to another end"
            left = [name for name in os.listdir(self.faults.work) if ".tandem-" in name]
            if left:
                return f"leaves {left}"
        return ""

    def look(self, disk, place, isEnd=False):
        for folder in disk.cuts(self.random, self.faults.args.drawn):
            key = hash((isEnd, tuple(sorted(folder.items()))))
            self.tally["cuts"] += 1
            if key in self.seen:
                continue
            self.seen.add(key)
            self.tally["folders"] += 1
            problem = self.wrong(folder, isEnd)
            if not problem and self.name in ("train", "replace") and self.random.random() < 0.1:
                self.tally["trainings"] += 1
                problem = self.goesOn(folder)
            if problem:
                self.tally["wrong"] += 1
                print(f"{self.name} power, after change {place}: {problem}", flush=True)

    def run(self):
        faults = self.faults
        faults.fresh(self.name)
        disk, again = (recorded_disk.Disk(faults.work) for _ in range(2))
        before = dict(disk.names)
        open(self.record, "wb").close()
        code, text = faults.call(self.words, LD_PRELOAD=self.library, TANDEM_RECORD=self.record)
        if code != 0:
            sys.exit(f"faults: '{self.name}' fails while it is recorded: {text}")
        records = list(recorded_disk.Disk.records(self.record))
        with os.scandir(faults.work) as entries:
            end = {entry.name: pathlib.Path(entry.path).read_bytes() for entry in entries if entry.is_file()}
        self.whole = {output: self.read(end, output) for output in self.outputs}
        # A version on the way is what a name was given.
        self.versions = {output: {self.whole[output]} for output in self.outputs}
        for record in records:
            if again.apply(record) and record[0] == recorded_disk.RENAMED:
                for output in self.outputs:
                    self.versions[output].add(self.read({name: bytes(file.data) for name, file in again.names.items()}, output))
        if {name: bytes(file.data) for name, file in again.names.items()} != end:
            sys.exit(f"faults: '{self.name}' changes files by calls that are not recorded")
        self.before = {output: self.read({name: file.durable for name, file in before.items()}, output) for output in self.outputs}
        for output, data in self.before.items():
            self.versions[output].add(data)
        self.look(disk, 0)
        changes = 0
        for record in records:
            if disk.apply(record):
                changes += 1
                self.look(disk, changes)
        self.look(disk, changes, isEnd=True)
        print(f"{self.name} power: {changes} changes, {self.tally['folders']} folders after a cut", flush=True)
        return self.tally

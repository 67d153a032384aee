"""What a disk may hold after a loss of power.

A Disk is a folder of which every change is known in order (tests/faults/RecordFiles.c). What was synced is there; of the rest any
part may be: a name without its data, data without its name, sectors of one write without those of another, a later change of a
folder without an earlier one. That is what POSIX leaves open, and more than most file systems do.
"""

import os
import struct

SECTOR = 512
RECORD = "<6Q"
MADE, WRITTEN, RESIZED, SYNCED, RENAMED, REMOVED = range(6)


class File:
    def __init__(self, data=b""):
        self.durable, self.data, self.isChanged = data, bytearray(data), False
        self.least = len(data)  # size since it was synced

    def write(self, at, data):
        self.data.extend(bytes(max(0, at + len(data) - len(self.data))))
        self.data[at:at + len(data)] = data
        self.isChanged = True

    def resize(self, size):
        del self.data[size:]
        self.least = min(self.least, size)
        self.data.extend(bytes(size - len(self.data)))
        self.isChanged = True

    def sync(self):
        self.durable, self.isChanged, self.least = bytes(self.data), False, len(self.data)

    def after(self, how, random):
        """Its content after a cut: `how` is "synced", "all", "empty", "zeros" or "sectors"."""
        if not self.isChanged or how == "synced":
            return self.durable
        if how == "all":
            return bytes(self.data)
        if how == "empty" or how == "zeros":  # new blocks that were never written
            kept = len(self.data) if how == "zeros" else self.least
            return self.durable[:kept].ljust(kept, b"\0")
        size = random.choice([self.least, len(self.data), random.randint(self.least, max(len(self.data), len(self.durable)))])
        old, new = self.durable.ljust(size, b"\0"), bytes(self.data).ljust(size, b"\0")
        sectors = (random.choice([old, new])[at:at + SECTOR] for at in range(0, size, SECTOR))
        return b"".join(sectors)[:size]


class Disk:
    def __init__(self, folder):
        """Takes what the folder holds for durable."""
        self.folder, self.byNumber, self.changes = os.path.realpath(folder), {}, []
        self.names, self.durable = {}, {}
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if os.path.isdir(path):
                continue
            with open(path, "rb") as file:
                self.names[name] = self.byNumber[os.stat(path).st_ino] = File(file.read())
        self.durable = dict(self.names)

    @staticmethod
    def records(path):
        """(kind, file, at, name, other name, data) of each."""
        with open(path, "rb") as file:
            while head := file.read(struct.calcsize(RECORD)):
                kind, number, at, *sizes = struct.unpack(RECORD, head)
                name, other, data = (file.read(size) for size in sizes)
                yield kind, number, at, os.fsdecode(name), os.fsdecode(other), data

    def inside(self, path):
        """The name of a path in the folder; None of one that is not in it."""
        folder, name = os.path.split(os.path.normpath(path))
        return name if os.path.realpath(folder) == self.folder else None

    @staticmethod
    def change(names, what):
        old, new, file = what
        names.pop(old, None)
        if new:
            names[new] = file

    def apply(self, record):
        """Returns whether it was about this folder."""
        kind, number, at, path, other, data = record
        if kind in (MADE, RENAMED, REMOVED):
            name = self.inside(path)
            if name is None:
                return False
            if kind == MADE:
                linked = [file for file in self.names.values() if file is self.byNumber.get(number)]
                file = self.byNumber[number] = linked[0] if linked else File()
                what = None, name, file
            else:
                what = name, self.inside(other) if kind == RENAMED else None, self.names.get(name)
            self.change(self.names, what)
            self.changes.append(what)
            return True
        if kind == SYNCED and path:
            if os.path.realpath(path) != self.folder:
                return False
            self.durable, self.changes = dict(self.names), []
            return True
        file = self.byNumber.get(number)
        if file is None:
            return False
        if kind == WRITTEN:
            file.write(at, data)
        elif kind == RESIZED:
            file.resize(at)
        else:
            file.sync()
        return True

    def namesAfter(self, how, random):
        """Which file each name has after a cut: of the changes since the folder was synced none, all, or any."""
        names = dict(self.durable)
        for what in self.changes:
            if how == "all" or (how == "any" and random.random() < 0.5):
                self.change(names, what)
        return names

    def cuts(self, random, drawn):
        """Folders that there may be after a cut now: the extremes, and some that are drawn."""
        ways = [(names, data) for names in ("none", "all") for data in ("synced", "all", "empty", "zeros", "sectors")]
        ways += [("any", random.choice(["synced", "all", "sectors", "sectors"])) for _ in range(drawn)]
        for names, data in ways:
            yield {name: file.after(data, random) for name, file in self.namesAfter(names, random).items()}

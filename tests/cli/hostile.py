#!/usr/bin/env python3
"""hostile.py IN.tdm OUT.tdm CALL [PATH]: an artifact whose kernels do something else, with right checksums.

In place of each kernel (x86-64) there is one system call, after which the process ends with exit code 66, if it was carried out, or 67.
"""

import struct
import sys
import zlib

SYSTEM = {"socket": (41, 2, 1, 0), "execve": (59, "path", 0, 0), "fork": (57,), "kill": (62, 1, 0), "ptrace": (101, 0), "io_uring_setup": (425, 1, "path"),
          "read": (257, -100, "path", 0), "create": (257, -100, "path", 0o101, 0o600), "empty": (257, -100, "path", 0o1000), "owner": (257, -100, "path", 0o101, 0o4755), "chmod": (90, "path", 0o777),
          "unlink": (87, "path"), "rename": (82, "path", "path"), "truncate": (76, "path", 0), "process": (56, 17), "x32": (0x40000000 + 41, 2, 1, 0),
          "signals": (72, 0, 8, 1), "typed": (16, 0, 0x5412, "path"),
          "prlimit": (302, 1, 7, 0, "path"),
          "neither": (257, -100, "path", 3), "permissions": (91, 0, 0o666), "handler": (13, 31, 0, "path", 8), "lease": (72, 0, 1024, 0),
          "unnamed": (257, -100, "path", 0o20200002, 0o6777), "send": (1, 1500, "path", 3)}
REGISTERS = [b"\x48\xbf", b"\x48\xbe", b"\x48\xba", b"\x49\xba"]  # rdi, rsi, rdx, r10 = 64 bits
FROM_RBX = [b"\x48\x89\xdf", b"\x48\x89\xde", b"\x48\x89\xda", b"\x49\x89\xda"]


def code_of(name, path):
    code = b""
    text = path.encode() + b"\0"
    text += b"\0" * (-len(text) % 8)
    for at in range(len(text) - 8, -1, -8):
        code += b"\x48\xb8" + text[at:at + 8] + b"\x50"  # rax = ...; push rax
    if name == "int80":  # socketcall of 32 bits
        code += b"\xb8" + struct.pack("<I", 102) + b"\xcd\x80"
    else:
        number, *arguments = SYSTEM[name]
        code += b"\x48\x89\xe3"  # rbx = rsp
        for register, value in zip(REGISTERS, arguments):
            if value == "path":
                code += FROM_RBX[REGISTERS.index(register)]
            else:
                code += register + struct.pack("<q", value)
        code += b"\xb8" + struct.pack("<I", number) + b"\x0f\x05"
    # exit_group(rax < 0 ? 67 : 66)
    return code + b"\x48\x85\xc0\x78\x07\xbf\x42\x00\x00\x00\xeb\x05\xbf\x43\x00\x00\x00\xb8\xe7\x00\x00\x00\x0f\x05"


def replace_kernels(elf, code):
    """Lets each function that the shared object exports jump to `code`, which lies over other code; returns how many do."""
    sections = struct.unpack_from("<Q", elf, 40)[0]
    size, count = struct.unpack_from("<HH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, sections + i * size) for i in range(count)]
    starts = []
    for header in headers:
        if header[1] != 11:  # SHT_DYNSYM
            continue
        for at in range(header[4], header[4] + header[5], 24):
            _, info, _, section, value, _ = struct.unpack_from("<IBBHQQ", elf, at)
            if info & 15 == 2 and section != 0:
                starts.append(headers[section][4] + value - headers[section][3])
    starts.sort()
    # Behind a function that has as much code before the next.
    free = next(a + 16 for a, b in zip(starts, starts[1:]) if b - a >= 16 + len(code))
    for start in starts:
        struct.pack_into("<Bi", elf, start, 0xe9, free - start - 5)
    elf[free:free + len(code)] = code
    return len(starts)


def main():
    source, target, name, *path = sys.argv[1:]
    file = bytearray(open(source, "rb").read())
    count = struct.unpack_from("<I", file, 12)[0]
    done = 0
    for i in range(count):
        entry = 32 + 40 * i
        title, offset, size = struct.unpack_from("<16sQQ", file, entry)
        if not title.startswith(b"object.cpu"):
            continue
        elf = file[offset:offset + size]
        done += replace_kernels(elf, code_of(name, path[0] if path else ""))
        file[offset:offset + size] = elf
        struct.pack_into("<I", file, entry + 32, zlib.crc32(elf))
    struct.pack_into("<I", file, 24, zlib.crc32(file[32:32 + 40 * count]))
    if not done:
        sys.exit("the artifact has no kernel")
    with open(target, "wb") as out:
        out.write(file)


if __name__ == "__main__":
    main()

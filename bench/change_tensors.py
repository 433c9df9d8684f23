#!/usr/bin/env python3
"""Copy a GGUF file with other tensors: what a server with a fault serves (server_verdicts.py).

usage: change_tensors.py IN OUT PREFIX FILE      tensors of that prefix are FILE's, as they are there
       change_tensors.py IN OUT NAME FACTOR      a tensor of F32 or F16 is multiplied
"""
import mmap
import pathlib
import struct
import sys

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # of a value, by type
STRING, ARRAY = 8, 9
ALIGNMENT = 32


class File:
    """keys: their bytes, as they are; tensors: {name: (bytes of the shape and type, data)}."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.bytes = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
        self.at = 8
        n_tensors, self.n_keys = self.take("QQ")
        begin = self.at
        for _ in range(self.n_keys):
            self.skip_string()
            self.skip(self.take("I")[0])
        self.keys = self.bytes[begin:self.at]
        infos = []
        for _ in range(n_tensors):
            n, = self.take("Q")
            name = self.bytes[self.at:self.at + n].decode()
            self.at += n
            begin = self.at
            n_dims, = self.take("I")
            self.at += 8 * n_dims + 4
            infos.append((name, self.bytes[begin:self.at], self.take("Q")[0]))
        data = (self.at + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        ends = sorted(offset for _, _, offset in infos) + [len(self.bytes) - data]
        self.tensors = {name: (info, self.bytes[data + at:data + min(e for e in ends if e > at)])
                        for name, info, at in infos}

    def take(self, form):
        values = struct.unpack_from("<" + form, self.bytes, self.at)
        self.at += struct.calcsize("<" + form)
        return values

    def skip_string(self):
        n, = self.take("Q")
        self.at += n

    def skip(self, kind):
        if kind == STRING:
            self.skip_string()
        elif kind == ARRAY:
            of, n = self.take("IQ")
            if of in SIZES:
                self.at += n * SIZES[of]
            else:
                for _ in range(n):
                    self.skip(of)
        else:
            self.at += SIZES[kind]


def multiplied(tensor, factor):
    info, data = tensor
    form = {0: "f", 1: "e"}[struct.unpack("<I", info[-4:])[0]]
    n = len(data) // struct.calcsize(form)
    return info, struct.pack(f"<{n}{form}", *(factor * x for x in struct.unpack(f"<{n}{form}", data)))


def write(path, model):
    infos, at = b"", 0
    for name, (info, data) in model.tensors.items():
        infos += struct.pack("<Q", len(name)) + name.encode() + info + struct.pack("<Q", at)
        at += (len(data) + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
    head = b"GGUF" + struct.pack("<IQQ", 3, len(model.tensors), model.n_keys) + model.keys + infos
    with open(path, "wb") as f:
        for part in (head, *(data for _, data in model.tensors.values())):
            f.write(part + bytes(-len(part) % ALIGNMENT))


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    source, out, name, change = sys.argv[1:]
    model = File(source)
    if pathlib.Path(change).exists():
        other = File(change)
        model.tensors |= {n: t for n, t in other.tensors.items() if n.startswith(name)}
    else:
        model.tensors[name] = multiplied(model.tensors[name], float(change))
    write(out, model)


if __name__ == "__main__":
    main()

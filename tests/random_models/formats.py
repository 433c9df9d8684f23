"""Tensor types: random blocks, and what they stand for, as docs/formats.md says."""
import functools
import math
import random
from operator import add
from statistics import NormalDist
import struct

FP4 = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)
IQ4 = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def half(data, at):
    return struct.unpack_from("<e", data, at)[0]


def nibbles(data):
    return [b & 15 for b in data] + [b >> 4 for b in data]


def codes(data, bits):
    """Codes of a few bits, the lowest bits of a byte first."""
    return [b >> s & (1 << bits) - 1 for b in data for s in range(0, 8, bits)]


def fifth(data, at):
    bits = int.from_bytes(data[at:at + 4], "little")
    return [q | (bits >> j & 1) << 4 for j, q in enumerate(nibbles(data[at + 4:]))]


def tq2_0(b):
    return [half(b, 64) * ((b[h + j] >> 2 * s & 3) - 1)
            for h in (0, 32) for s in range(4) for j in range(32)]


def q4_k(b):
    d, dmin, s = half(b, 0), half(b, 2), b[4:16]
    out = []
    for g in range(8):
        if g < 4:
            scale, low = s[g] & 63, s[g + 4] & 63
        else:
            scale = s[g + 4] & 15 | s[g - 4] >> 6 << 4
            low = s[g + 4] >> 4 | s[g] >> 6 << 4
        run = b[16 + g // 2 * 32:][:32]
        out += [f32(d * scale * (q >> 4 * (g % 2) & 15) - dmin * low) for q in run]
    return out


def q6_k(b):
    out = []
    for h in (0, 1):
        ql, qh = b[64 * h:][:64], b[128 + 32 * h:][:32]
        for g in range(4):
            for j in range(32):
                q = ql[j + 32 * (g % 2)] >> 4 * (g // 2) & 15 | (qh[j] >> 2 * g & 3) << 4
                scale = struct.unpack_from("b", b, 192 + 8 * h + 2 * g + j // 16)[0]
                out.append(f32(half(b, 208) * scale * (q - 32)))
    return out


FLOATS = {"F32": "f", "F16": "e", "BF16": "f"}  # as struct has them, of BF16 the upper half


def floats(kind, values):
    data = struct.pack(f"<{len(values)}{FLOATS[kind]}", *values)
    if kind != "BF16":
        return data
    upper = bytearray(2 * len(values))
    upper[::2], upper[1::2] = data[2::4], data[3::4]
    return bytes(upper)


def of_floats(kind, data):
    if kind == "BF16":
        upper, data = data, bytearray(2 * len(data))
        data[2::4], data[3::4] = upper[::2], upper[1::2]
    letter = FLOATS[kind]
    return list(struct.unpack(f"<{len(data) // struct.calcsize(letter)}{letter}", data))


# name: (id, elements, bytes, where halves lie and what each is per unit of weight, decoder)
TYPES = {
    "F32": (0, 1, 4, {}, None),
    "F16": (1, 1, 2, {}, None),
    "BF16": (30, 1, 2, {}, None),
    "Q4_0": (2, 32, 18, {0: 1 / 5}, lambda b: [half(b, 0) * (q - 8) for q in nibbles(b[2:])]),
    "Q4_1": (3, 32, 20, {0: 1 / 5, 2: -1.5},
             lambda b: [f32(q * half(b, 0) + half(b, 2)) for q in nibbles(b[4:])]),
    "Q5_0": (6, 32, 22, {0: 1 / 9}, lambda b: [half(b, 0) * (q - 16) for q in fifth(b, 2)]),
    "Q5_1": (7, 32, 24, {0: 1 / 9, 2: -1.7},
             lambda b: [f32(q * half(b, 0) + half(b, 2)) for q in fifth(b, 4)]),
    "Q8_0": (8, 32, 34, {0: 1 / 74}, lambda b: [half(b, 0) * q for q in struct.unpack("32b", b[2:])]),
    "IQ4_NL": (20, 32, 18, {0: 1 / 67}, lambda b: [half(b, 0) * IQ4[q] for q in nibbles(b[2:])]),
    "MXFP4": (39, 32, 17, {}, lambda b: [2.0 ** (b[0] - 128) * FP4[q] for q in nibbles(b[1:])]),
    "Q1_0": (41, 128, 18, {0: 1}, lambda b: [half(b, 0) * (2 * q - 1) for q in codes(b[2:], 1)]),
    "Q2_0": (42, 64, 18, {0: 1 / 1.2}, lambda b: [half(b, 0) * (q - 1) for q in codes(b[2:], 2)]),
    "TQ2_0": (35, 256, 66, {64: 1 / 1.2}, tq2_0),
    "Q4_K": (12, 256, 144, {0: 1 / 200, 2: 7 / 200}, q4_k),
    "Q6_K": (14, 256, 210, {208: 1 / 1370}, q6_k),
}

TABLES = {"I32": (26, 1, 4, {}, lambda b: [struct.unpack("<i", b)[0]])}  # whole numbers, no weights


def layout(kind):
    return TABLES.get(kind) or TYPES[kind]


QUANTILES = [NormalDist().inv_cdf((i + 0.5) / 256) for i in range(256)]


def normals(rng, n, size):
    """Each the sum of two quantiles, one of them scaled down: much quicker than n calls of gauss."""
    coarse, fine = ([by * quantile for quantile in QUANTILES] for by in (size, size / 64))
    return list(map(add, map(coarse.__getitem__, rng.randbytes(n)), map(fine.__getitem__, rng.randbytes(n))))


def random_blocks(rng, kind, n, size):
    """Of weights about as large as size."""
    if kind in FLOATS:
        return floats(kind, normals(rng, n, size))
    n_bytes, halves = TYPES[kind][2:4]
    data = bytearray(rng.randbytes(n * n_bytes))
    if kind == "MXFP4":
        exponent = 128 + round(math.log2(size / 5.5))
        data[::n_bytes] = bytes(exponent + byte % 2 for byte in rng.randbytes(n))
    for at, unit in halves.items():
        for block in range(at, len(data), n_bytes):
            struct.pack_into("<e", data, block, rng.uniform(0.6, 1.4) * unit * size)
    return bytes(data)


class Tensor:
    """ne as GGUF has it, the row's length first. data: bytes, or what makes them when they are needed."""

    def __init__(self, name, kind, ne, data):
        self.name, self.kind, self.ne, self.given = name, kind, ne, data

    @functools.cached_property
    def data(self):
        return self.given() if callable(self.given) else self.given

    @staticmethod
    def random(rng, name, kind, ne, size):
        """Not made at once: of many models, nothing but the keys is looked at."""
        seed, n = rng.getrandbits(32), math.prod(ne) // TYPES[kind][1]
        return Tensor(name, kind, ne, lambda: random_blocks(random.Random(seed), kind, n, size))

    @staticmethod
    def of(name, values, ne=None):
        return Tensor(name, "F32", ne or [len(values)], struct.pack(f"<{len(values)}f", *values))

    @functools.cache
    def values(self):
        if self.kind in FLOATS:
            return of_floats(self.kind, self.data)
        n_bytes, decode = layout(self.kind)[2], layout(self.kind)[4]
        return [x for i in range(0, len(self.data), n_bytes) for x in decode(self.data[i:i + n_bytes])]

    @property
    def type_id(self):
        return layout(self.kind)[0]

    def cut(self, names, counts):
        """Rows of a matrix, elements of a vector, one run after the other."""
        n_bytes = len(self.data) // self.ne[-1]
        out, at = [], 0
        for name, n in zip(names, counts):
            out.append(Tensor(name, self.kind, self.ne[:-1] + [n],
                              self.data[at * n_bytes:(at + n) * n_bytes]))
            at += n
        return out

    def decoded(self):
        return self if self.kind in TABLES else Tensor.of(self.name, self.values(), self.ne)

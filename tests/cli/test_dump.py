#!/usr/bin/env python3
"""assay dump against vectors that were not made here, through files that hold no model.

usage: test_dump.py ASSAY SOURCE_DIR
"""
import ast
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unittest

import gguf_make

ASSAY, VECTORS = sys.argv[1], pathlib.Path(sys.argv[2]) / "tests" / "data" / "vectors"
F32_ID, F16_ID, I2_S_ID = 0, 1, 36


def read_npy(data):
    """(shape, bytes of the values), with every rule of the format checked."""
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    (length,) = struct.unpack("<H", data[8:10])
    assert (10 + length) % 64 == 0, length
    header = data[10:10 + length]
    assert header.endswith(b"\n")
    fields = ast.literal_eval(header.decode("ascii"))
    assert fields["descr"] == "<f4" and fields["fortran_order"] is False, fields
    return fields["shape"], data[10 + length:]


def same_floats(a, b):
    """Equal bits, or both NaN (whose sign and payload are free)."""
    if a == b:
        return True
    if len(a) != len(b):
        return False
    for (x,), (y,) in zip(struct.iter_unpack("<f", a), struct.iter_unpack("<f", b)):
        if struct.pack("<f", x) != struct.pack("<f", y) and not (x != x and y != y):
            return False
    return True


class Dump(unittest.TestCase):
    def dump(self, tensors, name):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tensors.gguf"
            path.write_bytes(gguf_make.gguf([], tensors))
            result = subprocess.run([ASSAY, "dump", path, "--tensor", name, "-o", "out.npy"],
                                    cwd=folder, capture_output=True)
            self.assertEqual((result.returncode, result.stderr, result.stdout), (0, b"", b""))
            self.assertEqual(sorted(p.name for p in pathlib.Path(folder).iterdir()),
                             ["out.npy", "tensors.gguf"])
            return read_npy((pathlib.Path(folder) / "out.npy").read_bytes())

    def test_every_type(self):
        """More elements than are decoded at a time, so that the cuts are met too."""
        lines = (VECTORS / "MANIFEST.tsv").read_text().splitlines()[1:]
        self.assertEqual(len(lines), 27)
        for line in lines:
            name, kind, _elems, _bytes, rows, columns = line.split("\t")[:6]
            copies = 70000 // (int(rows) * int(columns)) + 2
            blocks = (VECTORS / f"{name.lower()}.blocks").read_bytes()
            expected = (VECTORS / f"{name.lower()}.f32").read_bytes()
            ne = (int(columns), int(rows) * copies)
            with self.subTest(type=name):
                shape, values = self.dump([("other", F32_ID, (1,), bytes(4)),
                                           ("the tensor", int(kind), ne, blocks * copies)],
                                          "the tensor")
                self.assertEqual(shape, (ne[1], ne[0]))
                self.assertTrue(same_floats(values, expected * copies))

    def test_i2_s(self):
        """Against a decoder written from the format: codes, then the one scale of the tensor."""
        draw = random.Random(36)
        columns, rows, n_others = 384, 700, 28
        codes = draw.randbytes(columns * rows // 4)
        tail = bytes(draw.randrange(1, 256) for _ in range(n_others))
        for scale in (0.0123, -2.5, 1e-40, float("inf"), float("nan")):
            scale, = struct.unpack("<f", struct.pack("<f", scale))
            expected = []
            for at in range(0, len(codes), 32):
                for shift in (6, 4, 2, 0):
                    expected += [((byte >> shift & 3) - 1) * scale for byte in codes[at:at + 32]]
            payload = codes + struct.pack("<f", scale) + tail
            with self.subTest(scale=scale):
                shape, values = self.dump([("t", I2_S_ID, (columns, rows), payload),
                                           ("other", F32_ID, (1,), bytes(4))], "t")
                self.assertEqual(shape, (rows, columns))
                self.assertTrue(same_floats(values, struct.pack(f"<{len(expected)}f", *expected)))

    def test_shapes(self):
        for ne in [(3,), (3, 2), (3, 2, 5), (3, 2, 5, 7), (1,), (1, 1, 1, 1)]:
            n = 1
            for extent in ne:
                n *= extent
            payload = struct.pack(f"<{n}f", *range(n))
            with self.subTest(ne=ne):
                shape, values = self.dump([("t", F32_ID, ne, payload)], "t")
                self.assertEqual(shape, tuple(reversed(ne)))
                self.assertEqual(values, payload)

    def test_to_standard_output(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tensors.gguf"
            path.write_bytes(gguf_make.gguf([], [("t", F16_ID, (2,), b"\x00\x3c\x00\xc0")]))
            for target in ("-", "/dev/stdout"):
                result = subprocess.run([ASSAY, "dump", path, "--tensor", "t", "-o", target],
                                        capture_output=True, check=True)
                self.assertEqual(read_npy(result.stdout), ((2,), struct.pack("<2f", 1, -2)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

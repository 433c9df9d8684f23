#!/usr/bin/env python3
"""assay trace -o: what zipfile, and NumPy where it is installed, read of the arrays.

usage: test_trace_npz.py ASSAY SOURCE_DIR
"""
import io
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

ASSAY, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
MODEL = SOURCE / "data" / "tiny.F16.gguf"
IDS = "1,347,637,613,273"
try:
    import numpy
except ImportError:
    numpy = None


def npy(values, shape, descr="<f4", order="False"):
    """A small array as NumPy writes it."""
    head = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}"
    head += " " * (-(11 + len(head)) % 64) + "\n"
    kind = {"<f4": "f", "<f8": "d", "<f2": "e", "<i4": "i", "<i8": "q", ">f4": "f"}[descr]
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() +
            struct.pack(f"<{len(values)}{kind}", *values))


class Trace(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return pathlib.Path(self.folder.name) / name

    def trace(self, *args):
        return subprocess.run([ASSAY, "trace", "-m", MODEL, "--ids", IDS, *map(str, args)],
                              capture_output=True, text=True)

    def write(self, name, members, compression=zipfile.ZIP_STORED):
        with zipfile.ZipFile(self.path(name), "w", compression) as z:
            for member, data in members.items():
                with z.open(member, "w", force_zip64=True) as out: # as numpy.savez does
                    out.write(data)
        return self.path(name)

    def own(self):
        self.assertEqual(self.trace("-o", self.path("a.npz")).returncode, 0)
        with zipfile.ZipFile(self.path("a.npz")) as z:
            self.assertIsNone(z.testzip()) # every checksum
            return {name: z.read(name) for name in z.namelist()}

    def test_written(self):
        members = self.own()
        self.assertEqual(len(members), len(set(members)))
        self.assertIn("Kcur-0.ROPE.npy", members)
        shapes = {"embd.GET_ROWS.npy": "(5, 256)", "Kcur-0.ROPE.npy": "(5, 4, 32)",
                  "result_output.MUL_MAT.npy": "(1, 2048)"}
        for name, shape in shapes.items():
            self.assertIn(f"'shape': {shape}".encode(), members[name][:128], name)
        if numpy:
            with numpy.load(self.path("a.npz")) as arrays:
                for name, data in members.items():
                    a = arrays[name[:-4]]
                    self.assertEqual((a.dtype, a.tobytes()), ("float32", data[-a.nbytes:]))

    def test_read_again(self):
        """Under names with and without operations, in a file as numpy.savez writes it."""
        members = self.own()
        result = self.trace("--compare", self.write("b.npz", members))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertTrue(result.stdout.endswith("No departure\n"), result.stdout[-300:])
        plain = {"l_out-1.npy": members["l_out-1.ADD.npy"]}
        result = self.trace("--compare", self.write("c.npz", plain))
        self.assertEqual(result.returncode, 0)
        self.assertIn("Compared: 1 tensors", result.stdout)
        self.path("l_out-1.npy").write_bytes(plain["l_out-1.npy"])
        result = self.trace("--compare", self.path("l_out-1.npy"))
        self.assertIn("Compared: 1 tensors", result.stdout)
        if numpy:
            numpy.savez(self.path("d.npz"), **{"l_out-1": numpy.load(io.BytesIO(plain["l_out-1.npy"]))})
            self.assertEqual(self.trace("--compare", self.path("d.npz")).returncode, 0)

    def test_departure(self):
        """From position 3 on, in head 2 alone: said of whole tensors."""
        data = bytearray(self.own()["Kcur-2.ROPE.npy"])
        start = len(data) - 5 * 4 * 32 * 4
        for row in (3, 4):
            at = start + (row * 4 + 2) * 32 * 4
            values = struct.unpack_from("<32f", data, at)
            struct.pack_into("<32f", data, at, *(1.1 * v for v in values))
        result = self.trace("--compare", self.write("e.npz", {"Kcur-2.ROPE.npy": bytes(data)}))
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"\nFirst departure: Kcur-2 ROPE, keys after RoPE: "
                                        r"positions 3 and up, head 2; \d+ times the expected error\n")

    def test_not_finite(self):
        data = bytearray(self.own()["l_out-0.ADD.npy"])
        struct.pack_into("<f", data, len(data) - 4, float("nan"))
        result = self.trace("--compare", self.write("f.npz", {"l_out-0.npy": bytes(data)}))
        self.assertEqual(result.returncode, 1)
        self.assertIn("position 4; inf times the expected error", result.stdout)

    def test_types(self):
        whole = struct.unpack("<1280f", self.own()["embd.GET_ROWS.npy"][-5120:])
        for descr in ("<f4", "<f8", "<f2"):
            result = self.trace("--compare", self.write("g.npz", {"embd.npy": npy(whole, "(5, 256)", descr)}))
            self.assertEqual(result.returncode, 0, (descr, result)) # the model is F16

    def test_tokens(self):
        """Of a file that names them the text need not be given; another text is refused."""
        ids, embd = [int(i) for i in IDS.split(",")], self.own()["embd.GET_ROWS.npy"]
        for kind in ("<i4", "<i8"):
            path = self.write("q.npz", {"tokens.npy": npy(ids, "(5,)", kind), "embd.npy": embd})
            result = subprocess.run([ASSAY, "trace", "-m", MODEL, "--compare", path],
                                    capture_output=True, text=True)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn("Compared: 1 tensors, 5 tokens", result.stdout)
        good = npy(ids, "(5,)", "<i4")
        self.refused(self.write("r.npz", {"tokens.npy": npy(ids[:4], "(4,)", "<i4"), "embd.npy": embd}),
                     "r.npz is of another text: its 4 tokens are not the 5 of the window")
        self.refused(self.write("s.npz", {"tokens.npy": npy([-1], "(1,)", "<i4"), "embd.npy": embd}),
                     "array 'tokens.npy': -1 is not the id of a token")
        self.refused(self.write("t.npz", {"tokens.npy": npy([1.5], "(1,)"), "embd.npy": embd}),
                     "array 'tokens.npy': the ids of tokens have fractions")
        self.refused(self.write("u.npz", {"tokens.npy": good, "tokens": good}), "it is there twice")
        self.refused(self.write("v.npz", {"tokens.npy": good}), "holds no array but the tokens")

    def refused(self, path, sentence):
        result = self.trace("--compare", path)
        self.assertEqual((result.returncode, result.stdout), (2, ""), result)
        self.assertRegex(result.stderr, f"^assay: .*{sentence}")
        self.assertEqual(result.stderr.count("\n"), 1)

    def test_refused(self):
        good = npy([0.0] * 1280, "(5, 256)")
        self.refused(self.write("h.npz", {"embd.npy": good}, zipfile.ZIP_DEFLATED),
                     "array 'embd.npy' is compressed; write the file with numpy.savez")
        self.refused(self.write("i.npz", {"embd.npy": npy([0.0] * 1280, "(5, 256)", order="True")}),
                     "array 'embd.npy': the array is in Fortran's order")
        self.refused(self.write("j.npz", {"embd.npy": npy([0.0] * 1280, "(5, 256)", ">f4")}),
                     "its type is '>f4'")
        self.refused(self.write("k.npz", {"embd.npy": good[:-4]}), "bytes of values; expected 1280")
        self.refused(self.write("l.npz", {"embd.npy": npy([0.0], "(2, 2, 3, 4, 5)")}), "no descr")
        self.refused(self.write("m.npz", {"embd.npy": npy([0.0] * 640, "(5, 128)")}),
                     r"embd has the shape {128, 5, 1, 1}; expected rows of 256")
        self.refused(self.write("w.npz", {"embd.npy": npy([0.0] * 1280, "(10, 128)")}),
                     r"embd has the shape {128, 10, 1, 1}; expected rows of 256")
        self.refused(self.write("n.npz", {"other.npy": good}), "none of its 1 tensors is|no tensor")
        self.refused(self.write("o.npz", {}), "the .npz holds no array")
        self.path("p.npy").write_bytes(good[:40])
        self.refused(self.path("p.npy"), "header of")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

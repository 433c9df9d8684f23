#!/usr/bin/env python3
"""What is built loads no library from the working folder, and is hardened.

usage: test_elf.py ASSAY SOURCE_DIR
"""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import elf
from program import ASSAY, F16, TEXT, is_sanitized
from serving import Server

BUILD = pathlib.Path(ASSAY).resolve().parent
COVERED = b"__gcov_" in pathlib.Path(ASSAY).read_bytes()
MPI = ("openmpi", "mpich")
# All that the program links or loads: its libraries have these names in Debian.
PLANTED = ("libcjson.so.1", "libpcre2-8.so.0", "libcrypto.so.3", "libc.so.6", "libmicrohttpd.so.12",
           "libopenblas.so.0", "libopenblas.so", "libcublasLt.so.13", "libcublasLt.so.12",
           *(f"assay-mpi-{name}.so" for name in MPI))
TRAPPED = "file too short"  # what the loader says of an empty file, which ends its search
TWO_RANKS = {"OMPI_COMM_WORLD_SIZE": "2"}
EVALUATION = ["perplexity", "-m", F16, "-f", TEXT, "-c", "32", "--chunks", "1"]


def built():
    """The programs and libraries of the build folder; not what CMake tried out."""
    for folder, folders, names in os.walk(BUILD):
        folders[:] = [name for name in folders if name not in ("CMakeFiles", "package")]
        for path in (pathlib.Path(folder, name) for name in names):
            if (os.access(path, os.X_OK) or path.suffix == ".so") and elf.is_elf(path):
                yield path


class Linked(unittest.TestCase):
    def test_paths_of_all_that_is_built(self):
        files = list(built())
        self.assertIn(pathlib.Path(ASSAY).resolve(), files)
        for path in files:
            elf.check_paths(self, path)

    @unittest.skipIf(is_sanitized() or COVERED, "instrumented instead")
    def test_what_people_run_is_hardened(self):
        libraries = [path for path in built() if path.parent == BUILD and path.suffix == ".so"]
        for path in [pathlib.Path(ASSAY), *libraries]:
            elf.check_hardened(self, path)


class Planted(unittest.TestCase):
    """In a folder with files that have the names of libraries, and whose reading is an error."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.here, self.beside = self.root / "downloads" / "here", self.root / "downloads" / "lib" / "assay"
        for place in (self.here, self.beside):
            place.mkdir(parents=True)
            for name in PLANTED:
                (place / name).touch()

    def run_here(self, *command, env=None):
        """(exit code, standard output and error)"""
        done = subprocess.run(list(map(str, command)), cwd=self.here, env={**os.environ, **(env or {})},
                              capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def output(self, *command, code=0, **more):
        returned, said = self.run_here(*command, **more)
        self.assertEqual(returned, code, said)
        return said

    def test_they_are_traps(self):
        self.assertIn(TRAPPED, self.output(ASSAY, "version", code=127, env={"LD_LIBRARY_PATH": "."}))

    def test_libraries_that_are_linked(self):
        self.assertIn("assay ", self.output(ASSAY, "version"))

    def test_openblas(self):
        code, said = self.run_here(ASSAY, *EVALUATION, "--gemm", "openblas")
        self.assertNotIn(TRAPPED, said)
        self.assertTrue(code == 0 or "OpenBLAS cannot be" in said, said)

    def test_microhttpd(self):
        server = Server(ASSAY, "-m", F16, cwd=self.here)
        code, said = server.end(), "".join(server.lines)
        server.process.stderr.close()
        self.assertNotIn(TRAPPED, said)
        self.assertTrue(code in (0, 130) or "libmicrohttpd" in said, said)

    def copy(self):
        """The program alone, without the libraries that lie beside the one that was built."""
        (self.root / "bin").mkdir()
        return shutil.copy(ASSAY, self.root / "bin" / "assay")

    def test_mpi(self):
        self.assertRegex(self.output(self.copy(), *EVALUATION, code=2, env=TWO_RANKS),
                         "2 processes were started together, and this build has no assay-mpi-openmpi.so")

    @unittest.skipIf(is_sanitized(), "the sanitizer itself reads /proc")
    def test_mpi_without_proc(self):
        apart = ["unshare", "--mount", *([] if os.getuid() == 0 else ["--map-root-user"])]
        hidden = [*apart, "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
        if not shutil.which("unshare") or self.run_here(*hidden, "true")[0]:
            self.skipTest("/proc cannot be hidden here")
        self.assertRegex(self.output(*hidden, self.copy(), *EVALUATION, code=2, env=TWO_RANKS),
                         "/proc/self/exe does not tell the program's folder.*; expected /proc to be mounted")


if __name__ == "__main__":
    unittest.main(argv=[__file__])

#!/usr/bin/env python3
"""clients/cluster/mpi/ with wrappers that are there and cannot compile, or link: AUTO leaves the
library out with one line, ON ends the configuration.

usage: test_mpi_probe.py ASSAY SOURCE_DIR
"""
import pathlib
import subprocess
import tempfile
import unittest

from program import SOURCE

# The program is what the libraries are built with.
PROJECT = f"""cmake_minimum_required(VERSION 3.25)
project(alone LANGUAGES NONE)
set(CMAKE_INSTALL_DOCDIR share/doc/assay)
add_custom_target(assay ALL)
add_subdirectory({SOURCE}/clients/cluster/mpi mpi)
"""
HEADER = """#include <stddef.h>
typedef int MPI_Comm;
enum { MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, MPI_INFO_NULL, MPI_BYTE, MPI_THREAD_FUNNELED };
int MPI_Init_thread(int *, char ***, int, int *), MPI_Comm_rank(int, int *), MPI_Comm_size(int, int *);
int MPI_Comm_split_type(int, int, int, int, int *), MPI_Comm_free(int *), MPI_Finalize(void);
int MPI_Bcast(void *, int, int, int, int);
"""


class Probe(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "include").mkdir()
        (self.root / "CMakeLists.txt").write_text(PROJECT)

    def configure(self, command, auto="AUTO"):
        """(exit code, what was printed) with a wrapper that ends in this command."""
        wrapper = self.root / "mpicc.openmpi"
        wrapper.write_text(f'#!/bin/sh\n[ "$1" != -show ] || {{ echo cc -I/usr/lib/openmpi; exit; }}\n{command}\n')
        wrapper.chmod(0o755)
        done = subprocess.run(
            ["cmake", "-G", "Ninja", "-S", self.root, "-B", self.root / "build", f"-DASSAY_MPI={auto}",
             f"-DASSAY_MPICC_openmpi={wrapper}", "-DASSAY_MPICC_mpich=/bin/false"],
            capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def built(self):
        subprocess.run(["cmake", "--build", self.root / "build"], check=True, capture_output=True)
        return sorted(path.name for path in (self.root / "build").glob("*.so"))

    def check_left_out(self, command, reason):
        code, said = self.configure(command)
        self.assertEqual(code, 0, said)
        lines = [line for line in said.splitlines() if "MPI" in line]
        self.assertEqual(len(lines), 1, said)
        self.assertRegex(lines[0], rf"^-- MPI: \S+/mpicc.openmpi cannot compile .*\({reason}\); built without it$")
        self.assertEqual(self.built(), [])
        code, said = self.configure(command, "ON")
        self.assertNotEqual(code, 0)
        self.assertIn("ASSAY_MPI=ON, but no mpicc of Open MPI or MPICH compiles", " ".join(said.split()))

    def test_no_header(self):
        self.check_left_out('exec cc -nostdinc "$@"', ".*error: .*")

    def test_no_library(self):
        (self.root / "include" / "mpi.h").write_text(HEADER)
        self.check_left_out('exec cc "$@" -I"${0%/*}/include" -lno-such-mpi', ".*cannot find -lno-such-mpi.*")

    def test_no_compiler(self):
        self.check_left_out('echo "The wrapper was unable to find the compiler gcc." >&2; exit 1',
                            "The wrapper was unable to find the compiler gcc.")

    def test_that_compiles(self):
        (self.root / "include" / "mpi.h").write_text(HEADER)
        code, said = self.configure('exec cc "$@" -I"${0%/*}/include"', "ON")
        self.assertEqual(code, 0, said)
        self.assertEqual(self.built(), ["assay-mpi-openmpi.so"])


if __name__ == "__main__":
    unittest.main(argv=[__file__])

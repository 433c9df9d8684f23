#!/usr/bin/env python3
"""The packages, made from this build, work where they are unpacked.

usage: test_package.py ASSAY SOURCE_DIR
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import elf
from test_install import MAN, compile_example, development, documents, files_of, runtime

ASSAY, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
C_LIBRARY = re.compile(r"(linux-vdso|ld-linux[\w-]*|libc|libm|libdl|librt|libpthread)\.so\.\d+")
MPI = sorted(p.name for p in ASSAY.parent.glob("assay-mpi-*.so"))
ENVIRONMENT = {"PATH": os.environ["PATH"], "LC_ALL": "C"}


def output(*command, cwd="/"):
    done = subprocess.run(command, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        output("cpack", "--config", ASSAY.parent / "CPackConfig.cmake", "-B", cls.folder)

    def only(self, pattern):
        found = list(self.folder.glob(pattern))
        self.assertEqual(len(found), 1, found)
        return found[0]

    def test_containerfile(self):
        lines = (SOURCE / "Containerfile").read_text().splitlines()
        (unpack,) = re.findall(r"tar -xzf (\S+) -C /assay (.*)", "\n".join(lines))
        archive = self.folder / pathlib.Path(unpack[0]).name.replace("*", "0.2.0-linux-x86_64")
        prefix = self.folder / "image"
        prefix.mkdir()
        output("tar", "-xzf", archive, "-C", prefix, *unpack[1].split())
        self.assertIn(b"assay", output(prefix / "bin" / "assay", "version").encode())
        self.assertIn("RUN bash scripts/deps.sh package", lines)
        user = [line.split()[1] for line in lines if line.startswith("USER ")]
        self.assertEqual((len(user), user[0].startswith("0")), (1, False))
        for line in lines:
            if line.startswith("COPY ") and "--from" not in line:
                self.assertTrue((SOURCE / line.split()[1]).exists(), line)

    def check_prefix(self, prefix):
        """The program and the manual page of an unpacked package; returns its libraries."""
        program, text = prefix / "bin" / "assay", self.folder / "short.txt"
        text.write_text((SOURCE / "data" / "text.txt").read_text()[:1500])
        evaluation = ["perplexity", "-m", SOURCE / "data" / "tiny.F16.gguf", "-f", text, "-c", "64"]
        self.assertRegex(output(program, "version"), r"\Aassay +[0-9.]+\n(.*\n)*openblas  not loaded .*$")
        self.assertEqual(output(program, *evaluation, cwd=prefix), output(ASSAY, *evaluation))
        self.assertNotIn(".symtab", output("readelf", "-S", "-W", program), "is not stripped")
        self.assertEqual(elf.Elf(program).paths, ["$ORIGIN/../lib/assay"])
        for file in (f for f in prefix.rglob("*") if f.is_file() and elf.is_elf(f)):
            elf.check_paths(self, file)
            if file == program or file.name in MPI:
                elf.check_hardened(self, file)
        if shutil.which("man"):
            page = output("man", "-l", prefix / MAN)
            if "system has been minimized" not in page:  # says what stands in for man
                self.assertIn("assay perplexity", page)
        return re.findall(r"^\t(\S+)(?: => (\S+))? \(", output("ldd", program), re.MULTILINE)

    def check_library(self, prefix, lib):
        """The library of a prefix: stripped, under its soname, and good to compile with."""
        file = prefix / lib / "libassay.so.0"
        self.assertNotIn(".symtab", output("readelf", "-S", "-W", file), "is not stripped")
        self.assertEqual((elf.Elf(file).paths, elf.Elf(file).texts(elf.SONAME)), (["$ORIGIN/assay"], ["libassay.so.0"]))
        if shutil.which("cc") and shutil.which("pkg-config"):
            compile_example(SOURCE, prefix, lib, pathlib.Path(tempfile.mkdtemp(dir=self.folder)))

    def test_archive(self):
        output("tar", "xf", self.only("assay-*.tar.gz"), "-C", self.folder)
        prefix = self.only("assay-*/")
        for name, found in self.check_prefix(prefix):
            if not C_LIBRARY.fullmatch(pathlib.Path(name).name):
                self.assertEqual(pathlib.Path(found).resolve(), prefix / "lib" / "assay" / name)
        libraries = [f for f in files_of(prefix) if f.startswith("lib/assay/")]
        self.assertTrue([f for f in libraries if "libpcre2-8.so" in f], libraries)
        self.assertEqual(sorted(set(files_of(prefix)) - set(libraries)),
                         sorted(["bin/assay", *runtime("lib", ASSAY.parent), *development("lib", ASSAY.parent),
                                 *documents(SOURCE)]))
        self.check_library(prefix, "lib")
        self.assertEqual([f for f in libraries if "assay-mpi" in f], [f"lib/assay/{name}" for name in MPI])
        if shutil.which("dpkg-query"):
            for library in (f for f in libraries if re.search(r"\.so\.\d+$", f)):
                self.assertIn(f"{library}.copyright", libraries)

    def check_development(self):
        """The two packages of the library, unpacked over each other."""
        root, expected = self.folder / "libraries", set()
        for name, files in (("libassay0", runtime), ("libassay-dev", development)):
            package = self.only(f"{name}_*.deb")
            output("dpkg-deb", "-x", package, root)
            lib = next(p.parent for p in root.rglob("libassay.so.0")).relative_to(root / "usr")
            expected |= {f"usr/{f}" for f in [*files(lib, ASSAY.parent), f"share/doc/{name}/copyright"]}
            self.assertEqual(set(files_of(root)), expected)
            fields = output("dpkg-deb", "-f", package)
            self.assertRegex(fields, f"(?m)^Package: {name}\n")
            self.assertRegex(fields, "(?m)^Description: the exact model of .+\n .+")
            if name == "libassay-dev":
                self.assertRegex(fields, r"(?m)^Depends: libassay0 \(= [\d.]+\)$")
            elif shutil.which("dpkg-shlibdeps"):
                self.assertRegex(fields, r"(?m)^Depends: .*libpcre2-8-0 ")
        self.check_library(root / "usr", lib)

    def test_debian(self):
        if not shutil.which("dpkg-deb"):
            self.skipTest("no dpkg-deb")
        self.check_development()
        package, root = self.only("assay_*.deb"), self.folder / "root"
        output("dpkg-deb", "-x", package, root)
        self.check_prefix(root / "usr")
        self.assertEqual(files_of(root), sorted(
            f"usr/{f}" for f in ["bin/assay", *(f"lib/assay/{name}" for name in MPI),
                                 "share/doc/assay/copyright", *documents(SOURCE)]))
        fields = output("dpkg-deb", "-f", package)
        for field in ("Package: assay\n", "Section: science\n", "Maintainer: .+ <.+@.+>\n",
                      "Description: says what .+\n .+\n"):
            self.assertRegex(fields, "(?m)^" + field)
        cache = (ASSAY.parent / "CMakeCache.txt").read_text()
        loaded = [package for name, package in (("MICROHTTPD", "libmicrohttpd12"), ("CURL", "libcurl4"))
                  if f"{name}_FOUND:INTERNAL=1\n" in cache]
        self.assertEqual(re.findall("\nRecommends: (.+)\n", fields),
                         [", ".join(loaded)] if loaded else [], fields)
        self.assertRegex(fields, "\nSuggests: libopenblas0(, .*)?\n")
        self.assertEqual("openmpi-bin" in fields, "assay-mpi-openmpi.so" in MPI, fields)
        if shutil.which("dpkg-shlibdeps"):
            depends = re.search("^Depends: (.+)$", fields, re.MULTILINE).group(1)
            for library in ("libc6 ", "libcjson1 ", "libpcre2-8-0 "):
                self.assertIn(library, depends)
            self.assertNotRegex(depends, "openblas|mpi")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

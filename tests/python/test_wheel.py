#!/usr/bin/env python3
"""The wheel with the program in it, made from this build, works where pip puts it.

usage: test_wheel.py ASSAY SOURCE_DIR

Skipped (77) where no Python here has hatchling. No package index is asked.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

ASSAY, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
PYTHONS = [p for p in (sys.executable, "/usr/bin/python3") if os.path.exists(p) and not subprocess.run(
    [p, "-c", "import hatchling, venv, ensurepip"], capture_output=True).returncode]
if not PYTHONS:
    print("no Python here has hatchling, venv and ensurepip (python3-hatchling, python3-venv)")
    sys.exit(77)
PYTHON = PYTHONS[0]
sys.path.append(str(SOURCE / "tests" / "cli"))
import elf  # noqa: E402

MODULES = {f"assay_gguf/{p.name}" for p in (SOURCE / "python" / "assay_gguf").iterdir() if p.is_file()}


def output(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        bin_folder = cls.folder / "bin"  # the Python that has hatchling is python3 for the script
        bin_folder.mkdir()
        (bin_folder / "python3").symlink_to(PYTHON)
        cls.environment = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}",
                           "PYTHONDONTWRITEBYTECODE": "1"}

    def make(self, *command, **more):
        """The one wheel that a command leaves in a new folder, which is its last word."""
        out = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        output(*command, out, env=self.environment, **more)
        (wheel,) = out.glob("*.whl")
        return wheel

    def test_with_the_program(self):
        wheel = self.make("bash", SOURCE / "scripts" / "wheel.sh", ASSAY.parent)
        found = re.fullmatch(r"assay_gguf-[0-9.]+-py3-none-(manylinux_2_(\d+)_\w+)\.whl", wheel.name)
        self.assertTrue(found, wheel.name)
        names = {re.sub(r"-[0-9.]+\.(data|dist-info)/", r".\1/", name)
                 for name in zipfile.ZipFile(wheel).namelist()}
        libraries = {n for n in names if n.startswith("assay_gguf/program/lib/assay/")}
        self.assertIn("libpcre2-8.so", str(libraries))
        self.assertEqual(names - libraries - {n for n in names if ".dist-info/" in n},
                         {*MODULES, "assay_gguf/program/bin/assay", "assay_gguf/program/lib/libassay.so.0",
                          "assay_gguf.data/scripts/assay"})
        self.check_libc(wheel, int(found[2]))
        if shutil.which("auditwheel"):
            self.assertIn(f'platform tag: "{found[1]}"',
                          re.sub(r"\s+", " ", output("auditwheel", "show", wheel)))
        self.check_installed(wheel)

    def check_libc(self, wheel, minor):
        """The newest symbol that readelf finds; how the files are linked."""
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(self.folder / "files")
        versions = [0]
        for file in (self.folder / "files" / "assay_gguf" / "program").rglob("*"):
            if file.is_file() and file.read_bytes()[:4] == b"\x7fELF":
                needed = output("readelf", "-V", "-W", file).split("Version needs section")[-1]
                versions += [int(v) for v in re.findall(r"Name: GLIBC_2\.(\d+)\b", needed)]
                elf.check_paths(self, file)
        self.assertEqual(max(versions), minor)
        elf.check_hardened(self, self.folder / "files" / "assay_gguf" / "program" / "bin" / "assay")

    def check_installed(self, wheel):
        venv = self.folder / "venv"
        output(PYTHON, "-m", "venv", venv)
        output(venv / "bin" / "python", "-m", "pip", "install", "-q", "--no-index", "--no-deps",
               "--disable-pip-version-check", wheel)
        words = ["perplexity", "-q", "-m", SOURCE / "data" / "tiny.F16.gguf", "-p", "In the town " * 40,
                 "-c", "32"]
        alone = {"PATH": "/nonexistent", "LC_ALL": "C"}
        self.assertEqual(output(venv / "bin" / "assay", *words, env=alone, cwd="/"),
                         output(ASSAY, *words, env=alone))
        link = self.folder / "llama-perplexity"
        link.symlink_to(venv / "bin" / "assay")
        self.assertEqual(output(link, *words[1:], env=alone), output(ASSAY, *words, env=alone))
        script = ("import importlib.metadata as m, sys, assay_gguf\n"
                  "print(assay_gguf.Program(sys.argv[1]).score([{'text': 'ships'}])[0].logprob)\n"
                  "print(*[e.value for e in m.entry_points(group='lm_eval.models')])")
        said = output(venv / "bin" / "python", "-c", script, SOURCE / "data" / "tiny.F16.gguf", env=alone)
        self.assertRegex(said, r"\A-\d+\.\d+\nassay_gguf\.harness:AssayLM\n\Z")
        self.check_library(venv / "bin" / "python", alone)
        done = subprocess.run([venv / "bin" / "python", "-m", "assay_gguf"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        self.assertIn("the extra assay-gguf[harness] has it", done.stderr)
        output(venv / "bin" / "python", "-m", "pip", "uninstall", "-q", "-y", "assay-gguf")
        self.assertFalse((venv / "bin" / "assay").exists())

    def check_library(self, python, alone):
        """The wheel's own libassay.so; an example, where this machine has numpy."""
        loads = "from assay_gguf import library; print(library.library()._name)"
        self.assertTrue(output(python, "-c", loads, env=alone).rstrip().endswith("/program/lib/libassay.so.0"))
        numpy = subprocess.run([PYTHON, "-c", "import numpy; print(numpy.__path__[0])"], capture_output=True, text=True)
        if numpy.returncode:
            return
        (beside := self.folder / "beside").mkdir()
        for folder in pathlib.Path(numpy.stdout.strip()).parent.glob("numpy*"):
            (beside / folder.name).symlink_to(folder)
        words = [SOURCE / "examples" / "divergence_by_token.py", *(SOURCE / "data" / name for name in (
            "tiny.F16.gguf", "tiny.Q4_K_M.gguf", "text.txt")), self.folder / "plot.svg"]
        said = output(python, *words, env={**alone, "PYTHONPATH": str(beside)}, cwd="/")
        self.assertRegex(said, r"\A199 tokens, ")

    def test_without_the_program(self):
        wheel = self.make(PYTHON, "-m", "hatchling", "build", "-t", "wheel", "-d",
                          cwd=SOURCE / "python")
        self.assertTrue(wheel.name.endswith("-py3-none-any.whl"), wheel.name)
        names = zipfile.ZipFile(wheel).namelist()
        self.assertEqual({n for n in names if ".dist-info/" not in n}, MODULES)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

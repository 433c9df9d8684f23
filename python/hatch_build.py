"""Puts program and library into the wheel, where ASSAY_PREFIX names a folder with bin/assay,
lib/libassay.so.0 and lib/assay/.

Without it the wheel has no program, and is for any machine. scripts/wheel.sh sets it. The folder is
kept as it is, so that both find their libraries; the script `assay` starts the program.
"""
import os
import pathlib
import re

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


MACHINES = {62: "x86_64", 183: "aarch64"}  # e_machine of an ELF file


def platform_tag(files):
    """What these files need, as pip has it: the program's processor, and the C library's version,
    which is that of their newest symbol."""
    machine = MACHINES[int.from_bytes(files[0].read_bytes()[18:20], "little")]
    versions = [tuple(map(int, found)) for file in files
                for found in re.findall(rb"\0GLIBC_(\d+)\.(\d+)", file.read_bytes())]
    libc = "manylinux_%d_%d" % max(versions) if versions else "linux"
    return f"{libc}_{machine}"


class Program(BuildHookInterface):
    PLUGIN_NAME = "custom"

    def initialize(self, version, build_data):
        if "ASSAY_PREFIX" not in os.environ:
            return
        prefix = pathlib.Path(os.environ["ASSAY_PREFIX"]).absolute()
        files = [prefix / "bin" / "assay", prefix / "lib" / "libassay.so.0",
                 *sorted((prefix / "lib" / "assay").iterdir())]
        where = {str(file): f"assay_gguf/program/{file.relative_to(prefix)}" for file in files}
        where["assay"] = f"{self.build_config.builder.artifact_project_id}.data/scripts/assay"
        build_data["force_include"].update(where)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag(files)}"

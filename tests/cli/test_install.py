#!/usr/bin/env python3
"""cmake --install gives a prefix that works: the program, its manual page, its
completions and its documents; the library, with what finds it.

usage: test_install.py ASSAY SOURCE_DIR
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

MAN = "share/man/man1/assay.1"
COMPLETIONS = ["share/bash-completion/completions/assay", "share/fish/vendor_completions.d/assay.fish",
               "share/zsh/site-functions/_assay"]
# Of the program and of each command, where the build makes them; else docs/assay.1 as it is.
BUILT = pathlib.Path(sys.argv[1]).parent / "man"
PAGES = sorted(p.name for p in BUILT.glob("*.1")) or ["assay.1"]


def documents(source):
    """Where the documents of the source folder are installed, sorted."""
    names = ["README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md",
             "assay_mpi.c"]
    names += [f"docs/{p.name}" for p in (source / "docs").glob("*.md")]
    names += ["docs/schema/assay.schema.json"]
    names += [f"docs/images/{p.name}" for p in (source / "docs" / "images").iterdir()]
    names += [f"examples/{p.name}" for p in (source / "examples").iterdir()]
    return sorted([f"share/doc/assay/{name}" for name in names] + COMPLETIONS
                  + [f"share/man/man1/{name}" for name in PAGES])


def files_of(prefix):
    return sorted(str(p.relative_to(prefix)) for p in prefix.rglob("*") if p.is_file())


def runtime(lib, build):
    """Where the shared library is installed, if the build has one; and what compiles with it."""
    return [f"{lib}/{p.name}" for p in build.glob("libassay.so.*")]


def development(lib, build):
    names = ["libassay.so", "libassay.a", "pkgconfig/assay.pc", "cmake/assay/assayConfig.cmake",
             "cmake/assay/assayConfigVersion.cmake"]
    return ["include/assay.h", *(f"{lib}/{name}" for name in names)] if runtime(lib, build) else []


def said(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def compile_example(source, prefix, lib, folder):
    """The example by pkg-config, as a program of the archive, and by find_package."""
    example, environment = source / "examples" / "compare_kernel.c", {
        **os.environ, "PKG_CONFIG_PATH": str(prefix / lib / "pkgconfig"), "LD_LIBRARY_PATH": str(prefix / lib)}
    found = said("pkg-config", "--cflags", "--libs", "assay", env=environment).split()
    static = said("pkg-config", "--cflags", "--libs", "--static", "assay", env=environment).split()
    archive = [str(prefix / lib / "libassay.a") if word == "-lassay" else word for word in static]
    project = folder / "project"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.20)\nproject(user C)\nfind_package(assay REQUIRED)\n"
        f"add_executable(by_cmake {example})\ntarget_link_libraries(by_cmake assay::assay m)\n")
    said("cc", "-o", folder / "shared", example, *found, "-lm")
    said("cc", "-o", folder / "static", example, *archive, "-lm")
    said("cmake", "-S", project, "-B", project, f"-DCMAKE_PREFIX_PATH={prefix}",
         f"-Dassay_DIR={prefix / lib / 'cmake' / 'assay'}")
    said("cmake", "--build", project)
    results = {said(program, env=environment) for program in (folder / "shared", folder / "static", project / "by_cmake")}
    assert len(results) == 1 and results.pop().startswith("worst error"), results


def main():
    assay, source = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as prefix:
        subprocess.run(["cmake", "--install", assay.parent, "--prefix", prefix], check=True,
                       stdout=subprocess.DEVNULL)
        prefix = pathlib.Path(prefix)
        files = files_of(prefix)
        libraries = [f"lib/assay/{p.name}" for p in assay.parent.glob("assay-mpi-*.so")]
        cache = (assay.parent / "CMakeCache.txt").read_text()
        lib = next(line.partition("=")[2] for line in cache.splitlines() if line.startswith("CMAKE_INSTALL_LIBDIR:"))
        library = runtime(lib, assay.parent) + development(lib, assay.parent)
        assert files == sorted(["bin/assay", *libraries, *library, *documents(source)]), files
        if library and shutil.which("cc") and shutil.which("pkg-config"):
            with tempfile.TemporaryDirectory() as folder:
                compile_example(source, prefix, lib, pathlib.Path(folder))
        shown = subprocess.run([prefix / "bin" / "assay", "version"], check=True,
                               capture_output=True).stdout
        assert shown.startswith(b"assay "), shown
        for page in (prefix / "share/man/man1" / name for name in PAGES):
            examples = "\n.SH EXAMPLES\n.TP\n.B assay " in page.read_text()
            assert examples == BUILT.exists(), page  # they are the help's
            if shutil.which("groff"):
                done = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8", "-Kutf8", page],
                                      capture_output=True)
                assert not done.returncode and not done.stderr, (page, done.stderr)
        if shutil.which("groff"):
            shown = subprocess.run(["groff", "-man", "-Tascii", "-P-cbou", "-rLL=200n", prefix / MAN],
                                   check=True, capture_output=True, text=True).stdout
            assert ('-p "some text"' in shown) == BUILT.exists(), shown.partition("EXAMPLES")[2]
        origin = BUILT if BUILT.exists() else source / "docs"
        page = (prefix / MAN).read_text()
        assert page == (origin / "assay.1").read_text()
        assert ("\\fB\\-\\-ppl\\-stride\\fR" in page) == BUILT.exists()
        assert (".B assay help\n.I COMMAND\nthe options" in page) != BUILT.exists()


if __name__ == "__main__":
    main()

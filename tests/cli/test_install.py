#!/usr/bin/env python3
"""cmake --install gives a prefix that works: the program, its manual page, its
completions and its documents.

usage: test_install.py ASSAY SOURCE_DIR
"""
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
    return sorted([f"share/doc/assay/{name}" for name in names] + COMPLETIONS
                  + [f"share/man/man1/{name}" for name in PAGES])


def files_of(prefix):
    return sorted(str(p.relative_to(prefix)) for p in prefix.rglob("*") if p.is_file())


def main():
    assay, source = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as prefix:
        subprocess.run(["cmake", "--install", assay.parent, "--prefix", prefix], check=True,
                       stdout=subprocess.DEVNULL)
        prefix = pathlib.Path(prefix)
        files = files_of(prefix)
        libraries = [f"lib/assay/{p.name}" for p in assay.parent.glob("assay-mpi-*.so")]
        assert files == sorted(["bin/assay", *libraries, *documents(source)]), files
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

#!/usr/bin/env python3
"""cmake --install gives a prefix that works: the program and its manual page.

usage: test_install.py ASSAY SOURCE_DIR
"""
import pathlib
import subprocess
import sys
import tempfile


def main():
    assay, source = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as prefix:
        subprocess.run(["cmake", "--install", assay.parent, "--prefix", prefix], check=True,
                       stdout=subprocess.DEVNULL)
        prefix = pathlib.Path(prefix)
        files = sorted(str(p.relative_to(prefix)) for p in prefix.rglob("*") if p.is_file())
        assert files == ["bin/assay", "share/man/man1/assay.1"], files
        shown = subprocess.run([prefix / "bin" / "assay", "version"], check=True,
                               capture_output=True).stdout
        assert shown.startswith(b"assay "), shown
        page = (prefix / "share/man/man1/assay.1").read_bytes()
        assert page == (source / "docs" / "assay.1").read_bytes()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Write the PTX that nvcc put into an object file, uncompressed (--no-compress).

usage: embedded.py NAME PTX OBJECT...   (the object of NAME.cu)
"""
import pathlib
import sys

name, out, *objects = sys.argv[1:]
data = next(pathlib.Path(path).read_bytes() for path in objects if pathlib.Path(path).name.startswith(name + "."))
assert data.count(b".version ") == 1, f"{name}: expected one program of PTX"
first = data.index(b".version ")
pathlib.Path(out).write_bytes(data[first:data.index(b"\0", first)])

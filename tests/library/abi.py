#!/usr/bin/env python3
"""What programs that were compiled with include/assay.h rely on is what tests/library/abi.txt says:
numbers, sizes and offsets, prototypes; and the header is C99 and C++11.

usage: abi.py check COMPILER BUILD_DIR     against abi.txt, the symbols of BUILD_DIR/libassay.so
       abi.py record [COMPILER]            write abi.txt again

What is added needs no more than `record`. Where a line changes or goes, programs have to be compiled
again: raise ASSAY_ABI, and SOVERSION in cmake/library.cmake.
"""
import difflib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HEADER, MAP, LIST = ROOT / "include" / "assay.h", ROOT / "clients" / "library" / "libassay.map", HERE / "abi.txt"


def without_comments():
    return re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)


def prototypes(text):
    return [" ".join(found.split()) for found in re.findall(r"(?m)^(?:enum assay_status|void|int|const char \*) ?\*?"
                                                           r"assay_\w+\([^;]*;", text)]


def layout(text, compiler):
    """Lines of numbers: macros, enumerators, and of structs the size and each member's offset."""
    wanted = [(f"{name} %ld", name) for name in re.findall(r"#define (ASSAY_(?!OPTIONS\b)[A-Z]\w*) ", text)]
    for body in re.findall(r"enum\s*\w*\s*\{([^}]*)\}", text):
        wanted += [(f"{name} %ld", name) for name in re.findall(r"(ASSAY_\w+)", body)]
    for name, body in re.findall(r"struct (assay_\w+) \{([^}]*)\}", text):
        wanted.append((f"struct {name} %ld bytes", f"sizeof(struct {name})"))
        for line in body.split(";"):
            for member in re.findall(r"[\s*](\w+)(?:\[\w+\])?\s*(?:,|$)", line.strip()):
                wanted.append((f"  {member} at %ld", f"offsetof(struct {name}, {member})"))
    code = '#include "assay.h"\n#include <stdio.h>\nint main(void)\n{\n' + "".join(
        f'    printf("{form}\\n", (long){value});\n' for form, value in wanted) + "    return 0;\n}\n"
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder, "layout.c"), pathlib.Path(folder, "layout")
        source.write_text(code)
        subprocess.run([compiler, "-I", HEADER.parent, "-o", program, source], check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()


def abi(compiler):
    text = without_comments()
    types = [" ".join(found.split()) for found in re.findall(r"typedef [^;]*;", text)]
    return layout(text, compiler) + types + prototypes(text)


def check_header(compiler):
    """As the strictest users compile it."""
    options = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
    main = '#include "assay.h"\n#include "assay.h"\nstruct assay_options options = ASSAY_OPTIONS;\n'
    for language, standard in (("c", "c99"), ("c++", "c++11")):
        command = [compiler, *options, f"-std={standard}", "-I", str(HEADER.parent), "-x", language, "-"]
        done = subprocess.run(command, input=main, capture_output=True, text=True)
        if language == "c++" and "cc1plus" in done.stderr:
            print("there is no C++ compiler: the header was not compiled as C++")
        elif done.returncode:
            sys.exit(f"{' '.join(command)}:\n{done.stderr}")


def check_symbols(text, library):
    """The map, the header and the library have the same functions."""
    declared = set(re.findall(r"\b(assay_\w+)\(", "\n".join(prototypes(text))))
    mapped = set(re.findall(r"(?m)^ +(assay_\w+);$", MAP.read_text()))
    if declared != mapped:
        sys.exit(f"{MAP.name} and assay.h differ in {sorted(declared ^ mapped)}")
    if not library.exists() or not shutil.which("nm"):
        print(f"{library} is not there: its symbols were not looked at")
        return
    for options, file in ((["-D"], library), (["-g"], library.with_suffix(".a"))):
        listing = subprocess.run(["nm", *options, "--defined-only", file], capture_output=True, text=True,
                                 check=True).stdout
        found = {line.split()[2].split("@")[0] for line in listing.splitlines() if len(line.split()) == 3}
        if found - {"ASSAY_0"} != declared:
            sys.exit(f"{file} has other symbols than assay.h: {sorted((found - {'ASSAY_0'}) ^ declared)}")


def main():
    words = sys.argv[1:]
    if not words or words[0] not in ("check", "record"):
        sys.exit(__doc__)
    found = abi(words[1] if len(words) > 1 else "cc")
    if words[0] == "record":
        LIST.write_text("\n".join(found) + "\n")
        return
    check_header(words[1])
    check_symbols(without_comments(), pathlib.Path(words[2]) / "libassay.so")
    expected = LIST.read_text().splitlines()
    if found != expected:
        print("\n".join(difflib.unified_diff(expected, found, "tests/library/abi.txt", "include/assay.h", lineterm="")))
        sys.exit(__doc__.partition("\n\n")[2].partition("\n\n")[2])


if __name__ == "__main__":
    main()

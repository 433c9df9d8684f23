#!/usr/bin/env python3
"""Rules of the source tree that a compiler does not check.

usage: lint.py RULE SOURCE_DIR [BUILD_DIR]
RULE:  layers   includes follow base -> gguf -> kernels -> model -> eval -> cli, never back
       banned   functions that are not to be used
       size     no source file beyond 500 lines
       symbols  every global symbol of a layer's library begins with the layer's prefix
"""
import pathlib
import re
import subprocess
import sys

LAYERS = ["base", "gguf", "kernels", "model", "eval", "cli"]
PREFIXES = {
    "base": ("base_", "status_"),
    "gguf": ("gguf_",),
    "kernels": ("kern_",),
    "model": ("model_",),
    "eval": ("eval_",),
}
# Each with what to use instead.
BANNED = {
    "strcpy": "memcpy with a checked length",
    "strcat": "snprintf",
    "sprintf": "snprintf",
    "vsprintf": "vsnprintf",
    "strtok": "a cursor",
    "atoi": "strtol with its end checked",
    "atol": "strtol with its end checked",
    "atof": "strtod with its end checked",
    "gets": "fgets",
    "alloca": "malloc",
    "rand": "tests/harness/rng.h",
    "srand": "tests/harness/rng.h",
    "setjmp": "a status",
    "mktemp": "mkstemp",
}
# Only the command line prints, exits or reads the environment.
CLI_ONLY = {"printf": "a status", "exit": "a status", "getenv": "an option", "puts": "a status",
            "abort": "assert"}
MAX_LINES = 500


def sources(root):
    """(layer or top-level folder, path) of every C, C header and CUDA file."""
    for folder in LAYERS + ["tests", "bench"]:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in {".c", ".h", ".cu", ".cuh"}:
                yield folder, path


def code_of(path):
    """The text without comments and string literals, line structure kept."""
    text = path.read_text()
    keep_lines = lambda match: "\n" * match.group(0).count("\n")
    text = re.sub(r"/\*.*?\*/", keep_lines, text, flags=re.S)
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)


def rule_layers(root, _build):
    for folder, path in sources(root):
        if folder not in LAYERS:
            continue
        allowed = LAYERS[: LAYERS.index(folder) + 1]
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if match and match.group(1).split("/")[0] not in allowed:
                yield f"{path.relative_to(root)}:{number}: {folder}/ must not include {match.group(1)}"


def rule_banned(root, _build):
    for folder, path in sources(root):
        banned = dict(BANNED)
        if folder in LAYERS and folder != "cli":
            banned.update(CLI_ONLY)
        pattern = re.compile(r"(?<![\w.>])(" + "|".join(banned) + r")\s*\(")
        for number, line in enumerate(code_of(path).splitlines(), 1):
            for match in pattern.finditer(line):
                name = match.group(1)
                yield f"{path.relative_to(root)}:{number}: {name}() is not used here; use {banned[name]}"


def rule_size(root, _build):
    for _folder, path in sources(root):
        if "codebook" in path.name or "tables" in path.name:
            continue
        lines = len(path.read_text().splitlines())
        if lines > MAX_LINES:
            yield f"{path.relative_to(root)}: {lines} lines; at most {MAX_LINES}: give each job its own file"


def rule_symbols(root, build):
    for layer, prefixes in PREFIXES.items():
        libraries = list((build / layer).rglob("*.a"))
        if not libraries:
            yield f"{build / layer}: no library; build first"
        for library in libraries:
            listing = subprocess.run(["nm", "-g", "--defined-only", str(library)],
                                     capture_output=True, text=True, check=True).stdout
            for line in listing.splitlines():
                fields = line.split()
                # nvcc makes what is in an unnamed namespace visible, under a name with a hash.
                if len(fields) == 3 and "_GLOBAL__N__" in fields[2]:
                    continue
                if len(fields) == 3 and not fields[2].startswith(prefixes + ("__", "_ZL")):
                    yield f"{library.name}: {fields[2]} does not begin with {' or '.join(prefixes)}"


def main():
    rules = {"layers": rule_layers, "banned": rule_banned, "size": rule_size, "symbols": rule_symbols}
    if len(sys.argv) < 3 or sys.argv[1] not in rules:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[2])
    build = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else root
    findings = list(rules[sys.argv[1]](root, build))
    print("\n".join(findings) if findings else f"{sys.argv[1]}: clean")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()

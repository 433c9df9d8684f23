"""Circles of calls: files whose functions call one another's, over any number of files."""
import pathlib
import re
import subprocess

# By one file of each circle: why it is one.
KNOWN = {
    "kernels/cuda/gated/deferred": "a launch does first what was put off, which is launched",
    "model/template/evaluate/execute": "an expression calls a macro, which has expressions",
    "model/template/evaluate/filters": "filters and methods of values do each other's work",
}


def read_calls(build, folders):
    """file -> {file of which it uses a symbol}, from the objects of a build."""
    objects = [str(path) for folder in folders for path in (build / folder).rglob("*.o")]
    listing = subprocess.run(["nm", "-A", "-g", *objects], capture_output=True, text=True,
                             check=True).stdout if objects else ""
    defined, wanted = {}, {}
    for line in listing.splitlines():
        path, symbol = line.split(":", 1)
        name = re.sub(r"CMakeFiles/[^/]+\.dir/", "", str(pathlib.Path(path).relative_to(build)))
        file, (*_, kind, symbol) = name.split(".")[0], symbol.split()
        if kind == "U":
            wanted.setdefault(file, set()).add(symbol)
        else:
            defined[symbol] = file
    return {file: {defined[s] for s in symbols if s in defined} - {file} for file, symbols in wanted.items()}


def circles(links):
    """Lists of files each of which reaches all others of its list."""
    reached = {}
    for file in links:
        reached[file], left = set(), [file]
        while left:
            for other in links.get(left.pop(), ()):
                if other not in reached[file]:
                    reached[file].add(other)
                    left.append(other)
    found = {tuple(sorted({a} | {b for b in reached[a] if a in reached.get(b, ())})) for a in links if a in reached[a]}
    return sorted(found)


def rule(build, folders):
    for circle in circles(read_calls(build, folders)):
        if not set(circle) & set(KNOWN):
            yield f"{', '.join(circle)} call one another; move what the lower one needs into a file of its own"

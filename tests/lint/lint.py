#!/usr/bin/env python3
"""Rules of the source tree that a compiler does not check.

usage: lint.py RULE SOURCE_DIR [BUILD_DIR]
RULE:  layers     a layer includes what its row of rooms.txt has, and nothing else
       clients    the clients of the core include its public headers only
       circles    no circle of includes between rooms (folders), but for what is in one another
       banned     functions that are not to be used; comparisons with STATUS_OK
       size       no source file beyond 500 lines
       functions  no function of a layer beyond 80 lines
       core       what runs evaluations names none of its clients: processes, servers, watching
       frees      no member that a file frees with both free() and cJSON_free()
       rooms      no folder of a layer with more than 20 source files; each with a README.md of at
                  most 25 lines, or named (`folder/`) in that of the folder above; each layer
                  stands in docs/architecture.md
       tables     every table of a document has a head: an empty line ends a table
       versions   CMakeLists.txt, the Python package, the changelog and docs/install.md name one version
       shown      nothing of a file or a command line is printed as it stands: what %s prints is the
                  program's own (OWN), or a function's (base_printable, base_markdown, ...)
       symbols    every global symbol of a layer's library begins with the layer's prefix
       calls      no files call one another, but for calls.KNOWN
       rebuilds   few files are compiled again after a change of an operation's signature (with ninja)
"""
import pathlib
import re
import subprocess
import sys

import calls
from rooms import Rooms

ROOMS = Rooms(sys.argv[2] if len(sys.argv) > 2 else ".")
LAYERS = list(ROOMS.stands_on)
# What the core shows to its clients, which stand on all of it; clients/documents/ does not stand on the whole.
PUBLIC = {
    "gguf/gguf.h", "kernels/implementation.h", "kernels/kernels.h", "kernels/observer.h", "kernels/quant/round.h",
    "model/chat/chat.h", "model/chat/compare.h", "model/forward/forward.h", "model/hparams/table.h", "model/model.h",
    "model/swap.h",
    "eval/identity.h", "eval/input.h", "eval/llama_compat.h", "eval/metrics.h", "eval/reference.h", "eval/run.h",
    "eval/streams.h", "eval/units.h",
}
PROGRAM = "cli/main.c"  # lists the commands of all layers
API = "include/assay.h"  # what the layer of this name has the functions of
API_LAYER = "clients/library"
# Implementations of one interface: variants that lean on each other, a room each.
ONE_ROOM = ("kernels/cpu", "kernels/cuda")
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
    "pthread_cond_init": "base_condition_init",
    "pthread_cond_timedwait": "base_condition_wait",
    "pthread_mutex_timedlock": "base_condition_wait",
    "sem_timedwait": "base_condition_wait",
} | dict.fromkeys(
    ("accept4", "eventfd", "fallocate", "getauxval", "getrandom", "linkat", "madvise", "memrchr", "mremap", "pipe2",
     "pthread_condattr_setclock", "qsort_r", "renameat2", "sched_getaffinity", "sigtimedwait", "syscall"),
    "base/system/ or what POSIX has")
# The one file or room that may call them: it defines what is used instead.
HOME = {"pthread_cond_init": "base/system/", "pthread_cond_timedwait": "base/condition.c"} | dict.fromkeys(
    (name for name, instead in BANNED.items() if instead.startswith("base/system/")), "base/system/")
# Only the command line prints, exits or reads the environment.
CLI_ONLY = {"printf": "a status", "exit": "a status", "getenv": "an option", "puts": "a status",
            "abort": "assert"}
# What runs evaluations, and what it must not know of.
CORE = {"eval/run", "eval/scorer", "cli/evaluate.c", "cli/evaluate.h", "cli/host.h"}
CLIENT_WORDS = {"rank", "ranks", "shares", "cluster", "team", "link", "pipe", "hop", "socket", "mpi",
                "watch", "server"}
CLIENT_ROOMS = ("clients/cluster/", "eval/streams/", "cli/watch/", "clients/serve/", "cli/ranks.h",
                "cli/session/cluster.h", "cli/session/swaps.h", "cli/command_line.h")
# Texts of files and command lines as they are; other functions return what may be printed.
RAW = {"base_file_name", "gguf_path", "getenv", "cJSON_GetStringValue", "base_field_text", "eval_category_name"}
# Members whose texts are the program's own, or printable since they were made; with the name before
# it where another's `name` is not.
OWN = {"text", "shown", "escaped", "data", "label", "called", "what", "option", "first", "head", "answer",
       "types_of", "said", "model_id", "assay", "compiler", "build", "commit", "pcre2", "cjson", "openssl",
       "openblas", "summary", "about", "unit", "line", "type.name", "kind.name", "unit.name", "known.name",
       "commands.name", "q.name", "f.name", "g.type", "c.type", "t.instead", "keys.key", "keys.expected", "keys.found"}
PRINTING = ("printf", "fprintf", "base_file_printf", "puts", "fputs")
MAX_LINES = 500
MAX_FUNCTION_LINES = 80
MAX_FILES = 20
MAX_README_LINES = 25
# Of all units that a build compiles, tests and benchmarks included. A file that calls operations may
# raise it by one: low_rank.c and earlier.c, the streams of two architectures, did, test_shares.c, and
# formats.c and states.c of the library.
MAX_REBUILT = 126
OPERATIONS = ("kernels/operations.h", "kernels/scoring.h", "kernels/recurrent.h")
LARGE_ROOMS = {"kernels/quant"}  # a file for each format


def sources(root):
    """(layer or top-level folder, path) of every C, C header and CUDA file."""
    for top in sorted({layer.split("/")[0] for layer in LAYERS}) + ["include", "examples", "tests", "bench"]:
        for path in sorted((root / top).rglob("*")):
            if path.suffix in {".c", ".h", ".cu", ".cuh"}:
                yield ROOMS.of(path.relative_to(root)) or top, path


def code_of(path):
    """The text without comments and string literals, line structure kept."""
    text = path.read_text()
    keep_lines = lambda match: "\n" * match.group(0).count("\n")
    text = re.sub(r"/\*.*?\*/", keep_lines, text, flags=re.S)
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)


def split_list(text):
    """What commas separate, outside brackets and strings."""
    parts, depth = [""], 0
    for piece in re.findall(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])+\'|.', text, re.S):
        depth += (piece in "([{") - (piece in ")]}")
        if piece == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    return [" ".join(part.split()) for part in parts]


def calls_of(text, names):
    """(offset, name, arguments) of the calls in a text without comments."""
    for match in re.finditer(rf"(?<![\w.>])({'|'.join(names)})\(", text):
        depth, end = 1, match.end()
        for piece in re.finditer(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])+\'|[()]', text[match.end():]):
            depth += {"(": 1, ")": -1}.get(piece[0], 0)
            end = match.end() + piece.start()
            if depth == 0:
                break
        yield match.start(), match[1], split_list(text[match.end():end])


def texts_of(name, arguments):
    """The arguments of a call that are printed as texts."""
    if name in ("puts", "fputs"):
        return arguments[:1]
    arguments = arguments[0 if name == "printf" else 1:]
    spec = "".join(re.findall(r'"((?:\\.|[^"\\])*)"', re.sub(r"PRI\w+", '"d"', arguments[0])))
    found, at = [], 1
    for part in re.finditer(r"%(?:%|[-+ 0#]*(\*|\d+)?(?:\.(\*|\d+))?(?:hh|h|ll|l|z|j|t)?([a-zA-Z]))", spec):
        if part[3]:
            at += (part[1] == "*") + (part[2] == "*")
            found += arguments[at:at + 1] if part[3] == "s" else []
            at += 1
    return found


def is_raw(expression, before, depth=0):
    """Whether an expression may be a text as it stands in a file. before: the function up to it."""
    for part in re.split(" : ", expression):
        part = part.split(" ? ")[-1]
        call = re.match(r"([a-z_]\w*)\(", part)
        bare = re.sub(r"\[[^\]]*\]", "", re.sub(r"\([^()]*\)|^[*&]+", "", part)).replace("->", ".")
        if part.startswith('"') or (call and call[1] not in RAW):
            continue
        if call:
            return True
        if "." in bare:
            words = bare.split(".")
            if words[-1] not in OWN and ".".join(words[-2:]) not in OWN:
                return True
        elif re.fullmatch(r"[a-z]\w*", bare) and depth < 3:
            given = re.findall(rf"(?<![\w.>])\*?{bare}(?:\[[^\]]*\])? = ([^;]*?)(?:;|, \*?\w+ = )", before)
            if any(is_raw(" ".join(value.split()), "", depth + 1) for value in given if "{" not in value):
                return True
    return False


def rule_shown(root, _build):
    for folder, path in sources(root):
        if folder not in ("cli", "clients/serve", "clients/documents") or path.suffix != ".c":
            continue
        text = re.sub(r"/\*.*?\*/", lambda match: "\n" * match[0].count("\n"), path.read_text(), flags=re.S)
        for at, name, arguments in calls_of(text, PRINTING):
            before = text[max(text.rfind("\n{", 0, at), 0):at]
            for expression in texts_of(name, arguments):
                if is_raw(expression, before):
                    number = text.count("\n", 0, at) + 1
                    yield (f"{path.relative_to(root)}:{number}: {expression} is printed as it stands; "
                           "use base_printable_text(), or name it in OWN in lint.py")


def rule_layers(root, _build):
    for folder, path in sources(root):
        if folder not in LAYERS:
            continue
        if str(path.relative_to(root)) == PROGRAM:
            continue
        allowed = (folder, *ROOMS.stands_on[folder])
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if match and ROOMS.of(match.group(1)) not in allowed and (match[1], folder) != (API, API_LAYER):
                yield f"{path.relative_to(root)}:{number}: {folder}/ must not include {match.group(1)}"


def rule_clients(root, _build):
    core = [layer for layer in ROOMS.core if layer != "base"]
    for folder, path in sources(root):
        if folder not in ROOMS.clients:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if match and ROOMS.of(match[1]) in core and match[1] not in PUBLIC:
                yield f"{path.relative_to(root)}:{number}: {match[1]} is not public; see PUBLIC in lint.py"


def room_of(path):
    whole = [room for room in ONE_ROOM if f"{path}/".startswith(f"{room}/")]
    return whole[0] if whole else str(path)


def room_includes(root):
    """room -> {room that it includes: an include of it}, without rooms that are in one another."""
    links = {}
    for folder, path in sources(root):
        name = path.relative_to(root)
        if folder not in LAYERS or str(name) == PROGRAM:
            continue
        room = room_of(name.parent)
        for header in re.findall(r'(?m)^\s*#\s*include\s+"([^"]+)"', path.read_text()):
            other = room_of(pathlib.PurePath(header).parent)
            if not f"{other}/".startswith(f"{room}/") and not f"{room}/".startswith(f"{other}/"):
                links.setdefault(room, {}).setdefault(other, f"{name} includes {header}")
    return links


def rule_circles(root, _build):
    links, reached = room_includes(root), {}
    for room in links:
        reached[room], left = set(), [room]
        while left:
            for other in links.get(left.pop(), {}):
                if other not in reached[room]:
                    reached[room].add(other)
                    left.append(other)
    for room in sorted(links):
        yield from (f"{links[room][other]}: {room} and {other} are on a circle"
                    for other in sorted(links[room]) if room in reached.get(other, ()))


def rule_banned(root, _build):
    for folder, path in sources(root):
        banned = dict(BANNED)
        if folder in LAYERS and folder not in ("cli", "clients/serve"):
            banned.update(CLI_ONLY)
        pattern = re.compile(r"(?<![\w.>])(" + "|".join(banned) + r")\s*\(")
        for number, line in enumerate(code_of(path).splitlines(), 1):
            for match in pattern.finditer(line):
                name = match.group(1)
                if name in HOME and str(path.relative_to(root)).startswith(HOME[name]):
                    continue
                yield f"{path.relative_to(root)}:{number}: {name}() is not used here; use {banned[name]}"
            if folder in LAYERS and re.search(r"[!=]=\s*STATUS_OK\b", line):
                yield f"{path.relative_to(root)}:{number}: a status is compared; write `status` or `!status`"


def rule_core(root, _build):
    files = [path for folder, path in sources(root)
             if str(path.parent.relative_to(root)) in CORE or str(path.relative_to(root)) in CORE]
    for path in files:
        for number, line in enumerate(code_of(path).splitlines(), 1):
            for name in re.findall(r"\b[a-z_][a-z0-9_]*\b", line):
                if CLIENT_WORDS & set(name.split("_")) or name.startswith("serve_resident"):
                    yield f"{path.relative_to(root)}:{number}: {name}: the core names none of its clients"
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if match and match.group(1).startswith(CLIENT_ROOMS):
                yield f"{path.relative_to(root)}:{number}: includes {match.group(1)}, a client's"


def rule_size(root, _build):
    for _folder, path in sources(root):
        if "codebook" in path.name or "tables" in path.name:
            continue
        lines = len(path.read_text().splitlines())
        if lines > MAX_LINES:
            yield f"{path.relative_to(root)}: {lines} lines; at most {MAX_LINES}: give each job its own file"


def rule_functions(root, _build):
    """As clang-format lays them out: the body's braces, and only those, begin a line."""
    for folder, path in sources(root):
        if folder not in LAYERS:
            continue
        name, begin = None, 0
        for number, line in enumerate(code_of(path).splitlines(), 1):
            called = re.match(r"[A-Za-z_].*?(\w+)\(", line)
            if called:
                name = called.group(1)
            if line.startswith("{"):
                begin = number
            elif line.startswith("}") and begin:
                if number - begin + 1 > MAX_FUNCTION_LINES:
                    yield (f"{path.relative_to(root)}:{begin}: {name} has {number - begin + 1} lines; "
                           f"at most {MAX_FUNCTION_LINES}")
                begin = 0


def rule_frees(root, _build):
    for _folder, path in sources(root):
        code = code_of(path) if "cJSON_free" in path.read_text() else ""
        by_free, by_cjson = (set(re.findall(rf"(?<!\w){name}\([^()]*(?:->|\.)(\w+)\)", code))
                             for name in ("free", "cJSON_free"))
        for member in sorted(by_free & by_cjson):
            yield f"{path.relative_to(root)}: {member} is freed with free() and with cJSON_free(): with one of them"


def rule_rooms(root, _build):
    rooms = {}
    for folder, path in sources(root):
        if folder in LAYERS:
            rooms[path.parent] = rooms.get(path.parent, 0) + 1
    for room, n_files in sorted(rooms.items()):
        name = str(room.relative_to(root))
        if n_files > MAX_FILES and name not in LARGE_ROOMS:
            yield f"{name}: {n_files} source files; at most {MAX_FILES}: divide it"
        above = room.parent / "README.md"
        covered = name not in LAYERS and above.exists() and f"`{room.name}/`" in above.read_text()
        if not covered and not (room / "README.md").exists():
            yield f"{name}: no README.md, and none in the folder above that names `{room.name}/`"
    page = (root / "docs" / "architecture.md").read_text()
    yield from (f"docs/architecture.md does not name {layer}/" for layer in LAYERS if f"{layer}/" not in page)
    for readme in sorted(path for layer in LAYERS for path in (root / layer).rglob("README.md")):
        lines = len(readme.read_text().splitlines())
        if lines > MAX_README_LINES:
            yield f"{readme.relative_to(root)}: {lines} lines; at most {MAX_README_LINES}"


def rule_tables(root, _build):
    documents = [path for path in root.rglob("*.md") if not path.is_relative_to(root / "build")]
    for path in sorted(documents):
        # Not what is between fences; the lines keep their numbers.
        text = re.sub(r"(?ms)^```.*?^```$", lambda m: "\n" * m[0].count("\n"), path.read_text())
        for head in re.finditer(r"(?m)(?<![^\n]\n)^\|.*\n(?!\|[ :|-]+\|$)", "\n" + text):
            number = text.count("\n", 0, head.start() - 1) + 1
            yield f"{path.relative_to(root)}:{number}: a row of a table that has no head"


def rule_versions(root, _build):
    found = {}
    for name, pattern in (("CMakeLists.txt", r"project\(assay VERSION ([\d.]+)"),
                          ("python/pyproject.toml", r'(?m)^version = "([\d.]+)"'),
                          ("CHANGELOG.md", r"(?m)\A(?:(?!## \d).*\n)*## ([\d.]+)(?: - \d{4}-\d\d-\d\d)?$"),
                          ("docs/install.md", r"assay[_-](\d+\.\d+\.\d+)")):
        found[name] = re.findall(pattern, (root / name).read_text())
    version = found["CMakeLists.txt"][0]
    yield from (f"{name}: names no version" for name in found if not found[name])
    yield from (f"{name}: names version {other}, CMakeLists.txt {version}"
                for name, versions in found.items() for other in versions if other != version)


def rule_symbols(root, build):
    for layer, prefixes in ROOMS.prefixes.items():
        libraries = [found for found in (build / layer).rglob("*.a")
                     if ROOMS.of(found.relative_to(build)) == layer]
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


def rule_calls(_root, build):
    yield from calls.rule(build, list(ROOMS.stands_on))


def rule_rebuilds(root, build):
    if not (build / ".ninja_deps").exists():
        return
    listing = subprocess.run(["ninja", "-C", str(build), "-t", "deps"], capture_output=True,
                             text=True, check=True).stdout
    for header in OPERATIONS:
        n = sum(f"/{header}\n" in unit + "\n" for unit in listing.split("\n\n"))
        if n > MAX_REBUILT:
            yield (f"{header}: {n} units include it; at most {MAX_REBUILT}: include kernels/types.h "
                   "where nothing calls an operation")


def main():
    rules = {"layers": rule_layers, "clients": rule_clients, "circles": rule_circles, "banned": rule_banned, "size": rule_size,
             "functions": rule_functions, "core": rule_core, "frees": rule_frees,
             "rooms": rule_rooms, "tables": rule_tables, "versions": rule_versions, "shown": rule_shown,
             "symbols": rule_symbols, "calls": rule_calls, "rebuilds": rule_rebuilds}
    if len(sys.argv) < 3 or sys.argv[1] not in rules:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[2])
    build = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else root
    findings = list(rules[sys.argv[1]](root, build))
    print("\n".join(findings) if findings else f"{sys.argv[1]}: clean")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()

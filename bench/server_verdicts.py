#!/usr/bin/env python3
"""How often `assay check --url` is wrong: real llama-servers with right files and with wrong ones.

usage: server_verdicts.py FOLDER OUT --assay ASSAY --server LLAMA_SERVER --texts FILE... [-j N]
                          [--api NAME] [--only REGEX] [--no-record] [--no-wrong]
       server_verdicts.py --table OUT

FOLDER has MODEL.TYPE.gguf, and MODEL.TYPE+CHANGE.gguf for a file that is served where MODEL.TYPE is
expected. Each server is started once, and asked about each text once; assay keeps the answers in OUT,
and judges them there against the file that was served and against each other type of the model. A run
that was stopped goes on with what is in OUT; without the documents (OUT/*.json) and with --no-record
the answers that are there are judged by another program. --api says of what kind the server is, as of
assay check. --only leaves out what its regular expression is not found in:
SERVED@OPTIONS@TEXT@EXPECTED. --table prints what came out, in Markdown.
"""
import argparse
import collections
import concurrent.futures
import json
import math
import pathlib
import random
import re
import subprocess
import sys
import time
import urllib.request
import zlib

PLAIN = "plain"
OPTIONS = {  # of llama-server; an environment variable has a =
    PLAIN: [],
    "fa-off": ["-fa", "off"],
    "q8-cache": ["-fa", "on", "-ctk", "q8_0", "-ctv", "q8_0"],
    "q4-cache": ["-fa", "on", "-ctk", "q4_0", "-ctv", "q4_0"],
    "np4": ["-np", "4"],
    "ub32": ["-ub", "32"],
    "tiled-off": ["GGML_CPU_TILED_MM=0"],
}
VARIED = {"F16", "Q8_0", "Q4_K_M"}  # types that are served with all options; the others plain
LENGTHS = ",".join(str(8 * k) for k in range(1, 13))  # no two are neighbours: 24 lists of 2 passages
# clients/probe/verdict.c's limits for draws of lists: how much the size, the correlation and what
# the latter falls with the former scatter with 40 lists.
SIZE, CORRELATION, APART = 0.2, 0.1, 0.2
Run = collections.namedtuple("Run", "served options text expected document")


class Server:
    """A llama-server of a file, while the block lasts."""

    def __init__(self, program, file, options):
        # Its own, by which assay knows it again: a run that was stopped goes on with its answers.
        port = str(20000 + zlib.crc32(f"{file} {options}".encode()) % 10000)
        self.url = f"http://127.0.0.1:{port}"
        variables = [o for o in options if "=" in o]
        self.command = ["env", *variables, str(program), "-m", str(file), "-t", "1", "-tb", "1", "-c",
                        "9216", "--host", "127.0.0.1", "--port", port,
                        *(o for o in options if "=" not in o)]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        for _ in range(600):
            try:
                if urllib.request.urlopen(self.url + "/health", timeout=5).status == 200:
                    return self
            except OSError:
                time.sleep(0.2)
            if self.process.poll() is not None:
                raise RuntimeError(f"{' '.join(self.command)}: ended with {self.process.returncode}")
        raise RuntimeError(f"{' '.join(self.command)}: is not ready")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def stem(path):
    return pathlib.Path(path).name.removesuffix(".gguf")


def check(a, words, document):
    """Run assay check, which writes its document; a line says what came out."""
    partial = document.with_suffix(".partial")
    command = [a.assay, "check", *map(str, words), "-t", "1", "--passes", a.passes, "--json", partial,
               "--force"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        print(f"{document.stem}: {done.stderr.strip().splitlines()[-1:]}", flush=True)
        return
    partial.rename(document)
    r = json.loads(document.read_text())["result"]
    times = r["flat"] / r["flat_expected"] if r["flat_expected"] else math.nan
    print(f"{document.stem}: {r['verdict']} ({r['named']}), {times:.2f}, {r['correlation']}", flush=True)


def record(a, served, options):
    """Ask a server about all texts."""
    todo = []
    for text in a.texts:
        name = f"{stem(served)}@{options}@{stem(text).removesuffix('.txt')}"
        document = a.out / f"{name}@{stem(served)}.json"
        if not document.exists() and re.search(a.only, document.stem):
            todo.append((text, a.out / f"{name}.jsonl", document))
    if not todo:
        return
    with Server(a.server, served, OPTIONS[options]) as server:
        for text, state, document in todo:
            together = ["--concurrency", "4"] if options == "np4" else []
            check(a, ["-m", served, "--url", server.url, "-f", text, "--lengths", a.lengths,
                      "--requests", "400", "--state", state, *together], document)


def judge(a, state, expected):
    document = a.out / f"{state.stem}@{stem(expected)}.json"
    if not document.exists() and re.search(a.only, document.stem):
        check(a, ["-m", expected, "--logprobs", state, "--api", a.api], document)


def files_of(folder, model):
    return sorted(f for f in folder.glob(f"{model}.*.gguf") if "+" not in f.name)


def all_runs(out):
    for path in sorted(out.glob("*@*@*@*.json")):
        yield Run(*path.stem.split("@"), json.loads(path.read_text()))


def measure(a):
    every = sorted(a.folder.glob("*.gguf"))
    jobs = [(f, o) for o in OPTIONS for f in every
            if o == PLAIN or stem(f).split(".")[1] in VARIED]
    with concurrent.futures.ThreadPoolExecutor(a.j) as pool:
        if not a.no_record:
            list(pool.map(lambda job: record(a, *job), jobs))
        pairs = []
        for state in sorted(a.out.glob("*@*@*.jsonl")):
            served, options, _ = state.stem.split("@")
            base = served.split("+")[0]
            others = [base] if "+" in served else map(stem, files_of(a.folder, served.split(".")[0]))
            if a.no_wrong or options != PLAIN:
                others = []
            pairs += [(state, a.folder / f"{name}.gguf") for name in {served, *others}]
        list(pool.map(lambda pair: judge(a, *pair), pairs))


def bounds(k, n):
    """The share k / n with 95 % bounds (Clopper and Pearson), by bisection."""
    def tail(p, at_least):
        terms = (math.comb(n, i) * p**i * (1 - p)**(n - i) for i in range(n + 1)
                 if (i >= k if at_least else i <= k))
        return math.fsum(terms)

    def solve(rises, goes_up):
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if (rises(middle) < 0.025) == goes_up else (low, middle)
        return low
    least = 0.0 if k == 0 else solve(lambda p: tail(p, True), True)
    most = 1.0 if k == n else solve(lambda p: tail(p, False), False)
    return f"{k} of {n} ({100 * least:.1f} to {100 * most:.1f} %)"


def agrees(lists, quantised):
    """The rule of clients/probe/verdict.c on lists of one weight."""
    n = len(lists)
    s = max(math.sqrt(40 / n) * (100 * n / sum(x["n"] for x in lists))**0.25, 1)
    size = math.sqrt(sum(x["flat"]**2 for x in lists) / sum(x["flat_expected"]**2 for x in lists))
    if size > 1 + SIZE * s:
        return False
    if not quantised:
        return True
    less = sum(x["correlation_expected"] - x["correlation"] for x in lists) / n
    return less <= CORRELATION * s and size - 1 + less <= APART * s


def stretches(run):
    """A list of each stretch of 8 positions, by text."""
    found = {}
    for x in run.document["lists"]:
        if not x["after_tie"]:
            found.setdefault((run.text, x["text"], (x["position"] + 4) // 8), x)
    return list(found.values())


def print_draws(runs, right):
    """How often draws of lists of a server and file do not agree (right), or do (wrong)."""
    pools = collections.defaultdict(list)
    for run in runs:
        pools[run.served, run.options, run.expected] += stretches(run)
    r = random.Random(1)
    for n in (20, 40, 100):
        shares = {}
        for (served, options, expected), lists in pools.items():
            if len(lists) >= n:
                quantised = lists[0]["correlation"] is not None
                wrong = sum(agrees(r.sample(lists, n), quantised) != right for _ in range(200))
                shares[f"{served} {options} for {expected}"] = wrong / 200
        if shares:
            worst = sorted(shares, key=shares.get)[-3:]
            print(f"draws of {n} lists, {len(shares)} {'right' if right else 'wrong'} servers: "
                  f"{100 * sum(shares.values()) / len(shares):.2f} %, worst: " +
                  ", ".join(f"{w} {100 * shares[w]:.0f} %" for w in reversed(worst)))


def span(values, digits=2):
    values = [v for v in values if v is not None]
    if not values:
        return "-"
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low} to {high}"


def print_table(out):
    runs = list(all_runs(out))
    groups = collections.defaultdict(list)
    for run in runs:
        right = run.served == run.expected
        groups[run.expected, "" if right else run.served,
               "" if not right else run.options].append(run)
    print("| file | served | runs | off | expected | size | correlation | verdicts |\n"
          "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |")
    for (expected, served, options), some in sorted(groups.items()):
        results = [x.document["result"] for x in some]
        verdicts = collections.Counter(
            r["verdict"] + (f" ({r['named']})" if r["named"] != "nothing" else "") for r in results)
        print(f"| {expected} | {served or 'itself, ' + options} | {len(some)} | "
              f"{span([r['flat'] for r in results], 4)} | {span([r['flat_expected'] for r in results], 4)} | "
              f"{span([r['flat'] / r['flat_expected'] for r in results])} | "
              f"{span([r['correlation'] for r in results])} | "
              f"{', '.join(f'{k} {v}' for k, v in verdicts.most_common())} |")
    rights = [x for x in runs if x.served == x.expected]
    wrongs = [x for x in runs if x.served != x.expected]

    def count(some, test):
        return bounds(sum(test(x.document["result"]) for x in some), len(some)) if some else "none"
    print("\nright engines that differ:", count(rights, lambda r: r["verdict"] == "differs"))
    print("right engines that do not agree:", count(rights, lambda r: r["verdict"] != "agrees"))
    print("wrong files that agree:", count(wrongs, lambda r: r["verdict"] == "agrees"))
    print("wrong files that do not differ:", count(wrongs, lambda r: r["verdict"] != "differs"))
    coarse = [x for x in rights if x.options == "q8-cache" and ".F16" in x.served]
    print_draws([x for x in rights if x not in coarse], True)
    print_draws(wrongs, False)


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("folder", nargs="?", type=pathlib.Path)
    p.add_argument("out", nargs="?", type=pathlib.Path)
    p.add_argument("--assay")
    p.add_argument("--server")
    p.add_argument("--texts", nargs="+", type=pathlib.Path, default=[])
    p.add_argument("--api", default="llama-server")
    p.add_argument("--lengths", default=LENGTHS)
    p.add_argument("--passes", default="1")
    p.add_argument("--only", default="")
    p.add_argument("--no-record", action="store_true")
    p.add_argument("--no-wrong", action="store_true")
    p.add_argument("-j", type=int, default=1)
    p.add_argument("--table", type=pathlib.Path)
    a = p.parse_args()
    if a.table:
        print_table(a.table)
        return
    if not (a.folder and a.out and a.assay and a.server):
        sys.exit(__doc__)
    a.out.mkdir(exist_ok=True)
    measure(a)


if __name__ == "__main__":
    main()

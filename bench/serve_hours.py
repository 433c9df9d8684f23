#!/usr/bin/env python3
"""A long day of assay serve: thousands of requests, a third of them bad, from several clients at a
time. Every answer is compared with the first of its kind, which the tests compare with the command
line; in the end the resident size must be flat, and the server must end with exit code 0.

usage: serve_hours.py ASSAY SOURCE_DIR [REQUESTS [CLIENTS]]      (default: 20000 4)
"""
import json
import os
import pathlib
import random
import socket
import sys
import tempfile
import threading
import time

ASSAY, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
N, CLIENTS = (int(v) for v in (sys.argv[3:] + ["20000", "4"][len(sys.argv[3:]):]))
sys.path.insert(0, str(SOURCE / "tests" / "cli"))
from serving import Server  # noqa: E402

DATA = SOURCE / "data"
MODEL, BASE, TEXT = DATA / "tiny.Q4_K_M.gguf", DATA / "tiny.F16.gguf", SOURCE / "data" / "text.txt"
SEED = int(os.environ.get("ASSAY_TEST_SEED", "1"))
FLAT_BYTES = 4 << 20  # that the last tenth may have more than the first

WORDS = TEXT.read_text().split()
HEAD = b"POST /v1/evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def post(path, body, **more):
    return lambda server: server.post(path, body, **more)


def cut(data):
    """A connection that is given up."""
    def send(server):
        with socket.create_connection(("127.0.0.1", server.port)) as s:
            s.sendall(data)
    return send


# Name: what is done, and the code that it must give; NONE: there is no answer.
NONE = 0
GOOD = {
    "perplexity": (post("/v1/evaluate", {"ctx_size": 16, "chunks": 2}), 200),
    "text": (post("/v1/evaluate", {"ctx_size": 16, "text": " ".join(WORDS[:60])}), 200),
    "kld": (post("/v1/evaluate", {"kind": "kld", "ctx_size": 16, "chunks": 1}), 200),
    "completions": (post("/v1/completions", {"prompt": [" ".join(WORDS[i:i + 9]) for i in range(4)],
                                             "max_tokens": 1, "temperature": 0, "echo": True,
                                             "logprobs": 1}), 200),
    "ids": (post("/v1/completions", {"prompt": [1, 50, 60, 70], "max_tokens": 0, "echo": True,
                                     "logprobs": True}), 200),
    # There and back at once: all that follow find the model as it was.
    "swap": (post("/v1/swap", {"swaps": [
        {"tensor": "output.weight", "file": str(BASE)}, {"tensor": "output.weight", "file": None}]}),
        200),
    "jobs": (lambda server: server.get("/v1/jobs"), 200),
    "health": (lambda server: server.get("/health"), 200),
    "metrics": (lambda server: server.get("/metrics"), 200),
    "later": (post("/v1/evaluate", {"ctx_size": 16, "chunks": 1, "wait": False}), 202),
}
BAD = {
    "no JSON": (post("/v1/evaluate", "{"), 400),
    "zeros": (post("/v1/evaluate", b"\0" * 1000), 400),
    "member": (post("/v1/evaluate", {"chunk": 1}), 422),
    "value": (post("/v1/evaluate", {"chunks": -2}), 422),
    "too little": (post("/v1/evaluate", {"text": "x"}), 422),
    "no tensor": (post("/v1/swap", {"tensor": "x", "file": str(BASE)}), 422),
    "no file": (post("/v1/swap", {"swaps": [{"tensor": "output.weight", "file": str(BASE)},
                                            {"tensor": "output.weight", "file": "/none"}]}), 422),
    "tokens": (post("/v1/completions", {"prompt": [1, 1 << 30], "max_tokens": 0}), 422),
    "long": (post("/v1/evaluate", b" " * (5 << 20)), 413),
    "type": (post("/v1/evaluate", "{}", headers={"Content-Type": "text/plain"}), 415),
    "method": (lambda server: server.request("PUT", "/v1/swap", "{}"), 405),
    "path": (lambda server: server.get("/v1/" + "x" * 500), 404),
    "job": (lambda server: server.request("DELETE", "/v1/jobs/999999999"), 404),
    "page": (lambda server: server.get("/health", headers={"Origin": "http://x"}), 403),
    "cut head": (cut(HEAD), NONE),
    "cut body": (cut(HEAD + b"Content-Length: 100\r\n\r\n{\"chunks\":"), NONE),
    "gone": (cut(HEAD + b"Content-Length: 30\r\n\r\n" + b'{"ctx_size": 16, "chunks": 9}'.ljust(30)),
             NONE),
    "noise": (cut(bytes(range(256)) * 20), NONE),
}
VARY = ("jobs", "health", "metrics", "later")  # their answers depend on what others do


def stripped(body):
    """What must be the same each time."""
    document = json.loads(body)
    for key in ("run", "created"):
        document.pop(key, None)
    return document


class Day:
    def __init__(self, server):
        self.server, self.lock = server, threading.Lock()
        self.left, self.random = N, random.Random(SEED)
        self.first, self.wrong, self.sizes = {}, [], []
        self.counts, self.n_busy = {}, 0

    def next(self):
        with self.lock:
            if not self.left or self.wrong:
                return None
            self.left -= 1
            if self.left % max(N // 100, 1) == 0:
                self.sizes.append(None)  # to be measured
            kinds = BAD if self.random.random() < 1 / 3 else GOOD
            return self.random.choice(sorted(kinds)), kinds

    def check(self, name, code, reply):
        with self.lock:
            self.counts[name] = self.counts.get(name, 0) + 1
            if code == NONE:
                return
            if reply.code == 503:  # more at a time than the queue takes
                self.n_busy += 1
                return
            if reply.code != code:
                self.wrong.append((name, reply.code, reply.body[:300]))
            elif name not in VARY and stripped(reply.body) != self.first.setdefault(
                    name, stripped(reply.body)):
                self.wrong.append((name, reply.body[:300], self.first[name]))

    def measure(self):
        with self.lock:
            wanted = self.sizes and self.sizes[-1] is None
            if wanted:
                self.sizes[-1] = 0
        if wanted:
            size = self.server.metric("resident_bytes")
            with self.lock:
                self.sizes[self.sizes.index(0)] = size

    def client(self):
        while (chosen := self.next()) is not None:
            name, kinds = chosen
            act, code = kinds[name]
            try:
                self.check(name, code, act(self.server))
            except OSError as e:
                if code != NONE:
                    with self.lock:
                        self.wrong.append((name, repr(e)))
            self.measure()


def main():
    started = time.monotonic()
    with Server(ASSAY, "-m", MODEL, "--base", BASE, "-f", TEXT, "--max-body", "4",
                "-b", "512") as server:
        day = Day(server)
        for name, (act, code) in GOOD.items():  # each once, alone
            day.check(name, code, act(server))
        threads = [threading.Thread(target=day.client) for _ in range(CLIENTS)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        model = server.get("/health").json.get("model", {})
        tokens, code = server.metric("tokens_total"), server.end()
    sizes = [s for s in day.sizes if s]
    early, late = max(sizes[:max(len(sizes) // 10, 1)]), max(sizes[-max(len(sizes) // 10, 1):])
    n_bad = sum(day.counts.get(name, 0) for name in BAD)
    print(f"{sum(day.counts.values())} requests, {n_bad} of them bad, {day.n_busy} met a full queue; "
          f"{tokens:.0f} tokens evaluated; {time.monotonic() - started:.0f} s; resident "
          f"{early / 1e6:.1f} MB in the first tenth, {late / 1e6:.1f} MB in the last; exit code {code}")
    if "swapped" in model:
        day.wrong.append("the model is not as it was")
    if late > early + FLAT_BYTES:
        day.wrong.append("the resident size grows")
    if code:
        day.wrong.append("the exit code")
    for what in day.wrong[:5]:
        print("WRONG", what, file=sys.stderr)
    return 1 if day.wrong else 0


if __name__ == "__main__":
    sys.exit(main())

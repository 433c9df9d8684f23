#!/usr/bin/env python3
"""assay serve against hostile clients: names of other hosts, pages, slow and many senders, bodies that
nobody asked for, paths that lead elsewhere.

usage: test_serve_attack.py ASSAY SOURCE_DIR
"""
import contextlib
import http.client
import os
import pathlib
import shutil
import socket
import tempfile
import threading
import time
import unittest

from program import ASSAY, F16, HANG_S, Q4, is_sanitized, run
from serving import Server

KEY = {"ASSAY_API_KEY": "the key"}
WITH_KEY = {"Authorization": "Bearer the key"}


def head(line, *lines):
    return b"\r\n".join([line + b" HTTP/1.1", b"Host: localhost", *lines, b"", b""])


class Pages(unittest.TestCase):
    """What a page in a browser of this machine can send, without a key."""

    def codes(self, server, headers):
        return {server.get(path, headers=headers).code for path in ("/health", "/v1/jobs", "/metrics")}

    def test_names(self):
        with Server(ASSAY, "-m", Q4) as server:
            for name in ("localhost", "LOCALHOST:80", "localhost.", "127.0.0.1", "127.9.8.7:1", "[::1]:8080"):
                self.assertEqual(self.codes(server, {"Host": name}), {200}, name)
            for name in ("localhost.evil.com", "localhostess.example", "[x].evil.com", "[::1].evil.com",
                         "127.0.0.1.evil.com", "evil.example", "10.0.0.1", "localhost:80.evil.com", "0.0.0.0",
                         "localhost@evil.com", "evil.com:80", "127.1", "", "[::2]", "my-pc"):
                self.assertEqual(self.codes(server, {"Host": name}), {403}, name)
                self.assertEqual(server.post("/v1/swap", {"restore": True}, headers={"Host": name}).code, 403)

    def test_the_name_of_host(self):
        with Server(ASSAY, "-m", Q4, "--host", "127.1") as server:
            self.assertEqual(self.codes(server, {"Host": "127.1:80"}), {200})
            self.assertEqual(self.codes(server, {"Host": "127.1.evil.com"}), {403})

    def test_who_asks(self):
        with Server(ASSAY, "-m", Q4) as server:
            for site in ("none", "same-origin"):
                self.assertEqual(self.codes(server, {"Sec-Fetch-Site": site}), {200}, site)
            for site in ("cross-site", "same-site", "", "None", "none, cross-site"):
                self.assertEqual(self.codes(server, {"Sec-Fetch-Site": site}), {403}, site)
            self.assertEqual(self.codes(server, {"Origin": "null"}), {403})
            self.assertEqual(server.get("/health", headers={"Sec-Fetch-Site": "cross-site"}).json["error"]["type"],
                             "forbidden")


class Senders:
    """So many connections that send a byte now and then, and come back when they are cut."""

    def __init__(self, server, n, begins):
        self.port, self.begins, self.n_cut = server.port, begins, 0
        self.sockets = [self.connect(i) for i in range(n)]
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.send)

    def connect(self, i):
        s = socket.create_connection(("127.0.0.1", self.port), timeout=HANG_S)
        s.sendall(self.begins[i % len(self.begins)])
        s.setblocking(False)
        return s

    def goes_on(self, s):
        try:
            s.send(b"1")
            while s.recv(4096):
                pass
            return False
        except BlockingIOError:
            return True
        except OSError:
            return False

    def send(self):
        while not self.over.is_set():
            for i, s in enumerate(self.sockets):
                if not self.goes_on(s):
                    self.n_cut += 1
                    s.close()
                    with contextlib.suppress(OSError):
                        self.sockets[i] = self.connect(i)
            time.sleep(0.05)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        for s in self.sockets:
            s.close()


class Door(unittest.TestCase):
    """Its own limit of time is too long to help: 3000 seconds."""

    def start(self, **more):
        server = Server(ASSAY, "-m", Q4, "-t", "1", "--timeout", "3000", **more)
        self.addCleanup(server.__exit__)
        return server

    def health(self, server):
        for _ in range(3):  # on a busy machine it may be taken for one that sends slowly
            with contextlib.suppress(ConnectionError, http.client.HTTPException):
                return server.get("/health", timeout=60).code
        return None

    def test_slow_senders_keep_nobody_out(self):
        server = self.start(env=KEY)
        begins = (b"", b"GET /hea", b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ",
                  head(b"POST /v1/evaluate", b"Content-Type: application/json", b"Content-Length: 1000000"),
                  head(b"GET /health", b"Content-Type: application/json", b"Content-Length: 1000000"),
                  head(b"DELETE /v1/jobs/1", b"Transfer-Encoding: chunked"))
        with Senders(server, 90, begins) as senders:
            while senders.n_cut < 90:
                time.sleep(0.05)
            self.assertEqual([self.health(server) for _ in range(8)], [200] * 8)
            self.assertEqual(server.get("/metrics", headers=WITH_KEY).code, 200)

    def test_places_that_are_taken(self):
        """Where no key is asked for, whoever sends a body has a place; /health needs none."""
        server = self.start()
        begins = [head(b"POST /v1/evaluate", b"Content-Type: application/json", b"Content-Length: 1000000")]
        with Senders(server, 70, begins):
            while (reply := server.get("/metrics")).code == 200:
                time.sleep(0.02)
            self.assertEqual((reply.code, reply.json["error"]["type"], reply.headers["Retry-After"]),
                             (503, "busy", "1"))
            self.assertEqual([self.health(server) for _ in range(8)], [200] * 8)
        while server.get("/metrics").code != 200:
            time.sleep(0.02)

    def test_bodies_are_not_read_after_a_refusal(self):
        server = self.start(env=KEY)
        for line in (b"GET /metrics", b"DELETE /v1/jobs/1", b"POST /v1/evaluate"):
            for more in (b"X: ", b"Expect: 100-continue"):
                with socket.create_connection(("127.0.0.1", server.port), timeout=HANG_S) as s:
                    s.sendall(head(line, b"Content-Type: application/json", b"Content-Length: 1000000000", more))
                    received = b""
                    while chunk := s.recv(65536):  # the end comes without the body
                        received += chunk
                    self.assertTrue(received.startswith(b"HTTP/1.1 401 "), received)
                    self.assertIn(b"\r\nConnection: close\r\n", received)
                    if line.startswith(b"POST") and more == b"X: ":
                        with self.assertRaises(ConnectionError):  # what still comes is taken for a while
                            while True:
                                s.send(b" " * 65536)


class Framing(unittest.TestCase):
    def test_requests_that_contradict_themselves(self):
        post = (b"POST /v1/evaluate", b"Content-Type: application/json")
        with Server(ASSAY, "-m", Q4, "--timeout", "1") as server:
            for data in (head(b"GET http://evil.com/health", b"Connection: close"),
                         head(b"GET /health", b" .evil.com"),
                         head(*post, b"Transfer-Encoding: chunked") + b"zz\r\n{}\r\n0\r\n\r\n",
                         head(*post, b"Transfer-Encoding: chunked") + b"-2\r\n{}\r\n0\r\n\r\n",
                         head(*post, b"Transfer-Encoding: chunked") + b"f" * 16 + b"\r\n{}\r\n0\r\n\r\n",
                         head(*post, b"Transfer-Encoding: gzip") + b"{}",
                         head(*post, b"Content-Length: 2", b"Transfer-Encoding: chunked") +
                         b"0\r\n\r\n" + head(b"GET /health"),
                         head(*post, b"Content-Length: 18446744073709551616") + b"{}",
                         head(*post, b"Content-Length: 2, 2") + b"{}",
                         head(b"PRI *"), head(b"OPTIONS *"), head(b"CONNECT localhost:80"), b"\x16\x03\x01\x02\x00"):
                with socket.create_connection(("127.0.0.1", server.port), timeout=HANG_S) as s:
                    received = b""
                    with contextlib.suppress(ConnectionError):
                        s.sendall(data)
                        while chunk := s.recv(65536):
                            received += chunk
                self.assertNotIn(b" 200 OK", received, data)
            self.assertEqual(server.get("/health").code, 200)


    def test_headers_that_come_twice(self):
        post = (b"POST /tokenize", b"Content-Type: application/json")
        body = b'{"prompt":"a"} '
        with Server(ASSAY, "-m", Q4) as server:
            def send(data):
                with socket.create_connection(("127.0.0.1", server.port), timeout=HANG_S) as s:
                    received = b""
                    with contextlib.suppress(ConnectionError):
                        s.sendall(data)
                        while chunk := s.recv(65536):
                            received += chunk
                return received
            for lengths in (b"14 15", b"15 14", b"14 14"):
                a, b = lengths.split()
                received = send(head(*post, b"Content-Length: " + a, b"content-length: " + b) + body)
                self.assertIn(b"400 Bad Request", received)
                self.assertIn(b"two headers Content-Length: where it ends is not known", received)
            for other in (b"evil.com", b"localhost"):
                self.assertIn(b"two headers Host", send(head(b"GET /health", b"Host: " + other)))
            for lines in ([b"Host: localhost\0.evil.com", b"Accept: */*"], [b"Accept: */*", b"Host: localhost\0x"],
                          [b"Host: localhost\0", b"Accept: */*"], [b"Host: localhost", b"X: a\0b", b"Accept: */*"]):
                received = send(b"\r\n".join([b"GET /health HTTP/1.1", *lines, b"", b""]))
                self.assertIn(b"400 Bad Request", received, lines)
                self.assertIn(b"a header of the request has the character NUL", received)
            for ends in (b"\r\n", b"\n"):
                self.assertIn(b" 200 OK", send(ends.join([b"GET /health HTTP/1.1", b"Host:localhost", b"X:  a  ", b"Y:",
                                                         b"Connection:   close", b"", b""])))


class Memory(unittest.TestCase):
    """What requests may take, and what is left of it."""

    def start(self, *words):
        server = Server(ASSAY, "-m", Q4, *words)
        self.addCleanup(server.__exit__)
        return server

    def test_what_one_request_may_take(self):
        server = self.start("--request-memory", "8")
        for path, body in (("/v1/completions", {"max_tokens": 0, "prompt": [""] * 100000}),
                           ("/v1/evaluate", {"text": [{"text": "a"}] * 3000}),
                           ("/v1/evaluate", {"kind": "hellaswag", "text": "{}\n" * 3000}),
                           ("/v1/score", {"text": '{"text":"a"}\n' * 8000}),
                           ("/tokenize", {"content": "a" * 400000, "with_pieces": True})):
            for _ in range(2):
                reply = server.post(path, body)
                self.assertEqual((reply.code, reply.json["error"]["type"]), (413, "size"), reply.body)
                self.assertRegex(reply.message, r"the request may take \d+ MiB of memory, expected at most 8;")
        for _ in range(6):  # what was taken is given back
            self.assertEqual(server.post("/v1/completions", {"max_tokens": 0, "prompt": [""] * 60000}).code, 422)
            self.assertEqual(server.post("/v1/evaluate", {"text": [{"text": "the war"}] * 1000}).code, 200)
            self.assertEqual(server.post("/v1/evaluate", {"text": "the war " * 20, "ctx_size": 16}).code, 200)

    def test_what_all_may_take(self):
        server = self.start("--request-memory", "8")
        half = head(b"POST /tokenize", b"Content-Type: application/json", b"Content-Length: 6000000") + b" " * 5000000
        reply = None
        while not reply or reply.code != 429:  # on a busy machine the second may be the first
            with socket.create_connection(("127.0.0.1", server.port), timeout=HANG_S) as s:
                s.sendall(half)
                time.sleep(0.2)
                reply = server.post("/tokenize", b" " * 4000000 + b'{"prompt": "a"}')
                self.assertEqual(server.post("/tokenize", {"prompt": "a"}).code, 200)
        self.assertEqual((reply.json["error"]["type"], reply.headers["Retry-After"]), ("size", "1"))
        while server.post("/tokenize", b" " * 4000000 + b'{"prompt": "a"}').code != 200:
            time.sleep(0.02)

    @unittest.skipIf(is_sanitized(), "a sanitizer keeps what is freed")
    def test_what_is_left(self):
        server = self.start()
        def resident():
            lines = pathlib.Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
            return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1]) / 1024
        before = resident()
        self.assertEqual(server.post("/v1/completions", b'{"max_tokens":0,"prompt":[' + b'"",' * 999999 + b'""]}').code,
                         422)
        self.assertEqual(server.post("/v1/evaluate", {"text": [{"text": "a"}] * 10000}).code, 200)
        deadline = time.monotonic() + 10  # the reply is there before its connection has ended
        while resident() > before + 40 and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertLess(resident(), before + 40)


class Waiting(unittest.TestCase):
    """No file keeps the jobs."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def test_states_are_files_of_their_folder(self):
        states = self.folder / "states"
        states.mkdir()
        (self.folder / "other.json").write_text("mine")
        os.mkfifo(states / "pipe.json")
        (states / "folder.json").mkdir()
        (states / "out.json").symlink_to(self.folder / "other.json")
        (states / "new.json").symlink_to(self.folder / "none.json")
        with Server(ASSAY, "-m", Q4, "--state-dir", states) as server:
            for name in ("pipe", "folder", "out", "new"):
                for what in ("save", "load"):
                    reply = server.post(f"/perplexity/{what}", {"name": name}, timeout=20)
                    self.assertEqual((reply.code, reply.json["error"]["type"]), (422, "io"))
                    self.assertIn(f"{states}/{name}.json: is not a regular file, expected a state", reply.message)
            for _ in range(2):
                for what in ("save", "load"):
                    self.assertEqual(server.post(f"/perplexity/{what}", {"name": "good"}).code, 200)
        self.assertEqual((self.folder / "other.json").read_text(), "mine")
        self.assertFalse((self.folder / "none.json").exists())

    def test_a_text_that_never_comes(self):
        text = self.folder / "text"
        text.write_text("The war ended. " * 40)
        with Server(ASSAY, "-m", Q4, "-f", text, "--job-timeout", "2") as server:
            self.assertEqual(server.post("/v1/evaluate", {"ctx_size": 16}).code, 200)
            text.unlink()
            os.mkfifo(text)
            for writes in (False, True):
                fd = os.open(text, os.O_RDWR) if writes else -1
                reply = server.post("/v1/evaluate", {"ctx_size": 16}, timeout=20)
                self.assertEqual((reply.code, reply.json["error"]["type"]), (409, "cancelled"))
                self.assertIn("it ran longer than --job-timeout", reply.message)
                if writes:
                    os.close(fd)
            job = server.post("/v1/evaluate", {"ctx_size": 16, "wait": False}).json["id"]
            self.assertEqual(server.request("DELETE", f"/v1/jobs/{job}").code, 202)
            self.assertEqual(server.post("/v1/evaluate", {"text": "The war. " * 20, "ctx_size": 16}, timeout=20).code, 200)
            self.assertEqual(server.get(f"/v1/jobs/{job}").json["state"], "cancelled")

    def test_many_tensors_of_one_file(self):
        shutil.copy(Q4, self.folder / "model.gguf")
        shutil.copy(F16, self.folder / "donor.gguf")
        with Server(ASSAY, "-m", self.folder / "model.gguf", "--job-timeout", "2") as server:
            n_open, over = [0], threading.Event()

            def look():
                maps = pathlib.Path(f"/proc/{server.process.pid}/maps")
                while not over.is_set():
                    n_open.append(maps.read_text().count("/donor.gguf"))
            watcher = threading.Thread(target=look)
            watcher.start()
            one = {"tensor": "blk.0.attn_k.weight", "file": str(self.folder / "donor.gguf")}
            self.assertEqual(server.post("/v1/swap", {"swaps": [one] * 500}).code, 200)
            self.assertIn(server.post("/v1/swap", {"swaps": [one] * 20000}, timeout=30).code, (200, 409))
            over.set()
            watcher.join()
            self.assertLess(max(n_open), 5)
            self.assertEqual(len(server.get("/health").json["model"]["swapped"]), 1)


class Files(unittest.TestCase):
    """Files that /v1/swap may name: those under the models' folders or --files-from."""
    NAME = "output.weight"

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.models, self.others = self.folder / "models", self.folder / "models-of-others"
        (self.models / "sub").mkdir(parents=True)
        self.others.mkdir()
        shutil.copy(Q4, self.models / "model.gguf")
        for path in (self.models / "donor.gguf", self.models / "sub" / "donor.gguf", self.others / "donor.gguf",
                     self.models / "x-00001-of-00002.gguf", self.models / "model.gguf.txt"):
            shutil.copy(F16, path)
        for name, to in (("in", "donor.gguf"), ("out", self.others / "donor.gguf"), ("folder", self.others),
                         ("nowhere", "/no/such/file"), ("loop", "loop"), ("up", ".."),
                         ("x-00002-of-00002.gguf", self.others / "donor.gguf")):
            (self.models / name).symlink_to(to)

    def start(self, *words):
        server = Server(ASSAY, "-m", self.models / "model.gguf", *words)
        self.addCleanup(server.__exit__)
        return server

    def check_taken(self, server, path):
        reply = server.post("/v1/swap", {"tensor": self.NAME, "file": str(path)})
        self.assertEqual(reply.code, 200, (path, reply.body))
        self.assertEqual(reply.json["swapped"][0]["type"], "F16")

    def check_refused(self, server, path):
        reply = server.post("/v1/swap", {"tensor": self.NAME, "file": str(path)})
        self.assertEqual((reply.code, reply.message),
                         (422, f"{self.NAME}: {path}: there is no such file under the folder of a model or of "
                               "--files-from"))

    def test_files(self):
        server = self.start()
        donor = self.models / "donor.gguf"
        for path in (donor, self.models / "sub" / "donor.gguf", self.models / "sub" / ".." / "donor.gguf",
                     self.models / "in", self.models / "model.gguf.txt", os.path.relpath(donor),
                     f"{self.folder}//models/./donor.gguf", self.models / "up" / "models" / "donor.gguf"):
            self.check_taken(server, path)
        before = server.get("/health").json["model"]
        for path in (self.others / "donor.gguf", self.models / ".." / "models-of-others" / "donor.gguf",
                     self.models / "out", self.models / "folder" / "donor.gguf", self.models / "nowhere",
                     self.models / "loop", self.models / "up", self.models / "x-00001-of-00002.gguf",
                     self.models / "none.gguf", self.others / "none.gguf", self.models, "", ".", "/", "donor.gguf",
                     "/etc/passwd", "/etc/shadow", "/etc/no-such-file", "/root/.ssh/id_rsa", "/proc/self/environ",
                     "/proc/self/fd/0", "/dev/zero", "/dev/stdin", "a" * 300,
                     str(donor) + "/", str(donor) + "/../donor.gguf", "é\udcff".encode("utf-8", "replace").decode()):
            self.check_refused(server, path)
        self.assertEqual(server.post("/v1/swap", {"tensor": self.NAME, "file": "a/" * 3000}).code, 422)
        self.assertEqual(server.get("/health").json["model"], before)
        (self.models / "text").write_text("root:x:0:0")  # in a folder that was given: said as it is
        reply = server.post("/v1/swap", {"tensor": self.NAME, "file": str(self.models / "text")})
        self.assertIn("is not a GGUF file", reply.message)

    def test_folders_that_were_given(self):
        server = self.start("--base", Q4, "--files-from", self.others, "--files-from", self.folder / "models" / "sub")
        for path in (self.others / "donor.gguf", self.models / "out", self.models / "folder" / "donor.gguf", F16):
            self.check_taken(server, path)
        self.check_refused(server, "/etc/passwd")
        self.check_refused(server, self.models / "up")
        for words in (["--files-from", self.folder / "none"], ["--files-from", self.models / "donor.gguf"]):
            done = run("serve", "-m", Q4, "--port", "0", *words)
            self.assertEqual(done.returncode, 2)
            self.assertIn("there is no such folder", done.stderr)

    def test_a_link_to_the_model(self):
        """The folder is that of the link."""
        (self.others / "link.gguf").symlink_to(self.models / "model.gguf")
        with Server(ASSAY, "-m", self.others / "link.gguf") as server:
            self.check_taken(server, self.others / "donor.gguf")
            self.check_refused(server, self.models / "donor.gguf")
            self.check_refused(server, self.others / "link.gguf")


if __name__ == "__main__":
    unittest.main(argv=["test_serve_attack"])

"""A server of assay serve, for the tests that talk to it."""
import http.client
import json
import os
import re
import signal
import subprocess
import threading
import time

TIMEOUT_S = 300  # for what has stopped; a busy machine may be slow


class Reply:
    def __init__(self, code, headers, body):
        self.code, self.headers, self.body = code, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def message(self):
        return self.json["error"]["message"]


class Server:
    """assay serve with further words; ended at the end of a `with`."""

    def __init__(self, assay, *words, env=None, wait=True, cwd=None):
        self.process = subprocess.Popen(
            [assay, "serve", "--port", "0", *map(str, words)], stderr=subprocess.PIPE, text=True,
            env={**os.environ, **(env or {})}, cwd=cwd)
        self.lines, self.port = [], None
        for line in self.process.stderr:
            self.lines.append(line)
            found = re.match(r"assay: listening on http://(.*):(\d+)$", line)
            if found:
                self.host, self.port = found.group(1), int(found.group(2))
                break
        # Else it would wait for a reader of its notes one day.
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.process.stderr))
        self.reader.start()
        if wait and self.port:
            self.wait_until_ready()

    def wait_until_ready(self):
        while self.get("/health").code != 200:
            time.sleep(0.02)

    def connect(self, timeout=TIMEOUT_S):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def request(self, method, path, body=None, headers=None, timeout=TIMEOUT_S):
        connection = self.connect(timeout)
        headers = dict(headers or {})
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, body, headers)
            reply = connection.getresponse()
            return Reply(reply.status, dict(reply.getheaders()), reply.read())
        finally:
            connection.close()

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.request("POST", path, body, **more)

    def metric(self, name):
        return float(re.search(rf"^assay_{re.escape(name)} (.*)$",
                               self.get("/metrics").body.decode(), re.MULTILINE).group(1))

    def end(self, number=signal.SIGTERM):
        """The exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(TIMEOUT_S)
        self.reader.join()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
        self.process.stderr.close()
        if self.process.returncode not in (0, 130):
            raise AssertionError(f"exit code {self.process.returncode}: {self.lines}")


def events(reply):
    """(name, document) of each event of a reply."""
    name = None
    for line in reply:
        if line.startswith(b"event: "):
            name = line[7:].strip().decode()
        elif line.startswith(b"data: "):
            yield name, json.loads(line[6:])

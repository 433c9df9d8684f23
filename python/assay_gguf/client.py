"""Scores of requests: by a run of assay score, or by a server that assay serve is.

A request is a dict, {"context": ..., "continuation": ...} or {"text": ...}; docs/harness.md of assay
says how it is scored. Both classes give the same bits.
"""
import contextlib
import http.client
import json
import logging
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import typing
import urllib.error
import urllib.request

log = logging.getLogger(__name__)


class AssayError(RuntimeError):
    """What went wrong; where the program said it, its sentence.

    Of a run of the program, code is its exit code (negative: the signal that ended it), sentence
    what it said last, and result the document that it wrote nevertheless. Of a call of the library,
    status is a short name ("format", "unsupported"), and sentence what it said. Else these are None.
    """

    code = status = sentence = result = None


class Score(typing.NamedTuple):
    logprob: float  # natural logarithm, summed over the scored tokens
    tokens: int
    is_greedy: bool
    truncated: int = 0  # tokens left out at the beginning of a context that was too long


# Where a wheel has the program.
BROUGHT = str(pathlib.Path(__file__).parent / "program" / "bin" / "assay")


def find_program():
    """The program that the wheel brought, or else the one in PATH."""
    found = BROUGHT if os.path.exists(BROUGHT) else shutil.which("assay")
    if not found:
        raise AssayError("there is no program assay: this package was installed without it, and "
                         "PATH has none; say where it is with binary=FILE")
    return found


def words(options, own=("o", "output", "json"), what="scores and their summary are"):
    """Options of the program: threads=4 is --threads 4, parse_special=True --parse-special.

    from_="x" is --from x. A list gives the option once for each of its values. own: options that this package gives.
    """
    for name, values in options.items():
        if name in own:
            raise AssayError(f"{name}: {what} read by this package")
        option = f"-{name}" if len(name) == 1 else "--" + name.rstrip("_").replace("_", "-")
        for value in values if isinstance(values, (list, tuple)) else [values]:
            if value is not None and value is not False:
                yield option
            if value is not None and not isinstance(value, bool):
                yield str(value)


def lines_of(requests):
    return [json.dumps(request) + "\n" for request in requests]


def nothing(_):
    pass


class Program:
    """Each call of `score` is one run of the program over all requests."""

    def __init__(self, model, binary=None, **options):
        self.command = [str(binary or find_program()), "score", "-m", str(model), *words(options)]
        self.about = {}  # of the last run: its summary, which docs/json.md of assay describes

    def score(self, requests, each=nothing, fraction=nothing):
        """A Score for each request.

        each: called with each as soon as it and all before it are there. fraction: called with the
        share of the work that is done, now and then, maybe from another thread.
        """
        if not requests:
            return []
        with tempfile.TemporaryDirectory(prefix="assay-") as folder:
            lines, summary = pathlib.Path(folder, "requests.jsonl"), pathlib.Path(folder, "summary")
            lines.write_text("".join(lines_of(requests)))
            with lines.open() as stdin:
                scores = self._run([*self.command, "-", "--json", str(summary)], stdin, each,
                                   fraction)
            self.about = json.loads(summary.read_text())
        if len(scores) != len(requests):
            raise AssayError(f"assay gave {len(scores)} scores, expected {len(requests)}")
        return scores

    def chat_template(self):
        raise AssayError("a chat template is applied by a server: start assay serve, and give "
                         "base_url=URL instead of model=FILE")

    def apply_chat_template(self, messages, add_generation_prompt=True):
        self.chat_template()

    def _run(self, command, stdin, each, fraction):
        said, scores = [], []
        with running(command, stdin, subprocess.PIPE) as child:
            listener = threading.Thread(target=listen, args=(child.stderr, said, fraction))
            listener.start()
            try:
                for line in child.stdout:
                    if not line.endswith("\n"):  # it was killed
                        break
                    scores.append(Score(**json.loads(line)))
                    if scores[-1].logprob is not None:
                        each(scores[-1])
                code = child.wait()
            finally:
                end(child)
                listener.join()
        if code:
            raise failure(command, code, said)
        return scores


@contextlib.contextmanager
def running(command, stdin, stdout):
    """The program. It has ended after the block, also where Ctrl-C or a caller's function left it."""
    handler, came, child = signal.getsignal(signal.SIGINT), [], None
    waits = callable(handler) and threading.current_thread() is threading.main_thread()
    try:
        if waits:  # Ctrl-C, until there is a child that can be ended
            signal.signal(signal.SIGINT, lambda *_: came.append(True))
        child = subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE,
                                 encoding="utf-8", errors="replace")
        if waits:
            signal.signal(signal.SIGINT, handler)
        if came:
            handler(signal.SIGINT, None)
        yield child
    except OSError as error:
        if child:
            raise
        raise AssayError(f"{command[0]} cannot be run: {error.strerror}") from error
    finally:
        if waits:
            signal.signal(signal.SIGINT, handler)
        if child:
            end(child)
            for stream in (child.stdout, child.stderr):
                if stream:
                    stream.close()


def failure(command, code, said, result=None):
    """The error that a run ended with. said: its lines on standard error."""
    lines = [line for line in said if not line.startswith("note: ")]
    sentence = lines[-1] if lines else f"{command[0]} ended without a word"
    error = AssayError(f"{command[0]} was ended by signal {-code}" if code < 0 else
                       f"{sentence} (exit code {code})")
    error.code, error.sentence, error.result = code, sentence, result
    return error


def end(child):
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def listen(stream, said, fraction):
    """Progress and notes of the program; what it said is kept."""
    for line in stream:
        line = line.strip().removeprefix("assay: ")
        percent = re.match(r"(\d+) % done", line)
        if percent:
            fraction(int(percent[1]) / 100)
        elif line:
            said.append(line)
            log.log(logging.WARNING if line.startswith("note: ") else logging.INFO, "%s", line)


class Server:
    """Asks a server; the key, if it wants one, is in ASSAY_API_KEY."""

    MAX_TEXT = 2 << 20  # of one request: beginnings are shared within it
    PATIENCE_S = 600    # while it is loading, or its queue is full

    def __init__(self, base_url, **options):
        self.base, self.url = base_url.rstrip("/"), base_url.rstrip("/") + "/v1/score"
        self.options = options
        self.about = {}
        self._template = None

    def score(self, requests, each=nothing, fraction=nothing):
        """As Program.score."""
        scores = []
        for lines in parts(lines_of(requests), self.MAX_TEXT):
            done = len(scores)
            try:
                reply = self._ask("/v1/score",
                                  {"text": "".join(lines), "stream": True, **self.options},
                                  lambda f: fraction((done + f * len(lines)) / len(requests)))
            except AssayError as error:
                raise AssayError(f"{error}, where line 1 is request {done + 1}" if done else
                                 str(error)) from error
            model = reply["model"]["id"]
            if scores and self.about["model"]["id"] != model:
                raise AssayError(f"{self.url}: the server's model is another one since the first "
                                 "scores: something was swapped in it")
            for score in reply.pop("scores"):
                scores.append(Score(**score))
                each(scores[-1])
            self.about = reply
        cut = sum(score.truncated > 0 for score in scores)
        if cut:
            log.warning("note: %d of %d requests are longer than ctx_size %d: the first tokens are "
                        "left out", cut, len(scores), self.about["settings"]["n_ctx"])
        return scores

    def chat_template(self):
        """The model's own. From now on, names of control tokens in requests are those tokens."""
        if self._template is None:
            self._template = self._ask("/tokenizer_info")["chat_template"] or ""
        if not self._template:
            raise AssayError(f"{self.base}: the model's file has no chat template")
        if self.options.setdefault("parse_special", True) is not True:
            raise AssayError("parse_special: a chat template needs True: it writes control tokens")
        return self._template

    def apply_chat_template(self, messages, add_generation_prompt=True):
        """The text that the model's own template makes of a conversation, by the server.

        Without a generation prompt the last message is not ended: it goes on.
        """
        self.chat_template()
        text = self._ask("/apply-template", {"messages": messages,
                                             "add_generation_prompt": add_generation_prompt})["prompt"]
        return text if add_generation_prompt else unfinished(text, messages[-1]["content"])

    def _ask(self, path, body=None, fraction=nothing):
        """The document of a reply; body None: GET."""
        url, headers = self.base + path, {"Content-Type": "application/json"}
        key = os.environ.get("ASSAY_API_KEY", "").rstrip("\r\n")
        if key:
            headers["Authorization"] = "Bearer " + key
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, headers)
        give_up = time.monotonic() + self.PATIENCE_S
        while True:
            try:
                with urllib.request.urlopen(request) as reply:
                    return result_of(url, reply, fraction)
            except urllib.error.HTTPError as error:
                wait = int(error.headers.get("Retry-After") or 0)
                if not wait or time.monotonic() + wait > give_up:
                    raise AssayError(f"{url}: {sentence_of(error)}") from error
                time.sleep(wait)
            except (OSError, http.client.HTTPException) as error:
                raise AssayError(f"{url}: {getattr(error, 'reason', error)}; does assay serve "
                                 "run there?") from error


def unfinished(text, last):
    """A conversation up to the end of its last message, whatever the template puts after it."""
    at = text.rfind(last.strip())
    if at < 0:
        raise AssayError("the chat template changes the last message, which is to go on: where it "
                         "ends cannot be told")
    whole = last.lstrip()
    return text[:at + len(whole if text.startswith(whole, at) else last.strip())]


def parts(lines, most):
    """Lists of lines, in order, of at most so many characters, but for one that is longer."""
    part, size = [], 0
    for line in lines:
        if part and size + len(line) > most:
            yield part
            part, size = [], 0
        part.append(line)
        size += len(line)
    if part:
        yield part


def sentence_of(error):
    """The server's, where it is one of ours."""
    try:
        return f"{json.load(error)['error']['message']} (code {error.code})"
    except (ValueError, KeyError, TypeError):
        return str(error)


def result_of(url, reply, fraction):
    """The document that a reply is, or that of a job, from its events."""
    if reply.headers.get_content_type() == "application/json":
        return json.load(reply)
    name = None
    for line in reply:
        word, _, rest = line.decode().strip().partition(": ")
        if word == "event":
            name = rest
        elif word == "data" and name == "progress":
            fraction((json.loads(rest).get("progress") or {}).get("fraction") or 0)
        elif word == "data" and name == "result":
            return json.loads(rest)
        elif word == "data" and name == "error":
            raise AssayError(f"{url}: {json.loads(rest)['error']['message']}")
    raise AssayError(f"{url}: the server went away before the scores were there")

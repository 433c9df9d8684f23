"""Servers that answer as llama-server, vLLM, SGLang, Ollama, mlx-lm and OpenAI's do, from exact
log-probabilities that the program computes. They can be wrong on purpose, in one way at a time.

A fault is a word, with a number after a colon where it takes one: FAULTS."""
import functools
import http.server
import json
import math
import pathlib
import random
import re
import ssl
import struct
import subprocess
import tempfile
import threading
import time
import zipfile

N_VOCAB = 2048
BOS = 1

FAULTS = """honest half four_bits bf16 eight_bits digits:N
temperature:X cut:N cut_whole:N tail_twice no_bos two_bos token_less other_file
other_tail_twice other_tokens some from:N lengths:N,N cached stale stale_rows together written noise:X parts
prefix_cache salt_less_cache
ahead behind other_ahead says_size:N says_weights:N says_template text_no_bos twice nul not_a_number
no_number empty no_json cut_body closed status:N dies:N unavailable full:N busy:S slow:S redirect long""".split()


class Logits:
    """The exact logits after some tokens; what was computed once is kept."""

    def __init__(self, assay, *words):
        self.assay, self.words, self.kept = str(assay), [str(word) for word in words], {}
        self.lock = threading.Lock()

    def __call__(self, ids):
        ids = tuple(ids)
        with self.lock:
            if ids not in self.kept:
                self.kept[ids] = self.compute(ids)
            return self.kept[ids]

    def compute(self, ids):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "l.npz"
            subprocess.run([self.assay, "trace", *self.words, "-c", "100000", "--ids", ",".join(map(str, ids)),
                            "--tensor", "result_output", "-o", path, "-t", "1"], check=True,
                           capture_output=True)
            with zipfile.ZipFile(path) as archive:
                raw = archive.read(archive.namelist()[0])
        return struct.unpack(f"<{N_VOCAB}f", raw[-4 * N_VOCAB:])


@functools.lru_cache(maxsize=256)
def ranked(logits):
    """(log-probabilities, ids from the likeliest on) of a tuple of logits."""
    most = max(logits)
    total = most + math.log(math.fsum(math.exp(x - most) for x in logits))
    values = [x - total for x in logits]
    return values, sorted(range(N_VOCAB), key=values.__getitem__, reverse=True)


def is_whole(text):
    """Whether bytes end with a whole character."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def bfloat16(x):
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    bits += 0x7fff + (bits >> 16 & 1)
    return struct.unpack("<f", struct.pack("<I", bits & 0xffff0000))[0]


class Predictor:
    """Lists of log-probabilities, with a fault or without."""

    def __init__(self, models, fault, seed=0):
        self.models = models  # {"exact": Logits, "half": ..., "four_bits": ..., "other": ...}
        self.fault, _, number = fault.partition(":")
        self.number = number
        self.random = random.Random(seed)

    def value(self):
        return float(self.number)

    def is_wrong(self, ids, path, at_once):
        fault, n = self.fault, len(ids)
        return (fault == "from" and n >= self.value()
                or fault == "lengths" and n in map(int, self.number.split(","))
                or fault == "some" and sum(ids) % 4 == 0
                or fault == "cached" and path == "cached"
                or fault == "written" and path == "written"
                or fault == "together" and at_once > 1)

    def tokens(self, ids):
        if self.fault == "no_bos" and ids[0] == BOS:
            return ids[1:] or ids
        if self.fault == "two_bos":
            return [BOS, *ids]
        if self.fault == "token_less" and len(ids) > 1:
            return ids[:-1]
        return ids

    def logits(self, ids, path, at_once):
        name = "other" if self.fault in ("other_file", "other_tail_twice", "other_ahead") else self.fault
        logits = self.models.get(name, self.models["exact"])(ids)
        if self.is_wrong(ids, path, at_once):
            noise = random.Random(sum(ids))
            logits = [x + noise.gauss(0, 1) for x in logits]
        if self.fault in ("eight_bits", "noise"):
            size = 0.01 if self.fault == "eight_bits" else self.value()
            logits = [x + self.random.gauss(0, size) for x in logits]
        if self.fault == "bf16":
            logits = [bfloat16(x) for x in logits]
        if self.fault == "temperature":
            logits = [x / self.value() for x in logits]
        return logits

    def top(self, ids, k, path="fresh", at_once=1, chosen=()):
        """[(id, log-probability)] of the k likeliest, and of the chosen ones."""
        logits = self.logits(ids, path, at_once)
        values, order = ranked(tuple(logits))
        if self.fault in ("cut", "cut_whole"):
            kept = order[:int(self.number)]
            share = math.log(math.fsum(math.exp(values[i]) for i in kept))
            values = [x - share for x in values]
            order = kept if self.fault == "cut_whole" else order
        if self.fault in ("tail_twice", "other_tail_twice"):
            tail = 1 - math.fsum(math.exp(values[i]) for i in order[:k])
            values = [x - math.log1p(tail) for x in values]
        if self.fault == "digits":
            values = [round(x, int(self.number)) for x in values]
        found = order[:k] + [i for i in chosen if i not in order[:k]]
        return [(i, values[i]) for i in found]


class Server:
    """One server on a port of its own; `with Server(...) as server: server.url`."""

    def __init__(self, kind, predictor, texts, limit=None, key=None, n_ctx=4096, tls=None):
        self.kind, self.predictor, self.texts = kind, predictor, texts
        self.limit, self.key, self.n_ctx = limit, key, n_ctx
        self.lock, self.n_requests, self.n_at_once = threading.Lock(), 0, 0
        self.seen, self.before = set(), []
        self.paths, self.told_at, self.waited = [], None, None
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            disable_nagle_algorithm = True  # else each answer waits for an acknowledgement
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer.handle(self, None)

            def do_POST(self):
                outer.handle(self, self.rfile.read(int(self.headers["Content-Length"])))

            def log_message(self, *_):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            def handle_error(self, *_):
                pass

        self.http = Quiet(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        if tls:  # a file with a key and its certificate
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls)
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.http.server_port}"

    def __enter__(self):
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()

    # Ways to fail that are not about numbers.

    def reply(self, handler, code, body, headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(code)
        for name, value in headers:
            handler.send_header(name, value)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    def fails(self, handler, answer):
        """Whether a fault of the transport has taken the answer's place."""
        fault, number = self.predictor.fault, self.predictor.number
        if fault == "unavailable" and self.n_requests % 3 == 0:
            self.reply(handler, 503, {"error": {"message": "Loading model", "code": 503}},
                       [("Retry-After", "0")])
        elif fault == "full" and self.n_requests > int(number):
            self.reply(handler, 429, {"error": {"message": "Too many requests"}}, [("Retry-After", "20")])
        elif fault == "busy" and self.n_requests == 5:  # once
            self.told_at = time.monotonic()
            self.reply(handler, 429, {"error": {"message": "Rate limit reached"}}, [("Retry-After", number)])
        elif fault == "status":
            self.reply(handler, int(number), {"error": {"message": "it is broken", "code": int(number)}})
        elif fault == "redirect":
            self.reply(handler, 302, {}, [("Location", "http://127.0.0.1:1/")])
        elif fault == "no_json":
            self.reply(handler, 200, b"<html>it works</html>")
        elif fault == "empty":
            self.reply(handler, 200, b"{}")
        elif fault == "closed" or fault == "dies" and self.n_requests > int(number):
            handler.connection.close()
            handler.close_connection = True
        elif fault == "cut_body":
            data = json.dumps(answer).encode()
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(data)))
            handler.end_headers()
            handler.wfile.write(data[:len(data) // 2])
            handler.close_connection = True
        elif fault == "long":
            handler.send_response(200)
            handler.end_headers()
            try:
                while True:
                    handler.wfile.write(b" " * 65536)
            except OSError:
                pass
        elif fault == "slow":
            time.sleep(float(number))
            return False
        else:
            return False
        return True

    def handle(self, handler, body):
        with self.lock:
            self.n_requests += 1
            self.paths.append(handler.path)
            if self.n_requests == 6 and self.told_at:
                self.waited = time.monotonic() - self.told_at
        if self.key and handler.headers.get("Authorization") != f"Bearer {self.key}":
            self.reply(handler, 401, {"error": {"message": "Invalid API Key", "code": 401}})
            return
        if body is None and self.predictor.fault == "full" and self.fails(handler, None):
            return
        if body is None:
            found = self.about().get(handler.path)
            self.reply(handler, 200 if found is not None else 404,
                       found if found is not None else {"error": {"message": "File Not Found"}})
            return
        request = json.loads(body)
        with self.lock:
            self.n_at_once += 1
        if self.predictor.fault == "together":
            time.sleep(0.05)
        try:
            answer = getattr(self, "as_" + self.kind.replace("-", "_"))(request)
        finally:
            with self.lock:
                self.n_at_once -= 1
        if isinstance(answer, int):
            self.reply(handler, answer, {"error": {"message": "it is broken", "code": answer}})
        elif isinstance(answer, str):
            self.reply(handler, 400, {"error": {"message": answer, "code": 400}})
        elif not self.fails(handler, answer):
            self.reply(handler, 200, answer)

    def about(self):
        owner = {"llama-server": "llamacpp", "ik": "llamacpp", "vllm": "vllm", "sglang": "sglang",
                 "ollama": "library"}.get(self.kind)
        model = {"id": "tiny", "object": "model"}
        model.update({"owned_by": owner} if owner else {})
        found = {"/v1/models": {"object": "list", "data": [model]}}
        fault, number = self.predictor.fault, self.predictor.number
        if fault in ("says_size", "says_weights"):
            model["meta"] = {"size" if fault == "says_size" else "n_params": int(number), "ftype": "Q9_Z"}
        if self.kind == "llama-server":
            found["/props"] = {"default_generation_settings": {"n_ctx": self.n_ctx}, "total_slots": 1}
        if fault == "says_template":
            found["/props"].update(chat_template="{{ messages }}", model_path="/elsewhere/tiny.gguf")
        if self.kind == "ik":
            found["/props"] = {"default_generation_settings": {"n_ctx": self.n_ctx, "tfs_z": 1.0}}
        return found

    # The kinds.

    def ids_of(self, prompt):
        """The tokens that are evaluated; BOS is added to texts, never to ids."""
        ids = prompt if isinstance(prompt, list) else [BOS, *self.texts.ids(prompt)]
        if self.predictor.fault == "other_tokens" and isinstance(prompt, str):
            ids = [BOS, *(3 + byte for byte in prompt.encode())]  # a token for each byte
        if self.predictor.fault == "text_no_bos" and isinstance(prompt, str):
            ids = ids[1:]
        return self.predictor.tokens(ids)

    def list_of(self, ids, k, path="fresh", chosen=()):
        found = self.predictor.top(ids, k, path, self.n_at_once, chosen)
        if self.predictor.fault == "no_number":
            found = [(i, None) for i, _ in found]
        if self.predictor.fault == "not_a_number":
            found = [(i, math.nan) for i, _ in found]  # json.dumps writes NaN
        if self.predictor.fault == "twice":
            found = [*found[:-1], found[0]]
        return found

    def prompt_list(self, ids, i, k, **more):
        """That of the i-th token of a prompt; None: it has none."""
        fault = self.predictor.fault
        at = i + 1 if fault in ("ahead", "other_ahead") else i - 1 if fault == "behind" else i
        if fault == "stale_rows" and i < self.n_kept(ids) and i < len(self.before):
            ids = self.before  # the rows that the request before has left
        return self.list_of(ids[:at], k, **more) if at > 0 else None

    def n_kept(self, ids, block=4):
        """The tokens of whole blocks with which some prompt of before begins, too."""
        return max((n for n in range(0, len(ids), block)
                    if any(prompt[:n] == tuple(ids[:n]) for prompt in self.seen)), default=0)

    def content(self, found, chosen):
        entries = [{"id": i, "token": self.texts.text(i), "bytes": list(self.texts.bytes(i)),
                    "logprob": value} for i, value in found]
        if self.predictor.fault == "nul":
            entries[-1]["token"] = "\0"
        own = {**entries[0], "id": chosen}
        return {**own, "top_logprobs": entries}

    def as_llama_server(self, request):
        ids = self.ids_of(request["prompt"])
        if len(ids) >= self.n_ctx:
            return "the request exceeds the available context size"
        path = "fresh"
        if request["cache_prompt"] and tuple(ids) in self.seen:
            path = "cached"
        self.seen.add(tuple(ids))
        if self.predictor.fault == "stale" and request["cache_prompt"]:  # as many, but of another
            n = min(len(self.before), len(ids) - 1)
            ids, self.before = [*self.before[:n], *ids[n:]], ids
        else:
            self.before = ids
        lists, now, text = [], list(ids), b""
        for i in range(request["n_predict"]):
            found = self.list_of(now, request["n_probs"], "written" if i else path)
            chosen = found[0][0]
            if self.predictor.fault == "parts" and request["n_predict"] > 1 and i % 4:
                chosen = self.texts.pieces.index(bytes(["\u20ac".encode()[i % 4 - 1]]))
            text += self.texts.bytes(chosen)
            if self.predictor.fault != "parts" or is_whole(text):
                lists.append(self.content(found, chosen))
            now.append(chosen)
        tokens = now[len(ids):] if request.get("return_tokens") else []
        return {"content": "", "completion_probabilities": lists, "truncated": False, "tokens": tokens,
                "tokens_predicted": len(now) - len(ids), "tokens_evaluated": len(ids),
                "timings": {"cache_n": 0}}

    def as_ik(self, request):
        """Its own path has no ids. A bias would move the lists, and stays until another one comes."""
        if request["logit_bias"] != []:
            return "the lists are moved"
        answer = self.as_llama_server({**request, "n_predict": request["max_tokens"],
                                       "n_probs": request["logprobs"]})
        if isinstance(answer, str):
            return answer
        return {"choices": [{"text": "", "logprobs": {"content": answer["completion_probabilities"]}}],
                "usage": {"prompt_tokens": answer["tokens_evaluated"]}}

    def as_vllm(self, request):
        k = max(request.get("logprobs") or 0, request.get("prompt_logprobs") or 0)
        if k > 20:
            return f"Requested sample logprobs of {k}, which is greater than max allowed: 20"
        ids = self.ids_of(request["prompt"])
        prompt = [None]
        for i in range(1, len(ids) if request.get("prompt_logprobs") else 1):
            found = self.prompt_list(ids, i, k, chosen=[ids[i]])
            prompt.append(found and {str(t): {"logprob": value, "rank": 1, "decoded_token": "x"}
                                     for t, value in found})
        self.before = ids
        path = "cached" if tuple(ids) in self.seen else "fresh"
        self.seen.add(tuple(ids))
        found = self.list_of(ids, k, path)
        usage = {"prompt_tokens": len(ids), "completion_tokens": 1}
        if self.predictor.fault.endswith("_cache"):  # of prompts, and it says what was in it
            salt = request.get("cache_salt") if self.predictor.fault == "prefix_cache" else None
            n = len(ids) - 1 if (salt, *ids) in self.seen else 0
            self.seen.add((salt, *ids))
            usage["prompt_tokens_details"] = {"cached_tokens": n}
        return {"object": "text_completion", "choices": [{
            "index": 0, "text": "", "prompt_logprobs": prompt if request.get("prompt_logprobs") else None,
            "logprobs": {"tokens": [f"token_id:{found[0][0]}"], "token_logprobs": [found[0][1]],
                         "top_logprobs": [{f"token_id:{t}": value for t, value in found}],
                         "text_offset": [0]}}],
            "usage": usage}

    def as_openai(self, request):
        if request["logprobs"] > 5:
            return "logprobs: at most 5"
        if isinstance(request["prompt"], list):
            return "prompt: expected a string"
        return self.completion(request, self.ids_of(request["prompt"]))

    def completion(self, request, ids, first=0):
        """With echo: lists of the tokens from the first one on, and of the next one. A server whose
        lists are one ahead has one more of the prompt's, and none of the next."""
        given_for, lists = [], []
        for i in range(first, len(ids) + 1) if request.get("echo") else [len(ids)]:
            found = (self.list_of(ids, request["logprobs"]) if i == len(ids) else
                     self.prompt_list(ids, i, request["logprobs"], chosen=ids[i:i + 1]))
            named = {}
            for t, value in found or []:  # tokens of the same text fall together
                named.setdefault(self.texts.text(t), value)
            given_for.append(self.texts.text(ids[i]) if i < len(ids) else "x")
            lists.append(named or None)
        if first and request.get("echo"):
            lists[0] = None
        return {"choices": [{"text": "", "logprobs": {
            "tokens": given_for, "token_logprobs": [None] * len(lists), "top_logprobs": lists}}],
            "usage": {"prompt_tokens": len(ids), "completion_tokens": 1}}

    def as_python(self, request):
        """llama-cpp-python's own: no ids, and BOS left out of what it echoes."""
        if isinstance(request["prompt"], list):
            return 500
        return self.completion(request, self.ids_of(request["prompt"]), 1)

    def as_mlx(self, request):
        if request["logprobs"] is not True or not 1 <= request["top_logprobs"] <= 11:
            return "logprobs must be a boolean"
        if isinstance(request["prompt"], list):
            return "prompt must be a string"
        ids = self.ids_of(request["prompt"])
        found = self.list_of(ids, request["top_logprobs"])
        random.Random(3).shuffle(found)
        entries = [{"id": i, "token": "x", "logprob": value} for i, value in found]
        return {"choices": [{"logprobs": {"content": [{**entries[0], "top_logprobs": entries}]}}],
                "usage": {"prompt_tokens": len(ids)}}

    def as_sglang(self, request):
        ids = self.ids_of(request["input_ids"])
        k = request["top_logprobs_num"]
        triples = lambda found: [[value, t, None] for t, value in found]
        prompt = [None] + [triples(self.list_of(ids[:i], k)) for i in range(1, len(ids))]
        return {"text": "", "meta_info": {
            "prompt_tokens": len(ids), "cached_tokens": 0, "input_top_logprobs": prompt,
            "output_top_logprobs": [triples(self.list_of(ids, k))]}}

    def as_ollama(self, request):
        if not 0 <= request["top_logprobs"] <= 20:
            return "top_logprobs must be between 0 and 20"
        ids = self.ids_of(request["prompt"])
        found = self.list_of(ids, request["top_logprobs"])
        entries = [{"token": self.texts.text(i), "logprob": value, "bytes": list(self.texts.bytes(i))}
                   for i, value in found]
        return {"response": "", "done": True, "prompt_eval_count": len(ids),
                "logprobs": [{**entries[0], "top_logprobs": entries}]}


class Texts:
    """What tokens are as texts, and texts as tokens, by the program."""

    def __init__(self, assay, model):
        self.assay, self.model, self.kept = str(assay), str(model), {}
        raw, key = pathlib.Path(model).read_bytes(), b"tokenizer.ggml.tokens"
        at = raw.index(key) + len(key)
        _, _, n = struct.unpack_from("<IIQ", raw, at)
        at, self.pieces = at + 16, []
        for _ in range(n):
            size, = struct.unpack_from("<Q", raw, at)
            piece = raw[at + 8:at + 8 + size]
            byte = re.fullmatch(rb"<0x([0-9A-F]{2})>", piece)
            self.pieces.append(bytes([int(byte[1], 16)]) if byte
                               else piece.replace("\u2581".encode(), b" "))
            at += 8 + size

    def ids(self, text):
        if text not in self.kept:
            out = subprocess.run([self.assay, "tokenize", "-m", self.model, "-p", text, "--ids", "--no-bos"],
                                 capture_output=True, text=True, check=True).stdout
            self.kept[text] = [int(word) for word in out.strip(" []\n").split(",")]
        return self.kept[text]

    def bytes(self, token):
        return self.pieces[token]

    def text(self, token):
        return self.pieces[token].decode("utf-8", "replace")

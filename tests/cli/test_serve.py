#!/usr/bin/env python3
"""assay serve: every request, beside the command line; and clients that are slow, rude or gone.

usage: test_serve.py ASSAY SOURCE_DIR
"""
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from documents import without_run
from program import ASSAY, F16, HANG_S, Q4, TEXT, run
from serving import Server, events

os.environ["ASSAY_PRECISION"] = "exact"
WINDOWS = {"ctx_size": 64, "chunks": 3}
WINDOW_WORDS = ["-c", "64", "--chunks", "3"]
SHORT = "The war ended in 1918 . He lets it cool on a rack , and then he goes home . " * 12
# One that takes a while: it can be met running.
LONG = {"ctx_size": 16, "ppl_stride": 1}
ONE_THREAD = ["-t", "1", "-b", "16"]


def document(*words):
    done = run(*words, "-q", "--json", "-")
    assert done.returncode == 0, done.stderr
    return without_run(json.loads(done.stdout))


def tasks():
    words = TEXT.read_text().split()
    lines = []
    for i in range(12):
        text = words[40 * i:40 * i + 40]
        endings = [" ".join(text[10 + 6 * k:16 + 5 * k]) for k in range(4)]
        lines.append(json.dumps({"ctx": " ".join(text[:10]), "endings": endings, "label": i % 4}))
    return "\n".join(lines) + "\n"


def tensors(path):
    return [t["name"] for t in json.loads(run("info", path, "--json", "--tensors").stdout)["tensors"]]


def ids(text):
    """With BOS in front."""
    return json.loads(run("tokenize", "-m", Q4, "-p", text, "--ids", "--no-parse-special").stdout)


class Shared(unittest.TestCase):
    """Tests of one server, which they leave as it was."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.server = Server(ASSAY, "-m", Q4, "--base", F16, "-f", TEXT, "--state-dir", cls.folder,
                            "--max-body", "1")

    @classmethod
    def tearDownClass(cls):
        code = cls.server.end()
        cls.server.process.stderr.close()
        shutil.rmtree(cls.folder)
        assert code == 0, (code, cls.server.lines)

    def post(self, path, body=None, code=200, **more):
        reply = self.server.post(path, body, **more)
        self.assertEqual(reply.code, code, reply.body)
        return reply.json


class Evaluations(Shared):
    def check(self, body, *words):
        self.assertEqual(without_run(self.post("/v1/evaluate", body)), document(*words))

    def test_documents(self):
        """A list of objects is what a file of them is."""
        path = self.folder / "chats.json"
        chats = [{"conversations": [{"from": "human", "value": "Where is it?"},
                                    {"from": "gpt", "value": "In the harbour."}], "category": "a"},
                 {"text": SHORT}]
        path.write_text(json.dumps(chats))
        for kind, words in (("perplexity", ["-m", Q4]), ("kld", ["-m", Q4, "--base", F16])):
            wanted = document(kind, *words, "-f", path, "--chat-template", "zephyr", "--mask", "all")
            found = without_run(self.post("/v1/evaluate", {"kind": kind, "text": chats, "mask": "all",
                                                           "chat_template": "zephyr"}))
            self.assertEqual(found["tokens"], wanted["tokens"])
            if kind == "kld":
                for field in ("kld", "dp"):
                    self.assertEqual(found["candidates"][0][field], wanted["candidates"][0][field])
            else:
                self.assertEqual(found["result"], wanted["result"])
                self.assertEqual([d["line"] for d in found["documents"]], [1, 1])

    def test_perplexity(self):
        base = ["perplexity", "-m", Q4]
        self.check(WINDOWS, *base, "-f", TEXT, *WINDOW_WORDS)
        self.check({**WINDOWS, "kind": "perplexity", "text": SHORT}, *base, "-p", SHORT,
                   *WINDOW_WORDS)
        self.check({"text": SHORT, "protocol": "fixed", "ctx-size": 128, "chunks": "1"}, *base,
                   "-p", SHORT, "--protocol", "fixed", "-c", "128", "--chunks", "1")
        self.check({"text": "-" + SHORT, "ctx_size": 32, "ppl_stride": 16, "chunks": 4,
                    "split_lines": False}, *base,
                   "-p", "-" + SHORT, "-c", "32", "--ppl-stride", "16", "--chunks", "4")
        self.check({**WINDOWS, "chunk_from": 2, "context_curve": True}, *base, "-f", TEXT,
                   *WINDOW_WORDS, "--chunk-from", "2", "--context-curve")

    def test_divergence(self):
        base = ["kld", "-m", Q4, "--base", F16]
        self.check({**WINDOWS, "kind": "kld", "js": True, "worst": 3}, *base, "-f", TEXT,
                   *WINDOW_WORDS, "--js", "--worst", "3")
        self.check({**WINDOWS, "kind": "kld", "text": SHORT}, *base, "-p", SHORT, *WINDOW_WORDS)

    def test_tasks(self):
        text = tasks()
        file = self.folder / "tasks.jsonl"
        file.write_text(text)
        self.check({"kind": "hellaswag", "text": text, "tasks": 7}, "perplexity", "-m", Q4, "-p",
                   text, "--hellaswag", "--hellaswag-tasks", "7")

    def test_a_base_of_rows(self):
        rows = self.folder / "rows.assay"
        done = run("record", "-m", F16, "-f", TEXT, *WINDOW_WORDS, "-o", rows)
        self.assertEqual(done.returncode, 0, done.stderr)
        with Server(ASSAY, "-m", Q4, "--base", rows) as server:
            reply = server.post("/v1/evaluate", {"kind": "kld"})
            self.assertEqual(without_run(reply.json), document("kld", "-m", Q4, "--base", rows))
            self.assertEqual(server.get("/health").json["base"], reply.json["base"])
            self.assertIn("start it with -f", server.post("/v1/evaluate", {}).message)

    def test_the_phases_of_a_run_are_its_own(self):
        self.post("/v1/evaluate", {"ctx_size": 256, "chunks": 20})
        run = self.post("/v1/evaluate", {**WINDOWS, "chunks": 1})["run"]
        self.assertLessEqual(run["phases"]["attention"], run["seconds"])

    def test_clients_at_the_same_time(self):
        expected = {n: document("perplexity", "-m", Q4, "-f", TEXT, "-c", "32", "--chunks", str(n))
                    for n in (1, 2, 3)}

        def ask(i):
            n = 1 + i % 3
            return n, self.server.post("/v1/evaluate", {"ctx_size": 32, "chunks": n})

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for n, reply in pool.map(ask, range(24)):
                self.assertEqual(reply.code, 200, reply.body)
                self.assertEqual(without_run(reply.json), expected[n])

    @unittest.skipUnless(shutil.which("curl"), "curl is not installed")
    def test_curl(self):
        at = f"http://127.0.0.1:{self.server.port}"
        done = subprocess.run(["curl", "-sS", "--fail", "--json", json.dumps(WINDOWS),
                               at + "/v1/evaluate"], capture_output=True, check=True)
        self.assertEqual(without_run(json.loads(done.stdout)),
                         document("perplexity", "-m", Q4, "-f", TEXT, *WINDOW_WORDS))
        done = subprocess.run(["curl", "-sS", "-I", at + "/health"], capture_output=True, text=True,
                              check=True)
        self.assertIn("200 OK", done.stdout)


class Swaps(Shared):
    def tearDown(self):
        self.post("/v1/swap", {"restore": True})

    def figures(self):
        return self.post("/v1/evaluate", WINDOWS)["result"]

    def test_all_tensors_are_the_other_model(self):
        mine, other = (document("perplexity", "-m", m, "-f", TEXT, *WINDOW_WORDS)["result"]
                       for m in (Q4, F16))
        self.assertEqual(self.figures(), mine)
        swaps = [{"tensor": name, "file": str(F16)} for name in tensors(Q4)]
        swapped = self.post("/v1/swap", {"swaps": swaps})
        self.assertEqual(len(swapped["swapped"]), len(swaps))
        self.assertEqual(self.figures(), other)
        self.assertEqual(self.post("/v1/swap", {"restore": True})["swapped"], [])
        self.assertEqual(self.figures(), mine)

    def test_a_result_says_what_was_in_force(self):
        before = self.post("/v1/evaluate", WINDOWS)["model"]
        name = "blk.1.ffn_down.weight"
        self.post("/v1/swap", {"tensor": name, "file": str(F16)})
        after = self.post("/v1/evaluate", WINDOWS)["model"]
        self.assertNotEqual(after["id"], before["id"])
        self.assertEqual([(s["name"], s["type"], s["file"]) for s in after["swapped"]],
                         [(name, "F16", F16.name)])
        self.assertGreater(after["n_bytes"], before["n_bytes"])
        self.assertEqual(self.server.get("/health").json["model"], after)
        self.post("/v1/swap", {"tensor": name, "file": None})
        self.assertEqual(self.post("/v1/evaluate", WINDOWS)["model"], before)

    def test_the_base_stays(self):
        base = self.post("/v1/evaluate", {**WINDOWS, "kind": "kld"})
        self.post("/v1/swap", {"swaps": [{"tensor": n, "file": str(F16)} for n in tensors(Q4)]})
        same = self.post("/v1/evaluate", {**WINDOWS, "kind": "kld"})
        self.assertEqual(same["base"], base["base"])
        self.assertEqual(same["candidates"][0]["kld"]["mean"], 0)

    def test_the_model_as_its_own_base(self):
        with Server(ASSAY, "-m", Q4, "--base", Q4, "-f", TEXT) as server:
            server.post("/v1/swap", {"tensor": "output.weight", "file": str(F16)})
            result = server.post("/v1/evaluate", {**WINDOWS, "kind": "kld"}).json
            self.assertNotIn("swapped", result["base"])
            self.assertGreater(result["candidates"][0]["kld"]["mean"], 0)

    def test_all_or_nothing(self):
        mine = self.figures()
        for bad in ({"tensor": "no.such", "file": str(F16)},
                    {"tensor": "output.weight", "file": "/no/such/file.gguf"},
                    {"tensor": "output.weight", "file": str(TEXT)}):
            good = {"tensor": "blk.0.ffn_up.weight", "file": str(F16)}
            reply = self.server.post("/v1/swap", {"swaps": [good, good, bad]})
            self.assertEqual(reply.code, 422)
            self.assertIn(f"swaps[2]: {bad['tensor']}: ", reply.message)
            self.assertEqual(self.figures(), mine)

    def test_files_that_change_or_shrink(self):
        mine = self.figures()
        with tempfile.TemporaryDirectory() as folder:
            donor = pathlib.Path(folder) / "donor.gguf"
            with Server(ASSAY, "-m", Q4, "-f", TEXT, "--files-from", folder) as server:
                swap = {"tensor": "blk.2.ffn_up.weight", "file": str(donor)}
                shutil.copy(F16, donor)
                self.assertEqual(server.post("/v1/swap", swap).code, 200)
                os.utime(donor, ns=(1, 1))
                reply = server.post("/v1/evaluate", WINDOWS)
                self.assertEqual((reply.code, reply.json["error"]["type"]), (409, "changed"))
                self.assertEqual(server.post("/v1/completions", {"prompt": "a b", "max_tokens": 0}).code,
                                 409)
                server.post("/v1/swap", {"restore": True})
                self.assertEqual(server.post("/v1/evaluate", WINDOWS).json["result"], mine)
                server.post("/v1/swap", swap)
                os.truncate(donor, 4096)
                self.assertEqual(server.post("/v1/evaluate", WINDOWS).code, 409)
                self.assertEqual(server.post("/v1/completions", {"prompt": "a b", "max_tokens": 0}).code,
                                 409)
                self.assertEqual(server.post("/v1/swap", swap).code, 422)
                server.post("/v1/swap", {"restore": True})
                self.assertEqual(server.post("/v1/evaluate", WINDOWS).json["result"], mine)

    def test_wrong_swaps(self):
        for body in ({}, {"tensor": "output.weight"}, {"file": None}, {"tensor": 1, "file": None},
                     {"swaps": 1}, {"swaps": [1]}, {"swaps": [], "tensor": "x"},
                     {"restore": "yes"}):
            self.post("/v1/swap", body, code=422)
        good = {"tensor": "output.weight", "file": None}
        for bad, sentence in (({"tensor": "x"}, "swaps[1].file is missing, expected the path"), (1, "swaps[1] is 1, expected an object"),
                              ({"tensor": 1, "file": None}, "swaps[1].tensor is 1, expected a text"),
                              ({**good, "y": 1}, "swaps[1] unknown member 'y'")):
            reply = self.server.post("/v1/swap", {"swaps": [good, bad]})
            self.assertIn(sentence, reply.message)


class HotSwap(unittest.TestCase):
    def figures(self, server):
        return server.post("/v1/evaluate", WINDOWS).json["result"]

    def test_health_reloads_and_says_what(self):
        mine, other = (document("perplexity", "-m", m, "-f", TEXT, *WINDOW_WORDS)["result"]
                       for m in (Q4, F16))
        for words, env in (["--hot-swap"], {}), ([], {"LLAMA_HOTSWAP_ENABLED": ""}):
            with tempfile.TemporaryDirectory() as folder:
                model = pathlib.Path(folder) / "model.gguf"
                shutil.copy(Q4, model)
                with Server(ASSAY, "-m", model, "-f", TEXT, *words, env=env) as server:
                    self.assertEqual(server.get("/health").json["reload"]["reloaded"], [])
                    self.assertEqual(self.figures(server), mine)
                    shutil.copy(F16, model.with_suffix(".new"))
                    os.replace(model.with_suffix(".new"), model)
                    said = server.get("/health").json
                    self.assertEqual((said["status"], said["state"]), ("ok", "ready"))
                    self.assertEqual({t["name"] for t in said["reload"]["reloaded"]},
                                     set(tensors(F16)))
                    self.assertEqual(self.figures(server), other)
                    self.assertGreater(len(said["model"]["swapped"]), 20)  # norms are the same
                    self.assertEqual(server.post("/v1/swap", {"restore": True}).code, 409)
                    model.with_suffix(".new").write_bytes(b"GGUF, half written")
                    os.replace(model.with_suffix(".new"), model)
                    self.assertEqual(server.get("/health").json["reload"]["reloaded"], [])
                    self.assertEqual(self.figures(server), other)
                    shutil.copy(F16, model)
                    server.get("/health")
                    os.truncate(model, 5000)  # in use: no result, and no end
                    self.assertEqual(server.post("/v1/evaluate", WINDOWS).code, 409)
                    shutil.copy(Q4, model)
                    self.assertEqual(len(server.get("/health").json["reload"]["reloaded"]),
                                     len(tensors(F16)))
                    self.assertEqual(self.figures(server), mine)


class Scores(Shared):
    LINES = "".join(json.dumps(r) + "\n" for r in (
        {"context": "In the town there was a river and many", "continuation": " ships"},
        {"continuation": " \u00e9 of", "context": "In the town  "},
        {"text": "The war ended in 1918 . He lets it cool"}, {"text": ""}))

    def check(self, body, *words, model=Q4):
        done = run("score", "-q", "-m", model, "-", *words, input=self.LINES)
        reply = self.post("/v1/score", {"text": self.LINES, **body})
        self.assertEqual(reply["scores"], [json.loads(line) for line in done.stdout.splitlines()])
        return reply

    def test_they_are_those_of_assay_score(self):
        reply = self.check({})
        self.assertEqual(reply["settings"], {"n_ctx": 256, "bos": True, "parse_special": False})
        reply = self.check({"ctx_size": 5, "bos": "never", "parse_special": True},
                           "-c", "5", "--bos", "never", "--parse-special")
        self.assertIn("truncated", reply["scores"][0])
        swaps = [{"tensor": name, "file": str(F16)} for name in tensors(Q4)]
        self.post("/v1/swap", {"swaps": swaps})
        try:
            other = self.check({}, model=F16)
            self.assertNotEqual(other["model"]["id"], reply["model"]["id"])
        finally:
            self.post("/v1/swap", {"restore": True})

    def test_events_and_jobs(self):
        whole = self.check({})
        with contextlib.closing(self.server.connect()) as connection:
            connection.request("POST", "/v1/score", json.dumps({"text": self.LINES, "stream": True}),
                               {"Content-Type": "application/json"})
            found = list(events(connection.getresponse()))
        self.assertEqual(found[-1], ("result", whole))
        # So short a run may be over before anybody asks how far it is.
        self.assertLessEqual({name for name, _ in found[:-1]}, {"progress", "silence"})

    def test_refusals(self):
        for body, sentence in (
                ({}, "text: missing, lines as assay score reads them"),
                ({"text": "\n"}, "text: no requests: expected a JSON object on each line"),
                ({"text": '{"text": "a"}\n{"txt": "a"}'}, 'text: line 2: expected "context" and'),
                ({"text": '{"text": "a", "id": 1}'}, "text: line 1: expected no members but"),
                ({"text": self.LINES, "bos": "x"}, "bos is 'x', expected one of auto always never"),
                ({"text": self.LINES, "ctx_size": 1.5}, "ctx_size is 1.5, expected a whole number"),
                ({"text": self.LINES, "chunks": 1}, "unknown member 'chunks'"),
                ({"text": self.LINES, "ctx_size": 1}, "text: line 1: the continuation has 3 tokens"),
                ({"text": '{"context": "a", "continuation": ""}'}, "line 1: the continuation has no")):
            with self.subTest(sentence):
                self.assertIn(sentence, self.post("/v1/score", body, code=422)["error"]["message"])


class Completions(Shared):
    def complete(self, prompt, code=200, **more):
        body = {"prompt": prompt, "max_tokens": 0, "echo": True, "logprobs": 1, **more}
        return self.post("/v1/completions", body, code=code)

    def test_scores_are_those_of_assay_score(self):
        pairs = [("In the town there was a river and many", " ships"),
                 ("In the town there was a river and many", " of the people"),
                 ("The war ended in", " 1918 . He lets it cool")]
        lines = "".join(json.dumps({"context": c, "continuation": t}) + "\n" for c, t in pairs)
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write(lines)
            file.flush()
            scores = [json.loads(s) for s in
                      run("score", "-q", "-m", Q4, file.name).stdout.splitlines()]
        contexts = [ids(c) for c, _ in pairs]
        whole = [ids(c + t) for c, t in pairs]
        for prompts in [whole], [[w] for w in whole]:
            choices = [c for p in prompts
                       for c in self.complete(p, max_tokens=1, temperature=0)["choices"]]
            for context, choice, score in zip(contexts, choices, scores):
                listed = choice["logprobs"]
                tail = slice(len(context), -1)  # as lm-evaluation-harness reads it
                tops = [max(t.values()) for t in listed["top_logprobs"][tail]]
                self.assertEqual(sum(listed["token_logprobs"][tail]), score["logprob"])
                self.assertEqual(tops == listed["token_logprobs"][tail], score["is_greedy"])
                self.assertIsNone(listed["token_logprobs"][0])

    def test_texts_and_ids(self):
        text = "The war ended in 1918 . é\u00a0\U0001f600 x"
        one = self.complete(text)["choices"][0]
        self.assertEqual(one["text"], text)
        listed = one["logprobs"]
        self.assertEqual(len({len(v) for v in listed.values()}), 1)
        self.assertEqual(listed["text_offset"][0], 0)
        self.assertEqual(listed["text_offset"], sorted(listed["text_offset"]))
        self.assertLess(listed["text_offset"][-1], len(text))
        # Behind BOS, which is evaluated and not listed.
        self.assertIsInstance(listed["token_logprobs"][0], float)
        given = self.complete(ids(text))["choices"][0]["logprobs"]
        self.assertEqual(given["token_logprobs"][1:], listed["token_logprobs"])
        never = self.complete(text, bos="never")["choices"][0]["logprobs"]
        self.assertIsNone(never["token_logprobs"][0])
        special = self.complete("<s>" + text, parse_special=True)["choices"][0]["logprobs"]
        self.assertEqual(special["token_logprobs"][1:], given["token_logprobs"][1:])

    def test_the_next_token(self):
        text = "The war ended in"
        body = {"prompt": text, "max_tokens": 1, "temperature": 0}
        one = self.post("/v1/completions", body)["choices"][0]
        self.assertIsNone(one["logprobs"])
        echoed = self.post("/v1/completions", {**body, "echo": True, "logprobs": 1})["choices"][0]
        self.assertEqual(echoed["text"], text + one["text"])
        self.assertEqual(echoed["logprobs"]["top_logprobs"][-1],
                         {echoed["logprobs"]["tokens"][-1]: echoed["logprobs"]["token_logprobs"][-1]})
        longer = self.complete(text + one["text"])["choices"][0]["logprobs"]
        self.assertEqual(longer["token_logprobs"], echoed["logprobs"]["token_logprobs"])

    def test_the_most_likely_tokens(self):
        """Each as if it stood there: the scores of the prompts that go on with it."""
        prompt = ids("The war ended in 1918 . He lets it cool")
        listed = self.complete(prompt, logprobs=20)["choices"][0]["logprobs"]
        one = self.complete(prompt)["choices"][0]["logprobs"]
        five = self.complete(prompt, logprobs=5, max_tokens=1, temperature=0)["choices"][0]["logprobs"]
        self.assertEqual(listed["token_logprobs"], one["token_logprobs"])
        self.assertEqual(listed["top_logprobs"][0], None)
        vocabulary = self.complete([prompt[:8] + [token] for token in range(2048)], logprobs=0)
        scores = [c["logprobs"]["token_logprobs"][-1] for c in vocabulary["choices"]]
        best = sorted(range(2048), key=lambda token: (-scores[token], token))[:20]
        self.assertEqual(list(listed["top_logprobs"][8].values()), [scores[t] for t in best])
        spelled = [c["logprobs"]["tokens"][-1] for c in vocabulary["choices"]]
        self.assertEqual(list(listed["top_logprobs"][8]), [spelled[t] for t in best])
        for many, some, first in zip(listed["top_logprobs"][1:], five["top_logprobs"][1:],
                                     one["top_logprobs"][1:]):
            many = list(many.items())
            self.assertEqual([v for _, v in many], sorted((v for _, v in many), reverse=True))
            self.assertEqual((list(some.items()), list(first.items())), (many[:5], many[:1]))
        (next_token, log_prob), *_ = five["top_logprobs"][-1].items()
        self.assertEqual((next_token, log_prob), (five["tokens"][-1], five["token_logprobs"][-1]))

    def test_many_at_once_are_each_alone(self):
        words = TEXT.read_text().split()
        prompts = [" ".join(words[5 * i:5 * i + 3 + i % 9]) for i in range(40)]
        together = self.complete(prompts)["choices"]
        for prompt, choice in list(zip(prompts, together))[::7]:
            alone = self.complete(prompt)["choices"][0]
            self.assertEqual({**alone, "index": choice["index"]}, choice)

    def test_a_single_token(self):
        self.assertEqual(self.complete([5])["choices"][0]["logprobs"]["token_logprobs"], [None])

    def test_what_is_refused(self):
        for more in ({"max_tokens": 2}, {"max_tokens": 1}, {"max_tokens": None}, {"logprobs": 21},
                     {"max_tokens": 1, "temperature": 0.7}, {"n": 2}, {"stream": True},
                     {"prompt": []}, {"prompt": [[]]},
                     {"prompt": [1, "x"]}, {"prompt": {"a": 1}}, {"prompt": [1.5]},
                     {"prompt": [-1]}, {"prompt": [99999999]}, {"prompt": [1] * 300},
                     {"prompt": [["x"]]}, {"bos": "perhaps"}, {"suffix": "x"}, {"top_p": 0.5},
                     {"echo": 1}):
            reply = self.complete(more.pop("prompt", "x"), code=422, **more)
            self.assertTrue(reply["error"]["message"], more)


class Tokens(Shared):
    """What clients of vLLM and of llama-server ask of tokens and of the model."""

    TEXT = "Hello <s> w\u00f6rld </s>  two  x"

    def test_both_forms(self):
        expected = ids(self.TEXT)  # with BOS, names of control tokens as plain text
        plain = {"parse_special": False}
        self.assertEqual(self.post("/tokenize", {"prompt": self.TEXT, **plain}),
                         {"count": len(expected), "max_model_len": 256, "tokens": expected,
                          "token_strs": None})
        self.assertEqual(self.post("/tokenize", {"content": self.TEXT, "add_special": True, **plain}),
                         self.post("/tokenize", {"prompt": self.TEXT, **plain}))
        for body in {"prompt": self.TEXT, "add_special_tokens": False}, {"content": self.TEXT}:
            self.assertEqual(self.post("/tokenize", {**body, **plain})["tokens"], expected[1:])
        parsed = self.post("/tokenize", {"prompt": self.TEXT, "return_token_strs": True})
        self.assertEqual([(t, s) for t, s in zip(parsed["tokens"], parsed["token_strs"])
                          if s in ("<s>", "</s>")], [(1, "<s>"), (1, "<s>"), (2, "</s>")])
        # A text that begins with BOS gets no other.
        self.assertEqual(self.post("/tokenize", {"prompt": "<s>" + self.TEXT})["tokens"],
                         parsed["tokens"])
        self.assertEqual(self.post("/tokenize", {"content": ""})["tokens"], [])

    def test_pieces(self):
        pieces = self.post("/tokenize", {"content": "it \U0001f600", "with_pieces": True})["tokens"]
        self.assertEqual([p["id"] for p in pieces],
                         self.post("/tokenize", {"content": "it \U0001f600"})["tokens"])
        spelled = b"".join(p["piece"].encode() if isinstance(p["piece"], str) else
                           bytes(p["piece"]) for p in pieces)
        self.assertEqual(spelled, " it \U0001f600".encode())
        self.assertIn([0xF0], [p["piece"] for p in pieces])

    def test_there_and_back(self):
        for text in (self.TEXT, "<s>" + self.TEXT, " a", "a\n b", "<s> a", "</s>a", "", "\u00e9"):
            tokens = self.post("/tokenize", {"content": text})["tokens"]
            back = self.post("/detokenize", {"tokens": tokens})
            self.assertEqual(back["prompt"], back["content"])
            self.assertEqual(back["prompt"], text)
            self.assertEqual(self.post("/tokenize", {"content": back["content"]})["tokens"], tokens)

    def test_refusals(self):
        for path, body, sentence in (
                ("/tokenize", {}, "expected a text as prompt"),
                ("/tokenize", {"prompt": "a", "content": "a"}, "expected a text as prompt"),
                ("/tokenize", {"prompt": "a", "with_pieces": True}, "goes with content only"),
                ("/tokenize", {"content": "a", "add_special_tokens": True}, "goes with prompt only"),
                ("/tokenize", {"prompt": 3}, "prompt is 3, expected a text"),
                ("/tokenize", {"prompt": "a", "add_special_tokens": 1}, "expected true or false"),
                ("/tokenize", {"messages": []}, "unknown member 'messages'"),
                ("/detokenize", {}, "tokens is missing, expected a list"),
                ("/detokenize", {"tokens": ["a"]}, "tokens[0] is 'a', expected a whole number"),
                ("/detokenize", {"tokens": [1, 2048]}, "number 1 is 2048, expected ids below 2048"),
                ("/detokenize", {"tokens": [-1]}, "tokens[0] is -1, expected a whole number"),
                ("/apply-template", {"messages": []}, "the model's file has no chat template"),
                ("/apply-template", {}, "messages: expected a list")):
            self.assertIn(sentence, self.post(path, body, code=422)["error"]["message"], body)

    def test_about_the_model(self):
        (model,) = self.server.get("/v1/models").json["data"]
        self.assertEqual((model["id"], model["object"], model["max_model_len"]),
                         (Q4.name, "model", 256))
        info = self.server.get("/tokenizer_info").json
        self.assertEqual({k: info[k] for k in ("bos_token", "eos_token", "add_bos_token",
                                               "chat_template")},
                         {"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": True,
                          "chat_template": None})

    def test_the_base(self):
        document = self.post("/v1/evaluate", {**WINDOWS, "kind": "kld", "chunks": 1})
        self.assertEqual(self.server.get("/health").json["base"], document["base"])

    def test_a_chat_template(self):
        template = ("{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}"
                    "{% if m.role == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}"
                    "{% if add_generation_prompt %}[assistant]{% endif %}")
        user, answer = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}
        with Server(ASSAY, "-m", Q4, "--override-kv", f"tokenizer.chat_template=str:{template}") as s:
            self.assertEqual(s.get("/tokenizer_info").json["chat_template"], template)
            for body, text in (({"messages": [user]}, "<s>[user] hi[assistant]"),
                               ({"messages": [user, answer], "add_generation_prompt": False},
                                "<s>[user] hi[assistant] yes</s>")):
                self.assertEqual(s.post("/apply-template", body).json, {"prompt": text})
            self.assertIn("message 1", s.post("/apply-template", {"messages": [1]}).message)
            self.assertNotIn("base", s.get("/health").json)


class Pieces(Shared):
    def setUp(self):
        self.post("/perplexity/reset")

    def add(self, code=200, **body):
        return self.post("/perplexity", {**WINDOWS, **body}, code=code)

    def test_pieces_are_the_whole(self):
        whole = document("perplexity", "-m", Q4, "-f", TEXT, "-c", "64", "--chunks", "5")
        one = self.add(chunks=2)
        self.assertEqual(without_run(one["document"])["result"], document("perplexity", "-m", Q4, "-f", TEXT, "-c", "64",
                                                 "--chunks", "2")["result"])
        self.post("/perplexity/save", {"name": "two"})
        two = self.add(chunks=3, chunk_from=2)["state"]
        self.assertEqual(two, self.server.get("/perplexity/state").json)
        self.assertEqual((two["n_windows"], two["n_tokens"]), (5, whole["result"]["n_tokens"]))
        self.assertAlmostEqual(two["perplexity"] / whole["result"]["ppl"], 1, delta=1e-13)
        self.assertAlmostEqual(two["perplexity_error"] / whole["result"]["ppl_error"], 1,
                               delta=1e-9)
        # Taken up again: the same bits, also in another process.
        self.post("/perplexity/load", {"name": "two"})
        self.assertEqual(self.add(chunks=3, chunk_from=2)["state"], two)
        with Server(ASSAY, "-m", Q4, "-f", TEXT, "--state-dir", self.folder) as server:
            server.post("/perplexity/load", {"name": "two"})
            self.assertEqual(server.post("/perplexity", {**WINDOWS, "chunk_from": 2}).json["state"],
                             two)

    def test_what_does_not_belong_together(self):
        self.add()
        state = self.server.get("/perplexity/state").json
        self.assertIn("other settings", self.add(code=409, ctx_size=32)["error"]["message"])
        self.post("/v1/swap", {"tensor": "output.weight", "file": str(F16)})
        self.assertIn("another model", self.add(code=409)["error"]["message"])
        self.post("/v1/swap", {"restore": True})
        self.assertEqual(self.server.get("/perplexity/state").json, state)
        self.post("/perplexity/reset")
        self.assertIsNone(self.server.get("/perplexity/state").json["perplexity"])

    def test_names_and_files(self):
        for name in ("../x", "", ".x", "a/b", "x" * 65, None, 7):
            self.post("/perplexity/save", {"name": name}, code=422)
        self.post("/perplexity/load", {"name": "none"}, code=422)
        for text in ("", "{", "{}", '{"schema": "assay-perplexity-state", "state": {"nll": 1}}',
                     "[" * 5000):
            (self.folder / "bad.json").write_text(text)
            self.post("/perplexity/load", {"name": "bad"}, code=422)
        self.post("/perplexity/save", {"name": "old"})
        state = json.loads((self.folder / "old.json").read_text())
        (self.folder / "old.json").write_text(json.dumps(state | {"schema_version": 2}))
        self.assertIn("schema_version is 2, expected 1; evaluate", self.post(
            "/perplexity/load", {"name": "old"}, code=422)["error"]["message"])
        with Server(ASSAY, "-m", Q4) as server:
            self.assertIn("--state-dir", server.post("/perplexity/save", {"name": "x"}).message)


class Refusals(Shared):
    def tearDown(self):
        self.assertEqual(self.server.get("/health").code, 200)

    def raw(self, data, half_close=False):
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=HANG_S) as s:
            try:
                s.sendall(data)
                if half_close:
                    with contextlib.suppress(OSError):  # it may have hung up already
                        s.shutdown(socket.SHUT_WR)
                received = b""
                while chunk := s.recv(65536):
                    received += chunk
            except (ConnectionResetError, BrokenPipeError):
                received = b""
            return received

    def test_codes(self):
        json_type = {"Content-Type": "application/json"}
        for code, method, path, body, headers in (
                (404, "GET", "/", None, {}),
                (404, "GET", "/v1/jobs/x", None, {}),
                (404, "GET", "/v1/jobs/99999999999999999999999", None, {}),
                (404, "GET", "/v1/jobs/1/", None, {}),
                (404, "POST", "/v1/chat/completions", "{}", json_type),
                (405, "GET", "/v1/evaluate", None, {}),
                (405, "POST", "/health", "{}", json_type),
                (405, "PUT", "/v1/swap", "{}", json_type),
                (405, "DELETE", "/v1/jobs", None, {}),
                (405, "BREW", "/health", None, {}),
                (415, "POST", "/v1/evaluate", "{}", {"Content-Type": "text/plain"}),
                (415, "POST", "/v1/evaluate", "{}", {"Content-Type": "application/jsonx"}),
                (413, "POST", "/v1/evaluate", b" " * (1 << 21), json_type),
                (403, "POST", "/v1/swap", "{}", {"Origin": "http://evil.example", **json_type}),
                (403, "GET", "/health", None, {"Host": "evil.example"}),
                (400, "POST", "/v1/evaluate", "{", json_type),
                (400, "POST", "/v1/evaluate", "[]", json_type),
                (400, "POST", "/v1/evaluate", "{} {}", json_type),
                (400, "POST", "/v1/evaluate", "null", json_type),
                (400, "POST", "/v1/evaluate", b'{"text": "\xff"}', json_type),
                (400, "POST", "/v1/evaluate", '{"text": "\\u0000"}', json_type),
                (400, "POST", "/v1/evaluate", b'{"text": "a\0b"}', json_type),
                (400, "POST", "/v1/evaluate", '{"chunks": 1, "chunks": 2}', json_type),
                (400, "POST", "/v1/swap", '{"swaps": [{"file": null, "file": 1}]}', json_type),
                (400, "POST", "/v1/evaluate", "[" * 100000, json_type)):
            reply = self.server.request(method, path, body, headers)
            self.assertEqual(reply.code, code, (method, path, reply.body))
            self.assertEqual(reply.json["error"]["code"], code)
            self.assertEqual(reply.headers["Content-Type"], "application/json")
            self.assertEqual("Allow" in reply.headers, code == 405)

    def test_sentences_are_those_of_the_program(self):
        for body, words in (({"chunks": 0}, ["--chunks", "0"]),
                            ({"chunks": "x"}, ["--chunks", "x"]),
                            ({"ctx_size": 1e30}, ["--ctx-size", "1.0000000000000000199e+30"]),
                            ({"split_lines": True}, ["--split-lines"]),
                            ({"protocol": "fixed", "ppl_stride": 3},
                             ["--protocol", "fixed", "--ppl-stride", "3"]),
                            ({"protocol": "none"}, ["--protocol", "none"]),
                            ({"ctx_size": 100000}, ["-c", "100000"])):
            reply = self.server.post("/v1/evaluate", body)
            self.assertEqual(reply.code, 422, body)
            done = run("perplexity", "-q", "-m", Q4, "-f", TEXT, *words)
            if "e+30" not in words[-1]:
                self.assertEqual("assay: " + reply.message, done.stderr.strip().split("\n")[-1])
        for body, part in (({"kind": "score"}, "kind is 'score', expected one of perplexity kld"),
                           ({"kind": 1}, "kind is 1, expected one of perplexity kld"),
                           ({"model": "x"}, "has no member 'model'"),
                           ({"json": "/tmp/x"}, "has no member 'json'"),
                           ({"per_token": "/tmp/x"}, "has no member 'per_token'"),
                           ({"tasks": 3}, "kind perplexity has no member 'tasks'; its members are kind, text, "
                                          "wait, stream, protocol, ctx_size, chunks, chunk_from, "),
                           ({"kind": "winogrande", "js": 3}, "its members are kind, text, wait, stream, tasks, "
                                                             "parse_special, escape"),
                           ({"text": 3}, "text: expected a string, or a list of objects"),
                           ({"text": [3]}, "text: line 1: no JSON object"),
                           ({"text": [{"a": 1}]}, "text: line 1, element 1: expected one of"),
                           ({"text": [], "ppl_stride": 3}, "-p has JSON documents; --ppl-stride takes one text"),
                           ({"text": [{"text": "a b"}], "chat_template": "/etc/passwd"},
                            "chat_template: expected a template, a text with a {, or one of: chatml"),
                           ({"chunks": True}, "expected a number or a string"),
                           ({"escape": 1}, "expected true or false"),
                           ({"wait": False, "stream": True}, "goes with wait")):
            self.assertIn(part, self.server.post("/v1/evaluate", body).message)

    def test_one_connection_for_many(self):
        connection = self.server.connect()
        for path in ("/health", "/none", "/metrics", "/health"):
            connection.request("GET", path)
            self.assertEqual(connection.getresponse().read() != b"", True)
        connection.request("POST", "/v1/evaluate", "x", {"Content-Type": "text/plain"})
        self.assertEqual(connection.getresponse().read()[:8], b'{"error"')
        connection.request("GET", "/health")
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()

    def test_a_body_in_chunks(self):
        head = b"POST /v1/evaluate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
        head += b"Content-Type: application/json\r\nConnection: close\r\n\r\n"
        body = json.dumps(WINDOWS).encode()
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in (body[:5], body[5:]))
        self.assertIn(b" 200 OK", self.raw(head + chunks + b"0\r\n\r\n"))
        much = b"10000\r\n" + b" " * 65536 + b"\r\n"
        self.assertIn(b" 413 ", self.raw(head + 40 * much + b"0\r\n\r\n"))

    def test_hostile_heads(self):
        for data in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET /health HTTP/9.9\r\n\r\n", b"\0" * 1000,
                     b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100000 + b"\r\n\r\n",
                     b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
                     b"GET /health HTTP/1.1\r\n" + b"X: y\r\n" * 5000 + b"\r\n",
                     b"GET /health HTTP/1.1\r\nHost: localhost\r\nX\0: y\r\n\r\n",
                     b"POST /v1/swap HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
                     b"POST /v1/swap HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999999999\r\n"
                     b"Content-Type: application/json\r\n\r\n",
                     b"POST /v1/swap HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
                     b"Content-Length: 3\r\nContent-Type: application/json\r\n\r\n{}",
                     b"GET /%2e%2e/%00health HTTP/1.1\r\nHost: localhost\r\n\r\n",
                     b"GET http://localhost/health HTTP/1.1\r\nHost: \xff\xfe\r\n\r\n",
                     os.urandom(5000)):
            self.assertNotIn(b" 200 OK", self.raw(data, half_close=True), data[:80])

    def test_slow_clients_are_cut(self):
        server = Server(ASSAY, "-m", Q4, "--timeout", "1")
        self.addCleanup(server.__exit__)
        for head in (b"", b"GET /hea", b"POST /v1/evaluate HTTP/1.1\r\nHost: localhost\r\n"
                     b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"):
            with socket.create_connection(("127.0.0.1", server.port), timeout=HANG_S) as s:
                s.sendall(head)
                self.wait_until_cut(s)
        server.wait_until_ready()

    def wait_until_cut(self, s):
        s.settimeout(0.2)
        deadline = time.monotonic() + HANG_S
        while time.monotonic() < deadline:  # a byte now and then does not help
            try:
                if s.recv(1000) == b"":
                    return
            except TimeoutError:
                with contextlib.suppress(OSError):  # cut just now
                    s.send(b" ")
            except ConnectionResetError:
                return
        self.fail("it was never cut")

    def test_cut_connections(self):
        body = json.dumps(WINDOWS).encode()
        whole = (b"POST /v1/evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json"
                 b"\r\nContent-Length: %d\r\n\r\n" % len(body)) + body
        for n in range(1, len(whole), 7):
            with socket.create_connection(("127.0.0.1", self.server.port)) as s:
                s.send(whole[:n])
        for _ in range(5):
            with socket.create_connection(("127.0.0.1", self.server.port)) as s:
                s.send(whole)


class Jobs(unittest.TestCase):
    def start(self, *words, **more):
        server = Server(ASSAY, "-m", Q4, "-f", TEXT, *ONE_THREAD, *words, **more)
        self.addCleanup(server.__exit__)
        return server

    def wait_for(self, server, id, *states):
        while (job := server.get(f"/v1/jobs/{id}").json)["state"] not in states:
            time.sleep(0.02)
        return job

    def test_asked_for_later(self):
        server = self.start()
        reply = server.post("/v1/evaluate", {**WINDOWS, "wait": False})
        self.assertEqual(reply.code, 202)
        self.assertEqual(reply.headers["Location"], f"/v1/jobs/{reply.json['id']}")
        job = self.wait_for(server, reply.json["id"], "done")
        self.assertEqual(without_run(job["result"]),
                         document("perplexity", "-m", Q4, "-f", TEXT, *WINDOW_WORDS))
        self.assertEqual(server.request("DELETE", reply.headers["Location"]).code, 409)
        self.assertEqual([j["id"] for j in server.get("/v1/jobs").json["jobs"]], [job["id"]])

    def test_old_ones_go(self):
        server = self.start()
        for _ in range(40):
            server.post("/v1/swap", {"restore": True, "wait": False})
            time.sleep(0.005)
        self.assertLessEqual(len(server.get("/v1/jobs").json["jobs"]), 40)
        while server.get("/health").json["state"] != "ready":
            time.sleep(0.02)
        self.assertLessEqual(len(server.get("/v1/jobs").json["jobs"]), 32)

    def test_cancelled(self):
        server = self.start()
        ids = [server.post("/v1/evaluate", {**LONG, "wait": False}).json["id"] for _ in range(3)]
        self.wait_for(server, ids[0], "running")
        self.assertEqual(server.get("/health").json["state"], "busy")
        for id in ids[1:] + ids[:1]:
            self.assertEqual(server.request("DELETE", f"/v1/jobs/{id}").code, 202)
        for id in ids:
            job = self.wait_for(server, id, "cancelled")
            self.assertEqual(job["error"]["type"], "cancelled")
        self.assertFalse(self.wait_for(server, ids[0], "cancelled")["result"]["result"]["complete"])
        self.assertEqual(without_run(server.post("/v1/evaluate", WINDOWS).json),
                         document("perplexity", "-m", Q4, "-f", TEXT, *WINDOW_WORDS))

    def test_a_client_that_goes_away_cancels(self):
        server = self.start()
        for stream in False, True:
            connection = server.connect()
            connection.request("POST", "/v1/evaluate", json.dumps({**LONG, "stream": stream}),
                               {"Content-Type": "application/json"})
            while server.metric("jobs_running") == 0:
                time.sleep(0.02)
            connection.close()
            while server.metric("jobs_running") == 1:  # LONG would take minutes
                time.sleep(0.02)
        self.assertEqual(server.metric('jobs_total{state="cancelled"}'), 2)

    def test_events(self):
        server = self.start()
        connection = server.connect()
        for n in 40, 120, 400:  # they come a few times a second: until it takes that long
            connection.request("POST", "/v1/evaluate",
                               json.dumps({"ctx_size": 32, "chunks": n, "stream": True}),
                               {"Content-Type": "application/json"})
            reply = connection.getresponse()
            self.assertEqual(reply.getheader("Content-Type"), "text/event-stream")
            seen = list(events(reply))
            connection.close()
            fractions = [e["progress"]["fraction"] for name, e in seen if name == "progress"]
            self.assertEqual(fractions, sorted(fractions))
            if len(fractions) > 2:
                break
        self.assertGreater(len(fractions), 2)
        self.assertEqual(seen[-1][0], "result")
        self.assertEqual(without_run(seen[-1][1]), document("perplexity", "-m", Q4, "-f", TEXT, "-c", "32",
                                                            "--chunks", str(n)))
        job = server.post("/v1/evaluate", {**LONG, "wait": False}).json["id"]
        connection.request("GET", f"/v1/jobs/{job}/events")
        reply = connection.getresponse()
        server.request("DELETE", f"/v1/jobs/{job}")
        self.assertEqual([name for name, _ in events(reply)][-1], "error")
        connection.close()

    def test_short_requests_are_served_between_batches(self):
        """The long job waits for its text, a pipe, until all others have been asked for."""
        folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        text, content = folder / "text", TEXT.read_text()
        text.write_text(content)
        windows, short = {"ctx_size": 64, "chunks": 6}, {"text": SHORT, "ctx_size": 32, "chunks": 2,
                                                         "kind": "kld"}
        scores = {"prompt": SHORT[:300], "max_tokens": 0, "echo": True, "logprobs": 1}
        with Server(ASSAY, "-m", Q4, "--base", F16, "-f", text, "-t", "1", "-b", "64") as server:
            alone = (server.post("/v1/completions", scores).json["choices"],
                     without_run(server.post("/v1/evaluate", short).json))
            text.unlink()
            os.mkfifo(text)
            asked = server.post("/v1/evaluate", {**windows, "wait": False}).json["id"]
            with concurrent.futures.ThreadPoolExecutor() as pool:
                replies = [pool.submit(server.post, path, body) for path, body in
                           (("/v1/completions", scores), ("/v1/evaluate", short))]
                while server.get("/health").json["n_waiting"] < 2:
                    time.sleep(0.02)
                text.write_text(content)
                between = [reply.result().json for reply in replies]
            long = self.wait_for(server, asked, "done")["result"]
        self.assertEqual((between[0]["choices"], without_run(between[1])), alone)
        self.assertEqual(without_run(long), document("perplexity", "-m", Q4, "-f", TEXT, "-c", "64",
                                                     "--chunks", "6"))
        lines = [line for line in server.lines if " job " in line]
        self.assertEqual(len(lines), 5, server.lines)
        self.assertRegex(lines[4], rf"^assay: \S+Z job {asked}: evaluate from 127\.0\.0\.1, waited "
                                   r"\d+\.\d\d s, ran \d+\.\d\d s, 378 tokens: done\n$")

    def test_the_log_says_how_jobs_end(self):
        with Server(ASSAY, "-m", Q4) as server:
            server.post("/v1/completions", {"prompt": [5, 6], "max_tokens": 0})
            server.post("/v1/score", {"text": '{"context": "a", "continuation": ""}'})
        first, second = (line.split(": ", 2)[2] for line in server.lines if " job " in line)
        self.assertRegex(first, r"completions from .* 1 token: done\n")
        self.assertRegex(second, r"score from .* 0 tokens: failed: text: line 1: .* no tokens\n")

    def test_the_time_has_a_bound(self):
        server = self.start("--job-timeout", "1")
        reply = server.post("/v1/evaluate", LONG)
        self.assertEqual(reply.code, 409)
        self.assertIn("longer than --job-timeout", reply.message)
        # The next one has as long again. On a busy machine it may need a few attempts.
        small = {"ctx_size": 16, "chunks": 1}
        self.assertIn(200, (server.post("/v1/evaluate", small).code for _ in range(20)))

    def test_the_queue_has_a_bound(self):
        server = self.start("--queue", "2")
        accepted = [server.post("/v1/evaluate", {**LONG, "wait": False}).json["id"]
                    for _ in range(3)]
        reply = server.post("/v1/evaluate", WINDOWS)
        self.assertEqual((reply.code, reply.message), (503, "the queue is full"))
        self.assertGreaterEqual(int(reply.headers["Retry-After"]), 1)
        for id in accepted:
            server.request("DELETE", f"/v1/jobs/{id}")


class Keys(unittest.TestCase):
    def check(self, server, key):
        def code(value, path="/metrics"):
            return server.get(path, headers={"Authorization": value} if value else {}).code
        for wrong in (None, "", "Bearer", "Bearer ", f"Bearer {key[:-1]}", f"Bearer {key}x",
                      f"Bearer {key.upper()}", f"Basic {key}", key, "Bearer " + "x" * 20000):
            self.assertIn(code(wrong), (401, 431), wrong)
        self.assertEqual(code(f"Bearer {key}"), 200)
        self.assertEqual(code(f"bearer {key}"), 200)
        self.assertEqual(server.get("/none").code, 401)
        self.assertEqual(server.get("/health").code, 200)
        self.assertNotIn("model", server.get("/health").json)
        reply = server.post("/v1/evaluate", b" " * (1 << 20))
        self.assertEqual((reply.code, reply.headers["WWW-Authenticate"]), (401, "Bearer"))

    def test_keys(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "key"
            file.write_bytes(b"secret-of-the-file\r\n")
            with Server(ASSAY, "-m", Q4, "--host", "0.0.0.0", "--api-key-file", file,
                        env={"ASSAY_API_KEY": "other"}) as server:
                self.check(server, "secret-of-the-file")
                self.assertEqual(server.get("/health", headers={"Host": "a.name"}).code, 200)
            with Server(ASSAY, "-m", Q4, env={"ASSAY_API_KEY": "of the environment"}) as server:
                self.check(server, "of the environment")
            file.write_text("one\ntwo\n")
            self.assertIn("more than one line", run("serve", "-m", Q4, "--api-key-file", file).stderr)
            for key in " key\n", "key ", "key\t\r\n":
                file.write_bytes(key.encode())
                self.assertIn("a blank at an end", run("serve", "-m", Q4, "--api-key-file", file).stderr)

    def test_other_addresses_take_a_key(self):
        for host in "0.0.0.0", "::":
            done = run("serve", "-m", Q4, "--host", host, "--port", "0")
            self.assertEqual(done.returncode, 2)
            self.assertIn("takes an API key", done.stderr)


class Lives(unittest.TestCase):
    """From loading to the end, in every state."""

    def start(self, *words, **more):
        server = Server(ASSAY, "-m", Q4, "-f", TEXT, *ONE_THREAD, *words, **more)
        self.addCleanup(server.__exit__)
        return server

    def test_what_cannot_be_served(self):
        for words, part in ((["-m", TEXT], "is not a GGUF file"),
                            (["-m", "/no/such"], "No such file"),
                            (["-m", Q4, "-f", "/no/such"], "No such file"),
                            (["-m", Q4, "-f", "-"], "found '-'"),
                            (["-m", Q4, "--base", TEXT], TEXT.name),
                            (["-m", Q4, "--host", "no.such.host.invalid"], "--host")):
            done = run("serve", "--port", "0", *words, timeout=HANG_S,
                       env={**os.environ, "RES_OPTIONS": "timeout:1 attempts:1"})
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(part, done.stderr)
        with Server(ASSAY, "-m", Q4) as server:
            done = run("serve", "-m", Q4, "--port", str(server.port))
            self.assertEqual(done.returncode, 2)
            self.assertIn("Address already in use", done.stderr)

    def test_loading(self):
        with tempfile.TemporaryDirectory() as folder:
            fifo = pathlib.Path(folder) / "text"
            os.mkfifo(fifo)  # whoever opens it waits for a writer
            with Server(ASSAY, "-m", Q4, "-f", fifo, wait=False) as server:
                for _ in range(3):
                    reply = server.get("/health")
                    self.assertEqual((reply.code, reply.json["status"]), (503, "loading"))
                    reply = server.post("/v1/evaluate", WINDOWS)
                    self.assertEqual((reply.code, reply.message), (503, "the model is being loaded"))
                    self.assertIn("Retry-After", reply.headers)
                fifo.write_text(SHORT)
                server.wait_until_ready()
                self.assertEqual(server.end(), 0)
            with Server(ASSAY, "-m", Q4, "-f", fifo, wait=False) as server:
                server.process.send_signal(signal.SIGTERM)
                while "assay: ending\n" not in server.lines:
                    time.sleep(0.02)
                self.assertEqual(server.end(), 130)  # the second one does not wait

    def test_idle(self):
        for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
            server = self.start()
            idle = server.connect()
            idle.connect()
            self.assertEqual(server.end(number), 0)
            idle.close()

    def ask(self, server, body):
        replies = []
        thread = threading.Thread(target=lambda: replies.append(server.post("/v1/evaluate", body)))
        thread.start()
        return thread, replies

    def test_running_is_cancelled(self):
        server = self.start("--grace", "0")
        running = self.ask(server, LONG)
        while server.metric("jobs_running") == 0:
            time.sleep(0.02)
        waiting = [self.ask(server, WINDOWS) for _ in range(3)]
        while server.metric("jobs_waiting") < 3:
            time.sleep(0.02)
        self.assertEqual(server.end(), 0)
        for thread, replies in [running, *waiting]:
            thread.join()
            self.assertEqual(replies[0].code, 409)
            self.assertEqual(replies[0].json["error"]["type"], "cancelled")

    def test_running_may_finish(self):
        server = self.start("--grace", str(HANG_S))
        thread, replies = self.ask(server, {"ctx_size": 32, "chunks": 100})
        while server.metric("jobs_running") == 0 and not replies:
            time.sleep(0.01)
        self.assertEqual(server.end(), 0)
        thread.join()
        self.assertEqual(without_run(replies[0].json),
                         document("perplexity", "-m", Q4, "-f", TEXT, "-c", "32", "--chunks", "100"))

    def test_clients_that_do_nothing_do_not_hold_it(self):
        server = self.start("--grace", "0")
        sockets = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(5)]
        sockets[1].send(b"GET /hea")
        sockets[2].send(b"POST /v1/evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
                        b"Content-Type: application/json\r\n\r\n{")
        watched = server.connect()
        watched.request("POST", "/v1/evaluate", json.dumps({**LONG, "stream": True}),
                        {"Content-Type": "application/json"})
        watched.getresponse().read(10)
        self.assertEqual(server.end(), 0)
        for s in sockets:
            s.close()
        watched.close()


if __name__ == "__main__":
    unittest.main(argv=["test_serve", *sys.argv[3:]])

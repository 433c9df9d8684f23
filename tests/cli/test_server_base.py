#!/usr/bin/env python3
"""assay kld --base-url, and --base with recorded answers: the bounds are those of the formulas, and
the divergence is between them; what is asked is said before; answers serve other models, too.

usage: test_server_base.py ASSAY SOURCE_DIR
"""
import json
import math
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import documents
from fake_server import Logits, Predictor, Server, Texts, ranked
from program import ASSAY, F16, HANG_S, Q4, TEXT, run
import serving

TEXTS = Texts(ASSAY, F16)
MODELS = {"exact": Logits(ASSAY, "-m", F16), "other": Logits(ASSAY, "-m", Q4)}
K = 100


def server(kind, fault="honest", **more):
    return Server(kind, Predictor(MODELS, fault), TEXTS, **more)


def kld(*words, models=(Q4,)):
    """(what the program said, its document or None)"""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "r.json"
        named = [word for model in models for word in ("-m", model)]
        done = run("kld", *named, *words, "--json", path, timeout=HANG_S)
        return done, json.loads(path.read_text()) if path.exists() else None


def ask(url, *words, models=(Q4,)):
    return kld("--base-url", url, "-f", TEXT, "-c", "32", "--requests", "24", *words, models=models)


def bounds(ids):
    """(lower bound, divergence, upper bound) after these tokens, by the formulas."""
    p, q = (ranked(MODELS[name](ids))[0] for name in ("exact", "other"))
    order = sorted(range(len(p)), key=lambda i: -p[i])
    listed, rest = order[:K], order[K:]
    terms = [math.exp(p[i]) * (p[i] - q[i]) for i in order]
    left = [math.fsum(math.exp(x[i]) for i in rest) for x in (p, q)]
    shared = math.fsum(terms[:K])
    cap = min(sorted(p[i] for i in listed)[1], math.log(left[0]))
    return (shared + left[0] * math.log(left[0] / left[1]), math.fsum(terms),
            shared + left[0] * (cap - min(q[i] for i in rest)))


class ServerBase(unittest.TestCase):
    def test_the_bounds_are_those_of_the_formulas(self):
        with server("llama-server") as s, tempfile.TemporaryDirectory() as folder:
            state = pathlib.Path(folder) / "state.jsonl"
            done, document = ask(s.url, "--state", state, "--precision", "exact", models=(F16, Q4))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertLessEqual(s.n_requests, 24)
            self.assertIn("it is asked by 24 requests at most", done.stderr)
            self.assertRegex(done.stderr, "20 requests with 464 tokens in all, from 2 windows of 32")
            answers = [json.loads(line) for line in state.read_text().splitlines()]
            prompts = {tuple(a["request"]["prompt"]) for a in answers if "request" in a}
            expected = [bounds(ids) for ids in prompts]
            n, result = len(expected), document["result"]
            self.assertEqual((n, result["n_predictions"], result["noise"]), (19, 19, 0))
            same, q4 = document["candidates"]
            least, true, most = (math.fsum(x) / n for x in zip(*expected))
            self.assertTrue(least < true < most)
            self.assertAlmostEqual(q4["kld_at_least"]["mean"], least, delta=1e-4 * least)
            self.assertAlmostEqual(q4["kld_at_most"], most, delta=1e-4 * most)
            self.assertLess(same["kld_at_least"]["max"], 1e-8)
            self.assertEqual(same["same_top"], 1)
            self.assertIn("Mean KLD, lower bound", done.stdout)
            self.assertIn("| KLD at most |", done.stdout.replace("     ", " ").replace("  ", " "))

            asked = s.n_requests  # another model of the same tokens: nothing is asked
            done, again = ask(s.url, "--state", state, "--precision", "exact", "--label", "ours")
            self.assertIn("====== ours ======", done.stdout)
            self.assertEqual((done.returncode, s.n_requests), (0, asked), done.stderr)
            self.assertEqual(again["candidates"][0]["kld_at_least"], q4["kld_at_least"])
            done, recorded = kld("--base", state, "--precision", "exact", models=(F16, Q4))
            self.assertEqual(done.returncode, 0, done.stderr)
            for a, b in zip(document["candidates"], recorded["candidates"]):
                self.assertEqual(*({k: v for k, v in x.items() if k.startswith(("kld", "same", "model"))}
                                   for x in (a, b)))
            done, _ = kld("--base", state, "-f", TEXT)
            self.assertEqual(done.returncode, 2)
            self.assertIn("with recorded answers it would do nothing: they have their prompts", done.stderr)
        for found in (document, recorded):
            documents.check(self, found)
        seen = set(documents.seen(document, documents.KLD_BOUNDS))
        seen |= set(documents.seen(recorded, documents.KLD_BOUNDS))
        never = {at for at in documents.members() if at.startswith(documents.KLD_BOUNDS)} - seen
        never = {at for at in never if not at.endswith("_lot_error")}  # there are too few windows
        self.assertLessEqual(never, {documents.KLD_BOUNDS + "/properties/run/properties/commit"})

    def test_a_server_that_lists_prompts(self):
        if "microhttpd" in run("serve", "-m", "/nowhere", "--port", "0").stderr:
            self.skipTest("built without libmicrohttpd")
        with serving.Server(ASSAY, "-m", F16) as s:
            done, document = ask(f"http://127.0.0.1:{s.port}", models=(F16,))
        self.assertEqual(done.returncode, 0, done.stderr)
        said = re.search(r"(\d+) requests with (\d+) tokens in all, from (\d+) windows of 32", done.stderr)
        n_requests, n_tokens, n = map(int, said.groups())
        self.assertEqual((n_requests, n_tokens), (n + 1, 31 * (n + 1)))
        result, same = document["result"], document["candidates"][0]
        self.assertEqual(result["n_predictions"] + result["n_unknown"] + result["n_of_first_halves"], n * 31)
        self.assertEqual(result["n_texts"], n)
        self.assertLess(same["kld_at_least"]["max"], 1e-9)
        self.assertLess(abs(same["nll_difference"]), 1e-9)
        self.assertGreater(same["n_next"], 0)

    def test_tails_that_are_counted_twice_are_mended(self):
        with server("ik", "tail_twice") as s:
            done, document = ask(s.url, "--concurrency", "3", models=(F16,))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(document["result"]["tail_twice"])
        self.assertIn("counts the tokens that are not listed twice", done.stdout)
        self.assertLess(document["candidates"][0]["kld_at_least"]["max"], 1e-8)
        with server("ik") as s:
            self.assertFalse(ask(s.url)[1]["result"]["tail_twice"])

    def test_other_tokens_are_a_finding(self):
        with server("ollama", "other_tokens") as s:
            done, document = ask(s.url)
        self.assertEqual((done.returncode, done.stdout, document), (2, "", None))
        self.assertRegex(done.stderr, r"no result.*other tokens of the prompts: it counts \d+ where \d+ were sent")

    def test_what_cannot_be_used_is_no_result(self):
        for fault, words in (("no_number", "no number"), ("status:400", "it is broken"),
                             ("dies:5", "5 requests in a row failed")):
            with server("llama-server", fault) as s:
                done, _ = ask(s.url)
            self.assertEqual((done.returncode, done.stdout), (2, ""), fault)
            self.assertIn(words, done.stderr)

    def test_an_interrupted_run_goes_on(self):
        with server("llama-server", "slow:0.1") as s, tempfile.TemporaryDirectory() as folder:
            words = [ASSAY, "kld", "-m", Q4, "--base-url", s.url, "-f", TEXT, "-c", "32", "--requests",
                     "24", "--state", pathlib.Path(folder) / "state"]
            process = subprocess.Popen(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            while s.n_requests < 5:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=HANG_S)
            self.assertEqual((process.returncode, out), (130, ""))
            self.assertIn("the same command goes on from", err)
            self.assertEqual(subprocess.run(words, capture_output=True).returncode, 0)
            self.assertLessEqual(s.n_requests, 24)

    def test_usage(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "r.jsonl"
            path.write_text('{"request": {}, "response": {}}\n')
            url = ("--base-url", "http://h")
            for words, said in ((url, "-f"), ((*url, "--base", F16, "-f", TEXT), "give one of --base and --base-url"),
                                ((*url, "-f", TEXT, "--js"), "--js is for a base model, a compact file or a base-logits file; with --base-url"),
                                ((*url, "-f", TEXT, "--chunks", "2"), "--requests says"),
                                ((*url, "-f", TEXT, "-f", TEXT), "one text"),
                                ((*url, "-f", TEXT, "-ctk", "f16,q8_0"), "one type of each"),
                                (("--base", F16, "-f", TEXT, "--api", "vllm"), "--api is for --base-url; with a base model"),
                                ((*url, "-f", TEXT, "--full"), "--full is for a base model"),
                                ((*url, "-f", TEXT, "--dry-run"), "--dry-run is for a base model"),
                                (("--base", path, "--state", "s"), "nothing is asked"),
                                (("--base-url", "ftp://h", "-f", TEXT), "expected http://HOST:PORT"),
                                (("--base", path), "line 1: expected completion_probabilities")):
                done, _ = kld(*words)
                self.assertEqual((done.returncode, done.stdout), (2, ""), words)
                self.assertIn(said, done.stderr)


if __name__ == "__main__":
    if "libcurl" in ask("http://127.0.0.1:1")[0].stderr:
        print("without libcurl")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])

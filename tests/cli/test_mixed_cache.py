#!/usr/bin/env python3
"""A cache of several types reaches tasks and the server: choices of a task add up to what
perplexity --per-token has of the same texts over the same cache, and a server's documents are
those of the command line.

usage: test_mixed_cache.py ASSAY SOURCE_DIR
"""
import csv
import json
import os
import pathlib
import tempfile
import unittest

from documents import without_run
from program import ASSAY, F16, Q4, TEXT, run
from serving import Server

os.environ["ASSAY_PRECISION"] = "exact"
MIXED = ["-ctk", "q4_0,layers 0-1:f16,layer 3:q8_0", "-ctv", "f32,full:q5_1,layer 2:fp8_e4m3@0.02"]
LINES = [{"ctx": "The war ended in 1918 . He lets it", "label": 0,
          "endings": ["cool on a rack .", "run .", "go home and then rest .", "be there ."]},
         {"ctx": "In the town there was", "label": 1,
          "endings": ["a river and many ships .", "one .", "war and more war .", "nobody ."]}]
BEFORE, AFTER = "The man lifted the boy because the ", " was too small to see over the wall ."
# Of each kind: a task in a line, and where its texts are divided: (before, continuation) of each choice.
KINDS = {
    "hellaswag": (LINES, [[(t["ctx"], " " + e) for e in t["endings"]] for t in LINES]),
    "multiple-choice": ([{"question": t["ctx"], "choices": t["endings"], "answer": t["label"]} for t in LINES],
                        [[(t["ctx"], " " + e) for e in t["endings"]] for t in LINES]),
    "winogrande": ([{"sentence": BEFORE + "_" + AFTER, "option1": "man", "option2": "boy", "answer": 2}],
                   [[(BEFORE + option, AFTER) for option in ("man", "boy")]]),
}


def result(*words):
    done = run(*words, "-q", "--json", "-")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Tasks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def log_probs(self, texts, *options):
        """The log-probabilities of each text's tokens, each text a document of its own."""
        file, table = self.folder / "texts.jsonl", self.folder / "tokens.tsv"
        file.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        result("perplexity", "-m", Q4, "-f", file, "--per-token", table, *options)
        found = [[] for _ in texts]
        with table.open(newline="") as lines:
            for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
                found[int(row["window"])].append(float(row["logprob"]))
        return found

    def test_choices_are_sums_over_their_tokens(self):
        for kind, (tasks, sequences) in KINDS.items():
            file = self.folder / "tasks.jsonl"
            file.write_text("".join(json.dumps(task) + "\n" for task in tasks))
            pairs = [pair for task in sequences for pair in task]
            whole = self.log_probs([before + after for before, after in pairs], *MIXED)
            n_before = [len(p) for p in self.log_probs([before for before, _ in pairs])]
            expected = [sum(p[n:]) for p, n in zip(whole, n_before)]
            words = ["perplexity", "-m", Q4, "-f", file, "--" + kind]
            for options in ["-b", "1"], ["-b", "4096"]:
                document = result(*words, *options, *MIXED)
                tasks_by_place = sorted(document["tasks"], key=lambda task: task["task"])
                sums = [s for task in tasks_by_place for s in task["sums"]]
                self.assertEqual(len(sums), len(expected))
                for found, s in zip(sums, expected):
                    self.assertAlmostEqual(found, s, delta=1e-9)  # 12 digits of each of at most 20 tokens
                self.assertEqual(document["settings"]["cache_type_k"], ["Q4_0,layers 0-1:F16,layers 3:Q8_0"])
            plain = sorted(result(*words)["tasks"], key=lambda task: task["task"])
            plain = [s for task in plain for s in task["sums"]]
            self.assertTrue(all(abs(a - b) > 1e-5 for a, b in zip(plain, expected)), (plain, expected))


class Served(unittest.TestCase):
    def test_documents_are_those_of_the_command_line(self):
        window, windows = {"ctx_size": 64, "chunks": 2}, ["-f", TEXT, "-c", "64", "--chunks", "2"]
        text = "".join(json.dumps(task) + "\n" for task in LINES)
        scored = json.dumps({"context": LINES[0]["ctx"], "continuation": " run ."}) + "\n"
        with Server(ASSAY, "-m", Q4, "--base", F16, "-f", TEXT, *MIXED, wait=False) as server:
            if not server.port and "libmicrohttpd" in "".join(server.lines):
                self.skipTest("built without libmicrohttpd")
            server.wait_until_ready()
            for body, words in (
                    (window, ["perplexity", *windows]),
                    ({**window, "kind": "kld"}, ["kld", "--base", F16, *windows]),
                    ({"kind": "hellaswag", "text": text, "tasks": 2},
                     ["perplexity", "-p", text, "--hellaswag", "--hellaswag-tasks", "2"])):
                found = without_run(server.post("/v1/evaluate", body).json)
                self.assertEqual(found, without_run(result(*words, "-m", Q4, *MIXED)))
                plain = result(*words, "-m", Q4)
                figures = next(name for name in ("candidates", "tasks", "result") if name in found)
                self.assertNotEqual(found[figures], plain[figures])
            (score,) = server.post("/v1/score", {"text": scored}).json["scores"]
            self.assertEqual(score, json.loads(run("score", "-q", "-m", Q4, "-", *MIXED, input=scored).stdout))
            prompt = {"prompt": LINES[0]["ctx"] + " run .", "max_tokens": 0, "echo": True, "logprobs": 0}
            listed = server.post("/v1/completions", prompt).json["choices"][0]["logprobs"]["token_logprobs"]
            self.assertEqual(sum(listed[-score["tokens"]:]), score["logprob"])


if __name__ == "__main__":
    unittest.main(argv=["test_mixed_cache.py"])

#!/usr/bin/env python3
"""The summary of assay score as JSON: every field described, and the figures those of its lines.

usage: test_score_json.py ASSAY SOURCE_DIR
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from documents import check

ASSAY, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
REQUESTS = [
    {"id": 1, "context": "In the town there was a river and many", "continuation": " ships"},
    {"context": "", "continuation": "In the town"},
    {"text": "The war ended in 1918 . He lets it cool on a rack ."},
    {"text": ""},
]


def score(*options):
    """(document, lines)"""
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "r.json"
        lines = "".join(json.dumps(r) + "\n" for r in REQUESTS)
        done = subprocess.run([ASSAY, "score", "-q", "-m", SOURCE / "data" / "tiny.Q4_K_M.gguf",
                               "-", "--json", result, *options], input=lines.encode(),
                              capture_output=True, check=True)
        return (json.loads(result.read_text()),
                [json.loads(line) for line in done.stdout.decode().splitlines()])


class Score(unittest.TestCase):
    def test_every_field_is_described(self):
        check(self, score()[0])

    def test_figures_are_those_of_the_lines(self):
        document, lines = score("-c", "12")
        result = document["result"]
        self.assertEqual(len(lines), len(REQUESTS))
        self.assertEqual(lines[0]["id"], 1)
        self.assertTrue(result["complete"])
        self.assertEqual(result["n_requests"], len(lines))
        self.assertEqual(result["n_tokens"], sum(line["tokens"] for line in lines))
        self.assertEqual(result["logprob"], sum(line["logprob"] for line in lines))
        self.assertEqual(result["n_greedy"], sum(line["is_greedy"] for line in lines))
        self.assertEqual(result["n_truncated"], sum("truncated" in line for line in lines))
        self.assertGreater(result["n_truncated"], 0)
        self.assertEqual(document["settings"]["n_ctx"], 12)

    def test_batch_and_threads_change_nothing(self):
        (one, lines), (other, same) = score("-b", "1", "-t", "1"), score("-b", "4096", "-t", "2")
        self.assertEqual(lines, same)
        self.assertGreater(one.pop("run")["n_batches"], other.pop("run")["n_batches"])
        self.assertEqual(one, other)

    def test_scores_are_those_of_choice_tasks(self):
        """HellaSwag's sums, evaluated by another way of putting sequences together."""
        model, tasks = SOURCE / "data" / "tiny.F16.gguf", SOURCE / "tests" / "data" / "tasks"
        with tempfile.TemporaryDirectory() as folder:
            result = pathlib.Path(folder) / "r.json"
            subprocess.run([ASSAY, "perplexity", "-q", "-m", model, "-f", tasks / "hellaswag.jsonl",
                            "--hellaswag", "--json", result], capture_output=True, check=True)
            expected = {task["task"]: task["sums"] for task in
                        json.loads(result.read_text())["tasks"]}
        rows = [json.loads(line) for line in (tasks / "hellaswag.jsonl").read_text().splitlines()]
        lines = "".join(json.dumps({"task": i, "context": row["ctx"], "continuation": " " + ending})
                        + "\n" for i, row in enumerate(rows) for ending in row["endings"])
        done = subprocess.run([ASSAY, "score", "-q", "-m", model, "-"], input=lines.encode(),
                              capture_output=True, check=True)
        found = {}
        for line in done.stdout.decode().splitlines():
            found.setdefault(json.loads(line)["task"], []).append(json.loads(line)["logprob"])
        self.assertEqual(found, expected)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

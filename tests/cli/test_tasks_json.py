#!/usr/bin/env python3
"""The result of choice tasks as JSON: the same for every batch, every field described, and the
figures those of its own list of tasks.

usage: test_tasks_json.py ASSAY SOURCE_DIR
"""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from documents import check

os.environ["ASSAY_PRECISION"] = "exact"  # the same bits with any --isa
ASSAY, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
TASKS = SOURCE / "tests" / "data" / "tasks"
FILES = {"hellaswag": "hellaswag.txt", "winogrande": "winogrande.csv",
         "multiple-choice": "multiple-choice.bin"}


def evaluate(kind, *options):
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "r.json"
        subprocess.run([ASSAY, "perplexity", "-q", "-m", SOURCE / "data" / "tiny.Q4_K_M.gguf",
                        "-bf", TASKS / FILES[kind], "--" + kind, "--json", result, *options],
                       capture_output=True, check=True)
        return json.loads(result.read_text())


def best(scores):
    return scores.index(max(scores))


class Tasks(unittest.TestCase):
    def test_every_field_is_described(self):
        for kind in FILES:
            check(self, evaluate(kind))

    def test_figures_are_those_of_the_tasks(self):
        for kind in FILES:
            document = evaluate(kind)
            self.assertEqual(document["kind"], kind)
            tasks, result = document["tasks"], document["result"]
            self.assertEqual(len(tasks), result["n_tasks"])
            right = [0, 0, 0]
            for task in tasks:
                by_char = [s / n for s, n in zip(task["sums"], task["n_chars"])]
                choices = [best(task["scores"]), best(task["sums"]), best(by_char)]
                self.assertEqual(choices, [task["choice"], task["choice_acc"],
                                           task["choice_acc_norm"]])
                for i, choice in enumerate(choices):
                    right[i] += choice == task["answer"]
            self.assertEqual(right, [result[key]["n_right"]
                                     for key in ("score", "acc", "acc_norm")])

    def test_mc2(self):
        """The share of exp(sum) that the right answers have; they come first, in either form."""
        targets = {"no": 0, "yes, it is": 1, "yes": 1, "perhaps": 0}
        forms = [[{"question": "Is it far?", "mc2_targets": targets}] * 2,
                 [{"question": "Is it far?", "mc2_targets": {"choices": list(targets),
                                                            "labels": list(targets.values())}}] * 2]
        documents = []
        with tempfile.TemporaryDirectory() as folder:
            path, result = pathlib.Path(folder) / "t.json", pathlib.Path(folder) / "r.json"
            for form in forms:
                path.write_text(json.dumps(form))
                done = subprocess.run([ASSAY, "perplexity", "-q", "-m", SOURCE / "data" / "tiny.Q4_K_M.gguf", "-f",
                                       path, "--mc2", "--json", result], capture_output=True, check=True, text=True)
                documents.append(json.loads(result.read_text()))
        self.assertEqual(documents[0]["tasks"], documents[1]["tasks"])
        check(self, documents[0])
        for task in documents[0]["tasks"]:
            p = [math.exp(s) for s in task["sums"]]
            self.assertEqual((task["n_right"], len(p)), (2, 4))
            self.assertAlmostEqual(task["mc2"], sum(p[:2]) / sum(p), delta=1e-14)
        mean = documents[0]["result"]["mc2"]["mean"]
        self.assertEqual(mean, documents[0]["tasks"][0]["mc2"])
        self.assertIn(f"MC2: {100 * mean:.4f} +/- 0.0000\n", done.stdout)
        self.assertEqual(documents[0]["result"]["chance"], 0.5)

    def test_batch_and_threads_change_nothing(self):
        for kind in FILES:
            one = evaluate(kind, "-b", "1", "-t", "1", "--isa", "avx2")
            other = evaluate(kind, "-b", "4096", "-t", "2")
            self.assertEqual(one.pop("run")["n_batches"], one["result"]["n_tasks"])
            self.assertEqual(other.pop("run")["n_batches"], 1)
            self.assertEqual(one, other)
            high = [evaluate(kind, "--precision", "high", "--isa", isa, "-b", batch)
                    for isa, batch in (("avx512", "1"), ("avx2", "4096"))]
            self.assertEqual(high[0]["settings"]["products"], "int16")
            self.assertNotEqual(high[0].pop("run"), high[1].pop("run"))
            self.assertEqual(*high)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

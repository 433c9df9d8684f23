#!/usr/bin/env python3
"""Documents: figures of files and categories and macro means against a script's own arithmetic, from
--per-token; each document against its own evaluation; journals, ranks, ends by a standard error.

usage: test_documents.py ASSAY SOURCE_DIR
"""
import csv
import json
import math
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from documents import check
from program import ASSAY, F16, HANG_S, Q4, TEXT, is_sanitized, run

CTX = 32
CATEGORIES = ["prose", "code", None]
LINES = [line for line in TEXT.read_text().splitlines() if line][:24]
LIBRARY = pathlib.Path(ASSAY).parent / "assay-mpi-openmpi.so"
FIGURES = {"nll": lambda t: -t["logprob"], "base_nll": lambda t: -t["base_logprob"],
           "ln_ratio": lambda t: t["base_logprob"] - t["logprob"], "kld": lambda t: t["kld"],
           "same_top": lambda t: t["same_top"]}


def evaluate(*words, **more):
    done = run(*words, "-t", "2", timeout=120, **more)
    if done.returncode:
        raise AssertionError(f"{words}: {done.stderr}")
    return done.stdout


def read(path):
    return json.loads(pathlib.Path(path).read_text())


def without_run(path):
    document = read(path)
    del document["run"]
    return document


def read_tokens(path):
    with open(path, newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [{k: v if k == "token" else float(v) if v else None for k, v in row.items()} for row in rows]


def mean_and_error(values):
    n = len(values)
    if not n:
        return None, None
    mean = math.fsum(values) / n
    spread = math.fsum((v - mean) ** 2 for v in values)
    return mean, math.sqrt(spread / n / (n - 1)) if n > 1 else 0


class Documents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.corpus = cls.folder / "corpus"
        cls.corpus.mkdir()
        (cls.corpus / "a.txt").write_text(TEXT.read_text()[-700:])
        (cls.corpus / "b.txt").write_text("The town of the singer\n")
        (cls.corpus / "empty.txt").write_text("")
        cls.lines = cls.folder / "lines.jsonl"
        with open(cls.lines, "w") as file:
            for i, line in enumerate(LINES):
                category = CATEGORIES[i % len(CATEGORIES)]
                item = {"text": line, "id": i, **({"category": category} if category else {})}
                print(json.dumps(item), file=file)
        cls.texts = ["-f", cls.corpus, "-f", cls.lines, "-c", str(CTX)]

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def near(self, found, expected, what):
        if expected is None:
            self.assertIsNone(found, what)
        else:
            self.assertLessEqual(abs(found - expected), 1e-9 * max(1, abs(expected)), what)

    def check_group(self, group, tokens, names):
        self.assertEqual(group["n_tokens"], len(tokens))
        for name in names:
            mean, error = mean_and_error([FIGURES[name](t) for t in tokens])
            self.near(group[name], mean, name)
            self.near(group[name + "_error"], error, name)
        self.near(group["ppl"], group["nll"] and math.exp(group["nll"]), "ppl")

    def check_groups(self, found, windows, tokens, names):
        """found: what has the groups; windows: its list, which names the documents."""
        document_of = {w["window"]: w["document"] for w in windows}
        of_document = [[] for _ in found["documents"]]
        for token in tokens:
            of_document[document_of[token["window"]]].append(token)
        by = {"files": {}, "categories": {}}
        for i, document in enumerate(found["documents"]):
            self.check_group(document, of_document[i], names)
            for list_, key in (("files", document["file"]), ("categories", document["category"])):
                by[list_].setdefault(key, []).extend(of_document[i])
        for i, group in enumerate(found["files"]):
            self.check_group(group, by["files"][i], names)
        self.assertEqual([g["category"] for g in found["categories"]], CATEGORIES)
        for group in found["categories"]:
            self.check_group(group, by["categories"][group["category"]], names)
        macro = found["macro"]
        self.assertEqual((macro["over"], macro["n"]), ("categories", 3))
        for name in names:
            pairs = [mean_and_error([FIGURES[name](t) for t in group])
                     for group in by["categories"].values()]
            self.near(macro[name], sum(m for m, _ in pairs) / 3, name)
            self.near(macro[name + "_error"], math.sqrt(sum(e * e for _, e in pairs)) / 3, name)

    def test_perplexity(self):
        table, result = self.folder / "p.tsv", self.folder / "p.json"
        evaluate("perplexity", "-m", Q4, *self.texts, "--per-token", table, "--json", result)
        document, tokens = read(result), read_tokens(table)
        self.assertEqual(document["settings"]["protocol"], "documents")
        self.assertEqual([f["name"] for f in document["files"]],
                         ["a.txt", "b.txt", "empty.txt", "lines.jsonl"])
        self.assertEqual([d["id"] for d in document["documents"][3:]],
                         [str(i) for i in range(len(LINES))])
        self.check_groups(document, document["windows"]["sums"], tokens, ["nll"])
        mean, error = mean_and_error([-t["logprob"] for t in tokens])
        self.near(document["result"]["nll"], mean, "micro")
        self.near(document["result"]["nll_error"], error, "micro")

    def test_kld(self):
        table, result = self.folder / "k.tsv", self.folder / "k.json"
        evaluate("kld", "-m", Q4, "--base", F16, *self.texts, "--per-token", table, "--json", result,
                 "--worst", "3", "--context-curve")
        document, tokens = read(result), read_tokens(table)
        candidate = document["candidates"][0]
        self.check_groups(candidate, candidate["windows"], tokens, list(FIGURES))
        worst = sorted(tokens, key=lambda t: -t["kld"])[:3]
        self.assertEqual([(w["window"], w["position"]) for w in candidate["worst"]],
                         [(w["window"], w["position"]) for w in worst])
        at = {}
        for token in tokens:
            at.setdefault(token["position"], []).append(token["kld"])
        self.assertEqual([p["position"] for p in candidate["context_curve"]], sorted(at))
        for point in candidate["context_curve"]:
            self.assertEqual(point["n_tokens"], len(at[point["position"]]))
            self.near(point["kld"], mean_and_error(at[point["position"]])[0], "context curve")

    def test_fields(self):
        """docs/schema has each field that documents and an early end add."""
        result = self.folder / "f.json"
        evaluate("perplexity", "-m", Q4, *self.texts, "--context-curve", "--stop-when-se", "1e-9",
                 "--json", result)
        check(self, read(result))

    def test_a_document_alone(self):
        """No document sees another: alone each has the same scores; a short one also where every
        token of a text is scored, a long one wherever its first window reaches."""
        together, table = self.folder / "t.tsv", self.folder / "alone.tsv"
        result = self.folder / "t.json"
        evaluate("perplexity", "-m", Q4, *self.texts, "--per-token", together, "--json", result)
        document_of = [w["document"] for w in read(result)["windows"]["sums"]]
        tokens = read_tokens(together)
        for i in (0, 1, 5):
            expected = [t for t in tokens if document_of[int(t["window"])] == i]
            for t in expected:
                t["window"] -= document_of.index(i)
            one = self.folder / "one.jsonl"
            text = LINES[i - 3] if i >= 3 else (self.corpus / "ab"[i]).with_suffix(".txt").read_text()
            one.write_text(json.dumps({"text": text if i >= 3 else text.removesuffix("\n")}))
            evaluate("perplexity", "-m", Q4, "-c", str(CTX), "-f", one, "--per-token", table)
            self.assertEqual(read_tokens(table), expected)
            plain = self.folder / "plain.txt"
            plain.write_text(json.loads(one.read_text())["text"])
            evaluate("perplexity", "-m", Q4, "--protocol", "fixed", "-c", str(CTX - 1), "-f", plain,
                     "--per-token", table)
            first = [t for t in expected if t["window"] == 0]
            self.assertEqual([t["logprob"] for t in read_tokens(table)][:len(first)],
                             [t["logprob"] for t in first])

    def test_batches_and_ranks(self):
        """One window at a time, all at once, and three processes."""
        words = ["perplexity", "-m", Q4, *self.texts, "--json"]
        paths = [self.folder / f"b{i}.json" for i in range(3)]
        lines = {evaluate(*words, paths[0], "-b", "1"), evaluate(*words, paths[1])}
        if shutil.which("mpirun") and LIBRARY.exists() and not is_sanitized():  # which finds MPI's leaks
            root = ["--allow-run-as-root"] if os.getuid() == 0 else []
            done = subprocess.run(["mpirun", "--oversubscribe", "--bind-to", "none", *root, "-n", "3",
                                   ASSAY, *words, paths[2], "-b", "64", "-t", "1"],
                                  capture_output=True, text=True, timeout=HANG_S, check=True)
            lines.add(done.stdout)
        self.assertEqual(len(lines), 1)
        self.assertEqual(without_run(paths[0]), without_run(paths[1]))
        if paths[2].exists():
            self.assertEqual(without_run(paths[0]), without_run(paths[2]))

    def test_journal(self):
        """It belongs to these documents and their categories."""
        journal, copy = self.folder / "d.journal", self.folder / "copy.jsonl"
        shutil.copy(self.lines, copy)
        words = ["perplexity", "-m", Q4, "-f", copy, "-c", str(CTX), "--state", journal]
        lines = evaluate(*words)
        os.truncate(journal, journal.stat().st_size // 2)
        self.assertEqual(evaluate(*words), lines)
        copy.write_text(self.lines.read_text().replace("prose", "other"))
        refused = run(*words)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("d.journal", refused.stderr)
        self.assertIn("sha256", refused.stderr)

    def test_merge(self):
        """Ranges of windows become the journal of one run."""
        words = ["perplexity", "-m", Q4, *self.texts]
        whole, merged = self.folder / "whole.journal", self.folder / "merged.journal"
        lines = evaluate(*words, "--state", whole)
        parts = []
        for words_of_part in (["--chunks", "9"], ["--chunk-from", "9"]):
            parts.append(self.folder / f"part{len(parts)}.journal")
            evaluate(*words, *words_of_part, "--state", parts[-1])
        done = run("merge", *parts, "-o", merged, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(merged.read_bytes(), whole.read_bytes())
        self.assertEqual(evaluate(*words, "--state", merged), lines)

    def check_stop(self, words, wanted):
        """As --chunks, whatever the batch; a smaller error goes on from the journal."""
        paths = {name: self.folder / f"stop-{words[0]}-{name}" for name in ("a", "b", "chunks", "less")}
        journal = self.folder / "stop.journal"
        journal.unlink(missing_ok=True)
        stop = ["--stop-when-se", str(wanted)]
        lines = evaluate(*words, *stop, "--json", paths["a"], "-b", "32", "--state", journal)
        self.assertEqual(evaluate(*words, *stop, "--json", paths["b"], "-b", "2000"), lines)
        self.assertEqual(without_run(paths["a"]), without_run(paths["b"]))
        found = without_run(paths["a"])
        stopped = found["result"].pop("stop")
        n = found["result"]["n_windows"]
        self.assertTrue(stopped["stopped"] and stopped["reached"] <= wanted == stopped["wanted"])
        self.assertTrue(16 <= n < stopped["of_windows"])
        evaluate(*words, "--chunks", str(n), "--json", paths["chunks"])
        whole = without_run(paths["chunks"])
        whole["settings"]["chunks"] = -1
        self.assertEqual(found, whole)
        size = journal.stat().st_size
        evaluate(*words, "--stop-when-se", str(wanted / 1.2), "--json", paths["less"], "--state",
                 journal)
        self.assertGreaterEqual(read(paths["less"])["run"]["n_resumed"], n)
        self.assertGreater(read(paths["less"])["result"]["n_windows"], n)
        self.assertGreater(journal.stat().st_size, size)
        self.assertEqual(evaluate(*words, *stop, "--state", journal), lines)

    def test_stop(self):
        text = ["-f", TEXT, "-c", "16"]
        self.check_stop(["perplexity", "-m", Q4, *self.texts], 0.08)
        self.check_stop(["kld", "-m", Q4, "--base", F16, *text], 0.006)

    def test_stop_that_is_not_reached(self):
        path = self.folder / "not.json"
        lines = evaluate("perplexity", "-m", Q4, *self.texts, "--stop-when-se", "1e-9", "--json", path)
        self.assertIn("Not stopped: ", lines)
        stop = read(path)["result"]["stop"]
        self.assertEqual((stop["stopped"], stop["of_windows"]),
                         (False, read(path)["result"]["n_windows"]))

    def test_compare(self):
        """Results of the same documents compare; of the same tokens in others they do not."""
        paths = [self.folder / f"c{i}.json" for i in range(3)]
        for path, model in zip(paths, (F16, Q4)):
            evaluate("perplexity", "-m", model, *self.texts, "--json", path)
        document = read(paths[1])
        document["tokens"]["documents"]["sha256"] = "0" * 64
        paths[2].write_text(json.dumps(document))
        self.assertIn("PPL", evaluate_compare(paths[0], paths[1]).stdout)
        refused = evaluate_compare(paths[0], paths[2])
        self.assertIn("tokens.documents.sha256", refused.stderr)
        self.assertEqual(refused.returncode, 2)


def evaluate_compare(a, b):
    return run("compare", a, b, "--resamples", "100", timeout=60)


if __name__ == "__main__":
    unittest.main(argv=["test_documents"], verbosity=2)

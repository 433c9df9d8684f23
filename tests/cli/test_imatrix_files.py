#!/usr/bin/env python3
"""Files of importance matrices: parts that add up to the bytes of the whole, sums of llama-imatrix's
files, statistics by their definitions, comparisons, and what is refused.

usage: test_imatrix_files.py ASSAY SOURCE_DIR
"""
import json
import math
import pathlib
import random
import tempfile
import unittest

import imatrix_make as make
from program import Q4, run

ONE = make.ONE


def add(a, b):
    """The entries of the whole of two parts."""
    both = {}
    for name in {*a, *b}:
        if name in a and name in b:
            both[name] = ([x + y for x, y in zip(a[name][0], b[name][0])],
                          [[x + y for x, y in zip(r, s)] for r, s in zip(a[name][1], b[name][1])])
        else:
            both[name] = a.get(name) or b[name]
    return both


def entries(rng, n_rows=32, huge=False):
    """Of a small mixture: sums of all sizes; expert 2 has no rows."""
    def sums(n, count):
        top = 62 if huge else 12
        return [rng.getrandbits(64 + rng.randrange(-40, top)) if count else 0 for _ in range(n)]

    experts = [n_rows - 5, 5, 0]
    out = {name: ([n_rows], [sums(4, 1)]) for name in
           ("blk.0.attn_q.weight", "blk.1.attn_q.weight", "blk.10.attn_q.weight", "output.weight")}
    out["blk.0.ffn_up_exps.weight"] = (experts, [sums(6, n) for n in experts])
    return out


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="assay-imatrix-")
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def write(self, name, data):
        (self.path / name).write_bytes(data)
        return name

    def run_in(self, *words):
        return run(*words, cwd=self.path)

    def merge(self, *names):
        out = self.path / "out"
        out.unlink(missing_ok=True)
        done = self.run_in("merge", *names, "-o", "out")
        self.assertEqual(done.returncode, 0, done.stderr)
        return out.read_bytes(), done.stderr

    def refused(self, sentence, *words):
        done = self.run_in(*words)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertRegex(done.stderr, r"\Aassay: [^\n]*" + sentence + r"[^\n]*\n\Z")

    def document(self, *words):
        done = self.run_in(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)


class Merge(Files):
    def test_parts_are_the_whole(self):
        rng = random.Random(1)
        a, b, c = (entries(rng, n, huge) for n, huge in ((32, False), (2**24 + 1, True), (48, True)))
        whole = make.exact(add(add(a, b), c), [0, 0, 20])
        self.write("a", make.exact(a, [0, 0, 2]))
        self.write("b", make.exact(b, [0, 2, 17]))
        self.write("c", make.exact(c, [0, 17, 20]))
        for order in ("abc", "cab"):
            got, said = self.merge(*order)
            self.assertEqual(got, whole)
            self.assertNotIn("note", said)
        got, _said = self.merge("a", "c")
        self.assertEqual(got, make.exact(add(a, c), [0, 0, 2, 0, 17, 20]))
        self.write("ac", got)
        self.assertEqual(self.merge("b", "ac")[0], whole)
        self.assertEqual(self.merge("a")[0], make.exact(a, [0, 0, 2]))
        self.refused(r"a and ac: windows 0 to 1 of 'a\.txt' are in both, expected each window once",
                     "merge", "a", "ac", "-o", "new")

    def test_texts(self):
        rng = random.Random(2)
        a, b = entries(rng), entries(rng, 64)
        self.write("a", make.exact(a, [0, 0, 2]))
        self.write("b", make.exact(b, [0, 0, 4], ["b.txt"], ["id-b"]))
        got, said = self.merge("a", "b")
        self.assertEqual(got, make.exact(add(a, b), [0, 0, 2, 1, 0, 4], ["a.txt", "b.txt"],
                                         ["id-a", "id-b"]))
        self.assertNotIn("note", said)
        self.write("b", make.exact(b, [0, 0, 4], ["a.txt"], ["id-b"], model="n"))
        said = self.merge("a", "b")[1]
        self.assertIn("b: dataset 'a.txt' is in a file before it, too, with other windows", said)
        self.assertIn("not of one model with the same settings", said)

    def test_foreign(self):
        rng = random.Random(3)
        a, b = entries(rng), entries(rng, 64)
        del b["blk.1.attn_q.weight"]
        self.write("a", make.plain(a))
        self.write("b", make.plain(b, ["b.txt"]))
        got, said = self.merge("a", "b")
        rough = {name: (counts, [[make.rounded(q) for q in row] for row in sums])
                 for name, (counts, sums) in a.items()}
        other = {name: (counts, [[make.rounded(q) for q in row] for row in sums])
                 for name, (counts, sums) in b.items()}
        self.assertEqual(got, make.plain(add(rough, other), ["a.txt", "b.txt"]))
        self.assertIn("2 of 2 files have sums as floats only", said)
        self.assertIn("1 times one is missing", said)
        self.write("e", make.exact(a, [0, 0, 2]))
        self.assertIn("1 of 2 files have sums as floats only", self.merge("e", "b")[1])
        self.write("c", make.plain(b, ["c.txt"], chunk_size=8))
        self.assertIn("1 files have chunks of another size", self.merge("a", "c")[1])

    def test_older_format(self):
        a = {"x": ([32], [[3 * ONE, ONE]]), "y": ([5, 27], [[ONE] * 2, [2 * ONE] * 2])}
        old = {"x": (2, [6.0, 2.0]), "y": (2, [4.0, 4.0, 2.0, 2.0])}
        self.write("a", make.plain(a))
        self.write("o", make.dat(old, 2, "o.txt"))
        self.assertEqual(self.merge("o", "o")[0],
                         make.dat({"x": (4, [12.0, 4.0]), "y": (4, [8.0, 8.0, 4.0, 4.0])}, 4, "o.txt"))
        got, said = self.merge("o", "a")
        self.assertIn("1 of 2 files are of the older format", said)
        both = {"x": ([64], [[99 * ONE, 33 * ONE]]),
                "y": ([37, 59], [[65 * ONE] * 2, [34 * ONE] * 2])}
        keys = [*make.heads(["o.txt", "a.txt"], 16, both), ("assay.imatrix.version", "u32", 1),
                ("assay.imatrix.counts_lost", "bool", True)]
        self.assertEqual(got, make.gguf(keys, make.pairs(both)))
        self.write("oa", got)
        again = {name: ([2 * n for n in counts], [[2 * q for q in row] for row in sums])
                 for name, (counts, sums) in both.items()}
        keys[2] = ("imatrix.chunk_count", "u32", 8)
        keys[1] = ("imatrix.datasets", "strings", ["o.txt", "a.txt"] * 2)
        self.assertEqual(self.merge("oa", "oa")[0], make.gguf(keys, make.pairs(again)))

    def test_categories(self):
        """Rows of experts by category: those of a part without categories have no name."""
        rng, experts = random.Random(7), "blk.0.ffn_up_exps.weight"
        a, b, c = entries(rng), entries(rng, 40), entries(rng, 64)
        more = "blk.1.ffn_up_exps.weight"  # in one part alone
        b[more] = ([9, 0], [[ONE] * 6, [0] * 6])
        a_use = {"code": {experts: [20, 5, 0]}, "": {experts: [7, 0, 0]}}
        b_use = {"prose": {experts: [30, 0, 0], more: [9, 0]}, "code": {experts: [5, 5, 0]}}
        self.write("a", make.exact(a, [0, 0, 2], use=a_use))
        self.write("b", make.exact(b, [0, 0, 3], ["b.txt"], ["id-b"], use=b_use))
        self.write("c", make.exact(c, [0, 0, 4], ["c.txt"], ["id-c"]))
        got, _said = self.merge("a", "b", "c")
        use = {"code": {experts: [25, 10, 0]}, "": {experts: [66, 5, 0]},
               "prose": {experts: [30, 0, 0], more: [9, 0]}}
        self.assertEqual(got, make.exact(add(add(a, b), c), [0, 0, 2, 1, 0, 3, 2, 0, 4],
                                         ["a.txt", "b.txt", "c.txt"], ["id-a", "id-b", "id-c"], use=use))
        self.write("sum", got)
        self.assertEqual(self.merge("sum")[0], got)
        self.write("p", make.plain(a))
        self.assertNotIn(b".use", self.merge("a", "p")[0])  # which rows those of floats were, nobody knows
        self.check_info(use, add(add(a, b), c))

    def check_info(self, use, whole):
        for e in self.document("info", "--json", "sum")["experts"]:
            self.assertEqual([c["category"] for c in e["categories"]], list(use))
            for c, of in zip(e["categories"], use.values()):
                rows, total = of.get(e["name"], [0] * len(e["rows"])), sum(whole[e["name"]][0])
                shares = [n / max(sum(rows), 1) for n in rows]
                differs = sum(abs(p - n / total) for p, n in zip(shares, e["rows"])) / 2 if sum(rows) else 0
                self.assertEqual((c["rows"], c["n_none"], c["block"]), (rows, rows.count(0), e["block"]))
                self.assertAlmostEqual(c["differs"], differs, delta=1e-12)
                entropy = -math.fsum(p * math.log2(p) for p in shares if p)
                self.assertAlmostEqual(c["entropy"], entropy, delta=1e-12)
        said = self.run_in("info", "sum").stdout
        self.assertRegex(said, r"\ncode +35 +3 .*\n\(no category\) +71 +3 .*\nprose +39 +3 ")
        (self.path / "sum.json").write_text(self.run_in("info", "--json", "sum").stdout)
        self.assertEqual(self.run_in("report", "sum.json", "-o", "sum.html").returncode, 0)
        page = (self.path / "sum.html").read_text()
        self.assertEqual([page.count(f"category <bdi>{name}</bdi>") for name in ("code", "(none)", "prose")],
                         [1, 1, 1])

    def test_refused(self):
        a = entries(random.Random(4))
        self.write("a", make.plain(a))
        self.write("w", make.plain({**a, "output.weight": ([1], [[ONE] * 5])}))
        self.refused("matrix 'output.weight' has 5 columns times 1, in a it has 4 times 1", "merge", "a",
                     "w", "-o", "new")
        self.write("k", make.gguf([("general.type", "string", "imatrix")], make.pairs(a)))
        self.refused("k: has no key 'imatrix.chunk_size'", "merge", "a", "k", "-o", "new")
        self.write("journal", b"assay")
        self.refused("journal: is no importance matrix, as another", "merge", "a", "journal", "-o", "new")
        self.refused("absent: cannot be opened", "merge", "a", "absent", "-o", "new")
        self.refused("--chunks: the parts are importance", "merge", "a", "-o", "new", "--chunks", "3")
        self.refused("journal: is a text, expected a new file or an importance matrix; give another",
                     "merge", "a", "-o", "journal")
        self.refused("o a would replace the file that the merge reads", "merge", "a", "-o", "a")
        self.assertFalse((self.path / "new").exists())


class Statistics(Files):
    def expected(self, means):
        """By definition, in exact sums of doubles."""
        n, total = len(means), math.fsum(means)
        mean = total / n
        deviation = math.sqrt(math.fsum((a - mean) ** 2 for a in means) / n)
        entropy = -math.fsum(a / total * math.log2(a / total) for a in means if a)
        return {"n": n, "total": total, "min": min(means), "max": max(means), "mean": mean,
                "deviation": deviation, "active": sum(a > 1e-5 for a in means) / n,
                "entropy": entropy, "entropy_norm": entropy / math.log2(n),
                "outlying": sum(a - mean > deviation for a in means) / n}

    def test_info(self):
        a = entries(random.Random(5), 1000)
        a["blk.0.attn_q.weight"] = ([1], [[10**9 * ONE + i * ONE // 64 for i in range(64)]])
        del a["blk.10.attn_q.weight"]
        a["blk.1.ffn_up_exps.weight"] = ([2000, 4, 0], [[ONE] * 6, [3 * ONE] * 6, [0] * 6])
        a["blk.10.ffn_up_exps.weight"] = a["blk.2.ffn_up_exps.weight"] = ([7, 5, 7], [[ONE] * 6] * 3)
        for data, exact in ((make.exact(a, [0, 3, 7]), True), (make.plain(a), False)):
            self.write("a", data)
            got = self.document("info", "--json", "a")
            self.assertEqual((got["schema"], got["exact"], got["counts_lost"], got["datasets"]),
                             ("assay-imatrix-info", exact, False, ["a.txt"]))
            self.assertEqual((got["n_chunks"], got["chunk_size"]), (125, 16))
            self.assertEqual(got["windows"],
                             [{"dataset": "a.txt", "begin": 3, "end": 7}] if exact else [])
            rows = {row["name"]: row for row in got["matrices"]}
            self.assertEqual(set(rows), set(a))
            for name, (counts, sums) in a.items():
                values = sums if exact else [[make.rounded(q) for q in row] for row in sums]
                means = [q / ONE / n for row, n in zip(values, counts) if n for q in row]
                self.assertEqual(rows[name]["rows"], counts)
                for key, value in self.expected(means).items():
                    self.assertAlmostEqual(rows[name][key], value, delta=1e-9 * abs(value) + 1e-300,
                                           msg=f"{name} {key}")
            self.assertEqual(rows["blk.1.ffn_up_exps.weight"]["without_rows"], [2])
            self.assertEqual(rows["blk.1.ffn_up_exps.weight"]["few_rows"], [1])
            self.check_cosines(a, rows, got["blocks"])
            self.check_use(a, got["experts"])

    def check_cosines(self, a, rows, blocks):
        name = "blk.%d.ffn_up_exps.weight"
        means = [[q / ONE / n for row, n in zip(a[name % i][1], a[name % i][0]) if n for q in row]
                 for i in (0, 1)]
        sums = [[q / ONE for row in a[name % i][1] for q in row] for i in (0, 1)]
        for key, (x, y) in (("cosine", means), ("cosine_sums", sums)):
            self.assertIsNone(rows[name % 0][key])
            cosine = sum(p * q for p, q in zip(x, y)) / math.sqrt(
                sum(p * p for p in x) * sum(q * q for q in y))
            self.assertAlmostEqual(rows[name % 1][key], cosine, delta=1e-6)
        self.assertEqual([block["block"] for block in blocks], [0, 1, 2, 10])
        of_block = [row for row in rows.values() if row["name"].startswith("blk.0.")]
        total = sum(row["n"] * row["total"] for row in of_block) / sum(row["n"] for row in of_block)
        self.assertAlmostEqual(blocks[0]["total"], total, delta=1e-9 * total)
        self.assertIsNone(blocks[0]["cosine"])
        self.assertIsNone(rows["blk.1.attn_q.weight"]["cosine"])  # of another width

    def check_use(self, a, use):
        blocks = sorted(int(name.split(".")[1]) for name in a if "_exps" in name)
        self.assertEqual([(e["name"], e["block"]) for e in use],
                         [(f"blk.{i}.ffn_up_exps.weight", i) for i in blocks])
        self.assertIn(10, blocks)
        for e in use:
            rows = a[e["name"]][0]
            shares = [n / sum(rows) for n in rows if n]
            entropy = -math.fsum(p * math.log2(p) for p in shares)
            self.assertEqual((e["rows"], e["least"], e["most"]), (rows, min(rows), max(rows)))
            self.assertEqual((e["n_none"], e["n_few"]),
                             (rows.count(0), sum(0 < n < 0.01 * sum(rows) / 3 for n in rows)))
            for key, value in (("even", sum(rows) / 3), ("entropy", entropy), ("effective", 2**entropy),
                               ("entropy_norm", entropy / math.log2(3))):
                self.assertAlmostEqual(e[key], value, delta=1e-12 * value, msg=key)

    def test_text(self):
        self.write("a", make.plain({"blk.0.up_exps.weight": ([2000, 4, 0], [[ONE] * 6, [ONE] * 6, [0] * 6]),
                                    "blk.0.gate_exps.weight": ([2000, 4, 0], [[ONE] * 6] * 2 + [[0] * 6])}))
        said = self.run_in("info", "a").stdout
        self.assertIn("a: an importance matrix, with sums rounded to floats\n", said)
        self.assertIn("\nblk.0.gate_exps.weight, even share 668.0; no rows: 2; few rows: 1 (4)\n", said)
        self.assertEqual(said.count("even share"), 2)
        self.assertRegex(said, r"\n0 +3 +2004 +0 +2000 +2\.99 +1 +1 +0\.0208 +1\.31 +1\.0\n\n")  # once
        self.assertEqual(said.count(" 2004 "), 1)
        self.write("o", make.dat({"x": (2, [6.0, 2.0])}))
        self.assertIn("o: an importance matrix, in the older format: counts of rows are lost\n",
                      self.run_in("info", "o").stdout)
        self.assertIsNone(self.document("info", "--json", "o")["chunk_size"])
        self.assertIn("blk.0.up_exps.weight.counts", self.run_in("info", "--tensors", "a").stdout)


class Compare(Files):
    def test_compare(self):
        a = entries(random.Random(6))
        b = add(a, {})
        b["blk.0.ffn_up_exps.weight"] = ([20, 0, 12], [[ONE * i for i in range(6)], [0] * 6, [ONE] * 6])
        b["more"] = ([1], [[ONE]])
        for name, data in (("a", make.exact(a, [0, 0, 2])), ("p", make.plain(a)), ("b", make.plain(b))):
            self.write(name, data)
        for other in "ap":
            self.assertIn("A and B have the same bits of sums and the same counts",
                          self.run_in("compare", "a", other).stdout.split("\n")[0])
        done = self.run_in("compare", "a", "b", "--json", "c.json")
        self.assertRegex(done.stdout, r"\AA and B differ most in blk\.0\.ffn_up_exps\.weight: the cosine "
                         r"of its means is 0\.\d{9}, the largest ratio of two inf \(matrix 0, column 0\)"
                         r"\.\n1 matrix is in B only\.\n")
        got = json.loads((self.path / "c.json").read_text())
        self.assertEqual((got["same"], got["worst"], got["n_only_a"], got["n_only_b"]),
                         (False, "blk.0.ffn_up_exps.weight", 0, 1))
        item = next(i for i in got["matrices"] if not i["same"])
        x, y = ([q / ONE / e[0][0] for q in e[1][0]] for e in (a[item["name"]], b[item["name"]]))
        cosine = sum(p * q for p, q in zip(x, y)) / math.sqrt(
            sum(p * p for p in x) * sum(q * q for q in y))
        self.assertAlmostEqual(item["cosine"], cosine, delta=1e-6)
        self.assertEqual((item["only_a"], item["only_b"], item["n_other_counts"]), ([1], [2], 3))
        self.assertEqual((item["rows_a"], item["rows_b"]), (32, 32))

    def test_older_format(self):
        self.write("a", make.plain({"y": ([8, 2], [[ONE] * 2, [ONE] * 2])}))
        self.write("o", make.dat({"y": (1, [0.125, 0.125, 0.5, 1.0])}))
        done = self.run_in("compare", "a", "o")
        self.assertIn("the largest ratio of two 2 (matrix 1, column 1)", done.stdout)

    def test_refused(self):
        self.write("a", make.plain({"y": ([8], [[ONE] * 2])}))
        self.write("b", make.plain({"y": ([8], [[ONE] * 3])}))
        self.refused("matrix 'y' has 2 columns times 1 in A, 3 times 1 in B", "compare", "a", "b")
        self.refused("a is an importance matrix and [^\n]*Q4_K_M.gguf a model; expected two of one kind", "compare", "a", Q4.resolve())
        self.write("r.json", b"{}")
        self.refused("r.json: is no importance matrix", "compare", "a", "r.json")
        self.refused("choose a model of a result", "compare", "a", "b", "--candidate-a", "1")


class Hostile(Files):
    def sentence(self, expected, data):
        self.write("bad", data)
        self.refused("bad: [^\n]*" + expected, "merge", "bad", "-o", "new")

    def tensors(self, *tensors, keys=()):
        return make.gguf([("general.type", "string", "imatrix"), ("imatrix.chunk_size", "u32", 16), *keys],
                         tensors)

    def test_categories(self):
        name = "blk.0.ffn_up_exps.weight"
        entry = {name: ([3, 2], [[ONE], [ONE]])}
        for expected, use in (
                (r"use': the rows of matrix 1 by category do not add up to its count, 2", {"a": {name: [3, 1]}}),
                (r"use': the rows of matrix 0 by category do not add up to its count, 3", {"a": {name: [4, 2]}}),
                (r"use': the rows of matrix 0 by category", {"a": {name: [-1, 2]}, "b": {name: [4, 0]}})):
            with self.subTest(use=use):
                self.sentence(expected, make.exact(entry, [0, 0, 1], use=use))
        good = make.exact(entry, [0, 0, 1], use={"a": {name: [3, 1]}, "b": {name: [0, 1]}})
        at = good.index(b"assay.imatrix.categories") + len("assay.imatrix.categories") + 4 + 4 + 8 + 8
        self.sentence("'assay.imatrix.categories' has string 1 twice", good[:at] + b"b" + good[at + 1:])
        self.sentence("has no tensor 'blk.0.ffn_up_exps.weight.use'",
                      good.replace(b"weight.use", b"weight.usf"))

    def test_gguf(self):
        sums, counts = ("x.in_sum2", (2,), 0, make.f32([1, 2])), ("x.counts", (1,), 0, make.f32([4]))
        for expected, tensors in (
                ("'x.in_sum2' has no partner, expected one with '.counts'", [sums]),
                ("'x.counts' has no partner, expected one with '.in_sum2'", [counts]),
                ("'x.in_sum2' has type F16, expected F32", [("x.in_sum2", (2,), 1, bytes(4)), counts]),
                ("'x.counts' has type I64, expected F32", [sums, ("x.counts", (1,), 27, bytes(8))]),
                ("'x.counts' has 3 numbers, expected 1 or 1, as 'x.in_sum2' has 1 rows of 2",
                 [sums, ("x.counts", (3,), 0, make.f32([1, 1, 1]))]),
                ("'x.in_sum2': number 1 is nan", [("x.in_sum2", (2,), 0, make.f32([1, math.nan])), counts]),
                ("'x.in_sum2': number 0 is inf", [("x.in_sum2", (2,), 0, make.f32([math.inf, 1])), counts]),
                ("'x.in_sum2': number 0 is -1", [("x.in_sum2", (2,), 0, make.f32([-1, 1])), counts]),
                ("'x.counts': number 0 is 1.5, expected a count of rows",
                 [sums, ("x.counts", (1,), 0, make.f32([1.5]))]),
                ("'x.counts': number 0 is -1", [sums, ("x.counts", (1,), 0, make.f32([-1]))]),
                ("'x.counts': number 0 is nan", [sums, ("x.counts", (1,), 0, make.f32([math.nan]))]),
                ("'x.in_sum2': number 0 is 1, expected 0, as matrix 0 of it has no rows",
                 [sums, ("x.counts", (1,), 0, make.f32([0]))]),
                ("'x.in_sum2' occurs twice|tensor 'x.in_sum2'", [sums, sums, counts]),
                ("has no tensor '\\*.in_sum2'", [("y", (1,), 0, make.f32([0]))])):
            with self.subTest(expected):
                self.sentence(expected, self.tensors(*tensors))
        self.sentence("'imatrix.datasets' has type u32, expected array of string, or a string",
                      self.tensors(sums, counts, keys=[("imatrix.datasets", "u32", 1)]))
        self.write("bad", make.gguf([("general.type", "string", "imatrix"),
                                     ("imatrix.datasets", "string", "a.txt")], [sums, counts]))
        self.assertEqual(self.document("info", "--json", "bad")["datasets"], ["a.txt"])
        self.write("bad", make.gguf([], [sums, counts]))  # llama-imatrix reads it, too
        self.assertEqual(self.document("info", "--json", "bad")["datasets"], [])

    def test_exact(self):
        base = [("x.in_sum2", (2,), 0, make.f32([1, 2])), ("x.counts", (1,), 0, make.f32([4]))]
        version = ("assay.imatrix.version", "u32", 1)
        good = ("x.low", (2,), 27, make.i64([0, 1]))
        for expected, more, keys in (
                ("has no tensor 'x.low'", [], ()),
                ("'x.low' has type F32, expected I64", [("x.low", (2,), 0, bytes(8))], ()),
                ("'x.low' has 3 numbers, expected 2", [("x.low", (3,), 27, bytes(24))], ()),
                ("'x.low': number 1 does not belong to the sum 2",
                 [("x.low", (2,), 27, make.i64([0, 1 << 60]))], ()),
                ("'x.high' has rows of 1 numbers, expected 2", [good, ("x.high", (1,), 27, bytes(8))], ()),
                ("'x.high': row 0 has index 7, expected indices of 'x.low'",
                 [good, ("x.high", (2,), 27, make.i64([7, 0]))], ()),
                ("'x.low': number 0 does not belong",
                 [good, ("x.high", (2,), 27, make.i64([0, -5]))], ()),
                ("'x.rows': number 0 is 5, expected one that rounds to the count 4",
                 [good, ("x.rows", (1,), 27, make.i64([5]))], ()),
                ("'assay.imatrix.texts' has 1 strings, expected 0", [good],
                 [("assay.imatrix.texts", "strings", ["i"])]),
                ("'assay.imatrix.windows' has 2 numbers of type u64, expected a multiple of 3", [good],
                 [("imatrix.datasets", "strings", ["a"]), ("assay.imatrix.texts", "strings", ["i"]),
                  ("assay.imatrix.windows", "u64s", [0, 1])]),
                ("range 1 of windows is 2 to 4 of text 0, expected ascending ranges", [good],
                 [("imatrix.datasets", "strings", ["a"]), ("assay.imatrix.texts", "strings", ["i"]),
                  ("assay.imatrix.windows", "u64s", [0, 0, 2, 0, 2, 4])])):
            with self.subTest(expected):
                self.sentence(expected, self.tensors(*base, *more, keys=[version, *keys]))
        later = self.tensors(*base, keys=[("assay.imatrix.version", "u32", 2)])
        self.write("bad", later)
        self.assertFalse(self.document("info", "--json", "bad")["exact"])

    def test_dat(self):
        good = make.dat({"x": (2, [6.0, 2.0])}, 2, "t")
        for expected, data in (
                ("the number of entries, at byte 0, is 0", b"\0" * 40),
                ("entry 'x': its values needs 8 bytes at byte 17, and the file has 20", good[:20]),
                ("entry 'x': value 1 is nan", make.dat({"x": (2, [6.0, math.nan])})),
                ("entry 'x': value 0 is -1", make.dat({"x": (2, [-1.0, 1])})),
                ("entry 'x': its ncall, at byte 9, is 0, expected 1 to", make.dat({"x": (0, [1.0])})),
                ("has 1 bytes after the dataset", good + b"!"),
                ("matrix 'x' occurs twice", make.dat({"x": (2, [6.0])}).replace(
                    b"\1\0\0\0", b"\2\0\0\0", 1) + make.dat({"x": (2, [6.0])})[4:])):
            with self.subTest(expected):
                self.write("bad", data)
                self.write("good", good)
                if data[:4] == b"\0\0\0\0":
                    continue  # looks like nothing: no importance matrix
                self.refused("bad: [^\n]*" + expected, "compare", "good", "bad")
        for n in range(4, len(good)):
            self.write("bad", good[:n])
            self.assertIn(self.run_in("info", "bad").returncode, (0, 2))


if __name__ == "__main__":
    unittest.main(argv=["test"])

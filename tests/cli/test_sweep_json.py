#!/usr/bin/env python3
"""The results of assay sweep: the document, which docs/schema describes, the table and the picture
say the same, however computed; an interrupted run has what is finished.

usage: test_sweep_json.py ASSAY SOURCE_DIR
"""
import json
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

from documents import check, without_run
from program import ASSAY, F16, HANG_S, Q4, TEXT, run

os.environ["ASSAY_PRECISION"] = "exact"  # the same bits with any --isa
F16, Q4, TEXT = (path.resolve() for path in (F16, Q4, TEXT))
SWEEP = ["sweep", "--base", F16, "--from", Q4, "-f", TEXT, "-c", "32", "--chunks", "5"]



class Sweep(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        cls.document, cls.printed = cls.sweep("-q")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def sweep(cls, *words, command=SWEEP):
        """(document, standard output)"""
        done = run(*command, *words, "--json", cls.path / "r.json", "--tsv", cls.path / "t.tsv",
                   "--heatmap", cls.path / "h.svg")
        assert done.returncode == 0, done.stderr
        return json.loads((cls.path / "r.json").read_text()), done.stdout

    def choices(self, document):
        return [(g, c) for g in document["groups"] for c in g["choices"]]

    def test_same_however_computed(self):
        for words in (["-t", "1", "-b", "1"], ["-b", "64", "--device", "cpu,cpu"],
                      ["--isa", "avx2", "-b", "100000"]):
            with self.subTest(words=words):
                document, printed = self.sweep("-q", *words)
                self.assertEqual(without_run(document), without_run(self.document))
                self.assertEqual(printed, self.printed)

    def test_as_a_file_of_the_candidate(self):
        """All tensors together are the candidate; each choice is compared with a file elsewhere."""
        together, _ = self.sweep("-q", "--group", ".")
        kld = run("kld", "--base", F16, "-m", Q4, *SWEEP[5:], "-q", "--json", self.path / "k.json")
        self.assertEqual(kld.returncode, 0, kld.stderr)
        wanted = json.loads((self.path / "k.json").read_text())["candidates"][0]
        (group, choice), = self.choices(together)
        self.assertEqual((group["name"], group["layer"], group["role"]), (".", None, None))
        self.assertEqual(group["around"]["type"], "F16+F32")
        self.assertEqual(choice["type"], "Q4_K+F32+Q6_K")
        self.assertEqual(choice["kld"], {"mean": wanted["kld"]["mean"],
                                         "se": wanted["kld"]["mean_error"],
                                         "lot_se": wanted["kld"]["mean_lot_error"]})
        self.assertEqual(choice["rms_dp"], wanted["dp"]["rms"])
        self.assertEqual(together["rest"], [])

    def test_choices_at_once(self):
        """What all choices of a candidate cost together is what assay kld says of its file; where
        single costs do not add up, the text says so."""
        kld = run("kld", "--base", F16, "-m", Q4, *SWEEP[5:], "-q", "--json", self.path / "k.json")
        self.assertEqual(kld.returncode, 0, kld.stderr)
        wanted = json.loads((self.path / "k.json").read_text())["candidates"][0]["kld"]
        together, = self.document["together"]
        self.assertEqual((together["candidate"], together["n_choices"]), (0, 30))
        self.assertEqual(together["excess_kld"]["mean"], wanted["mean"])
        self.assertAlmostEqual(together["sum"], math.fsum(
            c["kld"]["mean"] for _, c in self.choices(self.document)), 12)
        self.assertNotIn("do not add up", self.printed)
        bad = self.path / "bad.gguf"
        data = bytearray(F16.read_bytes())
        about = json.loads(run("info", "--tensors", "--json", F16).stdout)
        for t in about["tensors"]:
            if "ffn_down" in t["name"] or "attn_output" in t["name"]:
                data[t["offset"]:t["offset"] + t["n_bytes"]] = bytes(t["n_bytes"])
        bad.write_bytes(data)
        document, printed = self.sweep("-q", "--by", "layer", command=[*SWEEP[:4], bad, *SWEEP[5:]])
        together, = document["together"]
        ratio = together["sum"] / together["excess_kld"]["mean"]
        self.assertFalse(0.8 < ratio < 1.25, ratio)
        self.assertIn("Costs do not add up", printed)

    def test_equal_bytes_are_evaluated_once(self):
        document, _ = self.sweep("-q", "--from", shutil.copy(Q4, self.path / "same.gguf"))
        figures = [[{**c, "candidate": 0} for c in g["choices"]] for g in document["groups"]]
        self.assertTrue(all(len(f) == 2 and f[0] == f[1] for f in figures))
        once, twice = (d["run"]["n_inputs"] for d in (self.document, document))
        # The base's pass and the second of "all at once" are all that is new.
        self.assertLess(twice, once * 1.1)

    def test_documents(self):
        """Windows of documents differ in length; a sweep has the figures of assay kld."""
        path = self.path / "chats.json"
        words = TEXT.read_text().split()
        path.write_text(json.dumps(
            [{"conversations": [{"from": "human", "value": " ".join(words[i:i + 5])},
                                {"from": "gpt", "value": " ".join(words[i + 5:i + 10 + 9 * k])}]}
             for k, i in enumerate(range(0, 100, 20))] + [{"text": "a"}]))
        on = ["-f", path, "--chat-template", "zephyr", "-c", "64", "-q"]
        kld = run("kld", "--base", F16, "-m", Q4, *on, "--json", self.path / "k.json")
        self.assertEqual(kld.returncode, 0, kld.stderr)
        wanted = json.loads((self.path / "k.json").read_text())
        self.assertEqual(wanted["tokens"]["documents"]["n"], 6)
        wanted_kld = wanted["candidates"][0]["kld"]["mean"]
        for more in (["--from", Q4], ["--from", Q4, "-b", "64"], ["--from", F16, "--around", Q4]):
            together, _ = self.sweep("--group", ".", *more, command=["sweep", "--base", F16, *on])
            check(self, together)
            (_, choice), = self.choices(together)
            around = "--around" in more
            self.assertEqual((together["reference"] if around else choice)["kld"]["mean"], wanted_kld)
            self.assertEqual(choice["kld"]["mean"], 0 if around else wanted_kld)
            self.assertEqual(together["tokens"], wanted["tokens"])
            self.assertEqual(together["run"]["text_files"], [str(path)])

    def test_every_tensor_is_somewhere(self):
        names = [n for g in self.document["groups"] for n in g["tensors"]]
        names += [t["name"] for t in self.document["rest"]]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(len(names), 39)
        self.assertEqual({t["type"] for t in self.document["rest"]}, {"F32"})

    def test_groups(self):
        layers, _ = self.sweep("-q", "--by", "layer")
        self.assertEqual([g["name"] for g in layers["groups"]],
                         ["token_embd.weight", "blk.0", "blk.1", "blk.2", "blk.3", "output.weight"])
        self.assertEqual([g["layer"] for g in layers["groups"]], [None, 0, 1, 2, 3, None])
        roles, _ = self.sweep("-q", "--by", "role")
        self.assertIn(("ffn_down", None, "ffn_down", 4),
                      [(g["name"], g["layer"], g["role"], len(g["tensors"])) for g in roles["groups"]])
        both, _ = self.sweep("-q", "--group", r"blk\.(\d+)\.attn_(q|k)\.", "--group", "ffn_(up)")
        self.assertEqual([g["name"] for g in both["groups"]],
                         ["0,q", "0,k", "up", "1,q", "1,k", "2,q", "2,k", "3,q", "3,k"])

    def test_no_versions(self):
        """Zeros, another tensor and the negative of one are marked, and no recipe takes them; what
        is a version, in whatever type, is not."""
        tensors = {name: {t["name"]: t for t in json.loads(run("info", "--json", "--tensors", file).stdout)["tensors"]}
                   for name, file in (("odd", Q4), ("turned", F16))}
        place = lambda file, name: slice(tensors[file][name]["offset"],
                                         tensors[file][name]["offset"] + tensors[file][name]["n_bytes"])
        odd, turned = bytearray(Q4.read_bytes()), bytearray(F16.read_bytes())
        zeros, other = place("odd", "blk.1.ffn_gate.weight"), place("odd", "blk.2.attn_q.weight")
        odd[zeros] = bytes(zeros.stop - zeros.start)
        odd[other] = odd[place("odd", "blk.3.attn_q.weight")]
        negative = place("turned", "blk.0.ffn_up.weight")
        turned[negative.start + 1:negative.stop:2] = bytes(b ^ 0x80 for b in turned[negative.start + 1:negative.stop:2])
        files = [self.path / "odd.gguf", self.path / "turned.gguf"]
        for file, data in zip(files, (odd, turned)):
            file.write_bytes(data)
        words = [w for file in files for w in ("--from", file)]
        document, printed = self.sweep("-q", "--sort", "kld", command=[*SWEEP[:3], *words, *SWEEP[5:-1], "1"])
        check(self, document)
        marked = {(g["name"], c["candidate"]) for g, c in self.choices(document) if c["below"] == "no_version"}
        self.assertEqual(marked, {("blk.1.ffn_gate.weight", 0), ("blk.2.attn_q.weight", 0), ("blk.0.ffn_up.weight", 1)})
        self.assertEqual(len(re.findall(r"  \(v\)$", printed, re.M)), 3)
        self.assertIn("(v) a tensor is no version of the base's", printed)
        self.assertRegex("\n".join(document["remarks"]), "2 choices of odd.gguf have a tensor that is no version of "
                         r"the base's \(the first: 'blk.1.ffn_gate.weight'\)")
        done = run("recipe", self.path / "r.json", "--kld", "1000", "--json", self.path / "recipe.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, "note: 3 choices are left out, whose tensors are no versions of the base's: .*"
                         "blk.1.ffn_gate.weight of .*odd.gguf")
        types = {t["name"]: t["type"] for t in json.loads((self.path / "recipe.json").read_text())["tensors"]}
        self.assertEqual((types["blk.1.ffn_gate.weight"], types["blk.0.ffn_gate.weight"]), ("F16", "Q4_K"))

    def test_around_itself_and_another(self):
        around, printed = self.sweep("-q", command=[*SWEEP[:3], "--from", F16, "--around", Q4, *SWEEP[5:]])
        kld = run("kld", "--base", F16, "-m", Q4, *SWEEP[5:], "-q", "--json", self.path / "k.json")
        wanted = json.loads((self.path / "k.json").read_text())["candidates"][0]
        self.assertEqual(kld.returncode, 0)
        self.assertEqual(around["reference"]["kld"]["mean"], wanted["kld"]["mean"])
        self.assertEqual(around["reference"]["nll"], wanted["mean_nll"])
        self.assertEqual(around["around"]["file"], "tiny.Q4_K_M.gguf")
        for _, c in self.choices(around):
            self.assertTrue(math.isclose(c["excess_kld"]["mean"],
                                         c["kld"]["mean"] - wanted["kld"]["mean"], abs_tol=1e-12))
        self.assertRegex(printed, r"^tiny.Q4_K_M.gguf itself: KLD 3\.\d+e-03 ± ")
        self.assertIn("(e) less than twice its paired standard error", printed)
        self.assertIsNone(self.document["around"])
        self.assertEqual(self.document["reference"]["kld"], {"mean": 0, "se": 0, "lot_se": 0})
        self.assertEqual(self.document["reference"]["nll"], self.document["reference"]["base_nll"])

    def test_table_has_the_figures(self):
        self.sweep("-q")
        names, *lines = [line.split("\t") for line in
                         (self.path / "t.tsv").read_text().splitlines()]
        rows = [dict(zip(names, line)) for line in lines]
        self.assertEqual(len(rows), len(self.choices(self.document)))
        for row, (group, choice) in zip(rows, self.choices(self.document)):
            self.assertEqual((row["group"], row["type"], int(row["bytes"])),
                             (group["name"], choice["type"], choice["bytes"]))
            self.assertTrue(math.isclose(float(row["kld"]), choice["kld"]["mean"], rel_tol=1e-11))
            self.assertTrue(math.isclose(float(row["delta_nll_se"]), choice["delta_nll"]["se"],
                                         rel_tol=1e-11))

    def test_picture(self):
        self.sweep("-q")
        root = xml.etree.ElementTree.parse(self.path / "h.svg").getroot()
        titles = [t.text for t in root.iter("{http://www.w3.org/2000/svg}title")]
        self.assertEqual(len(titles), len(self.choices(self.document)))
        for title, (group, _) in zip(titles, self.choices(self.document)):
            self.assertTrue(title.startswith(group["name"] + ": "), title)
        text = (self.path / "h.svg").read_text()
        self.assertIn("prefers-color-scheme:dark", text)
        self.assertNotIn("href", text)

    def test_described(self):
        document, _ = self.sweep("-q", command=[*SWEEP[:3], "--from", F16, "--around", Q4, *SWEEP[5:]])
        check(self, document)

    def test_interrupted(self):
        for _attempt in range(20):  # on a busy machine a run may be over before its signal comes
            for path in self.path.glob("i.*"):
                path.unlink()
            process = subprocess.Popen(
                [os.path.abspath(ASSAY), *map(str, SWEEP[:-1]), "200", "-t", "1", "-b", "32", "--json", "r.json",
                 "--tsv", "i.tsv", "--state", "i.journal"],
                cwd=self.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            journal = self.path / "i.journal"
            while process.poll() is None and (not journal.exists() or journal.stat().st_size < 40000):
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=HANG_S)
            if process.returncode:
                break
        self.assertEqual(process.returncode, 130, err)
        self.assertIn(b"assay: interrupted: the result is incomplete; the same command goes on from i.journal\n", err)
        document = json.loads((self.path / "r.json").read_text())
        self.assertFalse(document["result"]["complete"])
        n = document["result"]["n_windows"]
        self.assertGreater(n, 0)
        self.assertEqual({c["n_windows"] for _, c in self.choices(document)}, {n})
        self.assertFalse((self.path / "i.tsv").exists())
        part, _ = self.sweep("-q", command=[*SWEEP[:-1], str(n)])
        for key in ("groups", "reference", "rest"):
            self.assertEqual(part[key], document[key])


unittest.main(argv=sys.argv[:1])

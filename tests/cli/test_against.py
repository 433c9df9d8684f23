#!/usr/bin/env python3
"""assay check --against and --or: differences of known size, planted in recordings, are found, with
their size and place; equal builds are called equal; files that do not belong together are refused.

usage: test_against.py ASSAY SOURCE_DIR
"""
import json
import math
import os
import pathlib
import random
import re
import struct
import sys
import tempfile
import unittest

from documents import check, without_run
from logits import Logits, divergence
from program import F16, Q4, SOURCE, TEXT, run

os.environ["ASSAY_PRECISION"] = "exact"
N_CTX, N_WINDOWS = 32, 12


class Against(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.place.name)
        cls.old = cls.record("old.kld", "-m", F16)
        cls.exact = Logits(cls.old.read_bytes())
        cls.made = {}

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    @classmethod
    def record(cls, name, *words, n_ctx=N_CTX, chunks=N_WINDOWS):
        path = cls.folder / name
        result = run("perplexity", "-f", TEXT, "-c", str(n_ctx), "--chunks", str(chunks), *words,
                     "--kl-divergence-base", path)
        assert result.returncode == 0, result.stderr
        return path

    def write(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return path

    def check(self, new, *words, model=F16, old=None):
        return run("check", "-m", model, "--kl-divergence-base", new, "--against", old or self.old,
                   *words)

    def document(self, new, *words, **more):
        """(document, result) of a check."""
        result = self.check(new, *words, "--json", self.folder / "r.json", **more)
        self.assertIn(result.returncode, (0, 1, 2), result.stderr)
        return json.loads((self.folder / "r.json").read_text()), result

    def noisy(self, seed, sigma, where=lambda window, i: True):
        """(file, difference to expect): the exact recording with random errors of its logits."""
        if seed in self.made:
            return self.made[seed]
        draw, width, expected = random.Random(seed).random, math.sqrt(12) * sigma, []

        def change(row, window, i):
            if not where(window, i):
                expected.append(0)
                return row
            expected.append(sigma ** 2 / 2 * (1 - math.fsum(math.exp(2 * x) for x in row)))
            return [x + width * (draw() - 0.5) for x in row]
        path = self.write(f"noisy-{seed}.kld", self.exact.changed(change).bytes())
        self.made[seed] = path, math.fsum(expected) / len(expected)
        return self.made[seed]

    # Equal.

    def test_two_recordings_of_one_build_are_equal(self):
        again = self.record("again.kld", "-m", F16, "-t", "1", "-b", "1", "--isa", "avx2")
        document, result = self.document(again)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"\Ano difference: .*again.kld and .*old.kld have the same "
                                        r"bits in 12 windows\n\n\S*again.kld agrees with .*\n\nChecked: ")
        against = document["against"]
        self.assertEqual((against["verdict"], against["same_bits"]), ("same bits", True))
        self.assertEqual(against["kld"]["difference"], 0)

    def test_noise_of_one_size_is_no_difference(self):
        """Two builds that round alike, but not to the same bits."""
        a, _ = self.noisy(1, 0.01)
        b, _ = self.noisy(2, 0.01)
        for new, old in ((a, b), (b, a)):
            result = self.check(new, "--resolve", "1e-5", old=old)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertRegex(result.stdout, r"\Ano difference between .*: \|.*\| <= 5.0e-06 nats")

    # Planted differences.

    def assert_found(self, document, expected, tolerance=0.05):
        kld = document["against"]["kld"]
        self.assertEqual(document["against"]["verdict"], "further")
        self.assertLess(kld["low"], expected)
        self.assertGreater(kld["high"], expected)
        self.assertLess(abs(kld["difference"] / expected - 1), tolerance)

    def test_noise_of_known_size(self):
        """A divergence is half the variance of the logits' error, less what they have in common."""
        for seed, sigma in ((7, 0.0016), (4, 0.02)):
            new, expected = self.noisy(seed, sigma)
            document, result = self.document(new)
            self.assertEqual(result.returncode, 1)
            self.assert_found(document, expected)
            self.assertRegex(result.stdout, r"\A\S*noisy-\d.kld is further from exact than \S*old.kld"
                                            r" by \S+ ± \S+ nats per token \(z \S+\), ")
            self.assertRegex(result.stderr, r"noisy-\d.kld: it is further from exact than .* above ")

    def test_a_temperature(self):
        hot = self.exact.changed(lambda row, window, i: [x / (1 + 1e-2) for x in row])
        expected = [divergence(p, q) for p, q in zip(self.exact.rows, hot.rows)]
        document, _ = self.document(self.write("hot.kld", hot.bytes()))
        self.assert_found(document, math.fsum(expected) / len(expected))
        # A ten-thousandth makes 1e-8 nats or so, in steps of codes that are larger: told, and
        # below what is asked for.
        warm = self.exact.changed(lambda row, window, i: [x / (1 + 1e-4) for x in row])
        path = self.write("warm.kld", warm.bytes())
        difference = self.document(path)[0]["against"]["kld"]["difference"]
        self.assertLess(abs(difference), 1e-7)
        result = self.check(path, "--resolve", "1e-6")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"\Ano difference between ")

    def test_the_better_one_is_called_closer(self):
        new, expected = self.noisy(4, 0.02)
        document, result = self.document(self.old, old=new)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"\A\S*old.kld is closer to exact than ")
        self.assertEqual(document["against"]["verdict"], "closer")
        self.assertLess(abs(document["against"]["kld"]["difference"] / -expected - 1), 0.05)

    def test_wrong_positions(self):
        """Errors at six of the fifteen scored positions: 24 to 29 of the window."""
        new, expected = self.noisy(6, 0.02, lambda window, i: 8 <= i < 14)
        document, result = self.document(new)
        self.assert_found(document, expected)
        self.assertRegex(result.stdout, r"at positions 24 to 29 of the window \(100 % of it, 40 % of "
                                        r"the tokens\)")
        positions = document["against"]["positions"]
        self.assertEqual((positions["place"]["from"], positions["place"]["to"]), (24, 30))
        outside = [b["difference"] for b in positions["bins"] if b["to"] <= 24 or b["from"] >= 30]
        self.assertTrue(outside)
        self.assertLess(max(map(abs, outside)), 1e-9)

    def test_the_announced_windows_find_it(self):
        """The smallest difference that is asked for, with as many windows as the note calls for."""
        new, expected = self.noisy(7, 0.0016)
        self.assertLess(abs(expected - 1.1e-6), 1e-7)
        wanted = f"{expected:.3e}"
        note = self.check(new, "--resolve", wanted).stderr
        needed = int(re.search(r"takes about (\d+) windows, by the spread of the first 8; there are "
                               r"12", note)[1])
        self.assertLessEqual(needed, N_WINDOWS)
        document, result = self.document(new, "--resolve", wanted, "--chunks", str(max(needed, 2)))
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assert_found(document, expected, 0.2)  # it is of all windows
        self.assertEqual(document["settings"]["resolve"], float(wanted))

    def test_too_few_windows_are_no_verdict(self):
        a, _ = self.noisy(1, 0.01)
        b, _ = self.noisy(2, 0.01)
        document, result = self.document(a, "--resolve", "2e-8", old=b)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(result.stderr, r"note: --resolve 2e-08 takes about \d+ windows, .*: too few")
        self.assertRegex(result.stdout, r"\Anot decided: ")
        self.assertEqual(document["against"]["verdict"], "undecided")
        self.assertGreater(document["against"]["n_windows_needed"], N_WINDOWS)

    # What is written.

    def test_the_document_fits_the_schema(self):
        new, _ = self.noisy(6, 0.02, lambda window, i: 8 <= i < 14)
        document, _ = self.document(new, "--resolve", "1e-7", "--or", Q4)
        self.assertIn("place", document["against"]["positions"])
        check(self, document)

    def test_both_recordings_are_described_as_if_alone(self):
        new, _ = self.noisy(4, 0.02)
        document, _ = self.document(new)
        for base, result in ((new, document["result"]),
                             (self.old, document["against"]["result"])):
            path = self.folder / "alone.json"
            run("check", "-m", F16, "--base", base, "--json", path)
            alone = json.loads(path.read_text())["result"]
            for key, value in result.items():
                self.assertEqual(value, alone[key], key)

    def test_the_table(self):
        new, _ = self.noisy(4, 0.02)
        document, _ = self.document(new)
        result = self.check(new, "--markdown")
        self.assertEqual(result.returncode, 1)
        sentence, empty, *lines = result.stdout.splitlines()
        self.assertEqual((sentence, empty), (document["against"]["answer"], ""))
        heads, _, exact, before, after, paired = [
            [cell.strip() for cell in line.strip("|").split("|")] for line in lines[:6]]
        self.assertEqual(heads[1:4], ["PPL", "PPL / exact PPL", "KLD from exact"])
        self.assertEqual([row[0] for row in (exact, before, after)],
                         ["exact: tiny.F16.gguf", "before: old.kld", "after: noisy-4.kld"])
        for row, figures in ((before, document["against"]["result"]), (after, document["result"])):
            value, error = row[3].split(" ± ")
            self.assertEqual(value, f"{figures['kld']['mean']:.4e}")
            self.assertEqual(error, f"{figures['kld']['mean_lot_error']:.1e}")
            ratio = math.exp(figures["nll_difference"]["beyond"])
            self.assertEqual(row[2].split(" ± ")[0], f"{ratio:.6f}")
            ppl = float(exact[1].split(" ± ")[0]) * ratio
            self.assertAlmostEqual(float(row[1].split(" ± ")[0]), ppl, delta=2e-6)
        self.assertEqual(paired[3].split(" ± ")[0],
                         f"{document['against']['kld']['difference']:.4e}")
        # What the file does to improbable tokens is not told as the program's.
        self.assertEqual(before[2], "1.000000 ± 0.000000")
        self.assertRegex(lines[-1], r"^180 tokens in 12 windows of 32; ")

    def test_the_same_however_computed(self):
        new, _ = self.noisy(4, 0.02)
        document, result = self.document(new)
        for words in (("-t", "1", "-b", "1"), ("--isa", "avx2", "-t", "2"),
                      ("--device", "cpu,cpu", "-b", "62")):
            other, printed = self.document(new, *words)
            self.assertEqual(without_run(other), without_run(document))
            self.assertEqual(printed.stdout, result.stdout)

    def test_a_journal_has_both(self):
        new, _ = self.noisy(4, 0.02)
        state = self.folder / "state"
        whole, _ = self.document(new)
        self.document(new, "--state", state)
        state.write_bytes(state.read_bytes()[:-100])  # the last window is lost
        resumed, result = self.document(new, "--state", state)
        self.assertIn("11 of 12 windows were finished before", result.stderr)
        self.assertEqual(without_run(resumed), without_run(whole))
        refused = self.check(new, "--state", state, old=new)
        self.assertEqual((refused.returncode, refused.stdout), (2, ""), refused.stderr)

    # The budget: what the roundings of the types make.

    def test_the_budget(self):
        fast = self.record("fast.kld", "-m", Q4, "--precision", "fast")
        old = self.record("q4.kld", "-m", Q4)
        document, _ = self.document(fast, model=Q4, old=old)
        against, beyond = document["against"], document["result"]["kld"]["beyond"]
        self.assertTrue(against["within_budget"])
        self.assertTrue(0.1 < beyond / against["budget"] < 1.5, (beyond, against["budget"]))
        # Keys and values of 4 bits are no rounding that the weights' types call for.
        coarse = self.record("coarse.kld", "-m", Q4, "-ctk", "q4_0", "-ctv", "q4_0")
        document, result = self.document(coarse, model=Q4, old=old)
        self.assertFalse(document["against"]["within_budget"])
        self.assertRegex(result.stdout, r"coarse.kld differs from .* times the budget, ")

    def test_the_budget_of_another_program(self):
        """llama.cpp's own recording: further from exact than this program's, within the budget."""
        shared = SOURCE.parent / "shared"
        recorded = shared / "reference" / "kld" / "f16-c256-4.kld"
        if not recorded.exists():
            self.skipTest(f"{recorded} is not there")
        model = shared / "models" / "tiny.F16.gguf"
        own = self.folder / "own.kld"
        result = run("perplexity", "-m", model, "-f", shared / "text" / "wiki2-test.txt", "-c", "256",
                     "--chunks", "4", "--kl-divergence-base", own)
        self.assertEqual(result.returncode, 0, result.stderr)
        document, result = self.document(recorded, model=model, old=own)
        self.assertEqual(result.returncode, 1)
        self.assertTrue(document["against"]["within_budget"])
        difference = document["against"]["kld"]["difference"]
        self.assertLess(abs(difference / 1.59e-7 - 1), 0.01)  # as test_check.c has it
        self.assertTrue(0.8 < difference / document["against"]["budget"] < 1.2)

    # Which model it was.

    def test_which_model_was_recorded(self):
        new = self.record("of-q4.kld", "-m", Q4, "--precision", "high")
        for model, others in ((F16, (Q4,)), (Q4, (F16,))):
            words = [word for other in others for word in ("--or", other)]
            path = self.folder / "fits.json"
            result = run("check", "-m", model, "--base", new, *words, "--json", path)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertRegex(result.stdout, r"of-q4.kld fits \S*tiny.Q4_K_M.gguf best, \S+ nats from "
                                            r"it; the next of 2 models is \S*tiny.F16.gguf, further "
                                            r"by 4\.\d+e-03 ± ")
            fits = json.loads(path.read_text())["fits"]
            self.assertEqual((fits["best"], fits["decided"]), ("tiny.Q4_K_M.gguf", True))
        twice = run("check", "-m", Q4, "--base", new, "--or", Q4)
        self.assertRegex(twice.stdout, "Not decided: .* no difference in 12 windows")

    # Runs of one program.

    def again(self, new, *words, model=F16):
        """(document, result) of a check without an older recording."""
        result = run("check", "-m", model, "--base", new, *words, "--json", self.folder / "n.json")
        self.assertIn(result.returncode, (0, 1), result.stderr)
        document = json.loads((self.folder / "n.json").read_text())
        check(self, document)
        return document, result

    def divergences(self, *paths):
        """KL(first || other) of each token: means over the other files."""
        first, *others = (Logits(path.read_bytes()) for path in paths)

        def normal(row):
            log_sum = math.log(math.fsum(map(math.exp, row)))
            return [x - log_sum for x in row]
        rows = [normal(row) for row in first.rows]
        apart = [[divergence(p, normal(row)) for p, row in zip(rows, other.rows)] for other in others]
        return [math.fsum(x) / len(x) for x in zip(*apart)]

    def test_noise_is_the_divergence_between_runs(self):
        (a, of_a), (b, of_b), (c, _) = (self.noisy(seed, 0.01) for seed in (1, 2, 3))
        document, result = self.again(a, "--again", b, "--again", c)
        noise, expected = document["noise"], sorted(self.divergences(a, b, c))
        kld, n = noise["kld"], len(expected)
        self.assertEqual(n, document["result"]["n_tokens"])
        mean = math.fsum(expected) / n
        self.assertAlmostEqual(kld["mean"], mean, delta=1e-9 * mean)
        self.assertAlmostEqual(kld["max"], expected[-1], delta=1e-9 * expected[-1])
        for name, level in ("median", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99_9", 0.999):
            at = level * (n - 1)
            low, high = expected[math.floor(at)], expected[math.ceil(at)]
            self.assertAlmostEqual(kld[name], low + (at % 1) * (high - low), delta=1e-9 * high)
            self.assertLessEqual(kld[name + "_low"], kld[name])
            self.assertGreaterEqual(kld[name + "_high"], kld[name])
        self.assertTrue(kld["mean_low"] < of_a + of_b < kld["mean_high"])
        # Errors that do not know of each other: half of it is each one's, which is all there is.
        self.assertAlmostEqual(noise["part"] / document["result"]["kld"]["beyond"], 1, delta=0.05)
        self.assertTrue(noise["judges"])
        self.assertEqual(noise["n_blocks"], N_WINDOWS)
        self.assertRegex(result.stdout, r"\Aruns of the program are \S+ nats apart \(95 % interval .*: \S+ of the "
                                        r"\S+ nats beyond the file, \d+ %, are noise\n\n")
        self.assertIn("Noise: KL(recorded || again), nats", result.stdout)

    def test_windows_that_are_few_are_parted(self):
        a, _ = self.noisy(1, 0.01)
        b, _ = self.noisy(2, 0.01)
        document, _ = self.again(a, "--again", b, "--chunks", "2")
        self.assertEqual(document["noise"]["n_blocks"], 12)

    def test_the_same_bytes_are_no_noise(self):
        document, result = self.again(self.old, "--again", self.old)
        self.assertEqual((document["noise"]["kld"]["max"], document["noise"]["same_bits"]), (0, True))
        self.assertRegex(result.stdout, r"\Ano noise is seen: \S*old.kld has the bits of \S*old.kld in 12 windows: the "
                                        r"program repeats itself exactly, or it is the same file; ")

    def test_another_model_is_no_run(self):
        other = self.record("of-other.kld", "-m", Q4)
        document, result = self.again(self.noisy(1, 0.01)[0], "--again", other)
        self.assertFalse(document["noise"]["judges"])
        self.assertIsNone(document["budget"]["noise"])
        self.assertRegex(result.stdout, r"\A\S+ and \S*of-other.kld are no two runs of one program on one model: ")

    def test_the_verdict_counts_noise(self):
        """More than rounding makes, and no more than its own runs differ by."""
        (a, _), (b, _) = (self.noisy(seed, 0.01) for seed in (1, 2))
        self.assertRegex(self.again(a)[1].stdout, r"\A\S+ differs from ")
        document, result = self.again(a, "--again", b)
        self.assertEqual(document["budget"]["verdict"], "cannot tell")
        self.assertRegex(result.stdout, r"\ncannot tell whether \S+ is of \S+: .* times the budget, .*, and \d\.\d\d "
                                        r"times one run's noise\n")

    def test_a_change_within_noise_is_no_difference(self):
        new, expected = self.noisy(4, 0.02)
        self.assertEqual(self.check(new).returncode, 1)
        other, _ = self.noisy(9, 0.031)
        document, result = self.document(new, "--again", other)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertGreater(document["noise"]["difference"], expected)
        self.assertEqual(document["against"]["verdict"], "no difference")
        self.assertRegex(result.stdout, r"\nno difference between .* nats per token, which runs of one program differ by\n")
        result = self.check(new, "--again", other, "--resolve", "1e-4")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(result.stdout, r"\nnot decided: .* and runs of one program differ by \S+, which does not "
                                        r"resolve 0\.0001\n")

    def test_runs_are_in_the_journal(self):
        (a, _), (b, _) = (self.noisy(seed, 0.01) for seed in (1, 2))
        whole, _ = self.again(a, "--again", b)
        state = self.folder / "again-state"
        self.again(a, "--again", b, "--state", state)
        state.write_bytes(state.read_bytes()[:-100])
        for words in ((), ("--device", "cpu,cpu", "-b", "62")):
            document, _ = self.again(a, "--again", b, "--state", state, *words)
            self.assertEqual(without_run(document), without_run(whole))

    def test_runs_on_other_input_are_refused(self):
        other = self.record("other-input.kld", "-m", F16, n_ctx=64, chunks=2)
        result = run("check", "-m", F16, "--base", self.old, "--again", other)
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        self.assertRegex(result.stderr, "--again: .* cannot be compared: a window has 32 tokens in the first, 64 in the ")
        result = run("check", "-m", F16, "--base", self.old, "--again", TEXT)
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)

    # Refusals.

    def refused(self, sentence, new, *words, **more):
        result = self.check(new, *words, **more)
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        self.assertRegex(result.stderr, sentence)

    def test_files_of_other_windows_are_refused(self):
        both = r"assay: \S*old.kld and \S*other.kld "
        other = self.record("other.kld", "-m", F16, n_ctx=64, chunks=2)
        self.refused(both + "cannot be compared: a window has 32 tokens in the first, 64 in the "
                            "second", self.old, old=other)
        data = bytearray(self.old.read_bytes())
        at = 20 + 4 * (2 * N_CTX + 5)
        id_of = struct.unpack_from("<i", data, at)[0]
        struct.pack_into("<i", data, at, id_of - 1)
        other.write_bytes(data)
        self.refused(both + f"are of other texts: token 5 of chunk 2 is {id_of} in the first, "
                            f"{id_of - 1} in the second", self.old, old=other)
        self.assertEqual(self.check(self.old, "--chunks", "2", old=other).returncode, 0)
        data = struct.pack("<8s3i", b"_logits_", N_CTX, 100, 1) + bytes(4 * N_CTX + 15 * 208)
        other.write_bytes(data)
        self.refused(both + "cannot be compared: the vocabulary has 2048 tokens in the first, 100 in "
                            "the second", self.old, old=other)

    def test_fewer_windows_are_refused(self):
        few = self.record("few.kld", "-m", F16, chunks=4)
        self.refused(r"\S*old.kld has 12 windows, \S*few.kld 4; --chunks 4 compares those",
                     self.old, old=few)
        self.assertEqual(self.check(self.old, "--chunks", "4", old=few).returncode, 0)
        self.refused("one window to compare", self.old, "--chunks", "1")
        cut = self.write("cut.kld", self.old.read_bytes()[:-10])
        self.refused(r"cut.kld: ends at byte .*: 11 of its 12 chunks are whole", self.old, old=cut)

    def test_other_formats_are_refused(self):
        data = bytearray(self.old.read_bytes())
        at = 20 + 4 * N_CTX * N_WINDOWS
        scale, floor = struct.unpack_from("<2f", data, at)
        struct.pack_into("<2f", data, at, scale * 1.5, floor - 0.5 * scale * 65535)
        self.refused(r"codes reach 16 nats below the largest probability in the first, 24 in the "
                     "second", self.old, old=self.write("deep.kld", data))
        self.refused("other.txt: ", self.old, old=self.write("other.txt", b"text"))

    def test_records_that_no_model_wrote_are_refused(self):
        data = bytearray(self.old.read_bytes())
        struct.pack_into("<f", data, 20 + 4 * N_CTX * N_WINDOWS + 2 * 2052 * 20, math.nan)
        bad = self.write("bad.kld", data)
        self.refused(r"bad.kld: chunk 1, position 21 \(from 0\): the record has the scale nan",
                     self.old, old=bad)

    def test_usage(self):
        for words, sentence in ((["--resolve", "1e-5"], "--resolve goes with --against only"),
                                (["--markdown"], "--markdown goes with --against only")):
            result = run("check", "-m", F16, "--base", self.old, *words)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn(sentence, result.stderr)
        self.refused("--resolve 0: expected a number above 0", self.old, "--resolve", "0")
        again = self.write("same.kld", self.old.read_bytes())
        self.refused("--json .*same.kld would replace the file that --against reads", self.old,
                     "--json", again, old=again)
        self.refused("--json .* would replace the file that --or reads", self.old, "--or", Q4,
                     "--json", Q4)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

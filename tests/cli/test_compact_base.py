#!/usr/bin/env python3
"""Compact bases from the command line: recorded, compared with, cut up, damaged and refused.
A comparison with one must be the live comparison, to the last digit of the JSON document.

usage: test_compact_base.py ASSAY SOURCE_DIR
"""
import hashlib
import json
import pathlib
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(sys.argv[2]) / "tests" / "random_models"))
from documents import check, without_run
import architectures
from formats import Tensor
from program import ASSAY, F16, Q4, SOURCE, TEXT, run
import rewrite

SHARED_MODELS = SOURCE.parent / "shared" / "models"
N_CTX, N_CHUNKS, N_VOCAB, WIDTH, N_SCORED = 32, 6, 2048, 256, 15
WINDOWS = ["-f", TEXT, "-c", str(N_CTX), "--chunks", str(N_CHUNKS)]
HEADER, HASH = 512, 32


class CompactBase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.place.name)
        cls.file = cls.folder / "f16.assay"
        cls.plain = run("perplexity", "-m", F16, *WINDOWS)
        cls.recorded = run("record", "-m", F16, *WINDOWS, "-o", cls.file,
                           "--json", cls.folder / "recorded.json")
        assert cls.recorded.returncode == 0, cls.recorded.stderr
        cls.live, cls.live_result = cls.compare(F16, *WINDOWS)

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    @classmethod
    def compare(cls, base, *options, models=(Q4,)):
        path = cls.folder / "result.json"
        words = [word for model in models for word in ("-m", model)]
        result = run("kld", *words, "--base", base, "--json", path, *options)
        assert result.returncode == 0, result.stderr
        return json.loads(path.read_text()), result

    def refused(self, sentence, *words, command="kld", code=2):
        result = run(command, *words)
        self.assertEqual((result.returncode, result.stdout), (code, ""), result.stderr)
        self.assertRegex(result.stderr, sentence)
        self.assertFalse(list(self.folder.glob("*.part")))

    def record(self, name, *options, model=F16):
        path = self.folder / name
        result = run("record", "-m", model, *WINDOWS, "-o", path, "--force", *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertFalse(list(self.folder.glob("*.part")))
        return path, result

    def test_recording_is_plain_perplexity(self):
        self.assertEqual(self.recorded.stdout, self.plain.stdout)
        self.assertIn("6 chunks of 32 tokens recorded", self.recorded.stderr)

    def test_layout(self):
        """docs/base-file.md, read by other hands."""
        data = self.file.read_bytes()
        version, kind, width, n_vocab, by_path, head_type = struct.unpack_from("<2I2Q2I", data, 8)
        self.assertEqual((version, kind, width, n_vocab, by_path), (1, 0, WIDTH, N_VOCAB, 0))
        scale, bos, bos_in_stream, zero = struct.unpack_from("<fiII", data, 40)
        self.assertEqual((scale, zero), (1.0, 0))
        counts = struct.unpack_from("<7Q", data, 56)
        n_ctx, first, n_scored, n_windows, n_tokens, n_description, n_path = counts
        self.assertEqual((n_ctx, first, n_scored, n_windows, n_path), (N_CTX, 16, N_SCORED, 6, 0))
        self.assertEqual(data[480:512], hashlib.sha256(data[:480]).digest())
        at, parts = HEADER, []
        sizes = [4 * n_tokens, 4 * n_tokens, n_description, 0, None, 64 * n_windows]
        self.assertEqual(data[336:480], bytes(144))  # no bias
        for size in sizes:
            at = (at + 63) // 64 * 64
            if size is None:
                self.assertIn(head_type, (0, 1))  # of the bundled model: float32 or float16
                size = n_vocab * width * (4 >> head_type)
            parts.append((at, data[at:at + size]))
            at += size
        rows_at = (at + 63) // 64 * 64
        for i, (_, part) in enumerate(parts[:5]):
            expected = data[112 + HASH * i:112 + HASH * (i + 1)]
            self.assertEqual(hashlib.sha256(part).digest(), expected)
        self.assertEqual(len(data), rows_at + n_windows * n_scored * width * 4)
        tokens = struct.unpack(f"<{n_tokens}i", parts[0][1])
        self.assertEqual(tokens[0] == bos, bool(bos_in_stream))
        for w in range(n_windows):
            check = parts[5][1][64 * w:64 * (w + 1)]
            rows = data[rows_at + w * n_scored * width * 4:][:n_scored * width * 4]
            self.assertEqual(check[:32], struct.pack("<3dQ", 0, 0, 0, w))
            self.assertEqual(check[32:], hashlib.sha256(rows + check[:32]).digest())
        described = json.loads(parts[2][1])
        self.assertEqual(described["base"]["id"], data[304:336].hex())
        for key in "text", "tokens", "windows":
            self.assertEqual(described[key], self.live[key])

    def assert_live(self, found, live):
        """Everything but where the base came from."""
        found, live = dict(found), dict(live)
        base, live_base = found.pop("base"), live.pop("base")
        found["settings"] = dict(found["settings"], chunks=N_CHUNKS)
        self.assertEqual(without_run(found), without_run(live))
        for key, value in base["model"].items():
            self.assertEqual(value, live_base[key], key)

    def test_comparison_is_the_live_one(self):
        found, result = self.compare(self.file)
        self.assertEqual(result.stdout, self.live_result.stdout)
        self.assert_live(found, self.live)
        self.assertEqual(found["base"]["kind"], "compact")
        more = ["--full", "--js", "--context-curve", "--worst", "5", "-b", "70"]
        live, live_result = self.compare(F16, *WINDOWS, *more, models=(Q4, F16))
        found, result = self.compare(self.file, *more, models=(Q4, F16))
        lines, table = result.stdout.split("\n\n| ")
        live_lines, live_table = live_result.stdout.split("\n\n| ")
        self.assertEqual(lines, live_lines)
        head, rule, _, *rows = live_table.splitlines()  # a recorded base has no row
        self.assertEqual(table.splitlines(), [head, rule, *rows])
        self.assert_live(found, live)
        self.assertEqual(found["candidates"][1]["kld"]["max"], 0)
        texts = [entry["context"] + "<" + entry["token"] + ">"
                 for candidate in found["candidates"] for entry in candidate["worst"]]
        printed = [line.split("\t")[5] for line in result.stdout.splitlines()
                   if line.count("\t") == 5 and line[0].isdigit()]
        self.assertEqual(len(texts), 10)
        self.assertEqual(printed, texts)

    def test_every_kind_of_base_has_the_statistics(self):
        """What only assay has, of a live base, a compact one and a base-logits file."""
        logits = self.folder / "base.kld"
        result = run("perplexity", "-m", F16, *WINDOWS, "--kl-divergence-base", logits, "--force")
        self.assertEqual(result.returncode, 0, result.stderr)
        for base, options in ((F16, WINDOWS), (self.file, []), (logits, [])):
            found, result = self.compare(base, *options, "--worst", "3", "--context-curve")
            candidate = found["candidates"][0]
            self.assertEqual(len(candidate["worst"]), 3)
            self.assertTrue(all(entry["context"] for entry in candidate["worst"]))
            self.assertEqual(len(candidate["context_curve"]), N_SCORED)
            self.assertEqual(sum(bucket["n_tokens"] for bucket in candidate["by_confidence"]),
                             N_CHUNKS * N_SCORED)
            self.assertGreater(candidate["model"]["bits_per_weight"], 4)
            has_text = base != logits  # which does not say how many bytes its tokens stand for
            self.assertEqual(candidate["bits_per_byte"] is not None, has_text)
            self.assertEqual("Bits per byte" in result.stdout, has_text)
            self.assertEqual("Size, base" in result.stdout, has_text)
            for line in "Size, Q", "Base's top p", "position\tkld", "window\tposition":
                self.assertIn(line, result.stdout)

    def test_per_token_table(self):
        tables = [self.folder / "live.tsv", self.folder / "compact.tsv"]
        self.compare(F16, *WINDOWS, "--per-token", tables[0])
        self.compare(self.file, "--per-token", tables[1])
        self.assertEqual(tables[0].read_bytes(), tables[1].read_bytes())

    def test_chosen_windows(self):
        for options in (["--chunks", "2"], ["--chunk-from", "4"],
                        ["--chunk-from", "1", "--chunks", "3"], ["--chunks", "99"]):
            windows = ["-f", TEXT, "-c", str(N_CTX), *options]
            if "--chunks" not in options or "99" in options:
                first = 4 if "--chunk-from" in options else 0
                windows = ["-f", TEXT, "-c", str(N_CTX), "--chunk-from", str(first),
                           "--chunks", str(N_CHUNKS - first)]
            _, live = self.compare(F16, *windows)
            _, found = self.compare(self.file, *options)
            self.assertEqual(found.stdout, live.stdout, options)
        self.refused("--chunk-from 6 leaves nothing of the 6 windows", "-m", Q4, "--base",
                     self.file, "--chunk-from", "6")
        self.refused("-c 64: .* was recorded with windows of 32 tokens", "-m", Q4, "--base",
                     self.file, "-c", "64")

    def test_documents(self):
        """Live and recorded, with the documents again and without: the same, by file and category,
        also after a kill, and of a part of the windows."""
        folder = self.folder / "texts"
        folder.mkdir()
        (folder / "a.txt").write_text(pathlib.Path(TEXT).read_text()[-500:])
        (folder / "empty.txt").write_text("")
        lines = self.folder / "lines.jsonl"
        turns = [{"role": "user", "content": "What is in the hills?"},
                 {"role": "assistant", "content": "A town of three, and the river that " * 3}]
        lines.write_text("".join(json.dumps(line) + "\n" for line in (
            {"text": "The town of the singer", "id": 7, "category": "prose"},
            {"messages": turns, "category": "chat"}, {"text": "It is a river"})))
        template = "{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}"
        texts = ["-f", folder, "-f", lines, "--chat-template", template]
        path, state = self.folder / "documents.assay", self.folder / "documents.journal"
        words = ["-m", F16, *texts, "-c", "32", "-b", "32", "-o", path, "--state", state]
        done = run("record", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"documents\.assay: \d+ windows of 5 documents recorded")
        whole = path.read_bytes()
        self.assertEqual(struct.unpack_from("<I", whole, 8), (4,))
        path.rename(self.folder / "documents.assay.part")  # as a kill leaves it
        with open(self.folder / "documents.assay.part", "r+b") as file:
            file.truncate(len(whole) - 3000)
        self.assertEqual(run("record", *words).returncode, 0)
        self.assertEqual(path.read_bytes(), whole)
        tables = [self.folder / name for name in ("live.tsv", "recorded.tsv", "again.tsv")]
        asked = ["--js", "--worst", "3", "--context-curve", "--per-token"]
        live, lines = self.compare(F16, *texts, "-c", "32", *asked, tables[0])
        found, result = self.compare(path, *asked, tables[1], "-b", "70")
        again, repeated = self.compare(path, *asked, tables[2], *texts)
        for other, printed, table in ((found, result, tables[1]), (again, repeated, tables[2])):
            self.assertEqual(printed.stdout, lines.stdout)
            self.assertEqual(table.read_bytes(), tables[0].read_bytes())
            self.assertEqual(other["base"]["kind"], "compact")
            for key in live.keys() - {"base", "run", "doubts"}:
                self.assertEqual(other[key], live[key], key)
            check(self, other)
        self.assertEqual(live["tokens"]["documents"]["conversations"]["n"], 1)
        _, few = self.compare(F16, *texts, "-c", "32", "--chunk-from", "2", "--chunks", "5")
        _, chosen = self.compare(path, "--chunk-from", "2", "--chunks", "5")
        self.assertEqual(chosen.stdout, few.stdout)

    def test_llama_options(self):
        """--kl-divergence takes it, too."""
        result = run("perplexity", "-m", Q4, "--kl-divergence", "--kl-divergence-base", self.file)
        self.assertEqual((result.returncode, result.stdout), (0, self.live_result.stdout))
        self.refused("--llama-compat is for a base-logits file; with a compact file", "-m", Q4, "--base",
                     self.file, "--llama-compat")

    def test_other_precision(self):
        """Said where it differs; where it does not, a model has no divergence from itself."""
        for recorded, used in ("exact", "exact"), ("exact", "high"):
            path, _ = self.record("precise.assay", "--precision", recorded)
            found, result = self.compare(path, "--precision", used, models=(F16,))
            self.assertEqual(found["base"]["precision"], recorded)
            note = "was recorded with --precision exact, the models are evaluated with high"
            self.assertEqual(note in result.stderr, recorded != used)
            if recorded == used:
                self.assertEqual(found["candidates"][0]["kld"]["max"], 0)

    def test_float16(self):
        path, _ = self.record("half.assay", "--hidden", "f16")
        found, result = self.compare(path)
        rms, worst = found["base"]["error_rms"], found["base"]["error_max"]
        self.assertTrue(1e-5 < rms <= worst <= 2 ** -11, (rms, worst))
        self.assertIn("has hidden states in float16: their relative error is", result.stderr)
        kld = [document["candidates"][0]["kld"]["mean"] for document in (found, self.live)]
        self.assertNotEqual(*kld)
        self.assertAlmostEqual(kld[0] / kld[1], 1, delta=1e-3)
        self.assertLess(path.stat().st_size, self.file.stat().st_size - N_CHUNKS * N_SCORED * 500)

    def test_head_by_path(self):
        model = self.folder / "moved.gguf"
        shutil.copy(F16, model)
        path, _ = self.record("thin.assay", "--head-by-path", model=model)
        self.assertLess(path.stat().st_size, self.file.stat().st_size - N_VOCAB * WIDTH)
        found, result = self.compare(path)
        self.assertEqual(result.stdout, self.live_result.stdout)
        self.assert_live(found, self.live)
        shutil.copy(Q4, model)
        self.refused("another model than the one whose head", "-m", Q4, "--base", path)
        model.unlink()
        self.refused("thin.assay: its head is elsewhere: .*moved.gguf: cannot be opened", "-m", Q4,
                     "--base", path)

    def test_bias(self):
        """Of a random model with a bias on its head; the candidate has another."""
        rng = random.Random(1)
        generated = next(g for g in iter(lambda: architectures.generate(rng, "qwen2"), None)
                         if any(t.name == "output.bias" for t in g.tensors))
        text, base, other = (self.folder / name for name in ("words", "biased.gguf", "other.gguf"))
        text.write_text(generated.text(40)[0])
        changed = [Tensor.of(t.name, [2 * x + 1 for x in t.values()], t.ne)
                   if t.name == "output.bias" else t for t in generated.tensors]
        for path, tensors in (base, generated.tensors), (other, changed):
            rewrite.write(self.folder, generated.pairs, tensors, name=path.name)
        windows = ["-f", text, "-c", "10", "--chunks", "3"]
        live, lines = self.compare(base, *windows, models=(other,))
        self.assertGreater(live["candidates"][0]["kld"]["mean"], 1e-3)
        for options in [], ["--head-by-path"]:
            path = self.folder / "biased.assay"
            done = run("record", "-m", base, *windows, "-o", path, "--force", *options)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(struct.unpack_from("<I", path.read_bytes(), 8), (3,))
            found, result = self.compare(path, models=(other,))
            self.assertEqual(result.stdout, lines.stdout)
            self.assertEqual(found["candidates"], live["candidates"])

    def test_logits_format(self):
        path, _ = self.record("logits", "--format", "logits")
        other = self.folder / "logits-by-perplexity"
        result = run("perplexity", "-m", F16, *WINDOWS, "--kl-divergence-base", other)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(path.read_bytes(), other.read_bytes())
        self.refused("goes with --format compact only", "-m", F16, *WINDOWS, "-o",
                     self.folder / "x", "--format", "logits", "--hidden", "f16", command="record")

    def test_existing_files(self):
        words = ["-m", F16, *WINDOWS, "-o"]
        before = self.file.read_bytes()
        self.assertEqual(run("record", *words, self.file).returncode, 0)
        self.assertEqual(self.file.read_bytes(), before)
        text = self.folder / "text"
        text.write_text("notes")
        self.refused("text: is a text, expected a new file or a recording of assay record; give",
                     *words, text, command="record")
        self.refused("is a recording of assay record, expected a new file or a base-logits file; ",
                     *words, self.file, "--format", "logits", command="record")
        self.assertEqual(self.file.read_bytes(), before)
        shutil.copy(TEXT, text)
        self.refused("-o .*text would replace the file that -f reads", "-m", F16, "-f", text, "-o",
                     text, "--force", command="record")
        for place in "/dev/full", "/dev/null", self.folder, "/nonexistent/x":
            self.refused("is not a regular file|cannot be written", *words, place,
                         command="record")

    def test_space(self):
        """A limit on the size of files stands for a quota: nothing is left behind."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        path = self.folder / "large.assay"
        result = run("record", "-m", F16, *WINDOWS, "-o", path, preexec_fn=limit)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(result.stderr, "large.assay")
        self.assertFalse(list(self.folder.glob("large.assay*")))

    def test_damage(self):
        data = bytearray(self.file.read_bytes())
        path = self.folder / "damaged.assay"
        use = ["-m", Q4, "--base", path]
        for n_missing, n_whole in (1, 5), (N_SCORED * WIDTH * 4, 5), (N_SCORED * WIDTH * 9, 3):
            path.write_bytes(data[:-n_missing])
            self.refused(f"is cut off, {n_whole} of its 6 windows are whole", *use)
        path.write_bytes(data + b"x")
        self.refused("as the header says", *use)
        for offset, sentence in ((100, "the header does not match its checksum"),
                                 (600, "the tokens do not match the checksum"),
                                 (len(data) // 2, "the head does not match")):
            data[offset] ^= 1
            path.write_bytes(data)
            self.refused(sentence, *use)
            data[offset] ^= 1
        data[-1] ^= 1
        path.write_bytes(data)
        result = run("kld", *use)
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"window 5 \(from 0\) does not match its checksum")
        self.assertNotIn("Mean", result.stdout)

    def test_description(self):
        """It may say nothing, and need not be trusted."""
        data, path = self.file.read_bytes(), self.folder / "described.assay"
        n = struct.unpack_from("<Q", data, 96)[0]
        at = data.index(b'{\n\t"schema"')

        def write(description):
            described = description + b" " * (n - len(description))
            header = bytearray(data[:480])
            header[112 + 2 * HASH:112 + 3 * HASH] = hashlib.sha256(described).digest()
            path.write_bytes(header + hashlib.sha256(header).digest() + data[512:at] + described +
                             data[at + n:])

        for bad in b"[]", b"{", b"", b"\xff", b"1":
            write(bad)
            self.refused("described.assay: the description is not a JSON object", "-m", Q4, "--base",
                         path)
        for odd in (b"{}", b'{"base":[],"text":1}', b'{"base":{"n_weights":-1,"n_bytes":"x",'
                    b'"name":"\xff","remarks":[1,{}]},"text":{"sha256":3,"n_bytes":1e300}}'):
            write(odd)
            found, result = self.compare(path)
            self.assertIsNone(found["candidates"][0]["kld"]["rounding"])
            found["candidates"][0]["kld"]["rounding"] = self.live["candidates"][0]["kld"]["rounding"]
            self.assertEqual(found["candidates"], self.live["candidates"])
            self.assertNotIn("Size, base", result.stdout)
            self.assertIsNone(found["base"]["model"]["id"])
            self.assertIsNone(found["base"]["precision"])

    def test_other_vocabulary(self):
        if not SHARED_MODELS.is_dir():
            self.skipTest("no model with another vocabulary")
        self.refused("only models of the same vocabulary can be compared", "-m",
                     SHARED_MODELS / "rand-llama3.Q8_0.gguf", "--base", self.file)

    def test_vocabulary_of_the_same_size(self):
        """One letter of one token: told by its hash, and named where the head's model is there."""
        model = bytearray(Q4.read_bytes())
        at = model.find("\u2581there".encode())
        model[at + 3:at + 8] = b"thxre"
        other = self.folder / "letter.gguf"
        other.write_bytes(model)
        self.refused("letter.gguf: the texts of its 2048 tokens are not those that .*f16.assay was "
                     r"recorded with \(vocabulary [0-9a-f]{16}, expected [0-9a-f]{16}\)",
                     "-m", other, "--base", self.file)
        thin, _ = self.record("named.assay", "--head-by-path")
        self.refused("letter.gguf: token 533 is '.*thxre' where .*tiny.F16.gguf has '.*there'",
                     "-m", other, "--base", thin)

    def test_another_use_of_bos(self):
        self.refused("its windows begin with BOS -1, those of .*f16.assay with 1", "-m", Q4,
                     "--base", self.file, "--override-kv",
                     "tokenizer.ggml.add_bos_token=bool:false")
        thin, _ = self.record("without.assay", "--head-by-path", "--override-kv",
                              "tokenizer.ggml.add_bos_token=bool:false")
        self.refused("tiny.F16.gguf: its windows begin with BOS 1, those of .*without.assay with -1", "-m", Q4,
                     "--base", thin)

    def test_resume_after_kills(self):
        """However often it is killed, the file ends with the same bytes."""
        windows = ["-f", TEXT, "-c", str(N_CTX), "-b", str(N_CTX)]
        whole, torn = self.folder / "whole.assay", self.folder / "torn.assay"
        words = ["record", "-m", F16, *windows, "-q", "-t", "1"]
        result = run(*words, "-o", whole)
        self.assertEqual(result.returncode, 0, result.stderr)
        for kind in ([], ["--hidden", "f16"]):
            if kind:
                self.assertEqual(run(*words, *kind, "-o", whole, "--force").returncode, 0)
            state, n_killed = self.folder / "state", 0
            for attempt in range(9):
                if torn.exists():  # the last kill came after it was in place
                    break
                again = subprocess.Popen([ASSAY, *words, *kind, "-o", torn, "--state", state],
                                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                patience = 0.1 + 0.3 * attempt if attempt < 8 else None
                try:
                    _, errors = again.communicate(timeout=patience)
                    self.assertEqual(again.returncode, 0, errors)
                except subprocess.TimeoutExpired:
                    again.send_signal(signal.SIGKILL)
                    again.communicate()
                    n_killed += 1
            self.assertGreater(n_killed, 0)
            self.assertEqual(torn.read_bytes(), whole.read_bytes())
            torn.unlink()
            state.unlink()

    def test_interrupted(self):
        path = self.folder / "interrupted.assay"
        for _attempt in range(20):  # on a busy machine a run may be over before its signal comes
            path.unlink(missing_ok=True)
            again = subprocess.Popen([ASSAY, "record", "-m", F16, "-f", TEXT, "-c", str(N_CTX), "-o",
                                      path, "-b", "32", "-t", "1"], stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE)
            again.stdout.read(1)
            again.send_signal(signal.SIGINT)
            _, errors = again.communicate()
            if again.returncode:
                break
        self.assertEqual(again.returncode, 130, errors)
        self.assertFalse(list(self.folder.glob("interrupted*")))

    def test_documented(self):
        found, _ = self.compare(self.file)
        check(self, found)
        recorded = json.loads((self.folder / "recorded.json").read_text())
        self.assertEqual(recorded["recorded"]["id"], found["base"]["id"])
        self.assertEqual(recorded["recorded"]["n_bytes"], self.file.stat().st_size)
        check(self, recorded)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

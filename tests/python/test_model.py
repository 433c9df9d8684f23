#!/usr/bin/env python3
"""assay_gguf.Model: the program's numbers, shapes, threads, Ctrl-C, errors.

usage: test_model.py ASSAY SOURCE_DIR LIBRARY

Skipped (77) where no Python here has numpy.
"""
import ctypes
import os
import sys

from numpys import with_numpy

with_numpy()
import csv  # noqa: E402
import pathlib  # noqa: E402
import re  # noqa: E402
import signal  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
import unittest  # noqa: E402
from unittest import mock  # noqa: E402

import numpy as np  # noqa: E402

SOURCE = pathlib.Path(sys.argv[2]).resolve()
sys.path[:0] = [str(SOURCE / "python"), str(SOURCE / "tests" / "cli")]
os.environ["ASSAY_LIBRARY"] = sys.argv[3]

import assay_gguf  # noqa: E402
from assay_gguf import AssayError, Model, library, model  # noqa: E402
from program import F16, Q4, TEXT, run  # noqa: E402

N_CTX, N_WINDOWS = 64, 3
ROWS = slice(N_CTX // 2, N_CTX - 1)  # what the program scores
COLUMNS = {"logprob": "log_prob", "base_logprob": "base_log_prob", "same_top": "common_1"}
QUERY = "blk.0.attn_q.weight"


def windows(m, n=N_WINDOWS):
    """As the program lays them: BOS in place of the first token of each."""
    found = m.tokenize(TEXT.read_bytes())[:n * N_CTX].reshape(n, N_CTX)
    found[:, 0] = m.description.bos
    return found


class TheHeader(unittest.TestCase):
    """What is said again in Python is what tests/library/abi.txt has."""

    ABI = (SOURCE / "tests" / "library" / "abi.txt").read_text()

    def members(self, name):
        n, body = re.search(rf"(?m)^struct assay_{name} (\d+) bytes\n((?:  .*\n)+)", self.ABI).groups()
        return int(n), {member: int(at) for member, at in re.findall(r"  (\w+) at (\d+)", body)
                        if member != "unused"}

    def test_structures(self):
        for made in (library.Why, library.Options, library.Description, library.Tensor, library.Windows,
                     library.Type, library.Matrix):
            found = {name: getattr(made, name).offset for name, _ in made._fields_ if name != "unused"}
            self.assertEqual((ctypes.sizeof(made), found), self.members(made.__name__.lower()), made)
        for name, dtype in (("score", model.SCORE), ("likely", model.LIKELY), ("divergence", model.DIVERGENCE)):
            found = {member: dtype.fields[member][1] for member in dtype.names}
            self.assertEqual((dtype.itemsize, found), self.members(name))
        self.assertEqual(model.Description._fields, tuple(name for name, _ in library.Description._fields_[1:]))

    def test_functions_and_numbers(self):
        declared = dict(re.findall(r"(?m)^enum assay_status assay_(\w+)\((.*)\);$", self.ABI))
        self.assertEqual({name: text.count(",") for name, text in declared.items()},
                         {name: len(parameters) for name, parameters in library.FUNCTIONS.items()}
                         | {"type_at": 2})
        for name, number in [("ABI", library.ABI), ("BOS", library.BOS), ("SPECIAL", library.SPECIAL),
                             *((word.upper(), i) for i, word in enumerate(library.PRECISIONS))]:
            self.assertRegex(self.ABI, rf"(?m)^ASSAY_{name} {number}$")
        for name in library.BUILTIN:
            self.assertIn(f"\nASSAY_{name.upper()} ", self.ABI)


class SameBits(unittest.TestCase):
    def check(self, command, found, precision, threads):
        with tempfile.TemporaryDirectory() as folder:
            table = pathlib.Path(folder, "table")
            done = run(*command, "-q", "-f", TEXT, "-c", str(N_CTX), "--chunks", str(N_WINDOWS), "-t",
                       str(threads), "--precision", precision, "--per-token", table)
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = list(csv.DictReader(table.read_text().splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))
        self.assertEqual(len(rows), found.size)
        for column in rows[0].keys() - {"candidate", "window", "position", "token_id", "token"}:
            values = found[COLUMNS.get(column, column)].ravel()
            self.assertEqual([f"{value:.12g}" for value in values.tolist()], [row[column] for row in rows], column)

    def test_as_the_program(self):
        for precision in library.PRECISIONS:
            for threads in (1, 2):
                with Model(F16, precision=precision, threads=threads) as m, Model(Q4) as q:
                    ids = windows(m)
                    self.check(["perplexity", "-m", F16], m.scores(ids, positions=ROWS), precision, threads)
                    self.check(["kld", "--base", F16, "-m", Q4, "--js"],
                               assay_gguf.kld(q, m, ids, positions=ROWS), precision, threads)


class Results(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.m, cls.q = Model(F16, threads=1), Model(Q4)
        cls.addClassCleanup(cls.m.close)
        cls.addClassCleanup(cls.q.close)
        cls.ids = windows(cls.m)

    def test_what_it_is(self):
        about = self.m.description
        self.assertEqual((about.architecture, about.tokenizer, about.n_threads, about.adds_bos),
                         ("llama", "spm", 1, 1))
        self.assertEqual((about.path, about.n_tensors), (str(F16), len(self.m.tensors)))
        self.assertEqual(sum(np.prod(t.shape) for t in self.m.tensors.values()), about.n_weights)
        self.assertRegex(repr(self.m), r"^<assay_gguf\.Model .*tiny\.F16\.gguf: llama, \d+ weights>$")

    def test_tokens(self):
        plain = self.m.tokenize("In the town</s>", bos=False)
        self.assertEqual(plain.dtype, np.int32)
        self.assertEqual(self.m.tokenize(b"In the town</s>").tolist(), [1, *plain])
        special = self.m.tokenize("In the town</s>", bos=False, special=True)
        self.assertEqual(special[-1], self.m.description.eos)
        self.assertLess(len(special), len(plain))
        for text in ("In the town", "ships \u00e9\U0001f600\n", "a\0b", ""):
            self.assertEqual(self.m.detokenize(self.m.tokenize(text, bos=False)).removeprefix(" "), text)
        self.assertEqual(b"".join(map(self.m.token_bytes, plain)).decode().strip(), "In the town</s>")

    def test_evaluations_agree(self):
        m, ids = self.m, self.ids
        one = ids[1]
        scores = m.scores(ids)
        self.assertEqual(scores.shape, (N_WINDOWS, N_CTX - 1))
        np.testing.assert_array_equal(m.scores(one), scores[1])
        np.testing.assert_array_equal(m.logprobs(one.tolist()), scores[1]["log_prob"])
        np.testing.assert_array_equal(m.logprobs(ids, ids[:, :2], slice(5, 7))[:, 1],
                                      m.rows(ids, slice(6, 7))[np.arange(3), 0, ids[:, 1]])
        rows = m.rows(one)
        self.assertEqual((rows.shape, rows.dtype), ((N_CTX, m.description.n_vocab), np.float64))
        np.testing.assert_array_equal(rows[np.arange(N_CTX - 1), one[1:]], m.logprobs(one))
        np.testing.assert_allclose(np.exp(rows).sum(1), 1, rtol=1e-6)
        np.testing.assert_array_equal(m.rows(one, slice(-2, None), slice(100, 200)), rows[-2:, 100:200])
        top = m.topk(ids, 20)
        self.assertEqual(top.shape, (N_WINDOWS, N_CTX, 20))
        order = np.argsort(-rows, axis=1, kind="stable")[:, :20]
        np.testing.assert_array_equal(top[1]["token"], order)
        np.testing.assert_array_equal(top[1]["log_prob"], np.take_along_axis(rows, order, 1))
        np.testing.assert_array_equal(top[:, :-1, 0]["token"], scores["likeliest"])

    def test_hidden_states(self):
        m = self.m
        normed = m.hidden(self.ids, -1)
        self.assertEqual((normed.shape, normed.dtype), ((N_WINDOWS, N_CTX, m.description.width), np.float32))
        logits = normed[1].astype(float) @ m.tensor("output.weight").astype(float).T
        np.testing.assert_allclose(logits - logits[:, :1], (rows := m.rows(self.ids[1])) - rows[:, :1], atol=2e-3)
        first = m.hidden(self.ids[0], 0, slice(2, 5))
        self.assertEqual(first.shape, (3, m.description.width))
        np.testing.assert_array_equal(first, m.hidden(self.ids, 0)[0, 2:5])

    def test_divergences(self):
        found = assay_gguf.kld(self.q, self.m, self.ids)
        np.testing.assert_array_equal(found["base_log_prob"], self.m.logprobs(self.ids))
        p, q = (m.rows(self.ids[0])[:-1] for m in (self.m, self.q))
        np.testing.assert_allclose(found[0]["kld"], (np.exp(p) * (p - q)).sum(1), atol=1e-6)
        self.assertEqual(assay_gguf.kld(self.m, self.m, self.ids[0])["kld"].max(), 0)
        with self.assertRaisesRegex(TypeError, "expected two Models"):
            assay_gguf.kld(self.q, str(F16), self.ids)

    def test_tensors(self):
        tensor = self.q.tensors[QUERY]
        self.assertEqual((tensor.type, tensor.shape), ("Q4_K", (256, 256)))
        decoded, stored = self.q.tensor(QUERY), self.q.stored(QUERY)
        self.assertEqual((decoded.shape, decoded.dtype, stored.nbytes), (tensor.shape, np.float32, tensor.n_bytes))
        np.testing.assert_array_equal(self.q.tensor(QUERY, slice(3, 7)), decoded[3:7])
        self.assertEqual(self.q.tensor("output_norm.weight").shape, (256,))
        with self.assertRaisesRegex(ValueError, f"did you mean '{QUERY}'"):
            self.q.tensor("blk.0.attn_q.weigth")
        for data in (stored, stored.tobytes(), bytearray(stored), memoryview(stored.reshape(2, -1))):
            np.testing.assert_array_equal(assay_gguf.decode("q4_K", data, 256), decoded)
        halves = self.m.tensor(QUERY).astype(np.float16)
        np.testing.assert_array_equal(assay_gguf.decode("F16", halves, 256), halves.astype(np.float32))

    def test_products(self):
        x = np.random.default_rng(1).standard_normal((5, 256), np.float32)
        w = self.q.tensor(QUERY)
        exact = np.zeros((5, 256), np.float32)  # sums of exact products, each rounded to float32
        for k in range(256):
            exact = (exact + x[:, k:k + 1].astype(np.longdouble) * w[:, k].astype(np.longdouble)).astype(np.float32)
        for type, data in (("Q4_K", self.q.stored(QUERY)), ("F32", w)):
            for threads in (1, 2):
                found = assay_gguf.multiply(type, data, x, precision="exact", threads=threads)
                np.testing.assert_array_equal(found, exact)
        self.assertEqual(assay_gguf.multiply("F32", w, x[0]).shape, (256,))
        np.testing.assert_allclose(assay_gguf.multiply("F32", w, x), exact, atol=1e-3)

    def test_arrays_are_passed_as_they_are(self):
        ids = self.ids.copy()
        ids.flags.writeable = False
        self.assertEqual(model.asked(ids, model.ALL, model.SCORE)[0].tokens, ids.ctypes.data)
        data = self.q.stored(QUERY)
        self.assertEqual(model.matrix_of("Q4_K", data, 256)[0].bytes, data.ctypes.data)
        turned = np.asfortranarray(self.ids.astype(np.int64))
        np.testing.assert_array_equal(self.m.scores(turned), self.m.scores(ids))


class Errors(unittest.TestCase):
    def fails(self, kind, status, sentence, function, *arguments, **more):
        with self.assertRaisesRegex(AssayError, sentence) as caught:
            function(*arguments, **more)
        self.assertIsInstance(caught.exception, kind)
        self.assertEqual((caught.exception.status, str(caught.exception)), (status, caught.exception.sentence))

    def test_sentences(self):
        self.fails(OSError, "io", "^no/such: cannot be opened: No such file", Model, "no/such")
        self.fails(ValueError, "format", "is not a GGUF file", Model, TEXT)
        self.fails(ValueError, "usage", "expected one of high, exact, fast$", Model, F16, precision="higher")
        self.fails(ValueError, "usage", "^0 threads, expected 1 or more", Model, F16, threads=0)
        self.fails(ValueError, "usage", "instruction set 'sse'", Model, F16, isa="sse")
        with Model(F16) as m:
            self.fails(ValueError, "usage", "number 1, is 9999, expected 0 to 2047", m.logprobs, [1, 9999])
            self.fails(ValueError, "usage", "^ids beyond 32 bits", m.logprobs, [1, 1 << 40])
            self.fails(ValueError, "usage", "^ids of type float64", m.logprobs, [1.0, 2.0])
            self.fails(ValueError, "usage", "^ids have 3 axes", m.logprobs, [[[1, 2]]])
            self.fails(ValueError, "usage", "of 1 tokens have no 0 positions", m.logprobs, [1])
            self.fails(ValueError, "usage", "of 0 tokens", m.topk, [], 3)
            self.fails(ValueError, "usage", r"^targets of \(1,\), expected \(2,\)", m.logprobs, [1, 2], [3])
            self.fails(ValueError, "usage", "without a step", m.rows, [1, 2], slice(None, None, 2))
            self.fails(ValueError, "usage", "expected 1 to 20", m.topk, [1, 2], 21)
            self.fails(ValueError, "usage", "there is no layer 4, expected 0 to 3", m.hidden, [1, 2], 4)
        self.fails(ValueError, "usage", "there is no type 'Q9'", assay_gguf.decode, "Q9", b"", 32)
        self.fails(ValueError, "usage", "expected multiples of 1 and 32", assay_gguf.decode, "Q8_0", bytes(34), 33)
        self.fails(ValueError, "usage", "in 33 bytes", assay_gguf.decode, "Q8_0", bytes(33), 32)

    def test_closed(self):
        m = Model(F16)
        m.tokenize("a")
        m.close()
        m.close()
        for use in (lambda: m.logprobs([1, 2]), lambda: m.tokenize("a"), lambda: m.token_bytes(1), lambda: m.tensors,
                    lambda: m.tensor(QUERY), lambda: m.stored(QUERY), lambda: m.hidden([1], -1)):
            self.fails(ValueError, "usage", "^.*tiny.F16.gguf: the model is closed$", use)
        self.assertEqual(m.description.n_layers, 4)
        self.assertTrue(repr(m).endswith(", closed>"))

    def test_a_fork(self):
        with Model(F16, threads=2) as m:
            process = os.fork()
            if not process:
                code = 1
                try:
                    m.logprobs([1, 2])
                except ValueError as error:
                    code = 0 if "made by a fork" in str(error) else 2
                m.close()
                os._exit(code)
            self.assertEqual(os.waitpid(process, 0)[1], 0)
            m.logprobs([1, 2])

    def test_the_library(self):
        find = library.library.__wrapped__
        with mock.patch.dict(os.environ, ASSAY_LIBRARY="/no/such.so"), \
                self.assertRaisesRegex(AssayError, "cannot be loaded .*ASSAY_LIBRARY"):
            find()
        with mock.patch.object(library, "ABI", 7), \
                self.assertRaisesRegex(AssayError, r"is version [\d.]+, with ABI 0; this package needs ABI 7$"):
            find()

    def test_without_numpy(self):
        code = ("import sys; sys.modules['numpy'] = None; sys.path.insert(0, sys.argv[1]); import assay_gguf\n"
                "assay_gguf.run; assay_gguf.Model")
        done = subprocess.run([sys.executable, "-B", "-c", code, SOURCE / "python"], capture_output=True, text=True)
        self.assertRegex(done.stderr, r"ImportError: assay_gguf's Model, decode and multiply need numpy: the extra assay-gguf\[model\]")


class Running(unittest.TestCase):
    def test_two_models_in_two_threads(self):
        models = [Model(path, threads=n) for n, path in ((1, F16), (2, Q4))]
        ids = windows(models[0])
        expected = [m.scores(ids) for m in models]
        found = {}

        def work(i):
            found[i] = [models[i % 2].scores(ids) for _ in range(20)]

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]  # of each model two
        for t in threads:
            t.start()
        divergences = [assay_gguf.kld(*pair, ids) for pair in (models, models[::-1])]
        for t in threads:
            t.join()
        for i in range(4):
            for scores in found[i]:
                np.testing.assert_array_equal(scores, expected[i % 2])
        np.testing.assert_array_equal(divergences[0]["kld"], divergences[1]["reverse_kld"])
        for m in models:
            m.close()

    def test_reading_does_not_wait_for_an_evaluation(self):
        begun, read, found = threading.Event(), threading.Event(), []

        def wait(_):
            begun.set()
            found.append(read.wait(20))

        with Model(F16, progress=wait) as m:
            other = threading.Thread(target=m.logprobs, args=(windows(m),))
            other.start()
            self.assertTrue(begun.wait(60))
            self.assertEqual(m.detokenize(m.tokenize("town", bos=False)).strip(), "town")
            self.assertEqual(m.tensor(QUERY).shape, m.tensors[QUERY].shape)
            read.set()
            other.join()
            self.assertEqual(set(found), {True})

    def test_a_thousand_opens(self):
        def resident():
            return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        if not os.path.exists("/proc/self/statm"):
            self.skipTest("this system does not say how large a process is")
        for i in range(1000):
            if i == 100:
                before = resident()
            with Model((F16, Q4)[i % 2], threads=1 + i % 2) as m:
                if i % 50 == 0:
                    m.logprobs([1, 2, 3])
            if i % 100 == 0:
                Model(F16, threads=1)  # closed when it is forgotten
        self.assertLess(resident() - before, 4 << 20)

    def long(self, m):
        """Ids whose evaluation takes a minute or so."""
        return np.tile(windows(m), (4000, 1))

    def test_interrupt(self):
        """Ctrl-C is raised soon, wherever it comes, and the model goes on; a second one changes nothing."""
        seen = []
        with Model(F16, threads=1, progress=seen.append) as m:
            short, ids = windows(m), self.long(m)
            expected = m.scores(short)
            for times in ((0.3,), (0.2, 0.2001, 0.201)):
                seen.clear()
                begun = time.monotonic()
                for t in times:
                    threading.Timer(t, os.kill, (os.getpid(), signal.SIGINT)).start()
                with self.assertRaises(KeyboardInterrupt):
                    m.scores(ids)
                    self.fail("it ended by itself")
                while time.monotonic() < begun + max(times) + 0.1:  # what comes after the first
                    try:
                        time.sleep(0.1)
                    except KeyboardInterrupt:
                        pass
                np.testing.assert_array_equal(m.scores(short), expected)
                self.assertLess(time.monotonic() - begun, 20)
                self.assertLess(max(seen[:-1], default=0), 1)

    def test_more_interrupts_wait_for_the_library(self):
        """It writes into the caller's arrays as long as its function is at work."""
        ended = []

        def work(*_):
            for _ in range(3):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.2)
            ended.append(threading.current_thread())

        with Model(F16) as m:
            ids = windows(m)
            with mock.patch.object(model, "call", work), self.assertRaises(KeyboardInterrupt):
                m.scores(ids)
            self.assertNotEqual(ended, [threading.main_thread()])
            self.assertEqual(len(ended), 1)
            self.assertEqual(m.scores(ids).shape, (N_WINDOWS, N_CTX - 1))

    def test_interrupted_while_it_opens(self):
        def interrupted(name, *arguments):
            library.call(name, *arguments)
            os.kill(os.getpid(), signal.SIGINT)

        close = library.library().assay_close
        with mock.patch.object(library.library(), "assay_close", side_effect=close) as closed, \
                mock.patch.object(model, "call", interrupted):
            with self.assertRaises(KeyboardInterrupt):
                Model(F16)
            closed.assert_called_once()

    def test_interrupt_does_not_reach_other_threads(self):
        """The main thread waits for a model that another one uses, and does not when it is interrupted."""
        with Model(F16, threads=1) as m:
            ids, more = np.tile(windows(m), (120, 1)), self.long(m)
            found = []
            begun = time.monotonic()
            other = threading.Thread(target=lambda: found.append(m.logprobs(ids)))
            other.start()
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
            with self.assertRaises(KeyboardInterrupt):
                time.sleep(0.02)
                m.scores(more)
            self.assertTrue(other.is_alive())
            other.join()
            self.assertEqual(m.logprobs([1, 2]).shape, (1,))
            self.assertLess(time.monotonic() - begun, 20)
            np.testing.assert_array_equal(found[0][:3], found[0][-3:])

    def test_progress(self):
        seen = []
        with Model(F16, progress=seen.append) as m:
            ids = np.tile(windows(m), (60, 1))
            m.logprobs(ids)
            self.assertEqual(seen, sorted(seen))
            self.assertTrue(seen and seen[0] >= 0 and seen[-1] <= 1)
            seen.clear()
            m.hidden(ids, 1)
            self.assertTrue(seen)

        def refuse(fraction):
            raise LookupError("enough")

        with Model(F16, progress=refuse) as m:
            for _ in range(2):
                with self.assertRaisesRegex(LookupError, "^enough$"):
                    m.rows(ids)
            self.assertEqual(len(m.tokenize("a")), 2)

        n, last = 0, len(seen)

        def refuse_the_last(_):
            nonlocal n
            n += 1
            if n == last:
                refuse(1)

        with Model(F16, progress=refuse_the_last) as m, self.assertRaisesRegex(LookupError, "^enough$"):
            m.hidden(ids, 1)
        self.assertEqual(n, last)

    def test_progress_that_uses_the_model(self):
        def use(_):
            uses.pop()()

        with Model(F16, progress=use) as m:
            ids = windows(m)
            for use_it in (lambda: m.logprobs(ids), m.close, lambda: assay_gguf.kld(m, m, ids)):
                uses = [use_it]
                with self.assertRaisesRegex(ValueError, "a progress function can neither evaluate nor close"):
                    m.logprobs(ids)
            found, uses = [], 1000 * [lambda: found.append(m.tokenize("a"))]
            m.logprobs(ids)
            self.assertEqual(found[0].tolist(), m.tokenize("a").tolist())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

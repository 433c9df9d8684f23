#!/usr/bin/env python3
"""Several processes under mpirun: the bits of one process, refusals, interruptions, ranks that do not
come, and ranks that are killed at random moments.

usage: test_mpi.py ASSAY SOURCE_DIR
"""
import contextlib
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from interrupted import (ATTEMPTS, BEST, IMATRIX, KLD, PERPLEXITY, RECORD, RECORD_HIDDEN, SEED, SLOWLY,
                         SWEEP, Run, hellaswag, requests)
from program import ASSAY, F16, HANG_S, Q4, SOURCE, TEXT

# Not bound to a processor each: other tests have them, too.
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none",
          *(["--allow-run-as-root"] if os.getuid() == 0 else [])]
N_KILLS = 50 if os.environ.get("ASSAY_TEST_SLOW") else 2
N_DISTURBANCES = 96 if os.environ.get("ASSAY_TEST_SLOW") else 3
GONE_S = 60  # within which all ranks are gone, on a slow and busy machine, too
WAIT_S = 2  # --mpi-wait
MPIRUN_S = 10  # that mpirun may take to end after its last rank
STUCK = -signal.SIGKILL  # how it ends that does not
LAYERS, GROUPS = ["--split", "layers"], ["--split", "layers:2"]
LIBRARY = pathlib.Path(ASSAY).parent / "assay-mpi-openmpi.so"
LONG = [word if word != "60" else "-1" for word in PERPLEXITY]  # all windows
DIED = re.compile(rb"assay: rank \d+ \([^)]*\) died while it "
                  rb"(evaluated .* \d+ to \d+ of \d+ \(\d+ tokens\)|opened its files)")


def mpirun(n, words):
    return [*MPIRUN, "-n", str(n), *words]


def ranks_of(process):
    """The ranks that mpirun has started so far."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            name, fields = stat.read_text().rsplit(")", 1)
            state, parent = fields.split()[:2]
            if int(parent) == process.pid and state != "Z" and name.endswith("(assay"):
                found.append(int(stat.parent.name))
        except OSError:
            pass  # it is gone
    return found


def wait_for(process):
    """
    (standard output, standard error) of mpirun. Open MPI 4.1's sometimes waits for a lock of its
    own for ever when all ranks are gone (PMIx_server_finalize); that is not what is tested here.
    """
    began, gone_since = time.monotonic(), None
    while True:
        try:
            return process.communicate(timeout=1)
        except subprocess.TimeoutExpired:
            now = time.monotonic()
        assert now - began < HANG_S, "ranks that do not end"
        if ranks_of(process):
            gone_since = now
        elif now - (gone_since or began + MPIRUN_S) > MPIRUN_S:  # none, or not yet one
            print("mpirun itself does not end")
            process.kill()
            return process.communicate(timeout=HANG_S)


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def signal_to(pid, number):
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        os.kill(pid, number)


class Ranks(Run):
    """A command line under mpirun, of which one process may be killed."""

    def __init__(self, words, outputs, n=3):
        super().__init__(mpirun(n, words), outputs)
        self.n_named = 0

    def kill(self, process, rng):
        while not (pids := ranks_of(process)) and process.poll() is None:
            time.sleep(0.02)
        if not pids:
            return
        signal_to(rng.choice(pids), signal.SIGKILL)
        began = time.monotonic()
        while ranks_of(process):
            assert time.monotonic() - began < HANG_S, "ranks go on without the one that died"
            time.sleep(0.02)

    def end(self, process):
        return wait_for(process)

    def finish(self, process):
        out, err = self.end(process)
        assert process.returncode in (0, STUCK), err.decode("utf-8", "replace")
        return out

    def check_killed(self, test, code, err):
        if code == STUCK:
            return
        self.n_named += DIED.search(err) is not None
        if b"assay: rank" in err:  # by name, and what it was doing
            test.assertRegex(err, rb"assay: (rank \d+: )?rank (\d+ .*(died|connect)|0 died)")
        else:  # before the ranks knew of each other, or rank 0 itself: mpirun says so
            test.assertRegex(err, rb"(?s)mpirun (noticed|has exited|detected)|interrupted")


class Mpi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="assay-mpi-")
        cls.path = pathlib.Path(cls.folder.name)
        cls.hellaswag = hellaswag(cls.path)
        cls.requests = requests(cls.path)
        cls.base = cls.path / "checked.kld"
        subprocess.run(list(map(str, [*RECORD[:-1], cls.base])), check=True, capture_output=True)
        cls.hidden = cls.path / "hidden.assay"
        subprocess.run(list(map(str, [*RECORD_HIDDEN[:-1], cls.hidden])), check=True,
                       capture_output=True)
        print("seed:", SEED)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def evaluators(self):
        """(words, outputs) of every kind of run."""
        yield [*PERPLEXITY, "--per-token", "t.tsv", "--context-curve"], ["t.tsv"]
        yield [*KLD, "--per-token", "t.tsv", "--worst", "3"], ["t.tsv"]
        yield [*self.hellaswag, "--per-task", "t.tsv"], ["t.tsv"]
        yield self.requests, []
        yield [*self.requests, "-o", "r.jsonl"], ["r.jsonl"]
        yield RECORD, ["base.kld"]
        yield RECORD_HIDDEN, ["base.assay"]
        for base in (self.base, self.hidden):
            yield [ASSAY, "kld", "-m", F16, "--base", base, *SLOWLY], []
        yield SWEEP, []
        yield BEST, []
        yield [*IMATRIX, "--stop-when-rows", "1000"], ["m.gguf"]
        yield [ASSAY, "check", "-m", F16, "--kl-divergence-base", self.base, *SLOWLY], []

    def same(self, found, expected):
        """Without assertEqual's search for what two large texts have in common."""
        self.assertEqual([name for name in expected if found.get(name) != expected[name]], [])

    def test_the_bits_of_one_process(self):
        for i, (words, outputs) in enumerate(self.evaluators()):
            words, outputs = [*words, "--json", "r.json"], [*outputs, "r.json"]
            expected, _ = Run(words, outputs).whole()
            runs = [(n, []) for n in ((2, 3, 4) if i < 2 else (2 + i % 3,))]
            if "sweep" not in words and "imatrix" not in words:
                runs.append((2 + i % 2, LAYERS))
            if i < 2:
                runs.append((4, GROUPS))
            for n, more in runs:
                with self.subTest(words=words, ranks=n, more=more):
                    self.same(Ranks([*words, *more], outputs, n).whole()[0], expected)

    def test_a_list_of_devices_is_shared_out(self):
        expected, _ = Run([*PERPLEXITY, "--device", "cpu,cpu", "--json", "r.json"],
                          ["r.json"]).whole()
        words = [*PERPLEXITY, "--device", "cpu,cpu", "--json", "r.json"]
        self.same(Ranks(words, ["r.json"], 2).whole()[0], expected)

    def run_mpi(self, *words):
        for _attempt in range(ATTEMPTS):
            process = subprocess.Popen([str(word) for word in (*MPIRUN, *words)], cwd=self.path,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            out, err = wait_for(process)
            if process.returncode != STUCK:
                break
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def refuses(self, words, sentence, code=2):
        result = self.run_mpi(*words)
        self.assertEqual((result.returncode, result.stdout), (code, b""), result.stderr)
        lines = [line for line in result.stderr.decode().splitlines() if "assay: " in line]
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertRegex(lines[0], sentence)

    def test_refuses_what_differs(self):
        one = ["-n", "2", *PERPLEXITY, ":", "-n", "1"]
        rank = r"^assay: rank 2 \(.*\) has "
        end = "; expected the same program, files and options on all ranks"
        for more, difference in ((["-c", "64"], r"settings\.n_ctx 64, rank 0 has 32"),
                                 (["-m", F16], r"model\.id \S+, rank 0 has \S+"),
                                 (["-f", __file__], r"text\.sha256 \S+, rank 0 has \S+"),
                                 (["--llama-compat"], r"settings\.llama_compat true, .* false")):
            other = list(PERPLEXITY)
            if len(more) == 2:
                other[other.index(more[0]) + 1] = more[1]
            else:
                other += more
            with self.subTest(more=more):
                self.refuses([*one, *other], rank + difference + end)
        self.refuses(["-n", "2", *PERPLEXITY, *LAYERS, ":", "-n", "2", *PERPLEXITY, *GROUPS],
                     r"rank 2 \(.*\) has split 2, rank 0 has 4" + end)
        self.refuses(["-n", "1", *PERPLEXITY, ":", "-n", "1", *KLD],
                     r"rank 1 \(.*\) has evaluator kld, rank 0 has perplexity;")

    def test_refuses_layers_that_cannot_be_divided(self):
        layers = "its 4 layers cannot be divided among 5 processes$"
        for n, words, sentence in (
                (3, [*PERPLEXITY, *GROUPS], "--split layers:2: 3 processes are not groups of 2; "),
                (2, [*PERPLEXITY, "--split", "rows"], "--split: 'rows', expected layers, or "),
                (2, [*SWEEP, *LAYERS], "--split: assay sweep changes tensors between batches"),
                (2, [*IMATRIX, *LAYERS], "--split: assay imatrix needs the inputs of all layers"),
                (5, [*PERPLEXITY, *LAYERS], f"^assay: {re.escape(str(Q4))}: {layers}")):
            with self.subTest(words=words, ranks=n):
                self.refuses(["-n", str(n), *words], sentence)
        for more in ([], ["--mpi", "off"]):
            alone = subprocess.run([*map(str, PERPLEXITY), *LAYERS, *more], capture_output=True)
            self.assertEqual(alone.returncode, 2)
            self.assertIn(b"--split layers: there is one process; expected several", alone.stderr)

    def test_a_rank_that_fails_says_why_through_rank_0(self):
        other = [word if word != Q4 else "missing.gguf" for word in PERPLEXITY]
        self.refuses(["-n", "1", *PERPLEXITY, ":", "-n", "1", *other],
                     r"^assay: rank 1 \(.*\): missing\.gguf: cannot be opened: No such file")
        self.refuses(["-n", "3", *other], r"^assay: missing\.gguf: cannot be opened")
        self.refuses(["-n", "3", *PERPLEXITY, "--json", "/no-such-folder/r.json"],
                     r"^assay: /no-such-folder/r\.json: cannot be written")

    def test_without_a_library(self):
        shutil.copy(ASSAY, self.path / "assay")
        result = self.run_mpi("-n", "2", self.path / "assay", *PERPLEXITY[1:])
        self.assertEqual((result.returncode, result.stdout), (2, b""))
        self.assertIn(b"2 processes were started together, and this build has no "
                      b"assay-mpi-openmpi.so", result.stderr)
        alone = self.run_mpi("-n", "2", self.path / "assay", *PERPLEXITY[1:], "--mpi", "off", "-q")
        self.assertEqual(alone.returncode, 0, alone.stderr)
        self.assertEqual(alone.stdout.count(b"Final estimate"), 2)

    def test_an_interruption(self):
        run = Ranks([*LONG, "--json", "r.json", "--state", "s.journal"], ["r.json"])
        expected, _ = Run(LONG + ["--json", "r.json"], ["r.json"]).whole()
        with tempfile.TemporaryDirectory(prefix="assay-mpi-") as folder:
            for _attempt in range(ATTEMPTS):
                code, _out, err = run.stopped(folder, signal.SIGINT)
                if b" died " not in err:
                    break  # else mpirun, which waits for a second, has killed a rank
                shutil.rmtree(folder)
                os.mkdir(folder)
            self.assertNotEqual(code, 0)
            self.assertNotIn(b" died ", err)
            out = run.finish(run.start(folder))
            self.same({"stdout": out, **run.results(folder)}, expected)

    def test_killed_ranks(self):
        kinds = list(self.evaluators())
        named = 0
        for i, (words, outputs) in enumerate(kinds):
            n = (N_KILLS + i) // len(kinds)  # that many in all
            if n == 0:
                continue
            with self.subTest(words=words):
                words = [*words, *(LAYERS if i % 2 == 0 else [])]
                if words[:len(PERPLEXITY)] == PERPLEXITY:
                    words = [word if word != "60" else "240" for word in words]
                ranks = Ranks([*words, "--json", "r.json"], [*outputs, "r.json"])
                ranks.killed(n, self, "--state", "s.journal", resumes=False)
                named += ranks.n_named
        self.assertTrue(named > 0 or N_KILLS < 50)  # a few may all come too early for that

    def test_ranks_that_do_not_come(self):
        """Nobody waits for ever: not in MPI, where nobody knows who is missing, and not after it."""
        absent = [sys.executable, SOURCE / "tests/cli/absent_rank.py", LIBRARY]
        in_mpi = r"rank {} of 2 \(.*, process \d+\): MPI did not bring the processes together within "
        for words, sentence in (
                ([ASSAY, ":", "-n", "1", "sleep", "1000"], in_mpi.format(0)),
                ([*absent, "begins", ":", "-n", "1", ASSAY], in_mpi.format(1)),
                ([ASSAY, ":", "-n", "3", *absent, "shares"],
                 r"rank 0: ranks 1 to 3 of 4 did not connect to rank 0 \(.*, port \d+\) within \d+ s; "
                 "they died or are stopped, or the network between them is closed$")):
            with self.subTest(words=words):
                at = words.index(ASSAY)
                for wait_s in (WAIT_S, 4 * WAIT_S, 16 * WAIT_S):
                    result = self.run_mpi("-n", "1", *words[:at], *PERPLEXITY, "--mpi-wait", wait_s,
                                          *words[at + 1:])
                    if b"did not connect" in result.stderr or "connect" not in sentence:
                        break  # else MPI alone took that long
                self.assertEqual((result.returncode, result.stdout), (3, b""), result.stderr)
                self.assertRegex(result.stderr.decode(), "(?m)^assay: " + sentence)

    def test_all_ranks_end_whatever_happens(self):
        """
        A rank, or mpirun, is killed or stopped at a random moment: the others notice. A rank that is
        stopped after the ranks have met is waited for, until it goes on.
        """
        rng = random.Random(SEED)
        words = [*PERPLEXITY, "--mpi-wait", str(WAIT_S)]
        _, seconds = Ranks(PERPLEXITY, []).whole()
        kinds = [(signal.SIGKILL, False), (signal.SIGSTOP, False), (signal.SIGKILL, True),
                 (signal.SIGKILL, False), (signal.SIGSTOP, True), (signal.SIGKILL, False)]
        times = []
        while len(times) < N_DISTURBANCES:
            number, of_mpirun = kinds[len(times) % len(kinds)]
            n, more = rng.randint(2, 4), rng.choice([[], LAYERS])
            began = time.monotonic()
            process = subprocess.Popen([str(word) for word in mpirun(n, [*words, *more])],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            time.sleep(rng.uniform(0, seconds))
            while not (pids := ranks_of(process)) and process.poll() is None:
                time.sleep(0.01)
            if not pids:  # it was sooner over than the ones before
                process.communicate()
                seconds = min(seconds, time.monotonic() - began)
                continue
            victim = process.pid if of_mpirun else rng.choice(pids)
            signal_to(victim, number)
            times.append(self.seconds_until_gone(pids, victim, number))
            if of_mpirun:
                process.kill()  # it need not end, stopped or not
            wait_for(process)
        times.sort()
        print(f"{len(times)} disturbances: all ranks gone after {times[len(times) // 2]:.2f} s "
              f"(median), {times[-1]:.2f} s at most")

    def seconds_until_gone(self, pids, victim, number):
        began = time.monotonic()
        while any(map(is_alive, pids)):
            took = time.monotonic() - began
            if number == signal.SIGSTOP and took > 4 * WAIT_S:
                signal_to(victim, signal.SIGCONT)
            self.assertLess(took, GONE_S, "ranks that do not end")
            time.sleep(0.01)
        return time.monotonic() - began

    def test_a_killed_rank_is_named(self):
        for more, what in (([], DIED), (LAYERS, rb"rank 1 \([^)]*\) died while it evaluated layers "
                                                rb"0 to \d+ of windows \d+ to \d+ of \d+ \(")):
            with self.subTest(more=more):
                self.assertRegex(self.err_of_a_killed_rank(more, what), what)

    def err_of_a_killed_rank(self, more, what):
        """That of a run in which it was killed in time: on a busy machine a run may be over sooner."""
        for _attempt in range(ATTEMPTS):
            process = subprocess.Popen(mpirun(3, [*LONG, *more]), stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            self.assertTrue(process.stdout.read(1))  # a window is finished
            with contextlib.suppress(OSError):  # a process that has just ended
                for pid in ranks_of(process):
                    if b"OMPI_COMM_WORLD_RANK=1\0" in pathlib.Path(f"/proc/{pid}/environ").read_bytes():
                        os.kill(pid, signal.SIGKILL)
            _out, err = wait_for(process)
            if process.returncode and re.search(what, err):
                break
        return err


if not shutil.which("mpirun") or not LIBRARY.exists():
    print("mpirun or", LIBRARY.name, "is not there")
    sys.exit(77)
unittest.main(argv=sys.argv[:1])

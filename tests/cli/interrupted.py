"""Runs that are killed and taken up again, for the tests of journals."""
import json
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import time

from documents import without_run
from program import ASSAY, F16, HANG_S, Q4, TEXT, last_of_each

# Small batches, so that much is to be interrupted.
SLOWLY = ["-t", "1", "-b", "32"]
PERPLEXITY = [ASSAY, "perplexity", "-m", Q4, "-f", TEXT, "-c", "32", "--chunks", "60", *SLOWLY]
KLD = [ASSAY, "kld", "-m", Q4, "-m", F16, "--base", F16, "-f", TEXT, "-c", "32", "--chunks", "24",
       "--js", *SLOWLY]
SWEEP = [ASSAY, "sweep", "--base", F16, "--from", Q4, "-f", TEXT, "-c", "32", "--chunks", "4", *SLOWLY]
BEST = [ASSAY, "best", "--base", F16, Q4, "-f", TEXT, "-c", "32", "--chunks", "12", *SLOWLY]
RECORD = [*PERPLEXITY, "--kl-divergence-base", "base.kld"]
RECORD_HIDDEN = [ASSAY, "record", *PERPLEXITY[2:], "--hidden", "f16", "-o", "base.assay"]
IMATRIX = [ASSAY, "imatrix", "-m", Q4, "-f", TEXT, "-c", "32", "--chunks", "60", "-o", "m.gguf", *SLOWLY]
SEED = int(os.environ.get("ASSAY_TEST_SEED", str(random.randrange(1 << 30))))
ATTEMPTS = 20
MOST_KILLS = 100
FIRST_RESULTS_BYTES = 60


def hellaswag(folder):
    """The command line of tasks cut from the text; what they are about does not matter."""
    words = TEXT.read_text().split()
    lines = []
    for i in range(40):
        text = words[40 * i:40 * i + 40]
        endings = [" ".join(text[10 + 6 * k:16 + 5 * k]) for k in range(4)]
        lines.append(json.dumps({"ctx": " ".join(text[:10]), "endings": endings, "label": i % 4}))
    tasks = folder / "tasks.jsonl"
    tasks.write_text("\n".join(lines) + "\n")
    return [ASSAY, "perplexity", "--hellaswag", "-m", Q4, "-f", tasks, *SLOWLY]


def requests(folder):
    """The command line of requests cut from the text: pairs with and without a context in common,
    and whole texts of several windows, of one and of nothing."""
    words = TEXT.read_text().split()
    lines = [{"text": ""}]
    for i in range(30):
        text = words[20 * i:20 * i + 20]
        for n in (4, 8):
            lines.append({"context": " ".join(text[:10]),
                          "continuation": " " + " ".join(text[10:10 + n])})
        lines.append({"text": " ".join(words[30 * i:30 * i + 60] if i % 5 == 0 else text)})
    path = folder / "requests.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in [*lines, {"text": ""}]) + "\n")
    return [ASSAY, "score", path, "-m", Q4, "-c", "48", *SLOWLY]


class Run:
    """A command line with its outputs: files by name, and standard output."""

    def __init__(self, words, outputs):
        self.words, self.outputs = [str(word) for word in words], outputs

    def start(self, folder, *more):
        return subprocess.Popen(last_of_each([*self.words, *more]), cwd=folder, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def finish(self, process):
        out, err = self.end(process)
        assert process.returncode == 0, err.decode("utf-8", "replace")
        return out

    def stopped(self, folder, number):
        """
        (exit code, standard output, standard error) of a run that gets a signal after its first
        results. One that was over sooner, on a busy machine, is made anew.
        """
        before = set(os.listdir(folder))
        for _attempt in range(ATTEMPTS):
            process = self.start(folder)
            seen = process.stdout.read(FIRST_RESULTS_BYTES)
            process.send_signal(number)
            out, err = self.end(process)
            if process.returncode != 0:
                break
            for name in set(os.listdir(folder)) - before:
                os.unlink(os.path.join(folder, name))
        return process.returncode, seen + out, err

    def results(self, folder):
        """The outputs that are there, without what may differ from run to run."""
        paths = [pathlib.Path(folder) / name for name in self.outputs]
        return {path.name: without_run(json.loads(path.read_bytes())) if path.suffix == ".json"
                else path.read_bytes() for path in paths if path.exists()}

    def whole(self):
        """(results, seconds) of a run that nobody disturbs."""
        with tempfile.TemporaryDirectory(prefix="assay-state-") as folder:
            began = time.monotonic()
            out = self.finish(self.start(folder))
            took = time.monotonic() - began
            return {"stdout": out, **self.results(folder)}, took

    def kill(self, process, _rng):
        process.send_signal(signal.SIGKILL)

    def end(self, process):
        return process.communicate(timeout=HANG_S)

    def check_killed(self, test, code, err):
        """What becomes of a run that was killed."""
        test.assertEqual(code, -signal.SIGKILL, err)

    def killed(self, n_kills, test, *more, resumes=True):
        """
        Kill the command at n_kills random moments; each time it goes on from what the last one
        left, and where one gets to its end the next begins anew. Every end must have the results
        of an undisturbed run. more: further words, such as --state FILE. resumes: a run has to
        have gone on, or there were no results to lose; on a machine that has become slower since
        the first run that takes more kills, which come later and later.
        """
        expected, seconds = self.whole()
        rng = random.Random(SEED)
        kills = resumed = ends = 0

        def enough():
            return kills >= n_kills and (resumed or not resumes or kills >= MOST_KILLS)
        while not enough() or ends == 0:
            with tempfile.TemporaryDirectory(prefix="assay-state-") as folder:
                while True:
                    process = self.start(folder, *more)
                    if not enough():
                        time.sleep(rng.uniform(0, seconds * max(1, kills / n_kills)))
                        self.kill(process, rng)
                    out, err = self.end(process)
                    resumed += b" finished before" in err
                    if process.returncode == 0:
                        break
                    self.check_killed(test, process.returncode, err)
                    kills += 1
                    for name, result in self.results(folder).items():
                        test.assertEqual(result, expected[name])  # whole, or not there
                test.assertEqual({"stdout": out, **self.results(folder)}, expected)
                ends += 1
        test.assertTrue(resumed or not resumes)
        print(f"{kills} kills within {seconds:.2f} s each, {resumed} runs went on, {ends} ended")

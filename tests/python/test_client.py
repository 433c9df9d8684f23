#!/usr/bin/env python3
"""The Python client: the same scores from the program and from a server, and how it fails.

usage: test_client.py ASSAY SOURCE_DIR
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = pathlib.Path(sys.argv[2]).resolve()
sys.path[:0] = [str(SOURCE / "python"), str(SOURCE / "tests" / "cli")]

from assay_gguf import AssayError, Program, Server  # noqa: E402
from assay_gguf import client  # noqa: E402
from program import ASSAY, F16, Q4, TEXT, run  # noqa: E402
from serving import Server as Serve  # noqa: E402

HAS_SERVE = "listening" in run("serve", "-m", "/", "--port", "0").stderr
REQUESTS = [
    {"context": "In the town", "continuation": " there was a river ."},
    {"context": "In the town", "continuation": "\n\tships \u00e9\U0001f600"},
    {"context": "", "continuation": "In the town"},
    {"context": "The river rises in the mountains and flows west . " * 4, "continuation": " It ends"},
    {"text": "The war ended in 1918 . He lets it cool on a rack . " * 3},
    {"text": ""},
]
LONG = [{"text": TEXT.read_text()[100 * i:100 * i + 1000]} for i in range(300)]


def plain(requests, *words):
    """What the program prints."""
    lines = "".join(json.dumps(r) + "\n" for r in requests)
    done = run("score", "-q", "-m", Q4, "-", *words, input=lines)
    assert done.returncode == 0, done.stderr
    return [client.Score(**json.loads(line)) for line in done.stdout.splitlines()]


class Refused(unittest.TestCase):
    def refused(self, sentence, make, *requests):
        with self.assertRaisesRegex(AssayError, sentence):
            make().score(list(requests) or REQUESTS)


class OfTheProgram(Refused):
    def test_scores_in_order_and_their_summary(self):
        program, seen, fractions = Program(Q4, ASSAY), [], []
        scores = program.score(REQUESTS, seen.append, fractions.append)
        self.assertEqual(scores, plain(REQUESTS))
        self.assertEqual(seen, scores)
        self.assertTrue(all(0 <= f <= 1 for f in fractions))
        self.assertEqual(program.about["result"]["logprob"], sum(s.logprob for s in scores))
        self.assertEqual(program.score([]), [])

    def test_options_are_the_programs(self):
        program = Program(Q4, ASSAY, ctx_size=16, precision="exact", parse_special=True, t=1,
                          bos="never", hash_model=False, threads_batch=None)
        with self.assertLogs("assay_gguf.client", "WARNING") as logs:
            scores = program.score(REQUESTS)
        self.assertEqual(scores, plain(REQUESTS, "-c", "16", "--precision", "exact",
                                       "--parse-special", "--bos", "never"))
        self.assertGreater(scores[3].truncated, 0)
        self.assertIn("1 request is longer than -c 16", logs.output[0])
        self.assertEqual(program.about["settings"]["n_ctx"], 16)

    def test_failures_say_what_the_program_says(self):
        def make(**options):
            return lambda: Program(**{"model": Q4, "binary": ASSAY, **options})

        self.refused(r"^unknown option --foo.* \(exit code 2\)$", make(foo=1))
        self.refused(r"-: line 1: the continuation has 8 tokens, more than -c 3", make(ctx_size=3))
        self.refused(r"no/such\.gguf", make(model="no/such.gguf"))
        self.refused(r"^json: scores and their summary are read", make(json="x"))
        self.refused(r"^/no/such cannot be run: No such file", make(binary="/no/such"))
        self.refused(r"line 1: has the character U\+0000", make(), {"text": "a\0"})
        self.refused(r"line 2: expected \"context\" and", make(), {"text": "a"}, {"txt": "a"})

    def fake(self, text):
        """A program that does this."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        file = pathlib.Path(folder.name) / "assay"
        file.write_text("#!/bin/sh\nfor file; do :; done\necho '{}' >\"$file\"\n" + text)
        file.chmod(0o755)
        return lambda: Program(Q4, file)

    def test_what_is_not_whole_is_no_result(self):
        line = 'echo \'{"logprob": %s, "tokens": 1, "is_greedy": false}\'\n'
        self.assertEqual(self.fake(line % -1)().score([{"text": "a"}])[0].logprob, -1)
        self.refused("^assay gave 1 scores, expected 6$", self.fake(line % -1))
        self.refused(r"not finite \(exit code 1\)$",
                     self.fake(line % "null" + "echo assay: not finite >&2; exit 1"))
        self.refused(r"ended without a word \(exit code 3\)", self.fake("exit 3"))
        self.refused(r"assay was ended by signal 9$",
                     self.fake("echo assay: 1 request >&2; printf '{\"logprob'; kill -9 $$"))
        seen = []
        with self.assertRaises(AssayError):
            self.fake(line % "null" + "exit 1")().score(REQUESTS, seen.append)
        self.assertEqual(seen, [])

    def test_progress_and_notes(self):
        fractions = []
        make = self.fake("echo 'assay: 40 % done, 1:00 left' >&2; echo 'assay: note: ships' >&2\n"
                         'echo \'{"logprob": 0, "tokens": 0, "is_greedy": true}\'\n')
        with self.assertLogs("assay_gguf.client", "WARNING") as logs:
            make().score([{"text": ""}], fraction=fractions.append)
        self.assertEqual((fractions, [r.getMessage() for r in logs.records]), ([0.4], ["note: ships"]))

    def test_the_program_is_looked_for(self):
        with tempfile.TemporaryDirectory() as folder:
            path, os.environ["PATH"] = os.environ["PATH"], folder
            try:
                self.refused("there is no program assay: .* say where it is with binary=FILE",
                             lambda: Program(Q4))
                (pathlib.Path(folder) / "assay").symlink_to(pathlib.Path(ASSAY).resolve())
                self.assertEqual(Program(Q4).score(REQUESTS[:1]), plain(REQUESTS[:1]))
            finally:
                os.environ["PATH"] = path

    def interrupted(self, whole_group):
        """Ctrl-C, to the script and maybe the program: both end, and leave nothing."""
        script = ("import json, sys; sys.path.insert(0, sys.argv[1])\n"
                  "from assay_gguf import Program\n"
                  "Program(sys.argv[2], sys.argv[3], t=1).score(json.load(sys.stdin))")
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen(
                [sys.executable, "-B", "-c", script, SOURCE / "python", F16, ASSAY], text=True,
                stdin=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                env={**os.environ, "TMPDIR": folder})
            json.dump(LONG, process.stdin)
            process.stdin.close()
            children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
            if not children.exists():
                process.kill()
                self.skipTest("this system does not list children")
            while not (child := children.read_text().strip()) and process.poll() is None:
                time.sleep(0.01)
            time.sleep(0.2)
            if whole_group:
                os.killpg(process.pid, signal.SIGINT)
            else:
                process.send_signal(signal.SIGINT)
            said = process.stderr.read()
            self.assertEqual(process.wait(), -signal.SIGINT, said)
            process.stderr.close()
            self.assertFalse(pathlib.Path(f"/proc/{child}").exists())
            self.assertEqual(os.listdir(folder), [])

    def test_interrupt(self):
        self.interrupted(False)
        self.interrupted(True)


@unittest.skipUnless(HAS_SERVE, "this build has no assay serve")
class OfAServer(Refused):
    def url(self, server):
        return f"http://127.0.0.1:{server.port}"

    def test_the_same_scores(self):
        with Serve(ASSAY, "-m", Q4) as server:
            asked, seen, fractions = Server(self.url(server) + "/"), [], []
            self.assertEqual(asked.score(REQUESTS, seen.append, fractions.append), plain(REQUESTS))
            self.assertEqual(seen, plain(REQUESTS))
            self.assertTrue(all(0 <= f <= 1 for f in fractions))
            self.assertEqual(asked.about["model"]["file"], Q4.name)
            self.assertEqual(asked.score([]), [])
            few = Server(self.url(server), ctx_size=16, bos="never")
            few.MAX_TEXT = 150
            with self.assertLogs("assay_gguf.client", "WARNING") as logs:
                self.assertEqual(few.score(REQUESTS), plain(REQUESTS, "-c", "16", "--bos", "never"))
            self.assertIn("1 of 6 requests are longer than ctx_size 16", logs.output[0])
            self.assertEqual(few.about["settings"],
                             {"n_ctx": 16, "bos": False, "parse_special": False})

    def test_failures_say_what_the_server_says(self):
        with Serve(ASSAY, "-m", Q4) as server:
            self.refused(r"/v1/score: unknown member 'foo'.* \(code 422\)",
                         lambda: Server(self.url(server), foo=1))
            self.refused("text: line 1: the continuation has 8 tokens, more than -c 3",
                         lambda: Server(self.url(server), ctx_size=3))
            few = Server(self.url(server))
            few.MAX_TEXT = 1
            self.refused("line 1: expected .*, where line 1 is request 3$", lambda: few,
                         *REQUESTS[:2], {"txt": "a"})
            self.refused("404", lambda: Server(self.url(server) + "/x"))
            url = self.url(server)
        self.refused("does assay serve run there?", lambda: Server(url))

    def test_a_model_that_changes(self):
        with Serve(ASSAY, "-m", Q4) as server:
            asked = Server(self.url(server))
            asked.MAX_TEXT = 1

            def swap(_):
                server.post("/v1/swap", {"tensor": "output.weight", "file": str(F16)})

            with self.assertRaisesRegex(AssayError, "the server's model is another one"):
                asked.score(REQUESTS, swap)

    def test_a_chat_template(self):
        template = ("{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}"
                    "{{ eos_token }}{% endfor %}{% if add_generation_prompt %}[you]{% endif %}")
        chat = [{"role": "me", "content": "hi"}]
        override = f"tokenizer.chat_template=str:{template}"
        with Serve(ASSAY, "-m", Q4, "--override-kv", override) as serve:
            url = f"http://127.0.0.1:{serve.port}"
            server = Server(url)
            self.assertEqual(server.chat_template(), template)
            self.assertEqual(server.apply_chat_template(chat), "<s>[me] hi</s>[you]")
            self.assertEqual(server.apply_chat_template(chat, False), "<s>[me] hi")
            # BOS stands in front once: the template's.
            pairs = [{"context": c, "continuation": " yes"} for c in ("<s>[me] hi", "[me] hi")]
            brought, put = server.score(pairs)
            self.assertEqual(brought, put)
            with self.assertRaisesRegex(AssayError, "a chat template needs True"):
                Server(url, parse_special=False).apply_chat_template(chat)
            with self.assertRaisesRegex(AssayError, "message 1"):
                server.apply_chat_template([{}])
        self.assertEqual(client.unfinished("[me] a b [you]", "a b "), "[me] a b ")
        self.assertEqual(client.unfinished("[me] a b[you]", " a b "), "[me] a b")
        with self.assertRaisesRegex(AssayError, "the last message"):
            client.unfinished("[me] A", "a")
        with Serve(ASSAY, "-m", Q4) as serve, self.assertRaisesRegex(AssayError, "no chat template"):
            Server(f"http://127.0.0.1:{serve.port}").apply_chat_template(chat)
        with self.assertRaisesRegex(AssayError, "is applied by a server"):
            Program(Q4, ASSAY).apply_chat_template(chat)

    def test_a_key_and_a_server_that_is_still_loading(self):
        with Serve(ASSAY, "-m", Q4, env={"ASSAY_API_KEY": "k"}, wait=False) as server:
            self.refused("key is missing or wrong.*401", lambda: Server(self.url(server)))
            os.environ["ASSAY_API_KEY"] = "k\r\n"
            try:
                self.assertEqual(Server(self.url(server)).score(REQUESTS), plain(REQUESTS))
            finally:
                del os.environ["ASSAY_API_KEY"]


class Package(unittest.TestCase):
    def test_version_is_the_programs(self):
        found = re.search(r'^version = "(.*)"$', (SOURCE / "python/pyproject.toml").read_text(), re.M)
        self.assertEqual(run("version").stdout.split()[1], found[1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

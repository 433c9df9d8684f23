#!/usr/bin/env python3
"""assay check --url and --logprobs, with servers that answer as six kinds do: correct ones agree,
each fault is named, and what fails on the way is a sentence.

usage: test_server_check.py ASSAY SOURCE_DIR
"""
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import documents
from fake_server import Logits, Predictor, Server, Texts
from program import ASSAY, F16, HANG_S, Q4, SOURCE, run
import serving

sys.path.append(str(SOURCE / "bench"))
import change_tensors

LENGTHS = "1,2,5,9,15,16,17,31,32,33"
FEW = "1,2,3,5,8,9,12"  # where a server lists every position of a prompt
TEXTS = Texts(ASSAY, F16)
MODELS = {"exact": Logits(ASSAY, "-m", F16), "other": Logits(ASSAY, "-m", Q4),
          "half": Logits(ASSAY, "-m", F16, "-ctk", "f16", "-ctv", "f16"),
          "four_bits": Logits(ASSAY, "-m", F16, "-ctk", "q4_0", "-ctv", "q4_0")}


def server(kind, fault, **more):
    return Server(kind, Predictor(MODELS, fault), TEXTS, **more)


def check(url, *words, lengths=LENGTHS, model=F16):
    """One pass of each kind, to be cheap."""
    return run("check", "-m", model, "--url", url, "--lengths", lengths, "--passes", "1", "-t", "1",
               *words, timeout=HANG_S)


class ServerCheck(unittest.TestCase):
    def judge(self, kind, fault, *words, lengths=LENGTHS, model=F16):
        """(exit code, result of the document) of a check; its first line is the sentence."""
        with tempfile.TemporaryDirectory() as folder, server(kind, fault) as s:
            path = pathlib.Path(folder) / "r.json"
            found = check(s.url, "--json", path, *words, lengths=lengths, model=model)
            self.assertTrue(path.exists(), found.stderr)
            document = json.loads(path.read_text())
            self.assertEqual(found.stdout.splitlines()[0], document["result"]["sentence"])
            self.assertLessEqual(s.n_requests, 60)
        self.assertIn(f"Verdict: {document['result']['verdict']}", found.stdout)
        return found.returncode, document["result"]

    def assert_named(self, kind, fault, named, *words, lengths=LENGTHS):
        code, result = self.judge(kind, fault, *words, lengths=lengths)
        self.assertEqual((code, result["verdict"], result["named"]), (1, "differs", named),
                         result["sentence"])
        return result

    def test_correct_servers_agree(self):
        for fault in ("honest", "half", "digits:4"):
            code, result = self.judge("llama-server", fault)
            self.assertEqual((code, result["verdict"]), (0, "agrees"), (fault, result["sentence"]))

    def test_coarse_servers_agree_coarsely(self):
        for fault in ("bf16", "eight_bits"):
            code, result = self.judge("llama-server", fault)
            self.assertEqual((code, result["verdict"]), (0, "agrees coarsely"), result["sentence"])
        self.assertEqual(self.judge("llama-server", "bf16", "--strict")[0], 1)

    def test_a_cache_of_four_bits_is_to_be_named(self):
        result = self.assert_named("llama-server", "four_bits", "everywhere")
        self.assertIn("-ctk and -ctv", result["sentence"])
        code, result = self.judge("llama-server", "four_bits", "-ctk", "q4_0", "-ctv", "q4_0")
        self.assertEqual((code, result["verdict"]), (0, "agrees"), result["sentence"])
        self.assertRegex(result["error_rates"], "^over a cache of 4 bits")

    def test_all_kinds(self):
        for kind, lengths in (("vllm", FEW), ("sglang", FEW), ("openai", FEW), ("ollama", LENGTHS),
                              ("mlx", LENGTHS)):
            with self.subTest(kind):
                code, result = self.judge(kind, "honest", lengths=lengths)
                self.assertEqual((code, result["verdict"]), (0, "agrees"), result["sentence"])
                self.assert_named(kind, "no_bos", "BOS missing", lengths=lengths)

    def test_answers_that_are_repeated(self):
        """Noise is told from a cached answer, by what the server says of its cache."""
        for kind, fault, what, lengths in (("llama-server", "honest", "exact", LENGTHS),
                                           ("llama-server", "noise:0.01", "noise", LENGTHS),
                                           ("ollama", "honest", "may be cached", LENGTHS),
                                           ("vllm", "honest", "may be cached", FEW),
                                           ("vllm", "prefix_cache", "exact", FEW),
                                           ("vllm", "salt_less_cache", "cached", FEW)):
            with self.subTest((kind, fault)):
                code, result = self.judge(kind, fault, "--repeat", "3", lengths=lengths)
                self.assertEqual(code, 0, result["sentence"])
                found = result["repeats"]
                self.assertEqual((found["what"], found["n_times"]), (what, 3))
                self.assertGreater(found["n_answers"], 10)
                self.assertEqual(found["n_answers"] % 2, 0)
                if what == "noise":  # of two answers, each off by a hundredth
                    self.assertTrue(0.01 < found["rms"] < 0.018, found)
                    self.assertEqual(found["computed"]["n_same"], 0)
                else:
                    self.assertIn(found["rms"], (0, None))
                self.assertEqual(found["cached"]["n"] > 0, fault.endswith("_cache"))
        self.assertNotIn("repeats", self.judge("ollama", "honest")[1])

    def test_a_second_run_meets_no_blocks_of_the_first(self):
        with tempfile.TemporaryDirectory() as folder, server("vllm", "prefix_cache") as s:
            state, n = pathlib.Path(folder) / "state", []
            for words in ((), ("--state", state), ("--state", state)):
                found = check(s.url, "--repeat", "2", *words, lengths=FEW)
                self.assertIn("it repeats itself exactly", found.stdout)
                n.append(s.n_requests)
            self.assertTrue(n[0] < n[1] == n[2], n)

    def test_more_repeats_than_requests_are_refused(self):
        found = check("http://127.0.0.1:1", "--repeat", "33", "--requests", "40")
        self.assertEqual((found.returncode, found.stdout), (2, ""))
        self.assertIn("--repeat 33: --requests 40 does not reach for one prompt and 8 requests about the server; "
                      "expected --requests 41 or more", found.stderr)

    def test_ik_llama_cpp(self):
        """It calls itself llama-server, and counts the tail twice."""
        code, result = self.judge("ik", "honest")
        self.assertEqual((code, result["verdict"]), (0, "agrees"), result["sentence"])
        result = self.assert_named("ik", "tail_twice", "tail counted twice")
        self.assertRegex(result["sentence"], r"off by \d\.\de-1\d RMS, where \d\.\de-04 is")
        self.assertIn("Without the lists' sums it computes what the file says", result["sentence"])

    def test_another_file_beside_a_tail_that_is_counted_twice(self):
        named = "tail counted twice"
        self.assertIsNone(self.assert_named("ik", "tail_twice", named, "--or", Q4)["file"])
        result = self.assert_named("ik", "other_tail_twice", "another file", "--or", Q4)
        self.assertEqual(result["file"], str(Q4))

    def test_ik_llama_cpp_counts_a_shared_head_twice(self):
        """An embedding that is the head, too, has a copy there; no other server may count it."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tied.gguf"
            model = change_tensors.File(F16)
            _, head = model.tensors.pop("output.weight")
            change_tensors.write(path, model)
            size = sum(len(data) for _, data in model.tensors.values())
            for kind, n, is_other in (("ik", size, False), ("ik", size + len(head), False),
                                      ("ik", size + len(head) + 1, True),
                                      ("llama-server", size + len(head), True)):
                with self.subTest((kind, n)):
                    result = self.judge(kind, f"says_size:{n}", model=path)[1]
                    self.assertEqual(result["named"] == "another file", is_other, result["sentence"])

    def test_our_own_server(self):
        if "microhttpd" in run("serve", "-m", "/nowhere", "--port", "0").stderr:
            self.skipTest("built without libmicrohttpd")
        with serving.Server(ASSAY, "-m", F16) as s:
            found = check(f"http://127.0.0.1:{s.port}", lengths="1,2,5,9,33")
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertIn("\nVerdict: agrees\n", found.stdout)
        self.assertNotIn("lack a token", found.stdout)  # it lists those of the prompt, too
        self.assertRegex(found.stderr, "OpenAI's completions.*: takes token ids")

    def test_what_a_server_says_of_itself(self):
        """Another file, template or tokens is the verdict, whatever its lists say."""
        result = self.assert_named("llama-server", "says_size:77", "another file")
        found = re.match(r"The server says that it serves another file: its tensors have 77 bytes \(Q9_Z\), and "
                         r"those of this one (\d+)\. By its log-probabilities: ", result["sentence"])
        size = F16.stat().st_size
        self.assertTrue(0.9 * size < int(found[1]) < size, result["sentence"])
        code, result = self.judge("llama-server", "says_size:" + found[1])
        self.assertEqual((code, result["verdict"]), (0, "agrees"), result["sentence"])
        result = self.assert_named("llama-server", "says_weights:78", "another file")
        self.assertIn("one of 78 weights (Q9_Z), and this one has ", result["sentence"])
        own = "-okv", "tokenizer.chat_template=str:{{ bos_token }}"
        result = self.assert_named("llama-server", "says_template", "another template", *own)
        self.assertIn("The server's chat template makes other prompts than the file's of 33 of 33 conversations: of "
                      "'a question' from byte 0 on \"[{'role': 'user', ", result["sentence"])
        same = "-okv", "tokenizer.chat_template=str:{# #}{{ messages }}"
        self.assertEqual(self.judge("llama-server", "says_template", *same)[0], 0)
        other = "-okv", "tokenizer.chat_template=str:{{ messages | unheard_of }}"
        result = self.assert_named("llama-server", "says_template", "another template", *other)
        self.assertIn("one of 14 bytes, and the file's has 27; what they make is not known (chat template, line 1: ", result["sentence"])
        refused = "-okv", "tokenizer.chat_template=str:{{ raise_exception('not so') }}"
        result = self.assert_named("llama-server", "says_template", "another template", *refused)
        self.assertIn(", not refused: chat template, line 1: ", result["sentence"])
        self.assertEqual(self.judge("llama-server", "says_template")[0], 0)  # the file has none
        result = self.assert_named("llama-server", "text_no_bos", "other tokens")
        self.assertIn("it leaves out BOS", result["sentence"])

    def test_a_server_that_writes_parts_of_characters(self):
        code, result = self.judge("llama-server", "parts")
        self.assertEqual((code, result["verdict"]), (0, "agrees"), result["sentence"])

    def test_texts_end_where_they_can(self):
        """A character of three tokens: most lengths end within one."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "text.txt"
            path.write_text("今天天气很好，我们去公园散步。" * 9)
            code, result = self.judge("mlx", "honest", "-f", path, lengths="2,5,9,12,15,18,40")
        self.assertEqual((code, result["verdict"]), (0, "agrees"), result["sentence"])
        self.assertEqual(result["n_lists"], 7 + 4)  # of one passage, fresh and cached

    def test_shifted_lists(self):
        for kind in "vllm", "openai":
            for shift in "ahead", "behind":
                result = self.assert_named(kind, shift, f"lists one {shift}", lengths=FEW)
                self.assertIn(" Without that shift: The server computes what the file says:",
                              result["sentence"])

    def test_another_file_beside_shifted_lists(self):
        result = self.assert_named("openai", "other_ahead", "lists one ahead", lengths=FEW)
        self.assertNotIn("computes what the file says", result["sentence"])
        result = self.assert_named("openai", "other_ahead", "another file", "--or", Q4, lengths=FEW)
        self.assertEqual(result["file"], str(Q4))
        self.assertIn("one position ahead", result["sentence"])

    def test_llama_cpp_python(self):
        """It fails over ids, and leaves BOS out of what it echoes."""
        code, result = self.judge("python", "honest", lengths=FEW)
        self.assertEqual((code, result["verdict"]), (0, "agrees"), result["sentence"])
        self.assertGreater(result["n_lists"], 40)

    def test_caches_that_answer_for_another(self):
        self.assert_named("llama-server", "stale", "cached prompts")
        self.assert_named("vllm", "stale_rows", "cached prompts", lengths=FEW)

    def test_a_context_of_few_tokens(self):
        """Without --lengths: the longest prompt that fits, and some between."""
        with tempfile.TemporaryDirectory() as folder, server("llama-server", "from:55", n_ctx=64) as s:
            path = pathlib.Path(folder) / "r.json"
            found = run("check", "-m", F16, "--url", s.url, "--requests", "40", "--json", path, timeout=HANG_S)
            self.assertLessEqual(s.n_requests, 40)
            document = json.loads(path.read_text())
        self.assertEqual((found.returncode, document["result"]["from"]), (1, 55), found.stdout)
        self.assertEqual(max(item["n_prompt"] for item in document["lists"]), 63)

    def test_values_that_are_off(self):
        result = self.assert_named("llama-server", "temperature:1.02", "temperature")
        self.assertAlmostEqual(result["temperature"], 1.02, delta=2e-3)
        self.assert_named("llama-server", "temperature:0.8", "temperature")
        self.assert_named("llama-server", "cut:40", "cut list")
        self.assert_named("llama-server", "cut_whole:40", "cut list")
        self.assert_named("llama-server", "tail_twice", "tail counted twice")
        self.assert_named("llama-server", "noise:0.3", "everywhere")

    def test_other_tokens(self):
        self.assert_named("llama-server", "no_bos", "BOS missing")
        self.assert_named("llama-server", "two_bos", "BOS doubled")
        self.assert_named("llama-server", "token_less", "last token missing")

        for kind in ("ollama", "mlx"):
            result = self.assert_named(kind, "other_tokens", "other tokens", lengths=FEW)
            self.assertRegex(result["sentence"], r"counts \d+ where \d+ were sent")

    def test_another_file(self):
        self.assert_named("llama-server", "other_file", "everywhere")
        result = self.assert_named("llama-server", "other_file", "another file", "--or", Q4)
        self.assertEqual(result["file"], str(Q4))
        code, result = self.judge("llama-server", "bf16", "--or", Q4)
        self.assertEqual((code, result["named"]), (0, "nothing"))

    def test_some_prompts(self):
        result = self.assert_named("llama-server", "from:31", "from a length on")
        self.assertEqual(result["from"], 31)
        result = self.assert_named("llama-server", "lengths:16,32", "certain lengths")
        self.assertEqual(result["from"], 16)
        self.assertIn("16, 32 tokens", result["sentence"])
        self.assert_named("llama-server", "some", "some positions")
        self.assert_named("llama-server", "cached", "cached prompts")
        self.assert_named("llama-server", "written", "written tokens")
        self.assert_named("llama-server", "together", "several prompts at once", "--concurrency",
                          "4")
        self.assertEqual(self.judge("llama-server", "together")[0], 0)
        result = self.assert_named("vllm", "from:8", "from a position on", lengths=FEW)
        self.assertEqual(result["from"], 8)

    def test_conversations(self):
        """Sent as ids, control tokens included; a server of texts cannot be asked."""
        said = "Tell me where the old ship is, and who has seen it last in the harbour. " * 3
        chats = [{"messages": [{"role": "user", "content": said}, {"role": "assistant", "content": said}]},
                 {"messages": [{"role": "user", "content": "Hello"}]}]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "chats.jsonl"
            path.write_text("".join(json.dumps(chat) + "\n" for chat in chats))
            words = "-f", path, "--chat-template", "{{ messages[0].content }}{{ eos_token }}"
            code, result = self.judge("llama-server", "honest", *words)
            self.assertEqual((code, result["verdict"]), (0, "agrees"), result["sentence"])
            with server("mlx", "honest") as s:
                found = check(s.url, *words)
                self.assertEqual(found.returncode, 2, found.stderr)
                self.assertIn("takes no token ids", found.stderr)
            texts = pathlib.Path(folder) / "texts.jsonl"
            texts.write_text(json.dumps({"text": said}) + "\n")
            with server("llama-server", "honest") as s:
                for of in (), ("-f", texts):
                    found = check(s.url, *of, *words[2:])
                    self.assertEqual(found.returncode, 2, found.stderr)
                    self.assertIn("--chat-template is for conversations", found.stderr)

    def test_what_cannot_be_used_is_no_result(self):
        for fault, words in (("no_number", "no number"), ("not_a_number", "expected numbers, found NaN at byte"),
                             ("twice", "a list that has a token twice"), ("empty", "found none of them"),
                             ("no_json", "expected JSON"), ("cut_body", "partial file"),
                             ("closed", "returned nothing"), ("status:400", "it is broken"),
                             ("status:500", "HTTP 500"), ("redirect", "is not followed")):
            with server("llama-server", fault) as s:
                found = check(s.url)
            self.assertEqual((found.returncode, found.stdout), (2, ""), (fault, found.stderr))
            self.assertIn(words, found.stderr)
            self.assertIn(s.url if fault in ("no_number", "twice") else "POST /completion", found.stderr)

    def test_nothing_hangs(self):
        with server("llama-server", "slow:20") as s:
            found = check(s.url, "--timeout", "1")
        self.assertEqual(found.returncode, 2)
        self.assertIn("no whole answer within 1 s (--timeout)", found.stderr)
        with server("llama-server", "long") as s:
            found = check(s.url)
        self.assertIn("the answer has more than", found.stderr)
        found = check("http://127.0.0.1:1")
        self.assertEqual(found.returncode, 2)
        self.assertIn("GET /v1/models", found.stderr)

    def test_a_server_that_dies(self):
        with server("llama-server", "dies:9") as s:
            found = check(s.url)
        self.assertEqual((found.returncode, found.stdout), (2, ""))
        self.assertRegex(found.stderr, "5 requests in a row failed, the last: POST /completion, a "
                                       r"prompt of \d+ tokens?: .+")

    def test_a_busy_server_is_asked_again(self):
        with server("llama-server", "unavailable") as s:
            found = check(s.url, lengths="1,2,5,9")
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertTrue(found.stdout.startswith("The server computes what the file says"))

    def test_a_server_says_how_long_to_wait(self):
        with server("llama-server", "busy:1") as s:
            found = check(s.url, lengths="1,2,5,9")
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertGreaterEqual(s.waited, 0.9)

    def test_a_server_that_stays_busy(self):
        """It is waited for, visibly, and the end says what it said, not what kind it may be."""
        for fault, path, of in (("status:503", r"POST /completion, a prompt of \d+ tokens?", "HTTP 503: \"it is broken\""),
                                ("full:0", "GET /v1/models", "HTTP 429: \"Too many requests\""),
                                ("full:2", r"POST /completion, a prompt of \d+ tokens?",
                                 "HTTP 429: \"Too many requests\"")):
            with server("llama-server", fault) as s:
                began = time.monotonic()
                found = check(s.url, "--timeout", "2", lengths="1,2,5,9")
            self.assertEqual((found.returncode, found.stdout), (2, ""))
            self.assertLess(time.monotonic() - began, 15)
            self.assertRegex(found.stderr, f"(?m)^assay: {s.url}: {path}: {of}; it is busy, or loading: try again "
                                           r"later, or wait longer \(--timeout\)$")
            self.assertNotIn("kind", found.stderr)

    def test_a_server_is_waited_for_visibly(self):
        with server("llama-server", "full:9") as s:
            found = check(s.url, "--timeout", "2", lengths="1,2,5,9")
        self.assertEqual((found.returncode, found.stdout), (2, ""))
        self.assertIn('assay: the server: HTTP 429: "Too many requests"; it is asked again in 2 s, for 2 s in all '
                      '(--timeout)\n', found.stderr)
        self.assertEqual(found.stderr.count("is asked again"), 1)
        self.assertIn("5 requests in a row failed, the last: POST /completion", found.stderr)

    def test_a_certificate_that_nobody_knows_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            key, both = pathlib.Path(folder) / "key", pathlib.Path(folder) / "both"
            try:
                made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                                       "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=127.0.0.1",
                                       "-keyout", key, "-out", both], capture_output=True)
            except FileNotFoundError:
                self.skipTest("no openssl")
            self.assertEqual(made.returncode, 0, made.stderr)
            both.write_text(key.read_text() + both.read_text())
            with server("llama-server", "honest", tls=both) as s:
                found = check(s.url, lengths="1,2,5,9")
        self.assertEqual((found.returncode, found.stdout, s.n_requests), (2, "", 0))
        self.assertIn("certificate", found.stderr)

    def test_limits_are_options(self):
        code, result = self.judge("llama-server", "other_file", "--max-rms", "0.5")
        self.assertEqual((code, result["verdict"]), (0, "agrees coarsely"))
        code, result = self.judge("llama-server", "bf16", "--max-rms", "1e-3")
        self.assertEqual((code, result["verdict"]), (1, "differs"))
        self.assertEqual(self.judge("llama-server", "bf16", "--max-kld", "1e-9")[0], 1)

    def test_only_the_servers_address_is_asked(self):
        with server("llama-server", "honest") as s:
            run("check", "-m", F16, "--url", s.url + "/v1/", "--lengths", "1,2,5,9",
                env={"http_proxy": "http://127.0.0.1:1", "HTTP_PROXY": "http://127.0.0.1:1"})
        self.assertLessEqual(set(s.paths), {"/v1/models", "/props", "/completion"})
        self.assertIn("/completion", s.paths)

    def test_keys_are_not_shown(self):
        with tempfile.TemporaryDirectory() as folder, \
                server("llama-server", "honest", key="sesame") as s:
            key, result = pathlib.Path(folder) / "key", pathlib.Path(folder) / "r.json"
            state = pathlib.Path(folder) / "state"
            found = check(s.url)
            self.assertEqual(found.returncode, 2)
            self.assertIn("give its key by --api-key-file", found.stderr)
            key.write_bytes(b"sesame\r\n")
            found = check(s.url, "--api-key-file", key, "--json", result, "--state", state)
            self.assertEqual(found.returncode, 0, found.stderr)
            for text in (found.stdout, found.stderr, result.read_text(), state.read_text()):
                self.assertNotIn("sesame", text)
            key.write_text("two words\n")
            self.assertIn("a blank", check(s.url, "--api-key-file", key).stderr)

    def test_answers_are_kept_and_read_again(self):
        with tempfile.TemporaryDirectory() as folder, server("llama-server", "nul") as s:
            state, result = pathlib.Path(folder) / "state", pathlib.Path(folder) / "r.json"
            first = check(s.url, "--state", state)
            n = s.n_requests
            whole = state.read_bytes()
            state.write_bytes(whole[:len(whole) // 2])
            again = check(s.url, "--state", state)
            self.assertEqual((first.returncode, again.returncode), (0, 0), again.stderr)
            self.assertEqual(first.stdout, again.stdout)
            self.assertTrue(0 < s.n_requests - n < n)
            recorded = run("check", "-m", F16, "--logprobs", state, "--json", result)
            self.assertEqual(recorded.returncode, 0, recorded.stderr)
            self.assertEqual(json.loads(result.read_text())["result"]["verdict"], "agrees")
            other = run("check", "-m", Q4, "--logprobs", state, "--or", F16)
            self.assertEqual(other.returncode, 1)
            self.assertIn("The server serves another file", other.stdout)
            refused = check(s.url + "/elsewhere", "--state", state)
            self.assertIn("answers of another server", refused.stderr)
            state.write_text("notes of mine\nwithout a newline")
            refused = check(s.url, "--state", state)
            self.assertEqual((refused.returncode, state.read_text()), (2, "notes of mine\nwithout a newline"))
            self.assertIn("state: is a text, expected a server's answers", refused.stderr)

    def test_records_of_vllm(self):
        ids = [1, *TEXTS.ids("The sea was calm, and nobody")]
        lists = [None] + [{str(i): {"logprob": x} for i, x in Predictor(MODELS, "half").top(ids[:n], 20)}
                          for n in range(1, len(ids))]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "r.jsonl"
            path.write_text(json.dumps({"prompt_token_ids": ids, "prompt_logprobs": lists}) + "\n")
            found = run("check", "-m", F16, "--logprobs", path)
            self.assertEqual(found.returncode, 0, found.stderr)
            for line, words in (("{}", "line 1"), ("[", "line 1"), ('{"prompt_token_ids": [99999]}', "line 1"),
                                ('{"request": {}, "response": {"logprobs": []}}', "expected a prompt")):
                path.write_text(line + "\n")
                found = run("check", "-m", F16, "--logprobs", path)
                self.assertEqual(found.returncode, 2, line)
                self.assertIn(words, found.stderr)

    def test_an_interruption_ends_it(self):
        with server("llama-server", "slow:0.5") as s:
            process = subprocess.Popen([ASSAY, "check", "-m", F16, "--url", s.url], text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            while s.n_requests < 5:
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=HANG_S)
        self.assertEqual((process.returncode, out), (130, ""))
        self.assertIn("interrupted: there is no result", err)

    def test_usage(self):
        for words, said in ((("--url", "ftp://host"), "expected http://HOST:PORT"),
                            (("--url", "http://a:secret@host"), "--api-key-file"),
                            (("--url", "http://h", "--logprobs", "f"), "give one of --kl-"),
                            (("--url", "http://h", "--kl-divergence-base", "f"), "--url, --logprobs and --recipe"),
                            (("--url", "http://h", "--lengths", "1,x"), "--lengths"),
                            (("--logprobs", "f", "--lengths", "1"), "--lengths is for --url; with --logprobs it would do nothing"),
                            (("--logprobs", "f", "--requests", "9"), "--requests is for --url"),
                            (("--logprobs", "f", "--state", "s"), "--state is for a recording, a folder or --url"),
                            (("--url", "http://h", "--dry-run"), "--dry-run is for a recording"),
                            (("--kl-divergence-base", F16, "-f", "t"), "-f is for a folder or --url; with another GGUF file"),
                            (("--kl-divergence-base", "nowhere", "-f", "t"), "nowhere: cannot be opened"),
                            (("--kl-divergence-base", F16, "--max-rms", "1"), "--max-rms is for --url or --logprobs"),
                            (("--url", "http://h", "--chunks", "2"), "--chunks is for a recording or a folder; with --url it would do nothing"),
                            (("--url", "http://h", "--max-rms", "0"), "a limit above 0"),
                            ((), "--url or --logprobs (what a server says), or --recipe is missing")):
            found = run("check", "-m", F16, *words)
            self.assertEqual(found.returncode, 2, words)
            self.assertIn(said, found.stderr)
            self.assertNotIn("secret", found.stderr)

    def test_documents_fit_the_schema(self):
        """And each of its members is in one of them."""
        found = set()
        for fault in ("honest", "temperature:1.02", "other_file"):
            with tempfile.TemporaryDirectory() as folder, server("llama-server", fault) as s:
                path = pathlib.Path(folder) / "r.json"
                check(s.url, "--json", path, "--or", Q4, "--max-kld", "9", "--max-rms", "0.02")
                document = json.loads(path.read_text())
            documents.check(self, document)
            found |= set(documents.seen(document, documents.SERVER_CHECK))
        with tempfile.TemporaryDirectory() as folder, server("llama-server", "honest") as s:
            path = pathlib.Path(folder) / "r.json"
            run("check", "-m", Q4, "--url", s.url, "--lengths", LENGTHS, "--json", path,
                "--repeat", "2", timeout=HANG_S)
            document = json.loads(path.read_text())
        documents.check(self, document)
        found |= set(documents.seen(document, documents.SERVER_CHECK))
        mine = (documents.SERVER_CHECK, "/$defs/asked-server")
        self.assertEqual({at for at in documents.members() if at.startswith(mine)} - found,
                         {documents.SERVER_CHECK + "/properties/run/properties/commit"} - found)


if __name__ == "__main__":
    if "libcurl" in check("http://127.0.0.1:1").stderr:
        print("without libcurl")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])

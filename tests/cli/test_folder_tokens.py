#!/usr/bin/env python3
"""Tokens of published folders: the ids of the library tokenizers for small tokenizers in the forms
of model families (bench/tokenizer_json.py --vectors made them), and files with one thing wrong.

usage: test_folder_tokens.py ASSAY SOURCE_DIR
"""
import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ASSAY, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
ROWS = {row["name"]: row for row in map(json.loads, open(SOURCE / "tests" / "data" / "tokenizer-json.jsonl"))}

PIECES = (SOURCE / "tests" / "data" / "sentencepiece.model").read_bytes()


def assay(*words, text=None):
    return subprocess.run([ASSAY, *map(str, words)], capture_output=True, text=True, input=text)


class Tokens(unittest.TestCase):
    def setUp(self):
        self.kept = tempfile.TemporaryDirectory()
        self.at = pathlib.Path(self.kept.name)
        self.addCleanup(self.kept.cleanup)

    def write(self, name, value):
        (self.at / name).write_text(value if isinstance(value, str) else json.dumps(value))

    def tokenize(self, *words, text="a"):
        done = assay("tokenize", "-m", self.at, "-f", "-", "--ids", *words, text=text)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def test_ids(self):
        for row in ROWS.values():
            self.write("tokenizer.json", row["tokenizer"])
            self.write("texts", "".join(json.dumps({"text": t}) + "\n" for t in row["texts"]))
            n_before = "TemplateProcessing" in json.dumps(row["tokenizer"]["post_processor"])
            for ids, words in zip(row["ids"], ([], ["--no-parse-special"])):
                with self.subTest(row["name"], words=words):
                    done = assay("tokenize", "-m", self.at, "-f", self.at / "texts", "--documents",
                                 "--ids", *words)
                    mine = [json.loads(line)["ids"][n_before:] for line in done.stdout.splitlines()]
                    self.assertEqual(mine, ids, done.stderr)

    def test_sets_in_sets(self):
        """BLOOM's expression has a set in a set; cut as the one without, so tokens as well."""
        found = []
        for expression in (r" ?[^(\s|[.,!?…。，、।۔،])]+", r" ?[^(\s|.,!?…。，、।۔،)]+", " ?[^(]+"):
            d = copy.deepcopy(ROWS["qwen2"]["tokenizer"])
            d["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = expression
            self.write("tokenizer.json", d)
            found.append([self.tokenize(text=t) for t in ROWS["qwen2"]["texts"]])
        self.assertEqual(found[0], found[1])
        self.assertNotEqual(found[0], found[2])

    def test_digits_from_the_right(self):
        """Published expressions that look ahead from each digit, and the same ones spelled otherwise, which are run as
        they stand."""
        text = ("1234 12345\u00b2678 a123456\u0663\u0664 1\u00b2\u00b21234567\u216712 999 1234x 12345_ 123456\u0301 "
                "1 12 1234567,1234")
        d = copy.deepcopy(ROWS["qwen2"]["tokenizer"])
        for published, other in ((r"(?=(\d{3})+(?!\d))", r"(?=(?:\d{3})+(?!\d))"),
                                 (r"\d{1,3}(?=(?:\d{3})*\b)", r"\d{1,3}(?=(\d{3})*\b)")):
            found = []
            for expression in (other, published):
                d["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = expression
                self.write("tokenizer.json", d)
                found.append([self.tokenize(text=t) for t in [*ROWS["qwen2"]["texts"], text]])
            self.assertEqual(*found)
            (self.at / "digits").write_text("7" * 1000000)  # four minutes at least otherwise
            subprocess.run([ASSAY, "tokenize", "-m", self.at, "-f", self.at / "digits", "--ids"], check=True,
                           timeout=100, stdout=subprocess.DEVNULL)

    def test_bytes_that_are_no_text(self):
        self.write("tokenizer.json", ROWS["qwen2"]["tokenizer"])
        done = subprocess.run([ASSAY, "tokenize", "-m", self.at, "-f", "-", "--ids"],
                              input=b"a\xff\xc0\x80b", capture_output=True)
        self.assertEqual(json.loads(done.stdout), self.tokenize(text="a\ufffd\ufffd\ufffdb"))

    def test_ends(self):
        """Who says whether a text begins with BOS, and which token that is."""
        d = ROWS["llama3"]["tokenizer"]
        bos, other = (t["id"] for t in d["added_tokens"][:2])
        self.write("tokenizer.json", d)
        self.assertEqual(self.tokenize(text="a")[0], bos)
        self.write("tokenizer_config.json", {"add_bos_token": False})
        self.assertNotEqual(self.tokenize(text="a")[0], bos)
        self.write("tokenizer.json", {**d, "post_processor": None})
        self.write("tokenizer_config.json", {"add_bos_token": True, "bos_token": {"content": "<|eot_id|>"}})
        self.assertEqual(self.tokenize(text="a")[0], other)
        self.write("tokenizer_config.json", {"add_bos_token": True})
        self.write("generation_config.json", {"bos_token_id": [other, bos]})
        self.assertEqual(self.tokenize(text="a")[0], other)

    def test_several_in_front(self):
        """What the library puts in front of a text; a document has one place, for BOS."""
        d = copy.deepcopy(ROWS["llama3"]["tokenizer"])
        one, two, three = (t["content"] for t in d["added_tokens"][:3])
        self.write("tokenizer.json", {**d, "post_processor": None})
        plain = self.tokenize(text="a b")

        def template(*names):
            special = {name: {"id": name, "ids": ids, "tokens": [name]}
                       for name, ids in ((one, [7]), (two, [9, 8]), (three, [6]))}
            return {"type": "TemplateProcessing", "special_tokens": special, "pair": [],
                    "single": [{"SpecialToken": {"id": name, "type_id": 0}} for name in names]
                    + [{"Sequence": {"id": "A", "type_id": 0}}]}

        def sequence(*parts):
            return {"type": "Sequence", "processors": parts}

        for processor, front in ((template(one, two), [7, 9, 8]), (template(two), [9, 8]),
                                 (sequence(template(one), template(three)), [6, 7]),
                                 (sequence(template(two), template()), [9, 8])):
            d["post_processor"] = processor
            self.write("tokenizer.json", d)
            self.assertEqual(self.tokenize(text="a b"), front + plain)
            self.assertEqual(self.tokenize("--no-bos", text="a b"), plain)
            self.write("texts", json.dumps({"text": "a b"}))
            done = assay("tokenize", "-m", self.at, "-f", self.at / "texts", "--documents", "--ids")
            self.assertEqual(json.loads(done.stdout or "{}").get("ids"), plain, done.stderr)

    def test_chat_template(self):
        self.write("tokenizer.json", ROWS["llama3"]["tokenizer"])
        self.write("tokenizer_config.json", {"chat_template": [
            {"name": "tool", "template": "x"}, {"name": "default", "template": "{{ messages[0].content }}!"}]})
        chat = json.dumps({"messages": [{"role": "user", "content": "Q"},
                                        {"role": "assistant", "content": "A"}]})
        for template, expected in ((None, "Q!"), ("{{ messages[1].content }}?", "A?")):
            if template:
                self.write("chat_template.jinja", template)
            self.write("chats", chat)
            done = assay("tokenize", "-m", self.at, "-f", self.at / "chats", "--documents", "--ids",
                         "--mask", "all")
            self.assertEqual(done.returncode, 0, done.stderr)
            ids = json.loads(done.stdout)["ids"]
            self.assertEqual(ids, self.tokenize(text=expected), done.stderr)

    def refused(self, name, change, sentence):
        """A tokenizer.json after a change, which is a function or the bytes of the file."""
        d = copy.deepcopy(ROWS[name]["tokenizer"])
        if callable(change):
            change(d)
        with open(self.at / "tokenizer.json", "wb") as f:
            f.write(json.dumps(d).encode() if callable(change) else change)
        done = assay("tokenize", "-m", self.at, "-p", "a" * 40)
        self.assertEqual(done.returncode, 2, (sentence, done))
        self.assertRegex(done.stderr, sentence)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_refusals(self):
        def split(expression):
            return lambda d: d.update(pre_tokenizer={"type": "Sequence", "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated"},
                {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}]})

        def deep(d):
            for _ in range(20):
                d["normalizer"] = {"type": "Sequence", "normalizers": [d["normalizer"]]}

        def before(special):
            return lambda d: d.update(post_processor={
                "type": "TemplateProcessing", "special_tokens": special,
                "single": [{"SpecialToken": {"id": "b"}}, {"Sequence": {"id": "A"}}]})

        def vocab(d, **more):
            d["model"]["vocab"].update(more)

        first = ROWS["qwen2"]["tokenizer"]["added_tokens"][0]
        for change, sentence in [
                (b"{", "is no JSON from byte "),
                (b"[" * 100000, "is no JSON|expected at most"),
                (b"[]", "is no JSON object"),
                (b"{\"a\": \"\xff\"}", "is no UTF-8 from byte 7 on"),
                (b"{\"a\": \"\\u0000\"}", "has the character U\\+0000"),
                (lambda d: d.update(normalizer={"type": "Lowercase"}),
                 "normalizer.type is 'Lowercase', expected one of Sequence, NFC, Prepend, Replace"),
                (lambda d: d["pre_tokenizer"]["pretokenizers"].insert(0, {"type": "Whitespace"}),
                 r"pre_tokenizer.pretokenizers\[0\].type is 'Whitespace', expected one of Sequence, Split"),
                (lambda d: d["pre_tokenizer"]["pretokenizers"].append({"type": "Digits"}),
                 r"pretokenizers\[2\] comes after ByteLevel, expected ByteLevel as the last part"),
                (lambda d: d.update(pre_tokenizer=None), "has no token <0x00>, and pre_tokenizer has no ByteLevel"),
                (lambda d: d.update(post_processor={"type": "BertProcessing"}), "post_processor.type 'BertProcessing'"),
                (before({}), "special_tokens has no ids of 'b', which single names; expected them"),
                (before({"b": {"ids": [1, 0.5]}}), "'b' has the id 0.5, expected a whole number below"),
                (before({"b": {"ids": [-1]}}), "'b' has the id -1, expected a whole number below"),
                (before({"b": {"ids": [1 << 31]}}), "'b' has the id 2147483648, expected a whole"),
                (before({"b": {"ids": [1] * 65}}), "more than 64 tokens in front of a text"),
                (deep, "expected no Sequence as deep as this"),
                (lambda d: d["model"].update(type="Unigram"), "model.type 'Unigram', expected BPE, or --tokenizer FILE.gguf"),
                (lambda d: d["model"].update(dropout=0.5), "model.dropout is not null"),
                (lambda d: d["model"].update(continuing_subword_prefix="##"), "continuing_subword_prefix is not null"),
                (lambda d: d["model"].update(vocab=[]), "model.vocab is no object with tokens"),
                (lambda d: d["model"].update(merges=3), "model.merges is no list"),
                (lambda d: d["model"]["merges"].append("a"), r"model.merges\[\d+\] is no pair of tokens"),
                (lambda d: d["model"]["merges"].append(["a b", "c"]), r"model.merges\[\d+\] is no pair"),
                (lambda d: d["model"]["merges"].append(["zz", "qq"]), "tokenizer.ggml.merges: entry .*not in"),
                (lambda d: vocab(d, new=-1), "model.vocab: 'new' has no id, expected an id below"),
                (lambda d: vocab(d, new=1.5), "model.vocab: 'new' has no id"),
                (lambda d: vocab(d, new=1 << 30), "'new' has id 1073741824, expected an id below"),
                (lambda d: vocab(d, new=5), "model.vocab: 'new' has id 5, as '.*' has"),
                (lambda d: d["added_tokens"].append({**first, "id": 7}), "'<.endoftext.>' has id 7, and"),
                (lambda d: d["added_tokens"].append({**first, "content": "x" * 2000, "id": 999}), "has 2000 bytes"),
                (lambda d: d["added_tokens"].append({**first, "content": ""}), "content is no text"),
                (split("(a"), "PCRE2 does not take it: missing closing parenthesis"),
                (split("(?:a|aa)+$(?=.)"), r"fails 0 bytes into a stretch of 40 bytes: match limit exceeded"),
                (split("[a&&[b]]"), "has '&&' at byte 2 of its expression, which is not read"),
                (split("[a[^b]]"), r"has '\[' at byte 2"),
                (split("[a-[b]]"), r"has '\[' at byte 3"),
                (split("[a[b]-z]"), r"has '\]' at byte 4"),
                (split(r"a{2}+"), r"has '\{2\}\+' at byte 1"),
                (split(r"(?<x>a)\k<x>"), r"has '\(\?<x' at byte 0"),
                (split(r"(*LIMIT_MATCH=9)a"), r"has '\(\*LI' at byte 0"),
                (split("x" * 70000), "an expression of 70000 bytes, expected at most 65536"),
                (lambda d: d.update(normalizer={"type": "Sequence", "normalizers": [
                    {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 60}] * 5}),
                 "makes more than .* bytes of a text of 40 bytes, expected at most 16 times"),
        ]:
            with self.subTest(sentence):
                self.refused("qwen2", change, sentence)

    def test_sentencepiece(self):
        """tokenizer.model alone: the ids of the library sentencepiece 0.2.3 (a model that it trained on docs/)."""
        (self.at / "tokenizer.model").write_bytes(PIECES)
        rows = list(map(json.loads, (SOURCE / "tests" / "data" / "sentencepiece.jsonl").read_text().splitlines()))
        for row in rows:
            self.assertEqual(self.tokenize("--no-parse-special", text=row["text"]), [1, *row["ids"]])
        tag = self.tokenize(text="<tag>")[-1]
        self.assertEqual(self.tokenize("--no-parse-special", text="<tag>")[-1], tag)
        n = 480  # pieces
        self.write("added_tokens.json", {"<new>": n})
        self.write("tokenizer_config.json", {"add_bos_token": False, "bos_token": "<tag>", "added_tokens_decoder": {
            str(n + 2): {"content": "<other>", "special": True}, "1": {"content": "<s>", "special": True}}})
        self.assertEqual(self.tokenize("--no-parse-special", text="<new><other>")[0], n)
        self.assertEqual(self.tokenize(text="<new><other>"), [n, n + 2])
        self.write("tokenizer_config.json", {"added_tokens_decoder": {"1": {"content": "<t>"}}})
        done = assay("tokenize", "-m", self.at, "-p", "a")
        self.assertIn("tokenizer.model: added_tokens_decoder names id 1 '<t>', which is '<s>' here", done.stderr)

    def test_sentencepiece_refused(self):
        """Members of its messages that come last count: a field after the whole file changes one."""
        def refused(data, sentence):
            (self.at / "tokenizer.model").write_bytes(data)
            done = assay("tokenize", "-m", self.at, "-p", "a")
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
            self.assertRegex(done.stderr, f"^assay: {self.at}: tokenizer.model: {sentence}")
        for more, sentence in (
                (b"\x12\x02\x18\x01", r"trainer_spec.model_type is 1 \(unigram\), expected 2 \(BPE\), or --tok"),
                (b"\x12\x03\xc0\x01\x01", "trainer_spec.treat_whitespace_as_suffix is 1, expected 0"),
                (b"\x12\x03\x98\x02\x00", "trainer_spec.byte_fallback is 0, expected 1"),
                (b"\x12\x04\xc8\x02\xff\x7f", "trainer_spec.bos_id is 16383, expected an id below 480"),
                (b"\x1a\x03\x12\x01x", "normalizer_spec.precompiled_charsmap changes"),
                (b"\x1a\x02\x20\x01", "normalizer_spec.remove_extra_whitespaces is 1, expected 0"),
                (b"\x1a\x02\x28\x00", "normalizer_spec.escape_whitespaces is 0, expected 1"),
                (b"\n\x02\n\x00", r"pieces\[480\] is malformed, or its text is empty"),
                (b"\n\x03\n\x01\x00", r"pieces\[480\] is malformed, or its text .* has U\+0000"),
                (b"\n\x05\n\x01q\x18\x05", r"pieces\[480\] has type 5"),
                (b"\n\x05\n\x03<s>", "pieces: '<s>' has the ids 1 and 480"),
                (b"\x0b", "the file is malformed"), (b"\n\xff\xff\xff\xff\x7f", "the file is malformed"),
                (b"\x12\x01\x18", "trainer_spec is malformed")):
            with self.subTest(sentence):
                refused(PIECES + more, sentence)
        for n in (1, 100, 3000, len(PIECES) - 1):
            refused(PIECES[:n], "")

    def test_without(self):
        """Other forms of tokens are refused by name; so are options that would have no effect."""
        for name in ("tiktoken.model", "tekken.json"):
            (self.at / name).write_text("x")
            done = assay("tokenize", "-m", self.at, "-p", "a")
            self.assertIn(f"has {name} and no tokenizer.json or tokenizer.model", done.stderr)
            self.assertIn("or --tokenizer FILE.gguf", done.stderr)
        self.write("tokenizer.json", ROWS["qwen2"]["tokenizer"])
        for words in (["--tokenizer-pre", "qwen2"], ["--llama-compat"]):
            done = assay("tokenize", "-m", self.at, "-p", "a", *words)
            self.assertIn(f"and {words[0]} has no effect on that", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

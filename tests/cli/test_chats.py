#!/usr/bin/env python3
"""Conversations: scores of the assistant's tokens against those of the same ids and mask; a model's own
template; the fields of results; comparisons.

usage: test_chats.py ASSAY SOURCE_DIR
"""
import hashlib
import json
import pathlib
import shutil
import tempfile
import unittest

import gguf_make as g
from documents import documented, paths
from program import F16, Q4, SOURCE, run

TEMPLATE = ("{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content | trim }}"
            "{% if m.role == 'assistant' %}{{ eos_token }}{% endif %}\n{% endfor %}"
            "{% if add_generation_prompt %}[assistant] {% endif %}")
CHATS = [{"messages": [{"role": "user", "content": "Where is the ship?"},
                       {"role": "assistant", "content": "In the harbour.\n"},
                       {"role": "user", "content": [{"type": "text", "text": "And"}, {"type": "text", "text": " now?"}]},
                       {"role": "assistant", "content": "At sea."}], "category": "ships"},
         {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"},
                       {"role": "assistant", "content": "Hello to you"}], "id": 7},
         {"messages": [{"role": "user", "content": "Nobody answers"}]},
         {"text": "A text among them.", "category": "ships"}]


def evaluate(*words):
    done = run(*words, timeout=120)
    if done.returncode:
        raise AssertionError(f"{words}: {done.stderr}")
    return done


def read(path):
    return json.loads(pathlib.Path(path).read_text())


class Chats(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-chats-"))
        cls.chats, cls.template = cls.folder / "chats.jsonl", cls.folder / "template"
        cls.chats.write_text("".join(json.dumps(chat) + "\n" for chat in CHATS))
        cls.template.write_text(TEMPLATE)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def ids(self, *words):
        return evaluate("tokenize", "-m", F16, "-f", self.chats, "--documents", "--ids",
                        "--chat-template", self.template, *words).stdout

    def test_against_ids(self):
        """What is scored are these ids, of which the mask scores these."""
        for mask in ("assistant", "user", "all"):
            lines = self.folder / "ids.jsonl"
            lines.write_text(self.ids("--mask", mask))
            a, b = self.folder / "a.json", self.folder / "b.json"
            evaluate("perplexity", "-m", F16, "-f", self.chats, "--chat-template", self.template,
                     "--mask", mask, "--json", a)
            evaluate("perplexity", "-m", F16, "-f", lines, "--json", b)
            n = sum(sum(json.loads(line)["mask"]) for line in lines.read_text().splitlines())
            a, b = read(a), read(b)
            self.assertEqual(a["tokens"]["documents"]["n_scored"], n)
            for field in ("n_tokens", "ppl", "nll_error"):
                self.assertEqual(a["result"][field], b["result"][field], (mask, field))
            self.assertEqual(a["tokens"]["sha256"], b["tokens"]["sha256"])
            self.assertEqual(a["tokens"]["documents"]["conversations"],
                             {"n": 3, "mask": mask,
                              "template_sha256": hashlib.sha256(TEMPLATE.encode()).hexdigest()})

    def test_whose_tokens(self):
        """The scored bytes of each document, by the model's vocabulary."""
        text = evaluate("tokenize", "-m", F16, "-f", self.chats, "--documents", "--chat-template",
                        self.template).stdout
        scored = []
        for line in text.splitlines():
            if line.startswith("line "):
                scored.append("")
            elif line.startswith("*"):
                scored[-1] += line.split("'", 1)[1][:-1]
        self.assertEqual([s.strip() for s in scored],
                         ["In the harbour.</s> At sea.</s>", "Hello to you</s>", "",
                          "A text among them."])

    def test_own_template(self):
        """A model that carries its template needs no option; BOS stands in front once."""
        tokens = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256))]
        pairs = [g.pair("tokenizer.ggml.model", g.STRING, "llama"),
                 g.pair("tokenizer.ggml.tokens", g.ARRAY, tokens, g.STRING),
                 g.pair("tokenizer.ggml.scores", g.ARRAY, [0.0] * len(tokens), g.F32),
                 g.pair("tokenizer.ggml.token_type", g.ARRAY, [2, 3, 3] + [6] * 256, g.I32)]
        ids = []
        for name, more, words in (("own", [g.pair("tokenizer.chat_template", g.STRING, TEMPLATE)], []),
                                  ("other", [], ["--chat-template", TEMPLATE])):
            model = self.folder / f"{name}.gguf"
            model.write_bytes(g.gguf(pairs + more, []))
            ids.append(evaluate("tokenize", "-m", model, "-f", self.chats, "--documents", "--ids",
                                *words).stdout)
        self.assertEqual(*ids)
        self.assertEqual([json.loads(line)["ids"].count(1) for line in ids[0].splitlines()], [1] * 4)

    def test_fields(self):
        """docs/json.md has each field that conversations add."""
        result = self.folder / "f.json"
        evaluate("perplexity", "-m", F16, "-f", self.chats, "--chat-template", self.template, "--json",
                 result)
        more = documented(SOURCE, "assay perplexity -f CHATS --json FILE")
        self.assertEqual({p for p in paths(read(result)) if "conversations" in p}, more)

    def test_kld(self):
        out = evaluate("kld", "--base", F16, "-m", Q4, "-f", self.chats, "--chat-template",
                       self.template).stdout
        self.assertIn("category\tdocuments\ttokens", out)

    def test_note(self):
        """An option for conversations that meets none is told of."""
        plain = self.folder / "plain.jsonl"
        plain.write_text('{"text": "a b c"}\n')
        self.assertIn("--mask is for conversations, and the text has none",
                      evaluate("perplexity", "-m", F16, "-f", plain, "--mask", "user").stderr)


if __name__ == "__main__":
    unittest.main(argv=["test_chats"], verbosity=2)

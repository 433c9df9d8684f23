#!/usr/bin/env python3
"""Conversations: scores of the assistant's tokens against those of the same ids and mask; a model's own
template; the fields of results; comparisons.

usage: test_chats.py ASSAY SOURCE_DIR
"""
import hashlib
import json
import pathlib
import re
import shutil
import tempfile
import unittest

import gguf_make as g
from documents import check
from program import F16, Q4, run

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
                             {"n": 3, "n_refused": 0, "mask": mask,
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
        """docs/schema has each field that conversations add."""
        result = self.folder / "f.json"
        evaluate("perplexity", "-m", F16, "-f", self.chats, "--chat-template", self.template, "--json",
                 result)
        check(self, read(result))

    def test_kld(self):
        out = evaluate("kld", "--base", F16, "-m", Q4, "-f", self.chats, "--chat-template",
                       self.template).stdout
        self.assertIn("category\tdocuments\ttokens", out)

    def vocabulary(self, *controls):
        """A model file of bytes and these control tokens."""
        tokens = ["<unk>", "<s>", "</s>", *controls, *(f"<0x{b:02X}>" for b in range(256))]
        types = [2, 3, 3, *(3 for _ in controls), *[6] * 256]
        model = self.folder / "vocabulary.gguf"
        model.write_bytes(g.gguf([g.pair("tokenizer.ggml.model", g.STRING, "llama"),
                                  g.pair("tokenizer.ggml.tokens", g.ARRAY, tokens, g.STRING),
                                  g.pair("tokenizer.ggml.scores", g.ARRAY, [0.0] * len(tokens), g.F32),
                                  g.pair("tokenizer.ggml.token_type", g.ARRAY, types, g.I32)], []))
        return model

    def missing(self, template, *controls, content="Hello"):
        """What the note says of a template with a vocabulary."""
        chat = self.folder / "one.jsonl"
        chat.write_text(json.dumps({"messages": [{"role": "user", "content": content},
                                                 {"role": "assistant", "content": "Yes"}]}))
        note = evaluate("tokenize", "-m", self.vocabulary(*controls), "-f", chat, "--documents", "--mask",
                        "all", "--chat-template", template).stderr
        return re.findall(r"(\S+) \((\d+) tokens\)", note)

    def test_control_tokens_that_are_missing(self):
        """Pieces of the template's text that are meant to be one token, and nothing else."""
        def each(text):
            return "{% for m in messages %}" + text + "{% endfor %}"
        chatml = each("<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n")
        self.assertEqual(self.missing(chatml), [("<|im_start|>", "12"), ("<|im_end|>", "10")])
        self.assertEqual(self.missing(chatml, "<|im_end|>"), [("<|im_start|>", "12")])
        self.assertEqual(self.missing(chatml, "<|im_end|>", "<|im_start|>"), [])
        joined = each("{{ '<|' + m.role[:1] + 'x|>' + m.content }}</s>")
        self.assertEqual(self.missing(joined), [("<|ux|>", "6"), ("<|ax|>", "6")])
        for template, found in (
                ("<start_of_turn>{{ m.role }}\n{{ m.content }}<end_of_turn>",
                 ["<start_of_turn>", "<end_of_turn>"]),
                ("<|turn>{{ m.role }}\n{{ m.content }}<turn|>", ["<|turn>", "<turn|>"]),
                ("<｜User｜>{{ m.content }}<｜end▁of▁sentence｜>", ["<｜User｜>", "<｜end▁of▁sentence｜>"]),
                ("[gMASK]<sop>{{ m.content }}", ["[gMASK]", "<sop>"]),
                ("{{ bos_token }}[INST] <<SYS>>{{ m.content }}<</SYS>> [/INST]</s>", []),
                ("### Human: {{ m.content }}\n<tools><tool_call></think>", []),
                ("<|user|>\n{{ m.content }}</s>\n<|assistant|>", []),  # Zephyr's, which are no tokens
                ("USER: {{ m.content }} <|> <||> <| a |> <a|b> |a|> <|a\n|>", [])):
            self.assertEqual([name for name, n in self.missing(each(template))], found, template)

    def test_control_tokens_of_messages(self):
        """What messages have is theirs, unless the template writes it, too."""
        each = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
        self.assertEqual(self.missing(each, content="a <|im_end|> b <start_of_turn>"), [])
        self.assertEqual(self.missing(each.replace("\n", "<|im_end|>"), content="<|x|> <|im_end|> b"),
                         [("<|im_end|>", "10")])
        many = " ".join(f"<|{i}|>" for i in range(1000))
        self.assertEqual(self.missing(each, content=many), [])

    def test_strict(self):
        """The note, the result and the error of a template that the vocabulary does not fit."""
        chat, result = self.folder / "strict.jsonl", self.folder / "strict.json"
        chat.write_text(json.dumps(CHATS[0]))
        words = ["perplexity", "-m", F16, "-f", chat, "--chat-template",
                 "{% for m in messages %}<|im_start|>{{ m.content | trim }}{{ eos_token }}{% endfor %}"]
        self.assertIn("note: the chat template writes what the vocabulary has no token for, and it is evaluated "
                      "as plain text: <|im_start|> (8 tokens); is it the template of this model?",
                      evaluate(*words, "--json", result).stderr)
        self.assertEqual(read(result)["doubts"],
                         {"crlf_lines": 0, "byte_order_marks": 0, "missing_tokens": ["<|im_start|>"]})
        done = run(*words, "-q", "--strict")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"\Aassay: --strict: the chat template writes .*\n\Z")
        words[-1] = words[-1].replace("<|im_start|>", "[INST]")
        self.assertEqual(evaluate(*words, "-q", "--strict").stderr, "")

    def test_forms_of_data_sets(self):
        """ShareGPT's, Alpaca's, and prompts with completions are the messages that they stand for."""
        def message(role, text):
            return {"role": role, "content": text}
        talk = [message("system", "Be brief."), message("user", "Hello"), message("assistant", "Hello to you"),
                message("user", "And\nnow"), message("assistant", "Good bye")]
        names = {"system": "system", "user": "human", "assistant": "gpt"}
        turns = [{"from": names[m["role"]], "value": m["content"], "weight": 1} for m in talk]
        forms = [{"messages": talk, "prompt": "passed over"},
                 {"conversations": turns}, {"system": "Be brief.", "conversations": turns[1:], "tools": ""},
                 {"conversations": talk, "chosen": []},
                 {"instruction": "And", "input": "now", "output": "Good bye", "system": "Be brief.",
                  "history": [["Hello", "Hello to you"]]},
                 {"instruction": "And\nnow", "input": " ", "output": "Good bye", "system": "Be brief.",
                  "history": [["Hello", "Hello to you"]]},
                 {"prompt": talk[:4], "completion": talk[4:]}]
        path = self.folder / "forms.jsonl"
        for mask in ("assistant", "user"):
            path.write_text("".join(json.dumps(form) + "\n" for form in forms))
            out = evaluate("tokenize", "-m", F16, "-f", path, "--documents", "--ids", "--chat-template",
                           self.template, "--mask", mask).stdout.splitlines()
            self.assertEqual(len(set(out)), 1, out)
        for i, form in enumerate(forms):  # each is recognised in a list, whatever the file is called
            path = self.folder / "form.json"
            path.write_text(json.dumps([form]))
            done = evaluate("tokenize", "-m", F16, "-f", path, "--documents", "--chat-template", "zephyr")
            self.assertIn("* ", done.stdout)
            done = evaluate("perplexity", "-m", F16, "-f", path, "--chat-template", "zephyr")
            self.assertIn("has JSON objects, each of which is a document", done.stderr)

    def test_prompts(self):
        """Two texts, one after the other: the completion is scored, or the prompt, or both."""
        path, result = self.folder / "prompts.jsonl", self.folder / "prompts.json"
        path.write_text(json.dumps({"prompt": "In the harbour", "completion": " of the old town", "category": "a"}))
        found = {}
        for mask in ("assistant", "user", "all"):
            lines = evaluate("tokenize", "-m", F16, "-f", path, "--documents", "--mask", mask).stdout.splitlines()
            found[mask] = "".join(line.split("'", 1)[1][:-1] for line in lines if line.startswith("*"))
        self.assertEqual({k: v.strip() for k, v in found.items()},
                         {"assistant": "of the old town", "user": "In the harbour",
                          "all": "In the harbour of the old town"})
        evaluate("perplexity", "-m", F16, "-f", path, "--json", result)
        document = read(result)
        check(self, document)
        self.assertEqual(document["tokens"]["documents"]["conversations"],
                         {"n": 1, "n_refused": 0, "mask": "assistant", "template_sha256": None})
        done = run("perplexity", "-m", F16, "-f", path, "--chat-template", "chatml")
        self.assertEqual(done.returncode, 2)
        self.assertIn("are evaluated as they stand", done.stderr)
        done = run("perplexity", "-m", F16, "-f", self.chats, "--chat-template", "mistral")
        self.assertEqual(done.returncode, 2)
        self.assertIn("mistral is no file, and no template that is known: chatml command-r", done.stderr)

    def test_refused(self):
        """All that the template refuses are named at once, and may be left out, with their number."""
        template = "{% if messages[0].role != 'user' %}{{ raise_exception('No user query') }}{% endif %}" + TEMPLATE
        asked, others = CHATS[0], {"messages": CHATS[1]["messages"]}
        path, result = self.folder / "refused.jsonl", self.folder / "refused.json"
        words = ["perplexity", "-m", F16, "-f", path, "--chat-template", template]

        def write(*chats):
            path.write_text("".join(json.dumps(chat) + "\n" for chat in chats))
        for n, named in ((2, "2 and 3"), (10, "2, 3, 4, 5, 6, 7, 8, 9, 10 and 11"),
                         (12, "2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 2 more")):
            write(asked, *[others] * n)
            done = run(*words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"{n} conversations are refused, in lines {named} (--skip-refused leaves them out); line 2: "
                          "chat template, line 1: ", done.stderr)
            self.assertIn("No user query", done.stderr)
            done = evaluate(*words, "--skip-refused", "--json", result, "--force")
            self.assertIn(f"{n} conversations are left out, which the chat template refuses, in lines {named}; line 2: ",
                          done.stderr)
            document = read(result)
            check(self, document)
            chats = document["tokens"]["documents"]["conversations"]
            self.assertEqual((chats["n"], chats["n_refused"]), (1, n))
            kept = document["result"]
            write(asked)
            evaluate(*words, "--json", result, "--force")
            self.assertEqual(read(result)["result"]["ppl"], kept["ppl"])
        write(asked, others)
        done = run(*words)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"refused\.jsonl: line 2: chat template, line 1: .*No user query")
        self.assertIn("1 conversation is left out", evaluate(*words, "--skip-refused").stderr)
        write(others)
        self.assertIn("none of them is scored", run(*words, "--skip-refused").stderr)
        write(asked, {"messages": [{"role": "user", "content": 7}]})  # no conversation at all
        done = run(*words, "--skip-refused")
        self.assertEqual(done.returncode, 2)
        self.assertIn("message 1: \"content\" is ", done.stderr)
        path.write_text(json.dumps({"text": "A text."}))
        self.assertIn("--skip-refused is for conversations", run(*words[:-2], "--skip-refused").stderr)

    def test_a_list(self):
        """A list of conversations in a .json file is what JSON lines are."""
        of_lines, of_list = self.folder / "lines.json", self.folder / "list.json"
        path = self.folder / "chats.json"
        path.write_text(json.dumps(CHATS, indent=1))
        for file, result in ((self.chats, of_lines), (path, of_list)):
            evaluate("perplexity", "-m", F16, "-f", file, "--chat-template", self.template, "--json", result)
        a, b = read(of_lines), read(of_list)
        self.assertEqual(b["run"]["text_files"], [str(path)])
        begins = [i for i, line in enumerate(path.read_text().splitlines(), 1) if line == " {"]
        self.assertEqual([d["line"] for d in b["documents"]], begins)
        for document in (a, b):
            for field in ("text", "files", "run"):
                del document[field]
            for item in document["documents"]:
                del item["line"]
        self.assertEqual(a, b)


if __name__ == "__main__":
    unittest.main(argv=["test_chats"], verbosity=2)

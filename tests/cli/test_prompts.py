#!/usr/bin/env python3
"""Prompts that chat templates make of the set of conversations: what is a difference, what is none, and
what is noted.

usage: test_prompts.py ASSAY SOURCE_DIR
"""
import json
import pathlib
import shutil
import sys
import tempfile
import unittest

import gguf_make as g
from documents import check
from program import run

SET = [json.loads(line) for line in (pathlib.Path(sys.argv[2]) / "data/conversations.jsonl").read_text().splitlines()]
CONTROLS = ["<|im_start|>", "<|im_end|>"]
TOKENS = ["<unk>", "<s>", "</s>", *CONTROLS, *(f"<0x{b:02X}>" for b in range(256))]
START, END = TOKENS.index(CONTROLS[0]), TOKENS.index(CONTROLS[1])
RENDERED = len(SET) - sum(any(m["role"] == "critic" for m in c["messages"]) for c in SET)  # OWN refuses the others
OWN = """{# turns between marks #}
{%- for m in messages %}
{%- if m.role == 'critic' %}{{ raise_exception('no role ' + m.role) }}{% endif %}
{{- '<|im_start|>' + m.role + '\\n' + (m.content or '') }}
{%- for c in m.tool_calls or [] %}{{ '<call>' + c.function.arguments | tojson }}{% endfor %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""


class Prompts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-prompts-"))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def model(self, name, template, eos=END, more=(), types=(2, 3, 3, 3, 3)):
        """A file of bytes, two control tokens and a template."""
        path = self.folder / f"{name}.gguf"
        pairs = [g.pair("tokenizer.ggml.model", g.STRING, "llama"),
                 g.pair("tokenizer.ggml.tokens", g.ARRAY, TOKENS, g.STRING),
                 g.pair("tokenizer.ggml.scores", g.ARRAY, [0.0] * len(TOKENS), g.F32),
                 g.pair("tokenizer.ggml.token_type", g.ARRAY, [*types, *[6] * 256], g.I32),
                 g.pair("tokenizer.ggml.eos_token_id", g.U32, eos),
                 g.pair("tokenizer.ggml.add_space_prefix", g.BOOL, 0), *more]
        if template is not None:
            pairs.append(g.pair("tokenizer.chat_template", g.STRING, template))
        path.write_bytes(g.gguf(pairs, []))
        return path

    def compare(self, found, expected=OWN, code=None, **more):
        """The lines, the notes and the document of a comparison."""
        result = self.folder / "result.json"
        done = run("check", "-m", self.model("found", found, **more), "--base", self.model("base", expected),
                   "--json", result, "--force", cwd=self.folder)
        document = json.loads(result.read_text())
        check(self, document)
        differs = document["result"]["verdict"] == "differs"
        self.assertEqual(done.returncode, int(differs), done.stderr)
        notes = [line for line in done.stderr.splitlines() if line.startswith("assay: note: ")]
        self.assertEqual(notes, ["assay: note: found.gguf: " + n for n in document["notes"]])
        return done.stdout.splitlines(), document

    def test_what_is_no_difference(self):
        """Comments, the last newline, the kind of quotes, blanks within statements, other words of a refusal."""
        for text in (OWN, OWN.replace("{# turns between marks #}", ""), OWN + "\n", OWN.replace("'", '"'),
                     OWN.replace("{%- for m in messages %}", "{%-  for  m   in messages  %}{# #}"),
                     OWN.replace("no role ", "what is ")):
            lines, document = self.compare(text)
            said = document["result"]["prompts_why"]
            self.assertRegex(said, r"\Achat template, line \d+: .*(no role|what is) critic")
            self.assertEqual(lines, ["found.gguf makes the prompts of " + str(self.folder / "base.gguf") +
                                     f": 7 entries of the tokenizer, {RENDERED} prompts; {len(SET) - RENDERED} refused by both templates: " + said], text)
            self.assertEqual((document["keys"], document["result"]["n_prompts"]), ([], RENDERED))
            self.assertEqual([document["result"]["n_prompts_" + k] for k in ("refused", "unknown")], [len(SET) - RENDERED, 0])

    def differing(self, *words, **more):
        """The conversations that differ, and their rows."""
        lines, document = self.compare(*words, **more)
        rows = [(k["key"], k["expected"], k["found"]) for k in document["keys"] if k["kind"] == "prompt"]
        names = list(dict.fromkeys(key.split(", from ")[0] for key, _, _ in rows))
        self.assertEqual([row for row in rows if row[1] == row[2]], [])
        self.assertEqual(len(names), document["result"]["n_prompts_differ"])
        if rows:
            self.assertIn("found.gguf makes other prompts than ", lines[0])
            n = document["result"]["n_prompts"]
            self.assertIn(f"{len(names)} of {n} prompts differ{'s' * (len(names) == 1)}", lines[0])
            self.assertIn("prompt\texpected\tfound", lines)
        return names, rows

    def test_what_is(self):
        """Which conversations tell templates apart; the first difference in text and in tokens."""
        def having(what):
            return [c["id"] for c in SET if what(c) and not any(m["role"] == "critic" for m in c["messages"])]
        names, rows = self.differing(OWN.replace("<call>", "<tool_call>"))
        self.assertEqual(names, having(lambda c: any(m.get("tool_calls") for m in c["messages"])))
        self.assertEqual(rows[0][1:], ('call>{"city": "Zürich", "days": 2, "uni...',
                                       'tool_call>{"city": "Zürich", "days": 2,...'))
        names, rows = self.differing(OWN.replace("assistant\\n'", "assistant'"))
        self.assertEqual(names, having(lambda c: c.get("add_generation_prompt")))
        self.assertEqual(rows[0], (f"{names[0]}, from byte 65 on", "\\n", ""))
        self.assertEqual(rows[1][1:], (str(TOKENS.index("<0x0A>")), "nothing"))
        names, _ = self.differing(OWN.replace("'critic'", "'developer'"))
        self.assertEqual(names, ["a developer", "an unknown role"])
        names, rows = self.differing(OWN.replace("in messages", "in messages if m.content != ''"))
        self.assertIn("an empty system's text", names)

    def test_refusal(self):
        """A prompt beside a refusal is a difference, and two refusals are none."""
        refuse = "{% if not messages | selectattr('role', 'eq', 'user') | list %}{{ raise_exception('No user') }}{% endif %}"
        names, rows = self.differing(refuse + OWN)
        self.assertEqual(names, ["nobody asks"])
        self.assertEqual((rows[0][0], rows[1][2]), ("nobody asks, from byte 0 on", "nothing"))
        lines, document = self.compare("{{ raise_exception('no') }}", "{{ raise_exception('none') }}")
        self.assertEqual([k["key"] for k in document["keys"]], ["tokenizer.chat_template from byte 22 on"])
        self.assertEqual(document["result"]["n_prompts_refused"], len(SET))
        self.assertRegex(rows[0][2], r"\Arefused: chat template, line 1: .*No user")
        self.assertEqual(self.differing(refuse + OWN, refuse + "\n" + OWN)[0], [])

    def test_tokens(self):
        """The same texts in other tokens."""
        names, rows = self.differing(OWN, types=(2, 3, 3, 1, 3))
        self.assertEqual(len(names), RENDERED)
        self.assertEqual(rows[0][0], f"{names[0]}, from token 1 on")
        self.assertTrue(rows[0][1].startswith(f"{START} "), rows)
        self.assertEqual(len(rows), len(names))

    def test_without_rendering(self):
        """What Jinja's grammar or we do not know is compared as a text."""
        for text in ("{% if %}", "{{ messages | unheard_of }}"):
            lines, document = self.compare(text, text)
            self.assertEqual((document["keys"], document["result"]["n_prompts"]), ([], 0))
            self.assertIn(f": 7 entries of the tokenizer; no prompts were compared; {len(SET)} not known: chat template, line 1: ", lines[0])
            self.assertEqual(document["result"]["n_prompts_unknown"], len(SET))
            lines, document = self.compare(text + " ", text)
            self.assertIn("found.gguf has another tokenizer than ", lines[0])
            keys = document["keys"]
            self.assertEqual([(k["kind"], k["key"]) for k in keys],
                             [("tokenizer", f"tokenizer.chat_template from byte {len(text)} on")])
        self.assertEqual(self.compare(None)[1]["keys"], [
            {"kind": "tokenizer", "key": "tokenizer.chat_template", "expected": "present", "found": "absent"}])

    def test_nothing_to_compare(self):
        """A base with neither is no base."""
        base = self.folder / "nothing.gguf"
        base.write_bytes(g.gguf([], []))
        done = run("check", "-m", self.model("found", OWN), "--base", base)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(f"{base}: key 'tokenizer.ggml.model' is missing", done.stderr)

    def test_bos(self):
        """A BOS that the template writes, or that the vocabulary puts in front; one that is missing."""
        bos = [g.pair("tokenizer.ggml.bos_token_id", g.U32, 1)]
        front, none = ([*bos, g.pair("tokenizer.ggml.add_bos_token", g.BOOL, v)] for v in (1, 0))
        self.assertEqual(self.both(OWN, front, "{{ bos_token }}" + OWN, none)["n_prompts_differ"], 0)
        self.assertEqual(self.both("{{ bos_token }}" + OWN, none, OWN, front)["n_prompts_differ"], 0)
        self.assertEqual(self.both(OWN, none, "{{ bos_token }}" + OWN, none)["n_prompts_differ"], RENDERED)

    def both(self, found, more, expected, base_more):
        """The result of comparing two files, each with pairs of its own."""
        result = self.folder / "both.json"
        run("check", "-m", self.model("found", found, more=more), "--base",
            self.model("base", expected, more=base_more), "--json", result, "--force", cwd=self.folder)
        return json.loads(result.read_text())["result"]

    def test_days(self):
        """A template with the day of today differs from one with a fixed day."""
        day = "{{ strftime_now('%d %b %Y') }}"
        names, rows = self.differing(OWN + day, OWN + "26 Jul 2024")
        self.assertEqual(names, ["another day"])
        self.assertTrue(rows[0][2].startswith("05 Nov 2025"), rows)

    def test_limits(self):
        """What takes too long, or makes too much, is no verdict."""
        for text, words in (("{% if messages[0].content != 'a' %}{% for i in range(99999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}{% endif %}", "the limit of a conversation"),
                            ("{% if messages[0].content != 'a' %}{{ 'a' * 1500000 }}{% endif %}", "prompt of 1500000 bytes, expected at most 1048576")):
            done = run("check", "-m", self.model("found", OWN), "--base", self.model("base", text))
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(words, done.stderr)

    def test_one_has_none(self):
        """A template that only one of the two has is a difference, whichever."""
        for found, expected, words in ((None, OWN, ("present", "absent")), (OWN, None, ("absent", "present"))):
            key, = self.compare(found, expected)[1]["keys"]
            self.assertEqual((key["key"], key["expected"], key["found"]), ("tokenizer.chat_template", *words))
        _, document = self.compare(OWN.replace("add_generation_prompt", "true"), None)
        self.assertEqual([note[:21] for note in document["notes"]], ["the generation prompt"])

    def test_named(self):
        """Templates of a name that both have are compared, tool_use with tools alone; others are noted."""
        def named(name, text):
            return [g.pair("tokenizer.chat_template." + name, g.STRING, text)]
        n = sum("tools" in c for c in SET)
        result = self.both(OWN, named("tool_use", OWN), OWN, named("tool_use", OWN + "!"))
        self.assertEqual((result["n_prompts_differ"], result["n_prompts"]), (n, RENDERED + n))
        result = self.both(OWN, named("rag", OWN), OWN, named("rag", OWN + "!"))
        self.assertEqual(result["n_prompts_differ"], RENDERED)
        _, document = self.compare(OWN, more=named("tool_use", OWN))
        self.assertEqual(document["notes"], ["the template 'tool_use' is not compared: the base has none of this name"])

    def test_options(self):
        """What would do nothing beside another file is refused."""
        a = self.model("found", OWN)
        for option in (["-t", "2"], ["--device", "cpu"], ["--precision", "high"], ["-ctk", "q8_0"], ["--tokenizer", a]):
            done = run("check", "-m", a, "--base", a, *option)
            self.assertEqual(done.returncode, 2, option)
            self.assertIn("does not go with --kl-divergence-base: only tokens and prompts of a GGUF file", done.stderr)

    def test_notes(self):
        """BOS twice, a turn without an end, a generation prompt without effect."""
        def notes(template, **more):
            return [note.split(":")[0].split(",")[0].split(" (")[0] for note in self.compare(template, **more)[1]["notes"]]
        bos = [g.pair("tokenizer.ggml.bos_token_id", g.U32, 1)]
        twice, never, asks = ("the chat template writes BOS", "the chat template never writes EOS or EOT after an answer",
                              "the generation prompt")
        self.assertEqual(notes(OWN), [])
        self.assertEqual(notes("{{ bos_token }}" + OWN, more=bos), [twice])
        self.assertEqual(notes("{{ bos_token }}" + OWN, more=[*bos, g.pair("tokenizer.ggml.add_bos_token", g.BOOL, 0)]), [])
        self.assertEqual(notes(OWN, eos=2), [never])
        self.assertEqual(notes(OWN, eos=2, more=[g.pair("tokenizer.ggml.eot_token_id", g.U32, END)]), [])
        start = [g.pair("tokenizer.ggml.bos_token_id", g.U32, 2), g.pair("tokenizer.ggml.add_bos_token", g.BOOL, 1)]
        self.assertEqual(notes(OWN, eos=2, more=start), [never])  # BOS is EOS, and ends nothing
        self.assertEqual(notes(OWN.replace("add_generation_prompt", "true")), [asks])
        self.assertEqual(notes(OWN.replace("add_generation_prompt", "false")), [asks])


if __name__ == "__main__":
    unittest.main(argv=["test_prompts"], verbosity=2)

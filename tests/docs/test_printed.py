#!/usr/bin/env python3
"""The reading and the comparison of printed.py, of pages and commands of its own.

usage: test_printed.py SOURCE_DIR
"""
import os
import pathlib
import sys
import tempfile
import unittest

from printed import blocks, compare, problems, rewritten, run_page

ENV = {**os.environ, "LC_ALL": "C"}


def page_of(*lines):
    return "\n".join(lines) + "\n"


def findings(page, kind="tiny"):
    return list(compare(page, run_page(page, kind, {}, ENV)))


def written(page):
    return rewritten(page, run_page(page, "tiny", {}, ENV))


class Marks(unittest.TestCase):
    def test_what_needs_none(self):
        self.assertEqual(problems(page_of("```sh", "ls", "```", "text", "```text", "x", "```")), [])

    def test_what_is_right(self):
        for mark in ("run: tiny", "run: real", "made: llama.cpp of October 2026, 9 November 2026",
                     "run: tiny\necho >x\n"):
            self.assertEqual(problems(page_of(f"<!-- {mark} -->", "```", "$ ls", "x", "```")), [], mark)

    def test_what_is_wrong(self):
        output = ("```", "$ ls", "x", "```")
        for lines, said in (
                (output, "output without a mark"),
                (("<!-- run: large -->", *output), "run: large: there are"),
                (("<!-- made: by hand -->", *output), "does not end with a date"),
                (("<!-- run: tiny -->", "```", "x", "```"), "nothing is run"),
                (("<!-- run: tiny, above -->", "```", "x", "```"), "no block is above"),
                (("<!-- run: tiny -->", "a line", "<!-- run: tiny -->", *output), "above no block")):
            found = problems(page_of(*lines))
            self.assertEqual(len(found), 1, lines)
            self.assertIn(said, found[0][1])

    def test_language_and_indent(self):
        page = page_of("- a", "  <!-- run: tiny -->", "  ```", "  $ echo a", "  a", "  ```")
        self.assertEqual(blocks(page)[0].lines, ["$ echo a", "a"])
        self.assertEqual(findings(page), [])


class Run(unittest.TestCase):
    def shown(self, *lines, mark="run: tiny"):
        return findings(page_of(f"<!-- {mark} -->", "```", *lines, "```"))

    def test_the_same(self):
        self.assertEqual(self.shown("$ printf 'a\\nb\\n'", "a", "b"), [])
        self.assertEqual(self.shown("$ echo a", "a", "", "$ echo b", "b"), [])
        self.assertEqual(self.shown("$ echo a \\", "    b", "a b"), [])

    def test_not_the_same(self):
        for lines in (("a",), ("a", "c"), ("a", "b", "c"), ("b", "a"), ()):
            found = self.shown("$ printf 'a\\nb\\n'", *lines)
            self.assertEqual(len(found), 1, lines)
            self.assertIn("line 2: $ printf", found[0])

    def test_left_out(self):
        for lines in (("...", "c"), ("a", "..."), ("a", "...", "c"), ("...", "b", "...")):
            self.assertEqual(self.shown("$ printf 'a\\nb\\nc\\n'", *lines), [], lines)
        self.assertEqual(self.shown("$ echo abc", "ab..."), [])
        self.assertEqual(len(self.shown("$ printf 'a\\nb\\nc\\n'", "...", "d")), 1)

    def test_times_and_folders(self):
        self.assertEqual(self.shown("$ echo took 1.5 s of 12 s", "took 12.25 s of 9 s"), [])
        self.assertEqual(self.shown("$ echo $PWD/file", "file"), [])
        self.assertEqual(len(self.shown("$ echo 1.5 nats", "1.4 nats")), 1)

    def test_standard_error(self):
        both = "$ echo a; echo note >&2"
        self.assertEqual(self.shown(both, "a"), [])
        self.assertEqual(self.shown(both, "note", "a"), [])
        self.assertEqual(len(self.shown(both, "another", "a")), 1)

    def test_failures_are_shown(self):
        self.assertEqual(self.shown("$ echo no >&2; false", "no"), [])
        self.assertIn("exit code 3", self.shown("$ (exit 3)")[0])
        self.assertIn("did not end", self.shown("$ exec true")[0])

    def test_hidden_commands(self):
        self.assertEqual(self.shown("$ cat x", "a", mark="run: tiny\necho a >x\n"), [])
        self.assertEqual(self.shown("a", mark="run: tiny\nx=a\necho $x\n"), [])
        self.assertEqual(len(self.shown("b", mark="run: tiny\necho a\n")), 1)
        self.assertIn("exit code 1", self.shown("$ echo a", "a", mark="run: tiny\nfalse\n")[0])

    def test_the_block_above(self):
        for language, text in (("sh", "echo a"), ("python", "print('a')")):
            page = page_of(f"```{language}", text, "```", "", "<!-- run: tiny, above -->", "```", "a", "```")
            self.assertEqual(problems(page), [])
            self.assertEqual(findings(page), [])
            self.assertEqual(len(findings(page.replace("\na\n", "\nb\n"))), 1)

    def test_one_folder_and_shell_for_a_page(self):
        page = page_of("<!-- run: tiny -->", "```", "$ echo a >x; y=b", "```", "<!-- run: real -->", "```", "$ x", "```",
                       "<!-- run: tiny -->", "```", "$ cat x; echo $y", "a", "b", "```")
        self.assertEqual(findings(page), [])
        self.assertEqual(len(findings(page, "real")), 1)

    def test_what_is_left_running_ends(self):
        self.assertEqual(self.shown("$ sleep 1000 &", "$ echo a", "a"), [])


class Write(unittest.TestCase):
    def test_as_printed(self):
        page = page_of("<!-- run: tiny -->", "```", "$ printf 'x 1\\ny 2\\nz 3\\n'", "x 7", "...", "z 8", "",
                       "$ echo b; echo note 2 >&2", "note 1", "c", "```", "end")
        new = written(page)
        self.assertEqual(new.splitlines()[3:-2], ["x 1", "...", "z 3", "", "$ echo b; echo note 2 >&2", "note 2", "b"])
        self.assertEqual(findings(new), [])
        self.assertEqual(written(new), new)

    def test_a_middle_part(self):
        page = page_of("<!-- run: tiny -->", "```", "$ printf '%s\\n' a b=1 c d e", "a", "...", "b=2", "c", "...", "```")
        self.assertEqual(written(page).splitlines()[3:-1], ["a", "...", "b=1", "c", "..."])


if __name__ == "__main__":
    unittest.main(argv=["test_printed"])

#!/usr/bin/env python3
"""Pages are no longer than they may be.

usage: doc_words.py SOURCE_DIR

A word has a letter or a digit: lines of tables have none. What scripts write does not count: tables
between `<!-- begin ... -->` and `<!-- end ... -->`, and output below `<!-- run: ... -->`. A page of docs/
has at most 4,000 words (those of LONGER as many as they need), and all of them 75,000; README.md has at
most 900, counted as wc does.
"""
import pathlib
import re
import sys

README, PAGE, ALL = 900, 4000, 75000
LONGER = {"formats.md", "forward.md"}


MADE = re.compile(r"(?s)<!-- begin ([\w-]+) -->.*?<!-- end \1 -->|<!-- run: (?:(?!-->).)*-->\s*```\n.*?```")


def words(path):
    return sum(bool(re.search(r"\w", word)) for word in MADE.sub("", path.read_text()).split())


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    pages = {path: words(path) for path in (root / "README.md", *sorted((root / "docs").glob("*.md")))}
    findings = [f"{path.relative_to(root)}: {n} words; at most {PAGE}" for path, n in pages.items()
                if path.name not in LONGER and n > PAGE]
    if (n := len((root / "README.md").read_text().split())) > README:
        findings.append(f"README.md: {n} words; at most {README}")
    if sum(pages.values()) > ALL:
        findings.append(f"all pages: {sum(pages.values())} words; at most {ALL}")
    print("\n".join(findings) if findings else f"{sum(pages.values())} words in {len(pages)} pages")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()

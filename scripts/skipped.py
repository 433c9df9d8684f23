#!/usr/bin/env python3
"""How many tests were skipped, and why: from what `ctest --output-junit FILE` wrote.

usage: skipped.py FILE

A test that ends with exit code 77 was skipped; its last line that says "skip", or its last line,
is why. Of a test that ran, cmocka names the parts that it skipped, and unittest counts them.
"""
import re
import sys
import xml.etree.ElementTree as ElementTree


def reason(output):
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    said = [line for line in lines if "skip" in line.lower()] or lines[-1:] or ["no reason given"]
    text = re.sub(r"^skipped: |: skipped$", "", said[-1])
    return text if len(text) <= 120 else text[:117] + "..."


def parts(output):
    """What a test that ran left out."""
    names = re.findall(r"(?m)^\[  SKIPPED \] (\w+)$", output)
    count = re.search(r"(?m)^OK \((?:.*, )?skipped=(\d+)", output)
    if names:
        return ", ".join(dict.fromkeys(names))
    return f"{count[1]} of its tests" if count else None


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    whole, partly = [], []
    for case in ElementTree.parse(sys.argv[1]).getroot().iter("testcase"):
        name, output = case.get("name"), case.findtext("system-out") or ""
        skipped = case.find("skipped")
        if skipped is not None and "DISABLED" not in (skipped.get("message") or ""):
            whole.append(f"{name} ({reason(output)})")
        elif skipped is None and (left_out := parts(output)):
            partly.append(f"{name} ({left_out})")
    for lines, what in ((whole, "skipped"), (partly, "skipped in part")):
        print("\n    ".join([f"{len(lines)} {what}{':' if lines else ''}", *lines]))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""docs/models.md has every architecture, and every class of config.json, that model/arch/ has.

usage: doc_models.py SOURCE_DIR
"""
import pathlib
import re
import sys

CLASS = r"\w+For(?:CausalLM|ConditionalGeneration)"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    page = (root / "docs/models.md").read_text()
    code = "".join(path.read_text() for path in sorted((root / "model/arch").rglob("*.c")))
    described = set(re.findall(r'struct model_arch model_arch_\w+ = \{[^"]*?\.name = "([^"]+)"', code))
    shown = {name for cell in re.findall(r"(?m)^\| (`[^|]+) \|", page) for name in re.findall("`([^`]+)`", cell)}
    classes, listed = set(re.findall(f'"({CLASS})"', code)), set(re.findall(rf"\b{CLASS}\b", page))
    findings = [f"docs/models.md lacks {name}" for name in sorted(described - shown | classes - listed)]
    findings += [f"docs/models.md has {name}, model/arch/ has not" for name in sorted(shown - described | listed - classes)]
    print("\n".join(findings) if findings else f"{len(shown)} architectures, {len(listed)} classes")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

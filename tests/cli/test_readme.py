"""What the README shows is what the program prints.

usage: test_readme.py ASSAY SOURCE_DIR
"""
import pathlib
import re
import shlex
import sys
import tempfile

from program import ASSAY, SOURCE, TEXT, run

README = (SOURCE / "README.md").read_text()
MODELS = SOURCE.resolve().parent / "shared" / "models"
EXAMPLE = re.compile(r"^```\n\$ assay (?P<words>.*)\n\.\.\.\n(?P<end>.*?)\n```$", re.M | re.S)


def check_example(folder, words, end):
    """The last lines of a command's output are these."""
    done = run(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    found = done.stdout.rstrip().splitlines()[-len(end):]
    assert found == end, "README.md: expected\n" + "\n".join(found)
    return {row[0]: row for row in (re.split(r"  +", line) for line in end) if len(row) > 2}


def check_sentence(rows):
    """The figures of Q4_K_M, in words."""
    said = re.search(r"diverge by ([\d.]+) nats in the mean, and for (\d+) of 100", README)
    kld, same_top = (rows["Q4_K_M"][i].split(" ± ") for i in (3, 4))
    found = [f"{float(kld[0]):.4f}", f"{100 - float(same_top[0]):.0f}"]
    assert list(said.groups()) == found, f"README.md says {said.groups()}, found {found}"


def main():
    examples = list(EXAMPLE.finditer(README))
    assert examples, "README.md has no example with output"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / TEXT.name).symlink_to(TEXT)
        for example in examples:
            words = shlex.split(example["words"])
            for model in (word for word in words if word.endswith(".gguf")):
                if not (MODELS / model).exists():
                    print(f"{model} is not among the reference models")
                    sys.exit(77)
                if not (folder / model).exists():
                    (folder / model).symlink_to(MODELS / model)
            check_sentence(check_example(folder, words, example["end"].splitlines()))


main()

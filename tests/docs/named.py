#!/usr/bin/env python3
"""Commands and options that documents name are the program's.

usage: named.py ASSAY SOURCE_DIR

In code, `assay WORD` names a command, and options behind it are options of that command. `--NAME` by
itself is an option of some command, or of llama-perplexity (tests/cli/peer-options.tsv), or stands in
ELSEWHERE, by the program that has it.
"""
import pathlib
import re
import subprocess
import sys

ELSEWHERE = {
    "llama-quantize": "--imatrix --output-tensor-type --pure --tensor-type --tensor-type-file --token-embedding-type",
    "llama-imatrix": "--show-statistics",
    "llama-cpp-python": "--logits_all",
    "GGUF-Tool-Suite": "--hotswap",
    "lm_eval": "--apply_chat_template --batch_size --log_samples --model_args --output_path --use_cache",
    "mpirun and sbatch": "--bind-to --map-by --requeue",
    "vLLM": "--calculate-kv-scales --kv-cache-dtype",
    "scripts/check-aarch64.sh": "--some --tests",
    "scripts/trace-transformers.py": "--dtype",
    "bench/second_opinion.py": "--sensitivity",
    "an example of docs/how-to-add.md": "--count",
}
OTHERS = {name for names in ELSEWHERE.values() for name in names.split()}
OPTION = re.compile(r"(?<![\w-])(--?[a-zA-Z][\w-]*)")
CODE = re.compile(r"(?ms)^( *)```\w*\n.*?^\1```$|`[^`\n]+`")
END = re.compile(r"[|;&>#)]|\\$|$", re.M)


def spellings(assay, command):
    text = subprocess.run([assay, "help", command], capture_output=True, text=True, check=True).stdout
    return {name for line in re.findall(r"(?m)^  (-.*)$", text) for name in OPTION.findall(line.split("  ")[0])}


def of_peers(source):
    lines = [line for line in (source / "tests/cli/peer-options.tsv").read_text().splitlines() if line[0] != "#"]
    return {name for line in lines[1:] for name in line.split("\t")[0].split() + line.split("\t")[1].split()}


class Program:
    def __init__(self, assay, source):
        overview = subprocess.run([assay, "help"], capture_output=True, text=True, check=True).stdout
        names = set(re.findall(r"(?m)^  ([a-z]+) ", overview))
        self.options = {name: spellings(assay, name) for name in names if name != "help"} | {"help": set()}
        self.peers = of_peers(source)
        self.all = set().union(self.peers, *self.options.values(), {"--version", "--help", "-h"})

    def findings(self, code):
        """What is wrong with the words of a piece of code."""
        for match in re.finditer(r"(?<![\w./-])assay(?: (\S+))?(.*)", code):
            word, rest = match[1] or "", match[2]
            rest = rest[:END.search(rest).start()]
            if word.startswith("-"):
                word, rest = "perplexity", word + rest
            if not re.fullmatch("[a-z]+", word):
                continue
            if word not in self.options:
                yield f"assay {word}: there is no such command"
                continue
            known = set(self.options[word])
            if word == "plan":
                known |= self.all
            if word == "perplexity":
                known |= self.peers
            yield from (f"assay {word} {name}: it has no such option" for name in OPTION.findall(rest)
                        if name not in known | OTHERS and name.replace("_", "-") not in known)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source = pathlib.Path(sys.argv[2])
    program = Program(sys.argv[1], source)
    findings = []
    for path in (*source.glob("*.md"), *sorted((source / "docs").glob("*.md"))):
        page = path.read_text()
        for piece in CODE.finditer(page):
            where = f"{path.relative_to(source)}:{page.count(chr(10), 0, piece.start()) + 1}"
            findings += [f"{where}: {what}" for what in program.findings(piece.group())]
            if piece.group().startswith("`--"):
                findings += [f"{where}: {name}: no program named here has it" for name in OPTION.findall(piece.group())
                             if name not in program.all | OTHERS]
    print("\n".join(findings) if findings else "every command and option is there")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

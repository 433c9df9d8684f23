#!/usr/bin/env python3
"""Compare what the program makes of published chat templates with jinja2, and whose tokens it finds.

usage: chat_templates.py ASSAY RENDER_CHAT FOLDER...

RENDER_CHAT is the build's tests/template/render_chat. Each *.jinja of the folders renders each
conversation of data/conversations.jsonl: the texts must be jinja2's, in the sandbox of Hugging Face's
transformers, and what one refuses the other must refuse. Where X.jinja has an X_training.jinja beside
it, with generation marks, both go to `assay tokenize --mask assistant`: where they make the same
tokens, the same of them must be scored, but for what the marks have after a turn's end (blanks) or before
an answer (its header), which a model does not write. A difference ends with exit code 1. Needs jinja2.
"""
import collections
import functools
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / "cli"), str(HERE.parent / "tests" / "template")]
import gguf_make as g  # noqa: E402
from sandbox import environment  # noqa: E402

ASSAY, RENDER, *FOLDERS = sys.argv[1:]
ENVIRONMENT = environment()
SET = [json.loads(line) for line in (HERE.parent / "data/conversations.jsonl").read_text().splitlines()]
# What ends a turn, by the first that a template has.
ENDS = ("<|im_end|>", "<|eot_id|>", "<|END_OF_TURN_TOKEN|>", "<end_of_turn>", "<turn|>", "<|return|>", "<end_of_utterance>",
        "<|end|>", "<｜end▁of▁sentence｜>", "<|endoftext|>", "</s>")
MARKER = re.compile(r"<[|｜]?[^<>\s'\"{}()|]{1,40}[|｜]?>")


def names(conversation):
    return {"tools": None, "documents": None, "add_generation_prompt": False, "bos_token": "<s>", "eos_token": "</s>",
            **conversation}


@functools.cache
def compiled(template):
    return ENVIRONMENT.from_string(template)


def expected(template, conversation):
    try:
        return compiled(template).render(**names(conversation))
    except Exception as e:  # whatever Python raises
        return e


def compare_texts(templates):
    """How many texts are equal, how many are refused by both, and what differs."""
    jobs = [(path, text, c) for path, text in templates for c in SET]
    lines = "".join(json.dumps({"template": text, "names": names(c)}) + "\n" for _, text, c in jobs)
    done = subprocess.run([RENDER], input=lines, capture_output=True, text=True, check=True)
    n_equal = n_refused = 0
    wrong = []
    for (path, text, c), line in zip(jobs, done.stdout.splitlines(), strict=True):
        got, want = json.loads(line), expected(text, c)
        if "error" in got and isinstance(want, Exception):
            n_refused += 1
        elif got.get("text") == want:
            n_equal += 1
        else:
            wrong.append((path.name, c["id"], str(got.get("error", "another text"))[:100], repr(want)[:100]))
    return n_equal, n_refused, wrong


def vocabulary(path, texts):
    """A file of bytes and all markers of the templates."""
    found = sorted({m for text in texts for m in MARKER.findall(text)} - {"<s>", "</s>", "<unk>"})
    control = [m for m in found if "|" in m or "｜" in m or "_of_" in m]
    tokens = ["<unk>", "<s>", "</s>", *control, *(f"<0x{b:02X}>" for b in range(256))]
    end = next((tokens.index(e) for e in ENDS if e in tokens and any(e in t for t in texts)), 2)
    path.write_bytes(g.gguf([
        g.pair("tokenizer.ggml.model", g.STRING, "llama"), g.pair("tokenizer.ggml.tokens", g.ARRAY, tokens, g.STRING),
        g.pair("tokenizer.ggml.scores", g.ARRAY, [0.0] * len(tokens), g.F32),
        g.pair("tokenizer.ggml.token_type", g.ARRAY, [2, 3, 3, *[3] * len(control), *[6] * 256], g.I32),
        g.pair("tokenizer.ggml.eos_token_id", g.U32, end), g.pair("tokenizer.ggml.add_bos_token", g.BOOL, 0),
        g.pair("tokenizer.ggml.add_space_prefix", g.BOOL, 0)], []))
    return tokens


def scored(folder, conversation, template):
    """The ids and the mask; None: it is refused."""
    chat = folder / "chat.jsonl"
    chat.write_text(json.dumps(conversation) + "\n")
    (folder / "template").write_text(template)
    done = subprocess.run([ASSAY, "tokenize", "-m", folder / "v.gguf", "-f", chat, "--documents", "--ids",
                           "--chat-template", folder / "template"], capture_output=True, text=True)
    line = json.loads(done.stdout) if done.returncode == 0 else None
    return line and (line["ids"], line["mask"])


def text_of(tokens, ids):
    return b"".join(bytes([int(tokens[i][3:5], 16)]) if re.fullmatch("<0x..>", tokens[i]) else tokens[i].encode()
                    for i in ids).decode(errors="replace")


def kind_of_difference(tokens, ids, found, marked):
    """What the marks have beside what is found: "" (nothing), "blanks" after a turn, a "header" before an
    answer, or both; None where it is anything else."""
    kinds = set()
    at = 0
    while at < len(ids):
        end = at + 1
        if found[at] != marked[at]:
            while end < len(ids) and found[end] != marked[end]:
                end += 1
            if any(found[at:end]):
                return None
            if not text_of(tokens, ids[at:end]).replace("▁", " ").strip():
                kinds.add("blanks")
            elif end < len(ids) and found[end]:
                kinds.add("header")
            else:
                return None
        at = end
    return " and ".join(sorted(kinds))


def compare_spans(plain, training, folder):
    """How many conversations with an answer are of which kind, and those of none."""
    tokens = vocabulary(folder / "v.gguf", (plain, training))
    n = collections.Counter()
    wrong = []
    for c in SET:
        if not any(m["role"] == "assistant" for m in c["messages"]):
            continue
        found, marked = scored(folder, c, plain), scored(folder, c, training)
        if not found or not marked:
            n["refused"] += 1
        elif found[0] != marked[0]:
            n["other texts"] += 1
        else:
            kind = kind_of_difference(tokens, found[0], found[1], marked[1])
            n["wrong" if kind is None else f"marks have {kind} more" if kind else "equal"] += 1
            if kind is None:
                wrong.append((c["id"], *(text_of(tokens, [i for i, s in zip(*pair) if s]) for pair in (found, marked))))
    return n, wrong


def main():
    templates = [(path, path.read_text()) for folder in FOLDERS for path in sorted(pathlib.Path(folder).glob("*.jinja"))]
    n_equal, n_refused, wrong = compare_texts(templates)
    print(f"{len(templates)} templates, {len(SET)} conversations: {n_equal} texts equal, {n_refused} refused by both, "
          f"{len(wrong)} wrong")
    for row in wrong:
        print("\t".join(row))
    n_wrong = len(wrong)
    with tempfile.TemporaryDirectory() as folder:
        for path, plain in templates:
            training = path.with_name(path.stem + "_training.jinja")
            if not training.is_file():
                continue
            n, differing = compare_spans(plain, training.read_text(), pathlib.Path(folder))
            print(f"{path.stem}: " + ", ".join(f"{n[kind]} {kind}" for kind in sorted(n)))
            for row in differing:
                print("\t" + "\t".join(map(repr, row)))
            n_wrong += len(differing)
    sys.exit(n_wrong > 0)


main()

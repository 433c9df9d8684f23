#!/usr/bin/env python3
"""Compare the program's ids of a folder's tokenizer.json with those of the library tokenizers.

usage: tokenizer_json.py ASSAY [TEXT...] [--random N] [--seed S] [--only NAME...] [--keep FOLDER]
       tokenizer_json.py --vectors > tests/data/tokenizer-json.jsonl

For each family of models a tokenizer.json is made in the form that its authors publish: their
normaliser, pre-tokeniser, post-processor and flags of added tokens, with a small vocabulary that is
trained on the first TEXT and on random strings. `assay tokenize DIR --documents` makes the ids of
the texts and of N random strings (10,000), with and without control tokens recognised. A difference
ends with exit code 1. Needs the package tokenizers; it downloads nothing.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "model"))
import pretokenizer_vectors as published  # noqa: E402

META = "\u2581"
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
REGEX_BYTES = {**BYTES, "use_regex": True}


def split(expression, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": expression}, "behavior": behavior,
            "invert": invert}


def sequence(*parts):
    return {"type": "Sequence", "pretokenizers": list(parts)}


def normalizers(*parts):
    return {"type": "Sequence", "normalizers": list(parts)}


def template(*before, after=()):
    """The ids of its tokens are put in where the vocabulary is known."""
    special = [*before, *after]
    return {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": t, "type_id": 0}} for t in before]
            + [{"Sequence": {"id": "A", "type_id": 0}}]
            + [{"SpecialToken": {"id": t, "type_id": 0}} for t in after],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {t: {"id": t, "ids": [0], "tokens": [t]} for t in special}}


def token(content, special=True, **flags):
    return {"content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": not special, "special": special, **flags}


NFC = {"type": "NFC"}
TO_META = {"type": "Replace", "pattern": {"String": " "}, "content": META}
LEGACY = normalizers({"type": "Prepend", "prepend": META}, TO_META)
DIGITS = {"type": "Digits", "individual_digits": True}
CHATML = [token("<|endoftext|>"), token("<|im_start|>"), token("<|im_end|>")]
LLAMA2 = [token("<unk>"), token("<s>"), token("</s>")]
GPT2_TEMPLATE = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False,
                 "use_regex": True}

# name: normalizer, pre_tokenizer, added tokens, members of model, post_processor
FAMILIES = {
    "llama3": (None, sequence(split(published.LLAMA3), BYTES),
               [token(t) for t in ("<|begin_of_text|>", "<|eot_id|>", "<|reserved_special_token_0|>")],
               {"ignore_merges": True},
               {"type": "Sequence", "processors": [BYTES, template("<|begin_of_text|>")]}),
    "qwen2": (NFC, sequence(split(published.QWEN2), BYTES),
              CHATML + [token("<think>", False, normalized=False),
                        token("<tool_call>", False, normalized=False)], {}, BYTES),
    "qwen35": (NFC, sequence(split(published.QWEN35), BYTES), CHATML, {}, BYTES),
    "starcoder2": (None, sequence(DIGITS, REGEX_BYTES), CHATML + [token("<fim_prefix>")], {}, None),
    "smollm": (None, sequence(DIGITS, REGEX_BYTES), CHATML, {}, None),
    "granite": (None, REGEX_BYTES, CHATML, {}, BYTES),
    "olmo2": (None, sequence(split(published.LLAMA3), BYTES),
              CHATML + [token("|||IP_ADDRESS|||", False)], {}, BYTES),
    "phi2": (None, {**REGEX_BYTES}, CHATML + [token(" " * n, False, normalized=True)
                                             for n in range(2, 9)]
             + [token("\t\t", False, normalized=True)], {}, None),
    "gpt2-prefix": (None, {**REGEX_BYTES, "add_prefix_space": True}, CHATML, {}, GPT2_TEMPLATE),
    "deepseek-v3": (normalizers(), sequence(*map(split, published.DEEPSEEK_V3), BYTES),
                    [token("<\uff5cbegin\u2581of\u2581sentence\uff5c>"),
                     token("<\uff5cUser\uff5c>", False, normalized=False),
                     token("<\uff5cend\u2581of\u2581sentence\uff5c>")], {}, BYTES),
    "deepseek-llm": (normalizers(), sequence(*map(split, published.DEEPSEEK_LLM[:-1]), DIGITS, BYTES),
                     CHATML, {}, None),
    "deepseek-coder": (normalizers(), sequence(*map(split, published.DEEPSEEK_CODER[:-1]), DIGITS,
                                               BYTES), CHATML, {}, None),
    "gpt-oss": (None, sequence(split(published.O200K), BYTES),
                [token("<|startoftext|>"), token("<|endoftext|>"), token("<|message|>")],
                {"ignore_merges": True}, None),
    "phi4": (None, sequence(split(published.LLAMA3, "Removed", True), BYTES),
             [token("<|endoftext|>", lstrip=True, rstrip=True),
              token("<|im_start|>", rstrip=True)], {}, None),
    "command-r": (NFC, sequence(DIGITS, REGEX_BYTES), [token("<BOS_TOKEN>"), token("<PAD>")], {},
                  template("<BOS_TOKEN>")),
    "tiny-aya": (NFC, sequence(split(r"\d{1,3}(?=(?:\d{3})*\b)"), split(published.O200K), BYTES),
                 [token("<BOS_TOKEN>")], {}, template("<BOS_TOKEN>")),
    "glm4": (None, sequence(split(published.LLAMA3), BYTES),
             [token("[gMASK]"), token("<sop>"), token("<|user|>")], {},
             {"type": "Sequence", "processors": [BYTES, template("[gMASK]", "<sop>")]}),
    "exaone4": (NFC, sequence(split(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*"
                                    r"(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|"
                                    r"\s*[\r\n]|\s+(?!\S)|\s+"), BYTES),
                [token("[BOS]"), token("[|endofturn|]")], {}, None),
    "tekken": (None, sequence(split(published.TEKKEN), BYTES), LLAMA2 + [token("[INST]")],
               {"ignore_merges": True}, template("<s>")),
    "hunyuan": (None, sequence(split(published.QWEN2), BYTES), CHATML, {}, None),
    "afmoe": (None, sequence(*map(split, published.PUBLISHED["afmoe"]), BYTES), CHATML, {}, None),
    "falcon-cuts": (None, sequence({"type": "Punctuation", "behavior": "Contiguous"},
                                   {"type": "Digits", "individual_digits": False},
                                   split("[0-9][0-9][0-9]"), REGEX_BYTES), CHATML, {}, None),
    "merged-next": (None, sequence(split(r"\s", "MergedWithNext"),
                                   split("[aeiou]", "MergedWithPrevious"),
                                   split("[0-9]", "Contiguous"),
                                   split("(?=[A-Z])", "Isolated"),
                                   split("[^\\S\\n]+|\\W", "MergedWithNext", True), BYTES),
                    CHATML, {}, None),
    "strips": (NFC, sequence(split(published.QWEN2), BYTES),
               [token("<a>", lstrip=True, rstrip=True), token("<b>", single_word=True),
                token("word", False, single_word=True), token("<c>", False, rstrip=True),
                token("e\u0301", False), token("<|x|>", False)],
               {}, None),
    "gemma": (TO_META, {"type": "Split", "pattern": {"String": " "},
                        "behavior": "MergedWithPrevious", "invert": False},
              [token("<pad>"), token("<eos>"), token("<bos>"), token("<unk>"),
               token("\n\n", False, normalized=False), token("\n\n\n", False, normalized=False),
               token(META * 2, False, normalized=False), token("<start_of_turn>")],
              {"byte_fallback": True, "fuse_unk": True, "unk_token": "<unk>"}, template("<bos>")),
    "llama2": (LEGACY, None, LLAMA2, {"byte_fallback": True, "fuse_unk": True, "unk_token": "<unk>"},
               template("<s>")),
    "llama2-normalized": (LEGACY, None, [token("<unk>"), token("<s>", normalized=True),
                                         token("</s>", normalized=True)],
                          {"byte_fallback": True, "fuse_unk": True, "unk_token": "<unk>"},
                          template("<s>")),
    "mistral": (None, {"type": "Metaspace", "replacement": META, "prepend_scheme": "first",
                       "split": False}, LLAMA2 + [token("[INST]")],
                {"byte_fallback": True, "fuse_unk": True, "unk_token": "<unk>"}, template("<s>")),
    "metaspace": (None, {"type": "Metaspace", "replacement": META, "prepend_scheme": "always",
                         "split": True}, LLAMA2,
                  {"byte_fallback": True, "fuse_unk": False, "unk_token": "<unk>",
                   "ignore_merges": True}, template("<s>")),
    "phi3": (LEGACY, None, [token("<unk>"), token("<s>"), token("</s>", False, rstrip=True),
                            *(token(f"<|{t}|>", rstrip=True) for t in ("user", "end", "assistant")),
                            token("<|endoftext|>")],
             {"byte_fallback": True, "fuse_unk": True, "unk_token": "<unk>"}, template("<s>")),
}


def fill_ids(processor, ids):
    for part in (processor or {}).get("processors", [processor]):
        for text, special in (part or {}).get("special_tokens", {}).items():
            special["ids"] = [ids[text]]


def trained(name, corpus, size):
    """A tokenizer.json in the family's form, with a vocabulary of about `size`."""
    import tokenizers as t
    normalizer, pre_tokenizer, added, members, post_processor = FAMILIES[name]
    of_bytes = "ByteLevel" in json.dumps(pre_tokenizer)
    bare = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
            "normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "post_processor": None,
            "decoder": None, "model": {"type": "BPE", "vocab": {}, "merges": []}}
    if not of_bytes:  # as SentencePiece trains: within words
        bare["pre_tokenizer"] = {"type": "Metaspace", "replacement": META,
                                 "prepend_scheme": "always", "split": True}
        bare["normalizer"] = None
    maker = t.Tokenizer.from_str(json.dumps(bare))
    alphabet = t.pre_tokenizers.ByteLevel.alphabet() if of_bytes else []
    maker.train_from_iterator(corpus, t.trainers.BpeTrainer(
        vocab_size=size, show_progress=False, initial_alphabet=alphabet,
        limit_alphabet=max(256, size // 2) if of_bytes else size // 3))
    model = json.loads(maker.to_str())["model"]
    vocab = list(model["vocab"])
    if not of_bytes:
        vocab = [t for t in ("<unk>", "<s>", "</s>")] + [f"<0x{b:02X}>" for b in range(256)] + vocab
        vocab = list(dict.fromkeys(vocab))  # a word may be named like a byte
    ids = {text: i for i, text in enumerate(vocab)}
    whole = {**bare, "normalizer": normalizer, "pre_tokenizer": pre_tokenizer,
             "post_processor": post_processor,
             "model": {"type": "BPE", "dropout": None, "unk_token": None,
                       "continuing_subword_prefix": None, "end_of_word_suffix": None,
                       "fuse_unk": False, "byte_fallback": False, **members,
                       "vocab": ids, "merges": model["merges"]}}
    n = len(vocab)
    for item in added:
        known = ids.get(item["content"])
        whole["added_tokens"].append({"id": n if known is None else known, **item})
        n += known is None
    ids |= {t["content"]: t["id"] for t in whole["added_tokens"]}
    fill_ids(whole["post_processor"], ids)
    return json.dumps(whole, ensure_ascii=False)


def as_gguf(whole):
    """The same with those tokens special that are control tokens in GGUF files (docs/folders.md)."""
    d = json.loads(whole)
    for t in d["added_tokens"]:
        text = t["content"]
        t["special"] = text not in ("<|message|>",) and (
            t["special"] or text[:2] + text[-2:] in ("<||>", "<\uff5c\uff5c>"))
    return json.dumps(d)


def random_texts(seed, n, names):
    """The texts of the pre-tokenisers' tests, and others with what they have not."""
    r = random.Random(seed)
    made = [t.replace("\0", "\1") for t in published.texts(seed, n // 2)]  # JSON lines take no NUL
    units = (names * 3 + [" ", "  ", "   ", "\n", "\n\n", "\t", "\r\n", "a", "word", "Hello", " the",
                          "1234567", "12", "'s", "'LL", "don't", "e\u0301", "\u0301\u0316\u0345",
                          "\u00e9", "\u1100\u1161\u11a8", "\uac00\u11a8", "\u2126", "\ufb01", "\u0958",
                          "\ufffd", "\uffff", "\ufdd0", "\ue000", "\U0010ffff", "\u0001", "\x7f",
                          "\u0085", "\u00a0", "\u200b", "\u200d", "\u2581", "\u3000", "\u4e2d\u6587",
                          "\u3042\u30a2", "\ud55c\uad6d\uc5b4", "\u0e44\u0e17\u0e22", "\U0001f600",
                          "\U0001f468\u200d\U0001f469", "\u0627\u0644", "\u017f", "\u212a", "\u0130",
                          "<0x0A>", "<", "|", ">", "_", "\u00b2", "\u00bd", "\u0664", "\u2167", "!?",
                          "...", "://", "{}", "\\", "\"", "\u180e", "\x1c", "\x0b"])
    while len(made) < n:
        made.append("".join(r.choice(units) * (1 if r.random() < 0.8 else r.randint(1, 9))
                            for _ in range(r.randint(1, 30))))
    for unit in (" ", "a", "\n", "7", "\u0301", "\u4e2d", names[0], "ab ", "\u2581", "A1 "):
        made.append(unit * (20000 // len(unit)))
    return made


def ours(assay, folder, strings, parse_special):
    with open(folder / "texts.jsonl", "w") as f:
        for text in strings:
            f.write(json.dumps({"text": text}) + "\n")
    command = [assay, "tokenize", "-m", folder, "-f", folder / "texts.jsonl", "--documents", "--ids"]
    run = subprocess.run(command + ([] if parse_special else ["--no-parse-special"]),
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return [json.loads(line)["ids"] for line in run.stdout.splitlines()]


def compare(name, strings, mine, encode):
    n_wrong = 0
    for text, a in zip(strings, mine, strict=True):
        b = encode(text)
        if a == b:
            continue
        n_wrong += 1
        if n_wrong <= 3:
            at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            print(f"  {name}: {text[:60]!r} ({len(text)}): token {at} is {a[at:at + 4]}; "
                  f"expected {b[at:at + 4]}")
    return n_wrong


def vectors(seed):
    """Small tokenizers of some families, texts, and their ids with and without control tokens."""
    import tokenizers
    for name in ("llama3", "qwen2", "starcoder2", "phi4", "merged-next", "strips", "gemma", "phi3",
                 "mistral", "metaspace"):
        strings = [text[:80] for text in random_texts(
            seed, 130, [t["content"] for t in FAMILIES[name][2]])[105:130]]
        whole = trained(name, strings, 300)
        ids = []
        for source in (whole, as_gguf(whole)):
            theirs = tokenizers.Tokenizer.from_str(source)
            theirs.encode_special_tokens = source is not whole
            ids.append([theirs.encode(text, add_special_tokens=False).ids for text in strings])
        print(json.dumps({"name": name, "tokenizer": json.loads(whole), "texts": strings,
                          "ids": ids}, separators=(",", ":")))
    return 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n")[2][7:])
    parser.add_argument("assay", type=pathlib.Path, nargs="?")
    parser.add_argument("texts", nargs="*", type=pathlib.Path)
    parser.add_argument("--random", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--vectors", action="store_true")
    args = parser.parse_args()
    if args.vectors:
        return vectors(args.seed)
    import tokenizers
    n_wrong = 0
    for name, (_, _, added, _, _) in FAMILIES.items():
        if args.only and name not in args.only:
            continue
        start = time.time()
        strings = random_texts(args.seed, args.random, [t["content"] for t in added])
        files = [t.read_text() for t in args.texts]
        corpus = ([files[0][:300000]] if files else []) + strings[:2000]
        with tempfile.TemporaryDirectory() as temporary:
            folder = args.keep / name if args.keep else pathlib.Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "tokenizer.json").write_text(trained(name, corpus, 1500))
            whole = (folder / "tokenizer.json").read_text()
            strings += files
            for parse_special in (True, False):
                theirs = tokenizers.Tokenizer.from_str(whole if parse_special else as_gguf(whole))
                theirs.encode_special_tokens = not parse_special
                mine = ours(args.assay.resolve(), folder, strings, parse_special)
                front = theirs.encode("", add_special_tokens=True).ids
                mine = [ids[len(front) == 1:] for ids in mine]  # documents have one place for BOS
                alone = subprocess.run([args.assay, "tokenize", "-m", folder, "-p", "a 1", "--ids"],
                                       stdout=subprocess.PIPE, check=True)
                n_wrong += compare(name, ["a 1"], [json.loads(alone.stdout)],
                                   lambda text: theirs.encode(text).ids)
                wrong = compare(name, strings, mine,
                                lambda text: theirs.encode(text, add_special_tokens=False).ids)
                n_wrong += wrong
                print(f"{name:18} {'parsed' if parse_special else 'plain':7} "
                      f"{sum(map(len, mine)):9} ids, {wrong} strings differ "
                      f"({time.time() - start:.0f} s)", flush=True)
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())

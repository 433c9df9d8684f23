"""Models whose vocabulary is padded or enlarged: rows more of the embedding and of the head, and their
tokens."""
import random
import struct

from gguf_make import F32, I32, STRING, gguf, string, value
from shards import contents

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED = range(1, 6)
_SIZES = {F32: 4, I32: 4}


def extended(pairs, key, element, values):
    """The bytes of pairs with more values at the end of an array."""
    at = pairs.index(string(key)) + len(string(key))
    kind, element_found, n = struct.unpack_from("<IIQ", pairs, at)
    assert element_found == element, key
    end = at + 16
    for _ in range(n):
        end += 8 + struct.unpack_from("<Q", pairs, end)[0] if element == STRING else _SIZES[element]
    return (pairs[:at] + struct.pack("<IIQ", kind, element, n + len(values)) + pairs[at + 16:end] +
            b"".join(value(element, v) for v in values) + pairs[end:])


def enlarged(path, tokens, rows):
    """A model of llama's with more tokens: (text, type) of each; rows: the bytes of each in the embedding
    and in the head."""
    pairs, n_pairs, tensors = contents(path)
    size = string("llama.vocab_size")
    at = pairs.index(size) + len(size) + 4
    n_vocab = struct.unpack_from("<I", pairs, at)[0] + len(tokens)
    pairs = pairs[:at] + struct.pack("<I", n_vocab) + pairs[at + 4:]
    pairs = extended(pairs, "tokenizer.ggml.tokens", STRING, [text for text, _ in tokens])
    pairs = extended(pairs, "tokenizer.ggml.scores", F32, [-1e4] * len(tokens))
    pairs = extended(pairs, "tokenizer.ggml.token_type", I32, [kind for _, kind in tokens])
    more = []
    for name, found, ne, data in tensors:
        if name in ("token_embd.weight", "output.weight"):
            row = len(data) // ne[1]
            assert len(rows) == len(tokens) and all(len(r) == row for r in rows)
            ne, data = [ne[0], n_vocab], data + b"".join(rows)
        more.append((name, found, ne, data))
    return gguf([pairs] + [b""] * (n_pairs - 1), more)


def random_rows(path, n, size=0.05):
    """n rows of halves for a model whose embedding and head are F16."""
    rng, width = random.Random("rows"), contents(path)[2][0][2][0]
    return [struct.pack(f"<{width}e", *(rng.gauss(0, size) for _ in range(width))) for _ in range(n)]


def padding(first, n):
    """Tokens as a converter of llama.cpp's form names rows that no token has."""
    return [(f"[PAD{i}]", UNUSED) for i in range(first, first + n)]

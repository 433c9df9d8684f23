"""The same model in other files."""
import math

from gguf_make import (ARRAY, BOOL, F32, F64, I8, I16, I32, I64, STRING, U8, U16, U32, U64, gguf,
                       pair)
from formats import TABLES, TYPES, Tensor, f32

RANGES = {U8: (0, 2**8), I8: (-2**7, 2**7), U16: (0, 2**16), I16: (-2**15, 2**15),
          U32: (0, 2**32), I32: (-2**31, 2**31), U64: (0, 2**64), I64: (-2**63, 2**63)}


def write(folder, pairs, tensors, alignment=32, name="model.gguf"):
    path = folder / name
    path.write_bytes(gguf([pair(*p) for p in pairs],
                          [(t.name, t.type_id, t.ne, t.data) for t in tensors], alignment))
    return path


def remade(tensors, rng):
    """Tensors of the same names and shapes with other values, matrices with other types, too."""
    out = []
    for t in tensors:
        if t.kind in TABLES:  # the same rows for other ids
            n = 4 * t.ne[0]
            table = [t.data[at:at + n] for at in range(0, len(t.data), n)]
            rng.shuffle(table)
            out.append(Tensor(t.name, t.kind, t.ne, b"".join(table)))
            continue
        if t.kind == "F32":
            values = [f32(x * rng.uniform(0.8, 1.2)) for x in t.values()]
            out.append(Tensor.of(t.name, values, t.ne))
            continue
        size = math.sqrt(sum(x * x for x in t.values()) / math.prod(t.ne))
        kinds = [kind for kind, row in TYPES.items() if t.ne[0] % row[1] == 0]
        kind = t.kind if "per_layer" in t.name else rng.choice(kinds)
        out.append(Tensor.random(rng, t.name, kind, t.ne, size or 1.0))
    return out


def decoded(folder, pairs, tensors, rng):
    """Every tensor as float32."""
    return write(folder, pairs, [t.decoded() for t in tensors])


def shuffled(folder, pairs, tensors, rng):
    """Another order of keys and tensors, another alignment, keys that nobody knows."""
    alignment = 2 ** rng.randint(3, 13)
    pairs = pairs + [("general.alignment", U32, alignment, None),
                     ("general.tags", ARRAY, ["a", "b"], STRING), ("example.number", F64, 0.5, None),
                     ("example.list", ARRAY, [], U8)]
    return write(folder, rng.sample(pairs, len(pairs)), rng.sample(tensors, len(tensors)), alignment)


def other_key_types(folder, pairs, tensors, rng):
    """Whole numbers and floats as any type that holds them."""
    def another(kind, values):
        if kind in RANGES:
            fits = [k for k, (low, end) in RANGES.items() if all(low <= v < end for v in values)]
            return rng.choice(fits)
        return rng.choice([F32, F64]) if kind == F32 else kind
    retyped = [(key, kind, value, another(element, value)) if kind == ARRAY
               else (key, another(kind, [value]), value, None)
               for key, kind, value, element in pairs]
    return write(folder, retyped, tensors)


def split(folder, pairs, tensors, rng):
    """In parts; any of them is opened."""
    count = min(rng.randint(2, 4), len(tensors))
    cuts = [0, *sorted(rng.sample(range(1, len(tensors)), count - 1)), len(tensors)]
    for i in range(count):
        part = [("split.no", U16, i, None), ("split.count", U16, count, None),
                ("split.tensors.count", I32, len(tensors), None)]
        path = write(folder, part + (pairs if i == 0 else []), tensors[cuts[i]:cuts[i + 1]],
                     name=f"part-{i + 1:05}-of-{count:05}.gguf")
    return path


def spelled_out(folder, pairs, tensors, rng):
    """Defaults as keys, a value for each layer, one tensor as several, the tied head as its own."""
    keys = {key.removeprefix("llama."): (kind, value) for key, kind, value, _ in pairs}
    n_layers = keys["block_count"][1]

    def layers(name):
        kind, value = keys[name]
        return value if kind == ARRAY else [value] * n_layers
    heads = layers("attention.head_count")
    kv = layers("attention.head_count_kv") if "attention.head_count_kv" in keys else heads
    size = keys.get("attention.key_length", (0, keys["embedding_length"][1] // heads[0]))[1]
    explicit = {"attention.head_count": (ARRAY, heads), "attention.head_count_kv": (ARRAY, kv),
                "feed_forward_length": (ARRAY, layers("feed_forward_length")),
                "attention.key_length": (U32, size), "attention.value_length": (U32, size),
                "rope.dimension_count": (U32, size), "rope.freq_base": (F32, 10000.0),
                "rope.scaling.attn_factor": (F32, 1.0), "attention.sliding_window": (U32, 0),
                "rope.scaling.original_context_length": (U32, keys["context_length"][1]),
                "rope.scaling.type": (STRING, "linear" if any(
                    name in keys for name in ("rope.scaling.factor", "rope.scale_linear")) else "none")}
    replaced = ("attention.head_count", "attention.head_count_kv", "feed_forward_length")
    pairs = [p for p in pairs if p[0].removeprefix("llama.") not in replaced]
    pairs += [("llama." + name, kind, value, U32 if kind == ARRAY else None)
              for name, (kind, value) in explicit.items() if name in replaced or name not in keys]
    out = []
    for t in tensors:
        layer, _, name = t.name.removeprefix("blk.").partition(".")
        if name in ("attn_qkv.weight", "attn_qkv.bias"):
            rows = [n * size for n in (heads[int(layer)], kv[int(layer)], kv[int(layer)])]
            out += t.cut([t.name.replace("qkv", n) for n in "qkv"], rows)
        elif name.startswith("attn_qkv."):
            out += [Tensor(t.name.replace("qkv", n), t.kind, t.ne, t.data) for n in "qkv"]
        else:
            out.append(t)
    if not any(t.name == "output.weight" for t in tensors):
        t = next(t for t in tensors if t.name == "token_embd.weight")
        out.append(Tensor("output.weight", t.kind, t.ne, t.data))
    return write(folder, pairs, out)


WAYS = (decoded, shuffled, other_key_types, split, spelled_out)

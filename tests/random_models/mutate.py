"""Models of which one thing is changed: a key's value or type, a tensor's shape; a key or tensor
that is left out or that nobody expects. Each is (what, pairs, tensors)."""
from formats import Tensor, layout
from gguf_make import ARRAY, BOOL, F32, I32, STRING, U32, U64

ENDS = {U32: 2**32, U64: 2**64}
NAN, INFINITE = float("nan"), float("inf")
FOREIGN_KEYS = (
    ("attn_logit_softcapping", F32, 5.0), ("final_logit_softcapping", F32, 5.0),
    ("attention.scale", F32, 0.7), ("logit_scale", F32, 0.5), ("residual_scale", F32, 0.5),
    ("embedding_scale", F32, 2.0), ("attention.sliding_window", U32, 2),
    ("attention.temperature_scale", F32, 0.5), ("expert_weights_scale", F32, 2.0),
    ("expert_weights_norm", BOOL, True), ("leading_dense_block_count", U32, 1),
    ("nextn_predict_layers", U32, 1), ("attention.shared_kv_layers", U32, 1),
    ("rope.freq_base_swa", F32, 7.0), ("rope.scaling.finetuned", BOOL, False),
    ("attention.causal", BOOL, False), ("attention.clamp_kqv", F32, 0.1),
    ("use_parallel_residual", BOOL, True), ("attention.max_alibi_bias", F32, 8.0),
    ("interleave_moe_layer_step", U32, 2), ("expert_gating_func", U32, 2),
    ("full_attention_interval", U32, 2), ("expert_group_count", U32, 2))
FOREIGN_VECTORS = (
    "attn_sub_norm.weight", "attn_q_norm.weight", "attn_k_norm.weight", "attn_sinks.weight",
    "post_attention_norm.weight", "post_ffw_norm.weight", "attn_norm_2.weight", "ffn_norm.bias",
    "attn_norm.bias", "layer_output_scale.weight", "exp_probs_b.bias", "attn_gate.weight",
    "ffn_gate_inp.bias", "attn_q.scale")


def hostile(kind, value, element):
    """(kind, value, element) in place of a key's."""
    if kind == ARRAY:
        yield ARRAY, value[:-1], element
        yield ARRAY, value + value[-1:], element
        yield ARRAY, [], element
        yield ARRAY, ["a"] * len(value), STRING
        for i in (0, len(value) - 1):
            for _, other, _ in hostile(element, value[i], None):
                if type(other) is type(value[i]) and (element not in ENDS or 0 <= other < ENDS[element]):
                    yield ARRAY, value[:i] + [other] + value[i + 1:], element
        yield U32, 1, None
    elif kind == STRING:
        yield from ((STRING, word, None) for word in ("", "x" * 300, "linear\0", "\u00e9", "none"))
        yield U32, 1, None
    elif kind == BOOL:
        yield BOOL, not value, None
        yield BOOL, 2, None
        yield from ((U32, 1, None), (F32, 1.0, None), (STRING, "true", None))
    elif kind == F32:
        for other in (0.0, 1.0, -1.0, value * 1.3, value * 0.7, 1e-38, 1e38, 1e-45, NAN, INFINITE):
            yield F32, other, None
        yield from ((U32, 1, None), (STRING, "1", None), (BOOL, 1, None), (ARRAY, [value], F32))
    else:
        for other in {0, 1, 2, max(0, value - 1), value + 1, 2 * value, 2**16, 2**31 - 1, 2**31, 2**32 - 1}:
            yield U32, other, None
        yield from ((U64, 2**32, None), (U64, 2**63, None), (I32, -1, None), (F32, 1.5, None),
                    (STRING, "1", None), (BOOL, 1, None), (ARRAY, [value], U32),
                    (ARRAY, [value] * 3, U32))


def keys(pairs, tensors, arch):
    for at, (name, kind, value, element) in enumerate(pairs):
        if not name.startswith((arch + ".", "xielu.")):
            continue
        rest = pairs[:at], pairs[at + 1:]
        yield f"without {name}", rest[0] + rest[1], tensors
        for other in hostile(kind, value, element):
            yield f"{name} {str(other)[:60]}", rest[0] + [(name, *other)] + rest[1], tensors
    known = {p[0] for p in pairs}
    for name, kind, value in FOREIGN_KEYS:
        if f"{arch}.{name}" not in known:
            yield f"with {name}", pairs + [(f"{arch}.{name}", kind, value, None)], tensors


def resized(tensor, axis, by):
    """With one element or block more or less along an axis; the data are repeated or cut."""
    ne = list(tensor.ne)
    ne[axis] += by * (layout(tensor.kind)[1] if axis == 0 else 1)
    if ne[axis] < 1:
        return None
    _, per, size = layout(tensor.kind)[:3]
    n = ne[0] * (ne[1] if len(ne) > 1 else 1) * (ne[2] if len(ne) > 2 else 1) // per * size
    return Tensor(tensor.name, tensor.kind, ne, (tensor.data * 3)[:n])


def shapes(pairs, tensors, arch):
    for at, t in enumerate(tensors):
        rest = tensors[:at], tensors[at + 1:]
        yield f"without {t.name}", pairs, rest[0] + rest[1]
        for axis in range(len(t.ne)):
            for by in (1, -1):
                other = resized(t, axis, by)
                if other:
                    yield f"{t.name} {t.ne} as {other.ne}", pairs, rest[0] + [other] + rest[1]
    known = {t.name for t in tensors}
    for suffix in FOREIGN_VECTORS:
        name = "blk.0." + suffix
        if name not in known:
            yield f"with {name}", pairs, tensors + [Tensor.of(name, [0.5] * 8)]


def all_of(pairs, tensors, arch):
    yield from keys(pairs, tensors, arch)
    yield from shapes(pairs, tensors, arch)

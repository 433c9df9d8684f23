#!/usr/bin/env python3
"""What transformers gives a member of config.json that a folder lacks: model/folder/defaults.c.

usage: class_defaults.py [--write]

Each class that a description in model/arch/ names is made without members, and what it has then is
a row of the table, as far as this program reads such a member. Without --write the table is compared
with the one that is there. A member that this program does not read must be in IDLE below.

Exit code 1: the table is another one, or a member is neither read nor idle; 77: transformers 5 is
not installed.
"""
import importlib.util
import json
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "model" / "folder" / "defaults.c"
# Without these a folder is refused, or its tensors or tokens say it; rotary_dim is another name of a share.
APART = {"hidden_size", "num_hidden_layers", "vocab_size", "intermediate_size", "moe_intermediate_size",
         "rotary_dim", "rope_parameters", "eos_token_id"}
# What no log-probability depends on, or what other members and the tensors say, too.
IDLE = re.compile(
    "attribute_map|base_.*|extra_.*|sub_configs.*|keys_to_ignore.*|.*dropout|.*_pdrop|.*_token_id|initializer_range|"
    "output_router_logits|pretraining_tp|router_aux_loss_coef|(router|input)_jitter_noise|use_cache|use_mamba_kernels|"
    "(mamba_)?chunk_size|mamba_ssm_cache_dtype|moe_shared_expert_overlap|num_logits_to_keep|rescale_prenorm_residual|"
    "residual_in_fp32|enable_moe_fp32_combine|time_step_(floor|max)|mtp_.*|max_window_layers|"
    "mamba_d_head|expand|vocab_size_per_layer_input|moe_layers|model_type|"
    "mamba_hidden_act|learnable_sink_init|ngram_vocab_size_base|make_ngram_vocab_size_divisible_by|seed|split_ngram_parts")
HEAD = """/* What classes of transformers give members that config.json lacks.
 * bench/class_defaults.py writes this file. */
#include "model/folder/state.h"

/* clang-format off */
const struct model_folder_class model_folder_classes[] = {
"""


def classes():
    found = set()
    for path in (ROOT / "model" / "arch").rglob("*.c"):
        for names in re.findall(r"\.classes = \{([^}]*)\}", path.read_text()):
            found |= set(re.findall(r'"(\w+)"', names))
    return sorted(found)


def members_read():
    """The words of all texts in the sources of folders, and the members in the table of hyper-parameters."""
    table = (ROOT / "model" / "hparams" / "table.c").read_text()
    words = set(re.findall(r"\w+", " ".join(re.findall(r'\.members =((?:\s*"[^"]*")+)', table))))
    for place in ("arch/*/*.c", "folder/*.c"):
        for path in (ROOT / "model").glob(place):
            if path != TABLE:
                words |= {w for text in re.findall(r'"([^"\n]*)"', path.read_text()) for w in re.findall(r"\w+", text)}
    return words


def rope_defaults(cls, config):
    """RoPE's members: what counts beside a folder's own object, and the object of one that has none."""
    theta, out = getattr(cls, "default_theta", None), {}
    if isinstance(theta, dict):
        out |= {"rope_theta": theta["global"], "rope_local_base_freq": theta["local"]}
    elif theta:
        out["rope_theta"] = theta
    plain = cls(rope_parameters={"rope_type": "default"}).rope_parameters or {}
    part = plain.get("partial_rotary_factor", 1)
    if part != 1 and "qk_rope_head_dim" not in cls.__dataclass_fields__:
        out["partial_rotary_factor"] = part
    own = dict(sorted((config.rope_parameters or {}).items()))  # some classes have a set of names
    if "qk_rope_head_dim" in cls.__dataclass_fields__:  # which says it
        for part_of in (own, *(v for v in own.values() if isinstance(v, dict) and "compress" not in own)):
            part_of.pop("partial_rotary_factor", None)
    kinds = [v for v in own.values() if isinstance(v, dict)] or [own]
    parts = {v.get("partial_rotary_factor") for v in kinds}
    if len(kinds) > 1 and len(parts) == 1 and None not in parts:  # MiMo's code has it, too
        out["partial_rotary_factor"] = parts.pop()
    if "compress" not in own and any(
            v.get("rope_type") != "default" or v.get("partial_rotary_factor", part) != part or
            v.get("rope_theta") not in (out.get("rope_theta"), out.get("rope_local_base_freq")) for v in kinds):
        out["rope_parameters"] = own
    return out


def row(base, cls, read):
    """Members with a value; those of them that may be null; those that are not read."""
    config, members, nullable, unread = cls(), {}, [], []
    for name, field in cls.__dataclass_fields__.items():
        value = field.default
        if name[0] == "_" or name in base or name in APART:
            continue
        if name not in read:
            unread += [name] * (not IDLE.fullmatch(name))
        elif isinstance(value, (bool, int, float, str)):
            members[name] = value
            nullable += [name] * ("None" in str(field.type))
    kinds = getattr(config, "mlp_layer_types", None) or []
    n_dense = next((i for i, kind in enumerate(kinds) if kind != "dense"), len(kinds))
    if kinds and kinds == ["dense"] * n_dense + ["sparse"] * (len(kinds) - n_dense):
        members.setdefault("first_k_dense_replace", n_dense)
    if hasattr(config, "rope_parameters"):
        members |= rope_defaults(cls, config)
    return members, nullable, unread


def table(transformers):
    """The source of the table, and the members that are not read."""
    base = set(transformers.PretrainedConfig().to_dict()) - {"model_type"}
    read, rows, unread = members_read(), {}, {}
    for name in classes():
        whole = getattr(getattr(transformers, name, None), "config_class", None)
        if not whole:
            continue
        cls = type(whole().get_text_config())
        if cls not in rows:
            rows[cls] = ([cls.model_type], *row(base, cls, read))
        rows[cls][0].append(name)
        tied = getattr(whole(), "tie_word_embeddings", False)  # the whole model's counts
        rows[cls][1]["tie_word_embeddings"] = bool(tied or rows[cls][1].get("tie_word_embeddings"))
        for member in rows[cls][3]:
            unread.setdefault(member, []).append(name)
    out = HEAD
    for names, members, nullable, _ in rows.values():
        text = json.dumps(members).replace('"', '\\"')
        out += f'    {{"{" ".join(names)}",\n     "{text}",\n     "{" ".join(nullable)}"}},\n'
    return out + "    {0},\n};\n", unread


def main():
    if not importlib.util.find_spec("transformers"):
        print("skipped: the package transformers is not installed")
        return 77
    os.environ["HF_HUB_OFFLINE"] = "1"
    import transformers
    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    text, unread = table(transformers)
    for member, names in unread.items():
        print(f"{member} of {', '.join(names)} is neither read nor idle")
    if sys.argv[1:] == ["--write"]:
        TABLE.write_text(text)
    differs = TABLE.read_text() != text
    if differs:
        print(f"{TABLE.name} is not what transformers {transformers.__version__} has; --write makes it anew")
    return 1 if differs or unread else 0


if __name__ == "__main__":
    sys.exit(main())

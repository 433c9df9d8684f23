#!/usr/bin/env python3
"""Compare the forward pass with the models' published code: transformers and torch on a CPU.

usage: second_opinion.py ASSAY [NAME...] [--tokens N] [--seed S] [--keep FOLDER] [--sensitivity]

For each model of second_opinion_*.py (or those named) a small random model is built from the
transformers package, written as a GGUF file as converters write it, and evaluated by both over the
same ids: here with --precision exact, there in double precision. Where the code of transformers
asks for float32 (norms, softmax, angles) it gets double, so that what remains is this program's
rounding. The columns: largest and mean difference of the log-probability of the token that came,
largest difference of the entropy of the whole distribution, tokens beyond the limit (2e-4).
--sensitivity then changes each kind of tensor and each key in the file a little, one at a time, and
names those that neither a score (by 1e-3) nor a refusal shows.

Exit code 1: a difference beyond the limit, or a file that the program refuses; 2: a package is
missing.

Needs the packages torch and transformers 5 (any torch that can be imported; no GPU is used).
Nothing is downloaded: the weights are random.
"""
import argparse
import csv
import importlib.util
import json
import math
import pathlib
import random
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / "cli")]
import gguf_make as g  # noqa: E402
from second_opinion_models import EXPERTS  # noqa: E402

I32 = 26  # the type of GGUF
LIMIT = 2e-4
SHOWS = 1e-3


# ---- the model ----

def torch_in_double():
    """torch, whose float32 is double from now on; .single is the real one."""
    import torch
    torch.single = torch.float32
    torch.set_default_dtype(torch.float64)
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    torch.topk = torch.Tensor.topk = first_of_equals
    return torch


def first_of_equals(x, k, dim=-1, largest=True, sorted=True):
    """topk that prefers the lower index among equal scores; torch promises no order."""
    import torch
    values, indices = x.sort(dim=dim, descending=largest, stable=True)
    return torch.return_types.topk((values.narrow(dim, 0, k), indices.narrow(dim, 0, k)))


def random_values(torch, family, name, p, rng):
    """Values of which none is what a mistake would put in its place."""
    if not p.is_floating_point():  # a table of experts by the token's id
        return torch.rand(p.shape[0], EXPERTS["num_experts"], generator=rng).argsort()[:, :p.shape[1]]
    noise, last = torch.randn(p.shape, generator=rng), name.split(".")[-1]
    if last == "A_log":
        return torch.log(0.05 + 4 * torch.rand(p.shape, generator=rng))
    if last == "dt_bias":
        return 2 * noise - 2
    if last == "e_score_correction_bias":
        return 0.1 * noise
    if last == "eps":
        return -0.01 * (1 + noise.abs())
    if last in ("D", "scale", "per_expert_scale", "layer_scalar"):
        return 1 + 0.3 * noise
    if last == "weight" and (p.dim() == 1 or "_norm" in name):
        return 0.4 * noise + (not family.gain_is_offset(name))
    if p.dim() < 2 or last.endswith("bias") or "embed" in name or "conv1d" in name:
        return 0.5 * noise
    n_inputs = p.shape[-2 if family.experts_transposed and "experts." in name else -1]
    return family.spread * noise / math.sqrt(n_inputs)


def as_stored(torch, t):
    return t.to(torch.single if t.is_floating_point() else torch.int32)


def build(torch, family, seed):
    import transformers
    config = getattr(transformers, family.model + "Config")(**family.config())
    name = family.model.removesuffix("Text") + "ForCausalLM"
    has_head = hasattr(transformers, name)
    cls = getattr(transformers, name if has_head else family.model + "Model")
    model = cls._from_config(config, attn_implementation="eager",
                             experts_implementation="eager").eval().to(torch.get_default_dtype())
    name = name if has_head else family.model
    family.adapt(torch, model)
    rng = torch.Generator().manual_seed(seed)
    values = dict(model.named_parameters()) | dict(model.named_buffers())
    with torch.no_grad():
        for key, p in values.items():
            counts = p.dim() == 1 and not p.is_floating_point()  # numbers of hashes stay
            if key in model.state_dict() and not counts:
                p.copy_(as_stored(torch, random_values(torch, family, key, p, rng)))
    return name, model


# ---- its file ----

def pair(key, v):
    kinds = {bool: g.BOOL, int: g.U32, float: g.F32, str: g.STRING}
    if isinstance(v, list):
        wide = isinstance(v[0], int) and max(v) >= 2 ** 32
        return g.pair(key, g.ARRAY, v, g.U64 if wide else kinds[type(v[0])])
    return g.pair(key, kinds[type(v)], v)


def vocabulary():
    """Byte-level: every byte is a token, and for the one merge that there must be AB."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    letters = {**{b: chr(b) for b in printable}, **{b: chr(256 + i) for i, b in enumerate(others)}}
    return {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2",
            "tokenizer.ggml.tokens": [letters[b] for b in range(256)] + ["AB"],
            "tokenizer.ggml.merges": ["A B"], "tokenizer.ggml.add_bos_token": False}


def write_gguf(path, keys, tensors):
    pairs = [pair(k, v) for k, v in keys.items()]
    path.write_bytes(g.gguf(pairs, [(name, 0 if t.is_floating_point() else I32,
                                     list(reversed(t.shape)), t.numpy().tobytes())
                                    for name, t in tensors.items()]))


# ---- the two evaluations ----

class Refused(Exception):
    """The program does not take the file; its sentence."""


def run_assay(command, written=None):
    run = subprocess.run(command, input=written, capture_output=True)
    if run.returncode:
        raise Refused(run.stderr.decode().strip())
    return run.stdout


def text(rng, n_bytes):
    """Characters of one and two bytes: nearly all ids occur."""
    out = b""
    while len(out) < n_bytes:
        out += chr(rng.choice([rng.randrange(32, 127), rng.randrange(160, 0x7ff)])).encode()
    return out


def ours(assay, path, written, n, n_windows):
    """{(window, position): (id, log-probability, entropy)} of every token but each window's first."""
    text_path, table = path.with_suffix(".txt"), path.with_suffix(".tsv")
    text_path.write_bytes(written)
    run_assay([assay, "perplexity", "-q", "-m", path, "-bf", text_path, "--protocol", "fixed",
               "-c", str(n), "--chunks", str(n_windows), "--precision", "exact",
               "--per-token", table])
    with open(table, newline="") as f:
        return {(int(r["window"]), int(r["position"])):
                (int(r["token_id"]), float(r["logprob"]), float(r["entropy"]))
                for r in csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE)}


def theirs(torch, family, model, windows):
    with torch.no_grad():
        out = model(torch.tensor(windows), use_cache=False)
        logits = out.logits if hasattr(out, "logits") else \
            family.head(model, out.last_hidden_state)
    assert logits.dtype == torch.float64
    rows = torch.log_softmax(logits, -1)
    return {(w, p): (ids[p + 1], rows[w, p, ids[p + 1]].item(),
                     -(rows[w, p].exp() * rows[w, p]).sum().item())
            for w, ids in enumerate(windows) for p in range(len(ids) - 1)}


def ids_of(assay, path, written):
    return json.loads(run_assay([assay, "tokenize", "-m", path, "-f", "-", "--ids"], written))


def differences(a, b):
    assert a.keys() == b.keys() and all(a[k][0] == b[k][0] for k in a)
    return [abs(a[k][1] - b[k][1]) for k in a], [abs(a[k][2] - b[k][2]) for k in a]


# ---- does every tensor and every key show? ----

def other(v):
    """A value near v."""
    if isinstance(v, list):
        return [other(x) for x in v]
    return not v if isinstance(v, bool) else "none" if isinstance(v, str) else \
        v * 1.1 if isinstance(v, float) else max(v - 1, 0)


def uneven(t):
    """Every second value is larger, so that no norm undoes it; a table's rows are exchanged."""
    if not t.is_floating_point():
        return t.roll(1, 0)
    t = t.clone()
    t.view(-1)[::2] *= 1.1
    return t


def changed(keys, tensors):
    """(what, keys, tensors) with one kind of tensor, or one key, a little off."""
    kinds = {}
    for name in tensors:
        kinds.setdefault(re.sub(r"blk\.\d+\.", "blk.*.", name), []).append(name)
    for kind, names in kinds.items():
        yield kind, keys, tensors | {n: uneven(tensors[n]) for n in names}
    for key, v in keys.items():
        if not key.startswith(("general.", "tokenizer.")):
            yield key, keys | {key: other(v)}, tensors


def insensitive(run, path, before, keys, tensors):
    """What may be changed without a score or a refusal that shows it."""
    quiet = []
    for what, k, t in changed(keys, tensors):
        write_gguf(path, k, t)
        try:
            after = run()
        except Refused:
            continue
        largest = max(differences(before, after)[0])
        if largest < SHOWS:
            quiet.append(f"{what} ({largest:.0e})")
    return quiet


# ---- all of it ----

def compare(torch, family, args, folder):
    name, model = build(torch, family, args.seed)
    path = folder / f"{family.name}.gguf"
    single = {k: as_stored(torch, v) for k, v in model.state_dict().items()}
    keys, tensors = family.file(torch, model, single)
    keys |= vocabulary()
    tensors = {k: t.contiguous() for k, t in tensors.items()}
    write_gguf(path, keys, tensors)
    n, n_windows = (family.tokens, 1) if family.tokens else (args.tokens, 2)
    written = text(random.Random(args.seed), 3 * n)
    ids = ids_of(args.assay, path, written)
    windows = [ids[i * n:i * n + n] for i in range(n_windows)]

    def run():
        return ours(args.assay, path, written, n, n_windows)
    a = run()
    score, entropy = differences(a, theirs(torch, family, model, windows))
    beyond = sum(d > LIMIT for d in score)
    print(f"| `{family.architecture}` | {family.note} | {name} | {max(score):.1e} | "
          f"{sum(score) / len(score):.1e} | {max(entropy):.1e} | {beyond} |", flush=True)
    if args.sensitivity and not family.tokens:
        quiet = insensitive(run, path, a, keys, tensors)
        print(f"  not shown by any score: {', '.join(quiet) or 'nothing'}", flush=True)
    return beyond


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n")[2][7:])
    parser.add_argument("assay")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--sensitivity", action="store_true")
    args = parser.parse_intermixed_args()
    missing = [p for p in ("torch", "transformers") if not importlib.util.find_spec(p)]
    if missing:
        print(f"missing packages: {', '.join(missing)}; see the head of {__file__}", file=sys.stderr)
        return 2
    torch = torch_in_double()
    import transformers
    from second_opinion_autumn import FAMILIES
    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    unknown = set(args.names) - {f.name for f in FAMILIES}
    if unknown:
        print(f"no such model: {', '.join(unknown)}; there are "
              f"{', '.join(f.name for f in FAMILIES)}", file=sys.stderr)
        return 2
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, 2 windows of "
          f"{args.tokens} tokens, seed {args.seed}\n\n| architecture | form | class | log-probability, "
          "largest | mean | entropy, largest | beyond |\n| --- | --- | --- | --- | --- | --- | --- |")
    n_beyond = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or pathlib.Path(temporary)
        folder.mkdir(exist_ok=True)
        for family in FAMILIES:
            if not args.names or family.name in args.names:
                try:
                    n_beyond += compare(torch, family, args, folder)
                except Refused as e:
                    n_beyond += 1
                    why = str(e).split(": ", 2)[-1]
                    print(f"| `{family.architecture}` | {family.note} | refused: {why} |", flush=True)
    return 1 if n_beyond else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Writes the tensors that a model of Hugging Face's transformers computes for a window of tokens.

The file is for `assay trace -m MODEL.gguf --compare OUT.npz`, which names the first tensor where a
conversion, or one of the two programs, goes wrong. Tensors have the names of assay trace and the
order of values that the GGUF file has: halves of heads that RoPE turns become neighbours where
converters permute q and k; DeepSeek's keys are those of the compressed form.

Needs the packages numpy, torch and transformers 5. Nothing is downloaded, no code of the folder is
run. docs/trace.md of assay has an example.
"""
import argparse
import fnmatch
import json
import os
import pathlib
import re
import sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from transformers_names import ARCHITECTURES, IN, OUT, WITHOUT  # noqa: E402

TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json")


class Failure(Exception):
    """A sentence for the caller."""


def array(value):
    """A copy, in double precision where it has fractions; of a module's tensor or of an array."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = (value.double() if value.is_floating_point() else value.long()).numpy()
    return numpy.array(value)


def is_array(value):
    return hasattr(value, "shape") and hasattr(value, "dtype")


def tensors_of(args, kwargs):
    return [v for v in (*args, *kwargs.values()) if is_array(v)]


def neighbours(a):
    """[..., size] of halves that are turned together, as pairs of neighbours."""
    halves = a.reshape(*a.shape[:-1], 2, -1)
    return numpy.swapaxes(halves, -1, -2).reshape(a.shape)


def place_of(path):
    """(module within the layer, layer), or (module, None) outside of all; None: the whole model."""
    inside = re.fullmatch(r"(?:.*\.)?layers\.(\d+)\.?(.*)", path)
    if inside:
        return inside[2], int(inside[1])
    return re.sub(r"^((model|language_model)\.?)*", "", path) or None, None


class Inside:
    """The products of one call of all experts, which transformers computes one expert after another:
    gate and up as one, then down. gpt-oss shows what comes between them alone."""

    def __init__(self, module, functional, gates):
        self.steps, self.interleaved = [], bool(gates)
        self.owner, self.name = (module, gates) if gates else (functional, "linear")
        original = self.original = getattr(self.owner, self.name)

        def watched(x, *args, **kwargs):
            out = original(x, *args, **kwargs)
            self.steps.append((array(x), array(out)))
            return out
        setattr(self.owner, self.name, watched)

    def end(self):
        if self.interleaved:
            delattr(self.owner, self.name)  # the class has it
        else:
            setattr(self.owner, self.name, self.original)

    def of_experts(self):
        """[gate, up, activation, output] of the rows of each expert."""
        if self.interleaved:
            return [[both[:, ::2], both[:, 1::2], out] for both, out in self.steps]
        return [[*numpy.split(both, 2, 1), x, out]
                for (_, both), (x, out) in zip(self.steps[::2], self.steps[1::2])]

    def of_tokens(self, chosen, slots):
        """The same of each token's slots, [tokens, slots, width]; None: it is another computation.

        chosen: ids [tokens, n]. slots: where each of them goes.
        """
        experts, rows = numpy.unique(chosen), self.of_experts()
        if len(rows) != len(experts) or not self.interleaved and len(self.steps) % 2:
            return None
        out = [numpy.zeros((*chosen.shape, part.shape[1])) for part in rows[0]]
        for expert, parts in zip(experts, rows):
            place, token = numpy.nonzero(chosen.T == expert)
            if any(len(part) != len(token) for part in parts):
                return None
            for whole, part in zip(out, parts):
                whole[token, slots[token, place]] = part
        return out


class Recorder:
    """The arrays of one forward pass, by their names in the file."""

    def __init__(self, architecture, config, n_tokens, patterns=(), dtype="float32"):
        self.architecture, self.config, self.n_tokens = architecture, config, n_tokens
        self.patterns, self.dtype = patterns, dtype
        self.arrays, self.unknown, self.watched = {}, {}, {}
        self.logits, self.bias, self.compressed = None, None, None
        self.chosen, self.order, self.functional = None, None, None
        self.n_attentions = self.n_closed = 0

    # -- arrays

    def head_size(self):
        c = self.config
        return getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads

    def keep(self, name, layer, a):
        """a: [tokens, ...]."""
        stem, dot, op = name.partition(".")
        short = stem if layer is None else f"{stem}-{layer}"
        if self.patterns and not any(fnmatch.fnmatchcase(short, p) for p in self.patterns):
            return
        if short + dot + op in self.arrays:
            raise Failure(f"{short} is computed twice; expected one forward pass of one window")
        self.arrays[short + dot + op] = a.reshape(a.shape[0], -1).astype(
            "int32" if a.dtype.kind == "i" else self.dtype)

    def note(self, name, layer, value, form):
        """One side of a module: its first tensor, of one batch or of rows."""
        if form == "experts":
            return self.experts(layer, value)
        a = array(value[0])
        if form == "heads":  # [1, heads, tokens, size]
            a = numpy.swapaxes(a[0], 0, 1)
        a = a.reshape(self.n_tokens, -1)
        if form == "router":
            self.logits = a
        if form == "qkv":
            return self.split(layer, a)
        if form == "gate_up":
            a = a[:, :a.shape[1] // 2]
        if form in ("turned", "heads") and self.architecture.permuted:
            a = neighbours(a.reshape(self.n_tokens, -1, self.head_size()))
        if name == "kv_cmpr.MUL":
            self.compressed = a
        return self.keep(name, layer, a)

    def split(self, layer, a):
        n_values = self.config.num_key_value_heads * self.head_size()
        parts = numpy.split(a, [-2 * n_values, -n_values], 1)
        for name, part in zip(("Qcur.VIEW", "Kcur.VIEW", "Vcur.VIEW"), parts):
            self.keep(name, layer, part)

    def experts(self, layer, values):
        """Ids and shares of the chosen ones, the first choice first."""
        values = [array(v) for v in values]
        chosen = next((v for v in values if v.dtype.kind == "i"), None)
        shares = next((v for v in values if chosen is not None and v.dtype.kind == "f" and
                       v.shape == chosen.shape), None)
        if shares is None or self.logits is None:
            raise Failure(f"layer {layer}: the experts are not called with ids and shares; expected "
                          "transformers 5 with experts_implementation eager")
        key = self.logits if self.bias is None else 1 / (1 + numpy.exp(-self.logits)) + self.bias
        order = numpy.argsort(-numpy.take_along_axis(key, chosen, 1), 1, kind="stable")
        self.chosen, self.order = chosen, order
        self.keep("ffn_moe_topk", layer, numpy.take_along_axis(chosen, order, 1))
        self.keep("ffn_moe_weights_scaled", layer, numpy.take_along_axis(shares, order, 1))

    def look_inside(self, module, layer):
        inside = []
        module.register_forward_pre_hook(lambda *_: inside.append(Inside(
            module, self.functional, self.architecture.gates)))

        def note(*_, **__):
            inside[-1].end()
            found = inside.pop().of_tokens(self.chosen, numpy.argsort(self.order, 1))
            self.n_closed += found is None
            for name, a in zip(self.architecture.inside, found or []):
                self.keep(name, layer, a)
        module.register_forward_hook(note)

    def attention(self, module, layer, query, key, value):
        """What attention is called with: each [1, heads, tokens, size]."""
        q, k, v = (numpy.swapaxes(array(x)[0], 0, 1) for x in (query, key, value))
        self.n_attentions += 1
        if self.compressed is not None:
            return self.latent(module, layer, q, k, v)
        if self.architecture.permuted:
            q, k = neighbours(q), neighbours(k)
        # Ministral's queries have their temperature already.
        rope = getattr(self.config, "rope_parameters", None) or {}
        tempered = "llama_4_scaling_beta" in rope
        self.keep("Qcur_attn_temp_scaled.MUL" if tempered else "Qcur.ROPE", layer, q)
        return self.keep("Kcur.ROPE", layer, k)

    def latent(self, module, layer, q, k, v):
        """DeepSeek's: of the heads, as in older files, and for the compressed keys."""
        n_turned = self.config.qk_rope_head_dim
        if getattr(self.config, "rope_interleave", False):
            for x in (q, k):
                x[..., -n_turned:] = neighbours(x[..., -n_turned:])
        self.keep("Qcur.ROPE", layer, q)
        self.keep("Kcur.ROPE", layer, k)
        self.keep("Vcur.MUL_MAT", layer, v)
        rank, n_plain = self.compressed.shape[1], q.shape[2] - n_turned
        up = array(module.kv_b_proj.weight).reshape(q.shape[1], -1, rank)[:, :n_plain]
        wide = numpy.einsum("thn,hnr->thr", q[..., :n_plain], up)
        self.keep("Qcur.CONCAT", layer, numpy.concatenate([wide, q[..., n_plain:]], -1))
        self.keep("Kcur.CONCAT", layer,
                  numpy.concatenate([self.compressed, k[:, 0, n_plain:]], -1))

    # -- hooks

    def install(self, model):
        """Hooks on the modules of the table; others are noted where they run."""
        attentions = {}
        for path, module in model.named_modules():
            part, layer = place_of(path)
            if part is None:
                continue
            if layer is not None and part in self.architecture.layer:
                self.hook(module, layer, self.architecture.layer[part])
            elif (part, layer) == ("norm", None):
                self.hook(module, None, [(OUT, "result_norm.MUL", "")])
            elif not any(True for _ in module.children()):
                self.hook_unknown(module, path, part)
            if (part, layer) == ("", 0):
                self.hook(module, None, [(IN, self.architecture.embedding, "")])
            if part == "self_attn":
                attentions[id(module)] = layer
                self.watch(sys.modules[type(module).__module__], attentions)

    def hook(self, module, layer, rows):
        for side, name, form in rows:
            def note(module, args, kwargs, out=None, name=name, form=form, side=side):
                self.note_bias(module, form, args, kwargs)
                values = tensors_of(args, kwargs) if side == IN else \
                    tensors_of(out if isinstance(out, tuple) else (out,), {})
                self.note(name, layer, values, form)
            if form == "experts":
                self.look_inside(module, layer)
            if side == IN:
                module.register_forward_pre_hook(note, with_kwargs=True)
            else:
                module.register_forward_hook(note, with_kwargs=True)

    def note_bias(self, module, form, args, kwargs):
        """The router's bias of the choice, its own or one that it is called with."""
        if form == "router":
            given = [v for v in (*args[1:], *kwargs.values()) if is_array(v) and len(v.shape) == 1]
            bias = getattr(module, "e_score_correction_bias", given[0] if given else None)
            self.bias = None if bias is None else array(bias)

    def hook_unknown(self, module, path, part):
        if any(fnmatch.fnmatchcase(part, pattern) for pattern in WITHOUT):
            return

        def note(*_):
            kind = re.sub(r"\.\d+(?=\.|$)", ".N", path), type(module).__name__
            self.unknown[kind] = self.unknown.get(kind, 0) + 1
        module.register_forward_pre_hook(note)

    def watch(self, code, attentions):
        """transformers calls attention by this name, with what RoPE made of q and k."""
        original = getattr(code, "eager_attention_forward", None)
        if original is None or code in self.watched:
            return

        def watched(module, query, key, value, *args, **kwargs):
            self.attention(module, attentions[id(module)], query, key, value)
            return original(module, query, key, value, *args, **kwargs)
        self.watched[code] = original
        code.eager_attention_forward = watched

    def run(self, model, ids, functional):
        """The forward pass. ids: as the model takes them, one batch of all tokens. functional: what
        has torch's function linear."""
        self.functional = functional
        self.install(model)
        try:
            logits = array(model(ids).logits)
        finally:
            for code, original in self.watched.items():
                code.eager_attention_forward = original
        self.keep("result_output.MUL_MAT", None, logits.reshape(-1, logits.shape[-1])[-1:])
        if not self.arrays:
            raise Failure("no tensor has such a name" if self.patterns else
                          "no module of the model is one of the table")


# ---- the model ----

def architecture_of(folder):
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text())
        kind = config.get("text_config", config).get("model_type")
    except (OSError, ValueError, AttributeError) as error:
        raise Failure(f"{path}: {getattr(error, 'strerror', None) or error}; expected the folder of "
                      "a checkpoint") from error
    if kind not in ARCHITECTURES:
        raise Failure(f"{path}: model_type is {kind!r}; this script knows the names of "
                      f"{', '.join(sorted(ARCHITECTURES))}")
    return ARCHITECTURES[kind]


def read_ids(path):
    try:
        text = sys.stdin.read() if path == "-" else pathlib.Path(path).read_text()
    except (OSError, ValueError) as error:
        raise Failure(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    words = re.split(r"[\s,]+", text.strip().removeprefix("[").removesuffix("]").strip())
    wrong = [w for w in words if not re.fullmatch(r"\d{1,9}", w)]
    if wrong:
        raise Failure(f"{path}: {wrong[0]!r} is not the id of a token; expected ids with commas or "
                      "blanks between them, as assay tokenize --ids prints them")
    return [int(w) for w in words]


def import_packages():
    try:
        import torch
        import transformers
    except ImportError as error:
        raise Failure(f"{error}: expected the packages torch and transformers 5") from error
    if int(transformers.__version__.split(".")[0]) < 5:
        raise Failure(f"the package transformers is {transformers.__version__}; expected 5")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return torch, transformers


def in_double(torch, model):
    """Also where the code of transformers asks for float32: norms, softmax, angles, routers."""
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    torch.set_default_dtype(torch.float64)
    return model.double()


def trace(args, architecture):
    if args.prompt is not None and not any((args.folder / name).exists() for name in TOKENIZERS):
        raise Failure(f"{args.folder}: has no {', '.join(TOKENIZERS)}; give the text by --tokens")
    torch, transformers = import_packages()
    given = {"local_files_only": True, "trust_remote_code": False}
    try:
        ids = read_ids(args.tokens) if args.tokens else \
            transformers.AutoTokenizer.from_pretrained(args.folder, **given)(args.prompt).input_ids
        if not ids:
            raise Failure("the text has no token")
        model = transformers.AutoModelForCausalLM.from_pretrained(
            args.folder, dtype=torch.float32, attn_implementation="eager",
            experts_implementation="eager", **given).eval()
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise Failure(f"{args.folder}: {' '.join(str(error).split())}") from error
    config = model.config.get_text_config()
    if max(ids) >= config.vocab_size:
        raise Failure(f"token {max(ids)} is beyond the vocabulary of {config.vocab_size}")
    if args.dtype == "float64":
        model = in_double(torch, model)
    recorder = Recorder(architecture, config, len(ids), args.tensor, args.dtype)
    with torch.no_grad():
        recorder.run(model, torch.tensor([ids]), torch.nn.functional)
    return recorder, ids


def write(path, recorder, ids):
    part = path.with_name(path.name + ".part")
    try:
        with open(part, "wb") as file:
            numpy.savez(file, tokens=numpy.array(ids, "int32"), **recorder.arrays)
        os.replace(part, path)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)


def plural(n, word):
    return f"{n} {word}{'' if n == 1 else 's'}"


def report(args, recorder, n_tokens):
    def say(text):
        print(f"trace-transformers: {text}", file=sys.stderr)
    for (path, kind), n in recorder.unknown.items():
        say(f"note: not recorded: {path} ({kind}), called {plural(n, 'time')}")
    if recorder.n_closed:
        say("note: not recorded: what is inside of experts, as this model does not compute one "
            "after another")
    if not recorder.n_attentions:
        say("note: not recorded: queries and keys after RoPE, as this model does not call "
            "eager_attention_forward")
    say(f"{args.output}: {len(recorder.arrays)} tensors of {plural(n_tokens, 'token')}, "
        f"{recorder.architecture.gguf}: assay trace -m MODEL.gguf --rounding float32 "
        f"{f'-c {n_tokens} ' if n_tokens > 512 else ''}--compare {args.output}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="architectures (model_type): " + ", ".join(sorted(ARCHITECTURES)))
    parser.add_argument("folder", type=pathlib.Path, help="the checkpoint, with its config.json")
    text = parser.add_mutually_exclusive_group(required=True)
    text.add_argument("-p", "--prompt", metavar="TEXT", help="a text, for the folder's tokenizer")
    text.add_argument("--tokens", metavar="FILE",
                      help="ids, as assay tokenize --ids prints them; - is standard input")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, metavar="OUT.npz")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32",
                        help="what the model is evaluated and written in (default: float32)")
    parser.add_argument("--tensor", type=lambda text: text.split(","), default=[],
                        metavar="PATTERN,...", help="tensors of these names (default: all)")
    args = parser.parse_args()
    try:
        recorder, ids = trace(args, architecture_of(args.folder))
        write(args.output, recorder, ids)
    except Failure as failure:
        print(f"trace-transformers: {failure}", file=sys.stderr)
        return 2
    report(args, recorder, len(ids))
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""scripts/trace-transformers.py on pretended modules: what it writes agrees with assay trace, and a
fault in the GGUF file is found where it is. Needs NumPy, not torch or transformers.

usage: test_trace_transformers.py ASSAY SOURCE_DIR KNOWN_NODES
"""
import os
import subprocess
import sys

try:
    import numpy as np
except ImportError:
    OTHER = "/usr/bin/python3"  # where Debian's python3-numpy is
    if os.path.realpath(sys.executable) == os.path.realpath(OTHER) or not os.path.exists(OTHER) or \
            subprocess.run([OTHER, "-c", "import numpy"], capture_output=True).returncode:
        print("skip: no Python here has numpy (python3-numpy)")
        sys.exit(77)
    os.execv(OTHER, [OTHER, "-B", *sys.argv])

import importlib.util  # noqa: E402
import pathlib  # noqa: E402
import re  # noqa: E402
import tempfile  # noqa: E402
import types  # noqa: E402
import unittest  # noqa: E402

import gguf_make as g  # noqa: E402

ASSAY, SOURCE, KNOWN_NODES = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
SCRIPT = SOURCE / "scripts" / "trace-transformers.py"
spec = importlib.util.spec_from_file_location("trace_transformers", SCRIPT)
script = importlib.util.module_from_spec(spec)
spec.loader.exec_module(script)

D, HEADS, KV, SIZE, F, V, LAYERS, EXPERTS, USED, BASE = 32, 4, 2, 8, 48, 256, 2, 4, 2, 1000.0
IDS = [5, 200, 17, 17, 90, 33, 250, 1, 64, 7]


# ---- modules as torch has them, of NumPy ----

FUNCTIONAL = types.SimpleNamespace(linear=lambda x, w: x @ w.T)


class Module:
    def __init__(self, **children):
        self.__dict__.update(children)
        self.parts, self.before, self.after = children, [], []

    def children(self):
        return [c for c in self.parts.values() if isinstance(c, (Module, list))]

    def named_modules(self, prefix=""):
        yield prefix, self
        for name, child in self.parts.items():
            for i, c in enumerate(child if isinstance(child, list) else [child]):
                inner = f"{name}.{i}" if isinstance(child, list) else name
                if isinstance(c, Module):
                    yield from c.named_modules(f"{prefix}.{inner}".lstrip("."))

    def register_forward_pre_hook(self, hook, with_kwargs=False):
        self.before.append(hook if with_kwargs else lambda m, args, kwargs: hook(m, args))

    def register_forward_hook(self, hook, with_kwargs=False):
        self.after.append(hook if with_kwargs else lambda m, args, kwargs, out: hook(m, args, out))

    def __call__(self, *args, **kwargs):
        for hook in self.before:
            hook(self, args, kwargs)
        out = self.forward(*args, **kwargs)
        for hook in self.after:
            hook(self, args, kwargs, out)
        return out


class Linear(Module):
    def forward(self, x):
        return x @ self.weight.T


class Norm(Module):
    def forward(self, x):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * self.weight


class Odd(Module):
    def forward(self, x):
        return x


def silu(x):
    return x / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def turned(x):  # [1, heads, tokens, size]: halves
    angles = np.arange(x.shape[2])[:, None] * BASE ** -(np.arange(SIZE // 2) / (SIZE // 2))
    a, b, c, s = x[..., :SIZE // 2], x[..., SIZE // 2:], np.cos(angles), np.sin(angles)
    return np.concatenate([a * c - b * s, b * c + a * s], -1)


def eager_attention_forward(module, query, key, value, mask, scaling):
    key, value = (np.repeat(x, HEADS // KV, 1) for x in (key, value))
    return np.swapaxes(softmax(query @ np.swapaxes(key, 2, 3) * scaling + mask) @ value, 1, 2), None


class Attention(Module):
    def forward(self, x):
        heads = [p(x).reshape(1, x.shape[1], -1, SIZE) for p in (self.q_proj, self.k_proj, self.v_proj)]
        if "q_norm" in self.parts:
            heads[:2] = self.q_norm(heads[0]), self.k_norm(heads[1])
        q, k, v = (np.swapaxes(h, 1, 2) for h in heads)
        mask = np.triu(np.full((x.shape[1],) * 2, -np.inf), 1)
        out, _ = eager_attention_forward(self, turned(q), turned(k), v, mask, scaling=SIZE ** -0.5)
        return self.o_proj(out.reshape(1, x.shape[1], -1)), None


class MLP(Module):
    def forward(self, x):
        return self.down_proj(silu(self.gate_proj(x)) * self.up_proj(x))


class Router(Module):
    def forward(self, x):
        logits = x @ self.weight.T
        chosen = np.argsort(logits, -1)[:, -USED:]  # the best last: transformers promises no order
        shares = softmax(np.take_along_axis(logits, chosen, 1))
        return logits, shares, chosen


class Experts(Module):
    def forward(self, x, chosen, shares):
        out = np.zeros_like(x)
        for e in range(EXPERTS):
            place, token = np.nonzero(chosen.T == e)
            if len(token):
                gate, up = np.split(FUNCTIONAL.linear(x[token], self.gate_up[e]), 2, 1)
                y = FUNCTIONAL.linear(silu(gate) * up, self.down[e])
                np.add.at(out, token, shares[token, place, None] * y)
        return out


class Moe(Module):
    def forward(self, x):
        _, shares, chosen = self.gate(x[0])
        return self.experts(x[0], chosen, shares)[None]


class Layer(Module):
    def forward(self, hidden_states):
        x = hidden_states + self.self_attn(self.input_layernorm(hidden_states))[0]
        return (x + self.odd(self.mlp(self.post_attention_layernorm(x))),)


class Model(Module):
    def forward(self, ids):
        x = self.model.embed_tokens.weight[ids]
        for layer in self.model.layers:
            x, = layer(hidden_states=x)
        return types.SimpleNamespace(logits=self.lm_head(self.model.norm(x)))


def build(kind):
    """(model, {name in the file: matrix as transformers has it})."""
    rng, file = np.random.default_rng(1), {}

    def random(name, *shape):
        scale = 0.3 if len(shape) == 1 else shape[-1] ** -0.5
        values = (scale * rng.standard_normal(shape) + (len(shape) == 1)).astype("float32")
        file[name + ".weight"] = values
        return values

    def linear(name, rows, columns):
        return Linear(weight=random(name, rows, columns))
    layers = []
    for i in range(LAYERS):
        b = f"blk.{i}."
        norms = {f"{x}_norm": Norm(weight=random(f"{b}attn_{x}_norm", SIZE)) for x in "qk"}
        attention = Attention(
            q_proj=linear(b + "attn_q", HEADS * SIZE, D), k_proj=linear(b + "attn_k", KV * SIZE, D),
            v_proj=linear(b + "attn_v", KV * SIZE, D), o_proj=linear(b + "attn_output", D, HEADS * SIZE),
            **norms if kind == "qwen3_moe" else {})
        if kind == "qwen3_moe":
            gate, up = (random(b + f"ffn_{x}_exps", EXPERTS, F, D) for x in ("gate", "up"))
            mlp = Moe(gate=Router(weight=random(b + "ffn_gate_inp", EXPERTS, D)), experts=Experts(
                gate_up=np.concatenate([gate, up], 1), down=random(b + "ffn_down_exps", EXPERTS, D, F)))
        else:
            for x in "qk":
                del file[f"{b}attn_{x}_norm.weight"]
            mlp = MLP(gate_proj=linear(b + "ffn_gate", F, D), up_proj=linear(b + "ffn_up", F, D),
                      down_proj=linear(b + "ffn_down", D, F))
        layers.append(Layer(self_attn=attention, mlp=mlp, odd=Odd(),
                            input_layernorm=Norm(weight=random(b + "attn_norm", D)),
                            post_attention_layernorm=Norm(weight=random(b + "ffn_norm", D))))
    inner = Module(embed_tokens=Module(weight=random("token_embd", V, D)), layers=layers,
                   norm=Norm(weight=random("output_norm", D)))
    return Model(model=inner, lm_head=linear("output", V, D)), file


def permuted(w, n_heads):
    return w.reshape(n_heads, 2, SIZE // 2, -1).swapaxes(1, 2).reshape(w.shape)


def converted(kind, file):
    """What a converter makes of the matrices."""
    return {name: permuted(w, HEADS if "attn_q" in name else KV)
            if kind == "llama" and re.search(r"attn_[qk]\.", name) else w for name, w in file.items()}


def write_gguf(path, kind, tensors):
    arch = {"llama": "llama", "qwen3_moe": "qwen3moe"}[kind]
    ints = {"block_count": LAYERS, "context_length": 64, "embedding_length": D,
            "feed_forward_length": F, "attention.head_count": HEADS, "attention.head_count_kv": KV,
            "attention.key_length": SIZE, "attention.value_length": SIZE, "rope.dimension_count": SIZE}
    if kind == "qwen3_moe":
        ints |= {"expert_count": EXPERTS, "expert_used_count": USED, "expert_feed_forward_length": F}
    floats = {"attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": BASE}
    tokens = [f"t{i}" for i in range(V)]
    pairs = [g.pair("general.architecture", g.STRING, arch),
             *(g.pair(f"{arch}.{k}", g.U32, v) for k, v in ints.items()),
             *(g.pair(f"{arch}.{k}", g.F32, v) for k, v in floats.items()),
             g.pair("tokenizer.ggml.model", g.STRING, "llama"),
             g.pair("tokenizer.ggml.tokens", g.ARRAY, tokens, g.STRING),
             g.pair("tokenizer.ggml.scores", g.ARRAY, [0.0] * V, g.F32),
             g.pair("tokenizer.ggml.token_type", g.ARRAY, [1] * V, g.I32)]
    path.write_bytes(g.gguf(pairs, [(n, 0, list(reversed(t.shape)), t.tobytes())
                                    for n, t in tensors.items()]))


class Recorded(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def record(self, kind, patterns=()):
        model, file = build(kind)
        config = types.SimpleNamespace(head_dim=SIZE, num_key_value_heads=KV)
        recorder = script.Recorder(script.ARCHITECTURES[kind], config, len(IDS), patterns, "float64")
        recorder.run(model, np.array([IDS]), FUNCTIONAL)
        script.write(self.folder / "t.npz", recorder, IDS)
        return recorder, file

    def compare(self, kind, tensors):
        """The tokens come from the file."""
        write_gguf(self.folder / "m.gguf", kind, tensors)
        return subprocess.run([ASSAY, "trace", "-m", self.folder / "m.gguf", "--rounding", "float32",
                               "--passes", "3", "--compare", self.folder / "t.npz"],
                              capture_output=True, text=True)

    def test_agrees_and_names_what_it_does_not_know(self):
        for kind, n_tensors, n_alone in (("llama", 33, 0), ("qwen3_moe", 43, 0)):
            recorder, file = self.record(kind)
            self.assertEqual(recorder.unknown, {("model.layers.N.odd", "Odd"): LAYERS})
            done = self.compare(kind, converted(kind, file))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn(f"Compared: {n_tensors} tensors, {len(IDS)} tokens, 3 passes that round; "
                          f"{n_alone} more are not in the file", done.stdout)
            self.assertTrue(done.stdout.endswith("\nNo departure\n"), done.stdout)

    def test_faults_are_found_where_they_are(self):
        _, file = self.record("llama")
        good = converted("llama", file)
        for name, fault in (
                ("Qcur-0 MUL_MAT, queries before RoPE", file),
                ("attn_norm-1 MUL, ", {**good, "blk.1.attn_norm.weight":
                                       good["blk.1.attn_norm.weight"] + np.float32(0.01)}),
                ("ffn_gate-1 MUL_MAT, ", {**good, "blk.1.ffn_gate.weight": good["blk.1.ffn_up.weight"],
                                          "blk.1.ffn_up.weight": good["blk.1.ffn_gate.weight"]})):
            done = self.compare("llama", fault)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn(f"\nFirst departure: {name}", done.stdout)
        _, file = self.record("qwen3_moe")
        swapped = {**file, "blk.0.ffn_gate_inp.weight": file["blk.0.ffn_gate_inp.weight"][::-1].copy()}
        self.assertIn("\nFirst departure: ffn_moe_logits-0 MUL_MAT", self.compare("qwen3_moe", swapped).stdout)
        down = file["blk.1.ffn_down_exps.weight"].copy()
        down[2] *= np.float32(1.001)
        self.assertIn("\nFirst departure: ffn_moe_down-1 MUL_MAT_ID",
                      self.compare("qwen3_moe", {**file, "blk.1.ffn_down_exps.weight": down}).stdout)

    def test_tensors_of_a_pattern(self):
        recorder, _ = self.record("llama", ["l_out-*", "result_norm"])
        self.assertEqual(sorted(recorder.arrays), ["l_out-0.ADD", "l_out-1.ADD", "result_norm.MUL"])
        with self.assertRaisesRegex(script.Failure, "^no tensor has such a name$"):
            self.record("llama", ["no-*"])


class Names(unittest.TestCase):
    def test_trace_knows_every_name_of_every_architecture(self):
        asked = []
        for architecture in script.ARCHITECTURES.values():
            names = {name for sides in architecture.layer.values() for _, name, _ in sides if name}
            if any(form == "experts" for sides in architecture.layer.values() for _, _, form in sides):
                names |= set(architecture.inside)
            names |= {architecture.embedding, "Qcur.ROPE", "Kcur.ROPE", "result_norm.MUL",
                      "ffn_moe_topk", "result_output.MUL_MAT"}
            asked += [" ".join((architecture.gguf, *name.split("."))) for name in sorted(names)]
        self.assertGreater(len(asked), 100)
        unknown = subprocess.run([KNOWN_NODES], input="\n".join(asked), capture_output=True, text=True, check=True)
        self.assertEqual(unknown.stdout, "")


class Refused(unittest.TestCase):
    def run_script(self, *args):
        return subprocess.run([sys.executable, "-B", SCRIPT, *args, "-o", "/dev/null/x.npz"],
                              capture_output=True, text=True)

    def test_sentences(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            for config, args, sentence in (
                    (None, ("-p", "a"), "config.json: No such file or directory; expected the folder"),
                    ('{"model_type": "bert"}', ("-p", "a"), "model_type is 'bert'; this script knows"),
                    ('[]', ("-p", "a"), "config.json: ")):
                if config:
                    (path / "config.json").write_text(config)
                done = self.run_script(folder, *args)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertRegex(done.stderr, rf"^trace-transformers: .*{sentence}.*\n$")
            (path / "config.json").write_text('{"model_type": "llama"}')
            done = self.run_script(folder, "-p", "a")
            self.assertRegex(done.stderr, "has no tokenizer.json, .*; give the text by --tokens\n$")
            (path / "ids").write_text("[1, x]")
            with self.assertRaisesRegex(script.Failure, "'x' is not the id of a token"):
                script.read_ids(path / "ids")
            (path / "ids").write_text("[1, 22,\n3]\n")
            self.assertEqual(script.read_ids(path / "ids"), [1, 22, 3])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

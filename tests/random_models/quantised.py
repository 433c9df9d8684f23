"""Random folders with quantised weights, and the same models as GGUF with float32 tensors: what the
stored numbers mean, computed here in double precision and rounded once."""
import math
import re
from array import array

import folders
from folders import EXPERTS, FF, HEADS, KV, LAYERS, SIZE, TWO, WIDTH
from folders_by_table import deepseek4, kimi_k3, qwen3vlmoe
from formats import FP4, Tensor, f32, floats


def e4m3(code):
    exponent, mantissa = code >> 3 & 15, code & 7
    value = (mantissa + 8 * (exponent > 0)) * 2.0 ** (max(exponent, 1) - 10)
    return -value if code & 0x80 else value


def e5m2(code):
    exponent, mantissa = code >> 2 & 31, code & 3
    value = (mantissa + 4 * (exponent > 0)) * 2.0 ** (max(exponent, 1) - 17)
    return -value if code & 0x80 else value


CODES = {"F8_E4M3": ([e4m3(c) for c in range(256)], 0x7e, 100),
         "F8_E5M2": ([e5m2(c) for c in range(256)], 0x7b, 9000)}


def a_scale(rng, kind, size):
    """(bytes, value) of about this size."""
    if kind in ("U8", "F8_E8M0"):
        code = 127 + round(math.log2(size)) + rng.randrange(2)
        return bytes([code]), 2.0 ** (code - 127)
    if kind == "F8_E4M3":
        code = rng.randrange(0x60, 0x78)  # 32 to 240
        return bytes([code]), e4m3(code)
    tensor = Tensor.random(rng, "", kind, [1], size)
    if tensor.values()[0] == 0:
        tensor = Tensor("", kind, [1], floats(kind, [size]))
    return tensor.data, tensor.values()[0]


class Form:
    """How weights are stored: codes and scales of one matrix after the other."""

    def __init__(self, config, scale="F32", codes="F8_E4M3", block=None, shape="", ending="_scale",
                 file=None, head=False):
        self.config, self.scale, self.codes, self.block = config, scale, codes, block
        self.shape, self.ending, self.file, self.head = shape, ending, file, head
        self.unit = 64 if codes == "NVFP4" else 32

    def takes(self, name, shape):
        if self.codes == "MXFP4":
            return "experts" in name and not name.endswith("bias")
        if len(shape) < 2 or any(n % self.unit for n in shape[1 - len(shape):]) or name.endswith("bias"):
            return False
        return "lm_head" in name and self.head or "layers." in name and \
            any(word in name for word in ("proj", ".w1.", ".w2.", ".w3.", "linear"))

    def axes(self, n_rows, n_cols):
        """(block of rows, of columns, shape of a matrix's scales)"""
        if self.codes in ("NVFP4", "MXFP4"):
            size = 16 if self.codes == "NVFP4" else 32
            return 1, size, [n_rows, n_cols // size]
        if self.block:
            r, c = self.block
            return r, c, [-(-n_rows // r), -(-n_cols // c)]
        if self.shape == "columns" and self.stacked:  # as GGUF has it, rows
            return n_rows, 1, [1, n_cols]
        if "row" in self.shape or self.shape == "columns":
            return 1, n_cols, [n_rows, 1] if self.shape == "rows" else [n_rows]
        return n_rows, n_cols, [1] if self.shape == "one" else []

    def matrix(self, rng, n_rows, n_cols):
        """Bytes of codes, bytes of scales, and values."""
        rows, columns, shape = self.axes(n_rows, n_cols)
        size, n = 1 / math.sqrt(n_cols), math.prod(shape)
        four = self.codes in ("NVFP4", "MXFP4")
        if four:
            data, unit = rng.randbytes(n_rows * n_cols // 2), 3
            numbers = [FP4[c] / 2 for b in data for c in (b & 15, b >> 4)]
        else:
            table, largest, unit = CODES[self.codes]
            data = bytes(b if b & 0x7f <= largest else b & 0x80 | largest
                         for b in rng.randbytes(n_rows * n_cols))
            numbers = [table[b] for b in data]
        scales = [a_scale(rng, self.scale, size / unit) for _ in range(n)]
        across = -(-n_cols // columns)
        values = array("f", (x * scales[i // n_cols // rows * across + i % n_cols // columns][1]
                             for i, x in enumerate(numbers)))
        return data, b"".join(s[0] for s in scales), values.tobytes()

    def store(self, m, name, shape):
        """Bytes of the values, and the factor of the whole."""
        n, self.stacked = shape[0] if len(shape) > 2 else 1, len(shape) > 2
        parts = [self.matrix(m.rng, *shape[-2:]) for _ in range(n)]
        codes, scales, values = (b"".join(part) for part in zip(*parts))
        of_scales = shape[:-2] + self.axes(*shape[-2:])[2]
        kind, packed = self.codes, shape
        if kind == "NVFP4":
            kind, packed = "U8", shape[:-1] + [shape[-1] // 2]
        if kind == "MXFP4" and self.ending == "packed":
            m.stored |= {name + "_packed": ("U8", shape[:-1] + [shape[-1] // 2], codes),
                         name + "_scale": (self.scale, of_scales, scales)}
            return values, []
        if kind == "MXFP4":
            stored, names = shape[:-1] + [shape[-1] // 32, 16], (name + "_blocks", name + "_scales")
            m.stored |= {names[0]: ("U8", stored, codes), names[1]: (self.scale, of_scales, scales)}
            return values, []
        factors = []
        if self.codes == "NVFP4":
            factors = [f32(m.rng.uniform(0.5, 2) / math.sqrt(shape[-1]) / 300) for _ in range(n)]
            divides = self.ending == "global"
            numbers = Tensor.of("", [f32(1 / x) if divides else x for x in factors])
            factors = [f32(1 / x) if divides else x for x in numbers.values()]
            other = name + ("_global_scale" if divides else "_scale_2")
            m.stored[other] = ("F32", [n] if n > 1 or divides else [], numbers.data)
            m.stored[name + "_scale"] = (self.scale, of_scales, scales)
            m.stored[name + "_packed" * divides] = (kind, packed, codes)
            return values, factors
        m.stored[name] = (kind, packed, codes)
        m.stored[name + self.ending] = (self.scale, of_scales, scales)
        if ".q_proj" in name:  # activations and caches
            m.stored[name.replace("weight", "input_scale")] = ("F32", [], bytes(4))
            m.stored[name.replace("q_proj.weight", "k_proj.k_scale")] = ("F32", [1], bytes(4))
        return values, []


class Published4(Form):
    """DeepSeek 4's own: X.scale beside FP8 by blocks, and beside experts in FP4, all scales powers of two."""

    def __init__(self, experts="MXFP4"):
        super().__init__({"quant_method": "fp8", "fmt": "e4m3", "scale_fmt": "ue8m0", "activation_scheme": "dynamic",
                          "weight_block_size": [24, 32]}, scale="F8_E8M0", block=(24, 32))
        self.experts = experts

    def takes(self, name, shape):
        return name[0] == "l" and re.search(r"attn\.(w..?.?|indexer\.wq_b)\.weight|\.w[123]\.weight", name)

    def store(self, m, name, shape):
        self.codes = self.experts if ".experts." in name else "F8_E4M3"
        codes, scales, values = self.matrix(m.rng, *shape)
        m.stored[name] = ("I8", [shape[0], shape[1] // 2], codes) if self.codes == "MXFP4" else (self.codes, shape, codes)
        m.stored[name.replace(".weight", ".scale")] = (self.scale, self.axes(*shape)[2], scales)
        return values, []


class Quantised(folders.Folder):
    """tensors: float32, and the factors of NVFP4's as X.scale."""

    def __init__(self, rng, describe, form):
        self.form, self.factors = form, []
        super().__init__(rng, describe, "F32")
        if form.config:
            self.config["quantization_config"] = form.config

    def random(self, name, shape):
        if not self.form.takes(name, shape):
            return super().random(name, shape)
        values, factors = self.form.store(self, name, shape)
        self.factors += factors
        return values

    def scaled(self, *names):
        if self.factors:
            self.tensors += [Tensor.of(f"{name.removesuffix('.weight')}.scale", self.factors)
                             for name in names]
        self.factors = []

    def matrix(self, name, to, *more, **options):
        super().matrix(name, to, *more, **options)
        self.scaled(to)

    def experts(self, names, to, *more):
        super().experts(names, to, *more)
        self.scaled(to)

    def stack(self, name, to, *more):
        super().stack(name, to, *more)
        self.scaled(to)

    def fused(self, name, first, second, *more):
        super().fused(name, first, second, *more)
        self.scaled(first, second)

    def write(self, path, n_files):
        super().write(path, n_files)
        if self.form.file:
            (path / "hf_quant_config.json").write_text(self.form.file)


def qwen3moe(m):
    m.common("Qwen3MoeForCausalLM", "qwen3moe", num_experts=EXPERTS, num_experts_per_tok=2,
             moe_intermediate_size=64, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[])
    m.keys |= {"expert_count": EXPERTS, "expert_used_count": 2, "expert_feed_forward_length": 64}
    m.ends()
    for i in range(LAYERS):
        m.norms(i, TWO)
        m.attention(i, qk_norm=True)
        at, to = f"model.layers.{i}.mlp.", f"blk.{i}.ffn_"
        m.matrix(at + "gate", to + "gate_inp", EXPERTS, WIDTH)
        for name, n_rows, n_cols in (("gate", 64, WIDTH), ("up", 64, WIDTH), ("down", WIDTH, 64)):
            m.experts(f"{at}experts.{{}}.{name}_proj.weight", f"{to}{name}_exps.weight", n_rows, n_cols)


class Partial(Form):
    """Rows that blocks of 32 codes do not fill."""

    def __init__(self, *more, **options):
        super().__init__(*more, **options)
        self.unit = 8


def odd(m):
    """Feed-forwards of 136."""
    m.common("Qwen3ForCausalLM", "qwen3", intermediate_size=136)
    m.keys |= {"feed_forward_length": 136}
    m.ends()
    for i in range(LAYERS):
        m.norms(i, TWO)
        m.attention(i, qk_norm=True)
        at, to = f"model.layers.{i}.mlp.", f"blk.{i}.ffn_"
        for name, n_rows, n_cols in (("gate", 136, WIDTH), ("up", 136, WIDTH), ("down", WIDTH, 136)):
            m.matrix(f"{at}{name}_proj", to + name, n_rows, n_cols)


def gptoss(m):
    m.common("GptOssForCausalLM", "gpt-oss", num_local_experts=EXPERTS, num_experts_per_tok=2, sliding_window=5,
             layer_types=["sliding_attention", "full_attention"], rope_scaling={"rope_type": "default"})
    m.keys |= {"expert_count": EXPERTS, "expert_used_count": 2, "expert_feed_forward_length": FF,
               "attention.sliding_window": 5}
    m.ends()
    for i in range(LAYERS):
        m.norms(i, {"input_layernorm": "attn_norm", "post_attention_layernorm": "post_attention_norm"})
        at, to = f"model.layers.{i}.self_attn.", f"blk.{i}.attn_"
        for name, n_rows, n_cols in (("q", HEADS * SIZE, WIDTH), ("k", KV * SIZE, WIDTH), ("v", KV * SIZE, WIDTH),
                                     ("o", WIDTH, HEADS * SIZE)):
            m.matrix(f"{at}{name}_proj", to + (name if name != "o" else "output"), n_rows, n_cols, bias=True)
        m.vector(at + "sinks", to + "sinks.weight", HEADS)
        at, to = f"model.layers.{i}.mlp.", f"blk.{i}.ffn_"
        m.matrix(at + "router", to + "gate_inp", EXPERTS, WIDTH, bias=True)
        m.stack(at + "experts.down_proj", to + "down_exps.weight", WIDTH, FF)
        data = m.random(at + "experts.down_proj_bias", [EXPERTS, WIDTH])
        m.tensors.append(Tensor(to + "down_exps.bias", m.kind, [WIDTH, EXPERTS], data))
        both = folders.rows_of(m.random(at + "experts.gate_up_proj", [EXPERTS, 2 * FF, WIDTH]), EXPERTS * 2 * FF)
        bias = folders.rows_of(m.random(at + "experts.gate_up_proj_bias", [EXPERTS, 2 * FF]), EXPERTS * 2 * FF)
        for first, name in enumerate(("gate_exps", "up_exps")):  # they take turns
            m.tensors += [Tensor(f"{to}{name}.weight", m.kind, [WIDTH, FF, EXPERTS], b"".join(both[first::2])),
                          Tensor(f"{to}{name}.bias", m.kind, [FF, EXPERTS], b"".join(bias[first::2]))]


def compressed(kind, **weights):
    return {"quant_method": "compressed-tensors", "format": kind, "quantization_status": "compressed",
            "ignore": ["nothing.that.is.there"], "kv_cache_scheme": None, "config_groups": {"group_0": {
                "targets": ["Linear"], "weights": {"num_bits": 8, "type": "float"} | weights}}}


MODELOPT = '{"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "group_size": 16}}'
BLOCKS = {"quant_method": "fp8", "weight_block_size": [24, 32], "modules_to_not_convert": ["lm_head"]}
TURNED = {"quant_method": "fp8", "weight_block_size": [32, 64]}  # of experts that are stored transposed
ALL = (
    (folders.llama, Form(BLOCKS, block=(24, 32), ending="_scale_inv")),
    (folders.deepseek3, Form(BLOCKS, block=(24, 32), scale="BF16", ending="_scale_inv")),
    (folders.qwen2moe, Form(BLOCKS, block=(24, 32), scale="F8_E8M0", ending="_scale_inv")),
    (qwen3moe, Form({"quant_method": "fp8"}, shape="number", ending="_scale_inv")),
    (folders.llama, Form(compressed("float-quantized", strategy="channel"), scale="BF16", shape="rows")),
    (folders.phi3, Form(compressed("float-quantized", strategy="tensor"), shape="one")),
    (qwen3moe, Form(compressed("float-quantized", strategy="block", block_structure=[40, 64]),
                    block=(40, 64), codes="F8_E5M2")),
    (folders.mixtral, Form({"quant_method": "modelopt", "quant_algo": "FP8"}, shape="row", scale="F16")),
    (folders.llama, Form({"quant_method": "modelopt", "quant_algo": "NVFP4"}, codes="NVFP4",
                         scale="F8_E4M3")),
    (qwen3moe, Form(compressed("nvfp4-pack-quantized", strategy="tensor_group", group_size=16),
                    codes="NVFP4", scale="F8_E4M3", ending="global", head=True)),
    (folders.qwen2moe, Form(None, codes="NVFP4", scale="F8_E4M3", file=MODELOPT)),
    (gptoss, Form({"quant_method": "mxfp4"}, codes="MXFP4", scale="U8")),
    (deepseek4, Published4()),
    (deepseek4, Published4(experts="F8_E4M3")),
    (folders.gpt_oss, Form(TURNED, block=(32, 64), ending="_scale_inv")),
    (qwen3vlmoe, Form(TURNED, block=(32, 64), scale="BF16", ending="_scale_inv")),
    (qwen3vlmoe, Form(TURNED, shape="columns", codes="F8_E5M2")),
    (odd, Partial(BLOCKS, block=(24, 32), ending="_scale_inv")),
    (odd, Partial(compressed("float-quantized", strategy="channel"), shape="rows", codes="F8_E5M2")),
    (folders.qwen2moe, Partial(BLOCKS, block=(24, 32), scale="BF16", ending="_scale_inv")),
    (kimi_k3, Form(compressed("mxfp4-pack-quantized", strategy="group", group_size=32), codes="MXFP4", scale="U8",
                   ending="packed")),
)
assert HEADS * SIZE % 64 == 0 and KV


def without(ending):
    return lambda m: m.stored.pop(Q + ending)


def stored(ending, dtype, shape, data):
    return lambda m: m.stored.update({Q + ending: (dtype, shape, data)})


def said(**members):
    return lambda m: m.config["quantization_config"].update(members)


def changed_byte(ending, value):
    def change(m):
        dtype, shape, data = m.stored[Q + ending]
        m.stored[Q + ending] = (dtype, shape, value + data[len(value):])
    return change


Q = "model.layers.0.self_attn.q_proj.weight"
W1 = "layers.0.ffn.experts.0.w1."
BOTH = "model.layers.0.mlp.experts.gate_up_proj"
NAN = b"\0\0\xc0\x7f"
# (which of ALL, what is changed, what is said of it)
WRONG = (
    (0, without("_scale_inv"), "has dtype F8_E4M3, and no tensor with scales lies beside it"),
    (0, without(""), "'model.layers.0.self_attn.q_proj.weight_scale_inv': holds scales of a weight that is not there"),
    (0, stored("_scale_inv", "F32", [3, 3], bytes(36)),
     r"has shape \[3, 3\], expected a scale for the whole, each row or each block of 24 x 32 of"),
    (0, stored("_scale_inv", "I32", [3, 2], bytes(24)), "has dtype I32, expected F32, F16, BF16 or F8_E8M0"),
    (0, stored("_scale", "F32", [3, 2], bytes(24)), "are both scales of"),
    (0, changed_byte("_scale_inv", NAN), "scale 0 of matrix 0 of tensor 'blk.0.attn_q.weight' is not finite"),
    (0, stored("", "BF16", [64, 64], bytes(8192)), "holds scales of 'model.layers.0.self_attn.q_proj.weight', which "
     "has dtype BF16"),
    (0, stored("_scale_2", "F32", [], bytes(4)), "is a second scale of"),
    (0, said(weight_block_size=[24]), "quantization_config.weight_block_size is no list of two whole numbers"),
    (0, said(quant_method="bitnet"), "quant_method 'bitnet'.*convert_hf_to_gguf.py makes"),
    (0, said(quant_method="bitsandbytes"), "quant_method 'bitsandbytes'.*take the folder that it was made of"),
    (4, said(format="int-quantized"), "compressed-tensors' format 'int-quantized'"),
    (4, said(transform_config={"config_groups": {"R1": {}}}), "member 'transform_config'"),
    (4, said(sparsity_config={"format": "sparse-24-bitmask"}), "sparse format 'sparse-24-bitmask'"),
    (8, said(quant_algo="W4A16_AWQ"), "modelopt's quant_algo 'W4A16_AWQ'"),
    (8, without("_scale_2"), "has no second scale beside it"),
    (8, changed_byte("_scale_2", bytes(4)), "is 0, expected a finite number above 0"),
    (8, changed_byte("_scale_2", NAN), "is nan, expected a finite number above 0"),
    (8, changed_byte("_scale", b"\xb0"), "or negative where type NVFP4_APART has no sign"),
    (8, changed_byte("_scale", b"\x7f"), "scale 0 of matrix 0 of tensor 'blk.0.attn_q.weight' is not finite"),
    (8, stored("_scale", "F8_E4M3", [64, 2], bytes(128)), "expected a scale for 16 codes of each row"),
    (8, stored("_scale", "F32", [64, 4], bytes(1024)), "has dtype F32, expected F8_E4M3"),
    (8, stored("_scale_2", "F32", [2], bytes(8)), "has 2 elements, expected 1"),
    (12, lambda m: m.stored.pop(W1 + "scale"), "has dtype I8, and no tensor with scales lies beside it"),
    (12, lambda m: m.stored.update({W1 + "scale": ("F8_E8M0", [64, 1], bytes(64))}),
     "has another type or shape|expected a scale for 32 codes of each row"),
    (12, lambda m: m.stored.update({W1 + "weight_scale": m.stored.pop(W1 + "scale")}),
     "has dtype I8, and '.*weight_scale' lies beside it; expected U8"),
    (15, lambda m: m.stored.update({BOTH + "_scale_inv": ("F32", [EXPERTS, 2, 4], bytes(8 * 4 * EXPERTS))}),
     r"has shape \[3, 2, 4\], expected a scale for the whole, each column \(it is transposed\) or each block of 32 x 64"),
    (15, lambda m: (m.stored.pop(BOTH + "_scale_inv"), m.stored.update({
        BOTH: ("U8", [EXPERTS, WIDTH, 16], bytes(EXPERTS * WIDTH * 16)),
        BOTH + "_scale": ("F8_E4M3", [EXPERTS, WIDTH, 2], bytes([0x38]) * (EXPERTS * WIDTH * 2)),
        BOTH + "_scale_2": ("F32", [EXPERTS], b"\0\0\x80\x3f" * EXPERTS)})),
     "has dtype U8 and is stored transposed, which is not read; expected F8_E4M3"),
)

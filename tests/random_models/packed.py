"""Random folders with packed integers: GPTQ's, AWQ's, compressed-tensors'; and wrong ones."""
import copy
import math
import struct
from array import array

import folders
from folders import HEADS, SIZE, WIDTH
from formats import Tensor
from quantised import Form, a_scale, qwen3moe

IN_ORDER, TURNED = range(8), (0, 2, 4, 6, 1, 3, 5, 7)


def words(numbers, bits, order=IN_ORDER):
    """Bytes of words of 32 bits; the number order[i] of a word is in place i."""
    n, out = 32 // bits, b""
    for at in range(0, len(numbers), n):
        part = numbers[at:at + n] + [0] * n
        out += sum(part[order[i]] << bits * i for i in range(n)).to_bytes(4, "little")
    return out


def columns(rows):
    return [list(column) for column in zip(*rows)]


class Packed(Form):
    """A row of codes less a zero point, times a scale, which are those of a column's group."""

    def __init__(self, packer, bits=4, group=32, symmetric=False, ordered=False, less_one=False, scale="F16", **said):
        config = {"gptq": {"quant_method": "gptq", "bits": bits, "group_size": group, "sym": symmetric,
                           "desc_act": ordered, "checkpoint_format": "gptq" if less_one else "gptq_v2"},
                  "awq": {"quant_method": "awq", "bits": bits, "group_size": group, "zero_point": not symmetric,
                          "version": "gemm", "modules_to_not_convert": ["lm_head"]},
                  "compressed": {"quant_method": "compressed-tensors", "format": "pack-quantized",
                                 "ignore": ["lm_head", "re:.*nothing"], "config_groups": {"group_0": {
                                     "targets": ["Linear"], "input_activations": None, "weights": {
                                         "num_bits": bits, "type": "int", "symmetric": symmetric, "dynamic": False,
                                         "strategy": "channel" if group < 0 else "group",
                                         "group_size": None if group < 0 else group,
                                         "actorder": "group" if ordered else None}}}}}
        super().__init__(config[packer] | said, scale=scale)
        self.packer, self.bits, self.group, self.symmetric = packer, bits, group, symmetric
        self.ordered, self.less_one = ordered, less_one

    def tensors(self, name, n_rows, n_cols, codes, zeros, scales, groups):
        """Tensors of a module by their names. codes, zeros, scales: by rows; scales are bytes."""
        bits, n_groups = self.bits, len(zeros[0])
        each = 32 // bits
        if self.packer == "compressed":
            stored = {".weight_packed": ("I32", [n_rows, n_cols // each], b"".join(words(row, bits) for row in codes)),
                      ".weight_scale": (self.scale, [n_rows, n_groups], b"".join(b"".join(row) for row in scales)),
                      ".weight_shape": ("I64", [2], struct.pack("<2q", n_rows, n_cols))}
            if not self.symmetric:
                by_word = columns([words(column, bits)[i:i + 4] for i in range(0, -(-n_rows // each) * 4, 4)]
                                  for column in columns(zeros))
                stored[".weight_zero_point"] = ("I32", [len(by_word), n_groups], b"".join(b"".join(w) for w in by_word))
            if groups:
                stored[".weight_g_idx"] = ("I32", [n_cols], struct.pack(f"<{n_cols}i", *groups))
            return {name + ending: tensor for ending, tensor in stored.items()}
        order = TURNED if self.packer == "awq" else IN_ORDER
        less = [[(z - self.less_one) % 2**bits for z in row] for row in columns(zeros)]
        stored = {".scales": (self.scale, [n_groups, n_rows], b"".join(b"".join(row) for row in columns(scales))),
                  ".qzeros": ("I32", [n_groups, n_rows // each], b"".join(words(row, bits, order) for row in less))}
        if self.packer == "awq":
            data = b"".join(words(column, bits, order) for column in columns(codes))
            stored[".qweight"] = ("I32", [n_cols, n_rows // each], data)
        else:
            packed = [[words(row[i:i + each], bits) for i in range(0, n_cols, each)] for row in codes]
            stored[".qweight"] = ("I32", [n_cols // each, n_rows], b"".join(b"".join(row) for row in columns(packed)))
            stored[".g_idx"] = ("I32", [n_cols], struct.pack(f"<{n_cols}i", *groups))
        return {name + ending: tensor for ending, tensor in stored.items()}

    def store(self, m, name, shape):
        n_rows, n_cols = shape
        group = n_cols if self.group < 0 else self.group
        n_groups, top = n_cols // group, 2**self.bits
        size = 1 / math.sqrt(n_cols) / (top / 4)
        middle = self.symmetric
        codes = [[m.rng.randrange(top) for _ in range(n_cols)] for _ in range(n_rows)]
        zeros = [[top // 2 if middle else m.rng.randrange(self.less_one, top) for _ in range(n_groups)]
                 for _ in range(n_rows)]
        scales = [[a_scale(m.rng, self.scale, size) for _ in range(n_groups)] for _ in range(n_rows)]
        groups = [i // group for i in range(n_cols)]
        if self.ordered:
            m.rng.shuffle(groups)
        values = array("f", (scales[r][g][1] * (codes[r][c] - zeros[r][g])
                             for r in range(n_rows) for c, g in enumerate(groups)))
        stored = self.tensors(name.removesuffix(".weight"), n_rows, n_cols, codes, zeros,
                              [[s[0] for s in row] for row in scales], groups if self.ordered or self.packer == "gptq" else None)
        m.stored |= stored
        if self.packer == "gptq" and name.endswith("o_proj.weight"):  # as some programs have it
            m.stored[name.replace("weight", "bias")] = ("F16", [n_rows], bytes(2 * n_rows))
        return values.tobytes(), []


ALL = (
    (folders.llama, Packed("gptq", symmetric=True, less_one=True)),
    (folders.llama, Packed("gptq", ordered=True, less_one=True)),
    (folders.phi3, Packed("gptq", group=-1)),
    (qwen3moe, Packed("gptq", ordered=True, symmetric=True)),
    (folders.llama, Packed("gptq", bits=8, symmetric=True, less_one=True)),
    (folders.qwen3, Packed("gptq", bits=8)),
    (folders.llama, Packed("awq")),
    (folders.mixtral, Packed("awq", group=64, scale="BF16")),
    (folders.phi3, Packed("awq", group=-1, symmetric=True)),
    (folders.llama, Packed("compressed", symmetric=True, scale="BF16")),
    (qwen3moe, Packed("compressed", group=64, scale="BF16")),
    (folders.phi3, Packed("compressed", group=-1, scale="F32")),
    (folders.llama, Packed("compressed", ordered=True, scale="F32")),
    (folders.qwen3, Packed("compressed", bits=8, symmetric=True)),
    (folders.mixtral, Packed("compressed", bits=8, ordered=True)),
)


class Lossless(Packed):
    """What a file of Q4_0 holds, too: a half times -8 to 7."""

    def store(self, m, name, shape):
        values, _ = super().store(m, name, shape)
        data = b"".join(self.q4_0_block(m, name, shape, r, c) for r in range(shape[0]) for c in range(0, shape[1], 32))
        m.__dict__.setdefault("q4_0", {})[values] = data
        return values, []

    def q4_0_block(self, m, name, shape, row, col):
        """A block of Q4_0 of the stored words."""
        name = name.removesuffix(".weight")
        at = (row * shape[1] + col) // 2
        data = m.stored[name + ".weight_packed"][2][at:at + 16]
        codes = [c for b in data for c in (b & 15, b >> 4)]
        at = (row * shape[1] + col) // 32 * 2
        return m.stored[name + ".weight_scale"][2][at:at + 2] + bytes(codes[i] | codes[i + 16] << 4 for i in range(16))


def q4_0(values):
    """Blocks of Q4_0 as quantizers search for them: the largest number becomes -8 times the scale."""
    out = b""
    for at in range(0, len(values), 32):
        block = values[at:at + 32]
        largest = max(block, key=abs)
        d = struct.pack("<e", largest / -8)
        scale = struct.unpack("<e", d)[0] or 1.0
        codes = [min(15, max(0, round(x / scale) + 8)) for x in block]
        out += d + bytes(codes[i] | codes[i + 16] << 4 for i in range(16))
    return out


Q = "model.layers.0.self_attn.q_proj."


def put(ending, dtype, shape, data):
    return lambda m: m.stored.update({Q + ending: (dtype, shape, data)})


def without(ending):
    return lambda m: m.stored.pop(Q + ending)


def said(**members):
    return lambda m: m.config["quantization_config"].update(members)


def weights(**members):
    return lambda m: m.config["quantization_config"]["config_groups"]["group_0"]["weights"].update(members)


def schemes(*more, of=32):
    """Further groups of weights with other members than the first, whose groups are of so many columns."""
    def change(m):
        groups = m.config["quantization_config"]["config_groups"]
        for i, members in enumerate(more, 1):
            groups[f"group_{i}"] = copy.deepcopy(groups["group_0"])
            groups[f"group_{i}"]["weights"].update(members)
        groups["group_0"]["weights"]["group_size"] = of
    return change


def changed(ending, at, value):
    def change(m):
        dtype, shape, data = m.stored[Q + ending]
        m.stored[Q + ending] = (dtype, shape, data[:at] + value + data[at + len(value):])
    return change


def numbers(*values):
    return struct.pack(f"<{len(values)}i", *values)


GROUPS = [i // 32 for i in range(WIDTH)]
# (which of ALL, what is changed, what is said of it)
WRONG = (
    (0, said(bits=3), "quantization_config.bits is 3, expected 4 or 8"),
    (0, said(group_size=0), "group_size is 0, expected a whole number of columns from 1 to 2.31 - 1, or -1"),
    (0, said(group_size=48), r"qweight' has 4 bits, \d scales for each \d+ columns, but .* says 4 bits, groups of 48"),
    (0, said(bits=8), r"has 4 bits, \d scales for each \d+ columns, but .* says 8 bits, groups of 32"),
    (0, said(checkpoint_format="marlin"), "checkpoint_format is 'marlin', which is not read; expected gptq gptq_v2"),
    (0, said(is_marlin_format=True), "is_marlin_format is true, which is not read"),
    (0, said(sym="yes"), "sym is 'yes', expected true or false"),
    (0, said(modules_to_not_convert=["self_attn"]), None),  # no module's name begins or ends so
    (0, said(modules_to_not_convert=["q_proj"]), r"q_proj.qweight' holds integers, but .* says of 'q_proj' that it is left out"),
    (0, said(modules_to_not_convert=["model.layers.0"]), "says of 'model.layers.0' that it is left out"),
    (0, without("qweight"), "q_proj.*lies beside packed integers that are not there, expected '.*q_proj.qweight'"),
    (0, without("scales"), r"q_proj.qweight' has no 'model.layers.0.self_attn.q_proj.scales' beside it"),
    (0, without("qzeros"), r"q_proj.qweight' has no '.*q_proj.qzeros' beside it"),
    (0, put("qweight", "F32", [8, 64], bytes(2048)), "has dtype F32, 2 dimensions and 512 elements, expected I32, 2"),
    (0, put("qweight", "I32", [8, 60], bytes(1920)), r"q_proj.qweight' has shape \[8, 60\], expected \[8, 64\] of 64 rows of 64"),
    (0, put("qweight", "I32", [8, 8, 8], bytes(2048)), "has dtype I32, 3 dimensions"),
    (0, put("scales", "F16", [2, 60], bytes(240)), r"has 60 columns, expected a multiple of 8|has shape .* expected"),
    (0, put("scales", "F16", [3, 64], b"\0\x3c" * 192), r"qzeros' has shape \[2, 8\], expected \[3, 8\]"),
    (0, put("scales", "I32", [2, 64], bytes(512)), "has dtype I32, 2 dimensions and 128 elements, expected F16, BF16 or F32"),
    (0, put("qzeros", "I32", [2, 9], bytes(72)), r"q_proj.qzeros' has shape \[2, 9\], expected \[2, 16\]|expected \[2, 8\]"),
    (0, changed("qzeros", 0, b"\x78"), "zero point of row 0 and group 0 of tensor '.*q_proj.qzeros' is "
     "stored as 8, expected 7, as config.json calls the numbers symmetric"),
    (0, changed("scales", 0, b"\0\x7c"), "scale 0 of matrix 0 of tensor 'blk.0.attn_q.weight' is not finite"),
    (0, put("g_idx", "I32", [WIDTH], numbers(*GROUPS[::-1])), "but config.json's desc_act is false; programs differ"),
    (0, put("g_idx", "I32", [WIDTH], numbers(*GROUPS[:-1], 2)), "element 63 of tensor '.*g_idx' is 2, expected a group from 0 to 1"),
    (0, put("g_idx", "I32", [WIDTH], numbers(*GROUPS[:-1], -1)), "element 63 of tensor '.*g_idx' is -1, expected"),
    (0, put("g_idx", "I32", [WIDTH], bytes(256)), "has group 0 more than 32 times, expected so many columns of each"),
    (0, put("g_idx", "I32", [WIDTH - 1], bytes(252)), "has 63 elements, expected 64, one for each column"),
    (0, put("g_idx", "F32", [WIDTH], bytes(256)), "has dtype F32, 1 dimensions and 64 elements, expected I32"),
    (1, without("g_idx"), "has no '.*q_proj.g_idx' beside it, expected one"),
    (4, changed("qzeros", 0, b"\x80"), "zero point of row 0 and group 0 of tensor '.*q_proj.qzeros' is stored as 128, expected 127"),
    (1, changed("qzeros", 0, b"\x0f"), "row 0 and group 0 .* is stored as 15, expected at most 14: 1 is added, and programs "
     "take the sum for 0 or for 16"),
    (6, said(version="gemv"), "version is 'gemv', which is not read; expected gemm"),
    (6, said(bits=8), "quantization_config.bits is 8, expected 4"),
    (6, said(zero_point=False), "is stored as \\d+, expected 8, as config.json calls the numbers symmetric"),
    (6, put("qweight", "I32", [60, 8], bytes(1920)), "2 scales for each 60 columns|groups of 30"),
    (9, without("weight_shape"), "has no '.*q_proj.weight_shape' beside it, expected one"),
    (9, put("weight_shape", "I64", [2], struct.pack("<2q", 64, 68)), r"says 64 rows of 68 \(of 2 numbers\)"),
    (9, put("weight_shape", "I64", [2], struct.pack("<2q", -1, 64)), "says -1 rows of 64"),
    (9, put("weight_shape", "I64", [1], struct.pack("<q", 64)), "says 0 rows of 0 \\(of 1 numbers\\)"),
    (9, put("weight_zero_point", "I32", [8, 2], bytes(64)), "2 scales for each 64 columns, zero points, but .* says 4 bits, "
     "groups of 32$"),
    (9, put("weight_scale", "BF16", [32, 2], bytes(128)), r"weight_scale' has shape \[32, 2\], expected \[64, 2\]"),
    (9, weights(num_bits=3), r"weights.num_bits is 3, expected 4 or 8"),
    (9, weights(strategy="tensor"), "weights.strategy is 'tensor', which is not read; expected group channel"),
    (9, weights(type="float"), "weights.type is 'float', which is not read; expected int"),
    (9, said(ignore=["q_proj", "re:.*q_proj"]), "says of 'q_proj' that it is left out .member 'ignore'"),
    (10, lambda m: m.stored.pop("model.layers.0.mlp.experts.1.up_proj.weight_zero_point"), "experts.1.up_proj.weight_packed' has "
     "4 bits, 1 scales for each 64 columns, no zero points"),
    (9, weights(actorder="groups"), "weights.actorder is 'groups', which is not read; expected group dynamic weight static"),
    (9, weights(actorder=1), "weights.actorder is 1, expected a text"),
    (9, weights(actorder="group"), "has no '.*proj.weight_g_idx' beside it, expected one"),
    (9, weights(actorder=True), "has no '.*proj.weight_g_idx' beside it, expected one"),
    (9, weights(actorder="Static"), None),
    (9, weights(actorder=False), None),
    (9, put("weight_g_idx", "I32", [WIDTH], numbers(*[-1] * WIDTH)), None),  # not used
    (9, put("weight_g_idx", "I32", [WIDTH], numbers(*GROUPS)), None),
    (9, put("weight_g_idx", "I32", [WIDTH], numbers(*GROUPS[::-1])), "but config.json's actorder is not group; programs "
     "differ in which they follow, expected group"),
    (9, schemes(*[{}] * 20), None),
    (9, schemes(*[{"group_size": 32 * i} for i in range(2, 9)], {}), None),
    (9, schemes(*[{"group_size": 32 * i} for i in range(2, 10)]), "group_size is of more than 8 schemes of weights"),
    (9, schemes({"group_size": 64, "symmetric": False}, *[{"group_size": 32 * i, "num_bits": 8} for i in range(3, 9)], of=64),
     "says 4 bits, groups of 64, or 4 bits, groups of 64, zero points, or 8 bits, .*, or 8 bits, groups of 256$"),
    (12, put("weight_g_idx", "I32", [WIDTH], numbers(*[-1] * WIDTH)), "element 0 of tensor '.*weight_g_idx' is -1, expected a group"),
    (12, weights(actorder="weight"), "but config.json's actorder is not group"),
    (12, weights(actorder="Dynamic"), None),
    (12, schemes({"actorder": None}), None),
)
assert HEADS * SIZE == WIDTH and Tensor

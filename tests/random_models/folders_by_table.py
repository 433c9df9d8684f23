"""Random published folders whose tensors a table lists: what is stored, and what GGUF has of it.

A line: stored name, GGUF's name, shape as stored, what is done. "" in front of a name is the layer;
{} is the number of an expert. done: "" nothing, "+1", "exp", "turn" (transposed, each matrix),
"first" and "second" (halves of the rows, after a turn), "keys" and "values" (of kv_b; of so many heads,
and elements of a key that stay), "long" (times sqrt(W / length)), "squeeze".
"""
import math
import struct

from folders import EXPERTS, FF, FOUR, HEADS, KV, SIZE, WIDTH, qwen35_common, qwen35_mixers, rows_of
from formats import Tensor, f32

W, E, X = WIDTH, EXPERTS, 16
PLAIN, ROT, VALUE, RANK = 8, 4, 6, 16


def matrices(data, n, rows):
    """n matrices of rows of bytes."""
    size = len(data) // n // rows
    return [[data[(m * rows + r) * size:][:size] for r in range(rows)] for m in range(n)]


def turned(rows, size):
    return [b"".join(row[c * size:][:size] for row in rows) for c in range(len(rows[0]) // size)]


def change(data, shape, done, size):
    """Bytes and shape after it."""
    if done == "squeeze":
        return data, [n for n in shape if n != 1]
    part, *sizes = done.split() or [""]
    if part in ("keys", "values"):
        heads, plain = map(int, sizes or (HEADS, PLAIN))
        stack = [m[:plain] if part == "keys" else m[plain:] for m in matrices(data, heads, shape[0] // heads)]
        stack = [turned(m, size) for m in stack] if part == "keys" else stack
        return b"".join(b"".join(m) for m in stack), [heads, len(stack[0]), len(stack[0][0]) // size]
    n = math.prod(shape[:-2])
    stack = matrices(data, n, shape[-2])
    if "turn" in done:
        stack = [turned(m, size) for m in stack]
    half = len(stack[0]) // 2
    if "first" in done:
        stack = [m[:half] for m in stack]
    if "second" in done:
        stack = [m[half:] for m in stack]
    return b"".join(b"".join(m) for m in stack), [*shape[:-2], len(stack[0]), len(stack[0][0]) // size]


def add(m, stored, to, shape, done=""):
    """One line: the stored tensor, where it is not there yet, and GGUF's."""
    if "{}" in stored:
        return m.experts(stored, to, *shape)
    if stored not in m.made:
        m.made[stored] = m.random(stored, shape)
    data = m.made[stored]
    values = Tensor("", m.kind, [math.prod(shape)], data).values()
    if done in ("+1", "exp") or len(shape) == 1:
        ne = [n for n in shape if n != 1][::-1] or [1]
        values = [f32(v * f32(math.sqrt(W / len(values)))) for v in values] if done == "long" else values
        made = [f32(v + 1) if done == "+1" else f32(math.exp(v)) if done == "exp" else v for v in values]
        return m.tensors.append(Tensor(to, "F32", ne, Tensor.of(to, made).data))
    if done:
        data, shape = change(data, shape, done, 4 if m.kind == "F32" else 2)
    return m.tensors.append(Tensor(to, m.kind, shape[::-1], data))


def layer(m, i, lines):
    for stored, to, shape, *done in lines:
        add(m, f"model.layers.{i}.{stored}", f"blk.{i}.{to}", shape, *done)


def gated(stored, to, n, n_cols=W, names=("gate_proj", "up_proj", "down_proj")):
    """The three matrices of a feed-forward."""
    gate, up, down = names
    return [(f"{stored}{gate}.weight", to.format("gate"), [n, n_cols]),
            (f"{stored}{up}.weight", to.format("up"), [n, n_cols]),
            (f"{stored}{down}.weight", to.format("down"), [n_cols, n])]


def attention(heads=HEADS, kv=KV, value=SIZE):
    at = "self_attn."
    return [(at + "q_proj.weight", "attn_q.weight", [heads * SIZE, W]),
            (at + "k_proj.weight", "attn_k.weight", [kv * SIZE, W]),
            (at + "v_proj.weight", "attn_v.weight", [kv * value, W]),
            (at + "o_proj.weight", "attn_output.weight", [W, heads * value])]


def norms(*names, n=W, plus=""):
    """Pairs of names."""
    return [(f"{a}.weight", f"{b}.weight", [n], plus) for a, b in names]


TWO = [("input_layernorm", "attn_norm"), ("post_attention_layernorm", "ffn_norm")]
QK = [("self_attn.q_norm", "attn_q_norm"), ("self_attn.k_norm", "attn_k_norm")]
DENSE = gated("mlp.", "ffn_{}.weight", FF)
WS = ("w1", "w3", "w2")
ROUTER = [("mlp.gate.weight", "ffn_gate_inp.weight", [E, W])]
BIAS = ("exp_probs_b.bias", [E])
EACH = gated("mlp.experts.{}.", "ffn_{}_exps.weight", X)
SHARED = gated("mlp.shared_experts.", "ffn_{}_shexp.weight", X)


def experts(m, **more):
    m.config |= {"num_experts": E, "num_experts_per_tok": 2, "moe_intermediate_size": X} | more
    m.keys |= {"expert_count": E, "expert_used_count": 2, "expert_feed_forward_length": X}


def qwen3vlmoe(m):
    """Experts as they are published, transposed; and pictures."""
    m.common("Qwen3VLMoeForConditionalGeneration", "qwen3vlmoe", rope_scaling={
        "rope_type": "default", "mrope_section": [2, 1, 1], "mrope_interleaved": True})
    experts(m, norm_topk_prob=True)
    m.config = {"architectures": m.config.pop("architectures"), "vision_config": {}, "text_config": m.config}
    m.keys |= {"rope.dimension_sections": [2, 1, 1, 0]}
    m.ends()
    at = "mlp.experts."
    for i in range(2):
        layer(m, i, attention() + norms(*TWO) + norms(*QK, n=SIZE) + ROUTER + [
            (at + "gate_up_proj", "ffn_gate_exps.weight", [E, W, 2 * X], "turn first"),
            (at + "gate_up_proj", "ffn_up_exps.weight", [E, W, 2 * X], "turn second"),
            (at + "down_proj", "ffn_down_exps.weight", [E, X, W], "turn")])
    m.stored["model.visual.blocks.0.norm1.weight"] = ("F32", [1], bytes(4))


def ernie4_5moe(m):
    m.common("Ernie4_5_MoeForCausalLM", "ernie4_5-moe", moe_num_experts=E, moe_k=2, moe_intermediate_size=X,
             moe_layer_start_index=1, moe_num_shared_experts=1)
    m.keys |= {"expert_count": E, "expert_used_count": 2, "expert_feed_forward_length": X,
               "leading_dense_block_count": 1, "expert_shared_count": 1}
    m.ends(head=False)
    layer(m, 0, attention() + norms(*TWO) + DENSE)
    layer(m, 1, attention() + norms(*TWO) + ROUTER + EACH + SHARED + [
        ("mlp.moe_statics.e_score_correction_bias", "exp_probs_b.bias", [E])])
    m.random("model.mtp_block.0.input_layernorm.weight", [W])


def lfm2moe(m):
    m.common("Lfm2MoeForCausalLM", "lfm2moe", layer_types=["conv", "full_attention"], conv_L_cache=3,
             num_dense_layers=1, norm_topk_prob=True)
    experts(m)
    m.keys |= {"attention.head_count": [HEADS, HEADS], "attention.head_count_kv": [0, KV], "shortconv.l_cache": 3,
               "leading_dense_block_count": 1, "expert_gating_func": 2}
    names = norms(("operator_norm", "attn_norm"), ("ffn_norm", "ffn_norm"))
    add(m, "model.embed_tokens.weight", "token_embd.weight", [m.vocabulary.n_vocab, W])
    add(m, "model.embedding_norm.weight", "token_embd_norm.weight", [W])
    layer(m, 0, names + gated("feed_forward.", "ffn_{}.weight", FF, W, WS) + [
        ("conv.conv.weight", "shortconv.conv.weight", [W, 1, 3], "squeeze"),
        ("conv.in_proj.weight", "shortconv.in_proj.weight", [3 * W, W]),
        ("conv.out_proj.weight", "shortconv.out_proj.weight", [W, W])])
    layer(m, 1, names + [(a.replace("o_proj", "out_proj"), *b) for a, *b in attention()] + norms(
        ("self_attn.q_layernorm", "attn_q_norm"), ("self_attn.k_layernorm", "attn_k_norm"), n=SIZE) + [
        ("feed_forward.gate.weight", "ffn_gate_inp.weight", [E, W]), ("feed_forward.expert_bias", *BIAS)] + gated(
            "feed_forward.experts.{}.", "ffn_{}_exps.weight", X, W, WS))


LATENT = [("self_attn.kv_a_proj_with_mqa.weight", "attn_kv_a_mqa.weight", [RANK + ROT, W]),
          ("self_attn.kv_a_layernorm.weight", "attn_kv_a_norm.weight", [RANK]),
          ("self_attn.kv_b_proj.weight", "attn_k_b.weight", [HEADS * (PLAIN + VALUE), RANK], "keys"),
          ("self_attn.kv_b_proj.weight", "attn_v_b.weight", [HEADS * (PLAIN + VALUE), RANK], "values"),
          ("self_attn.o_proj.weight", "attn_output.weight", [W, HEADS * VALUE])]


def latent(m):
    m.config |= {"head_dim": ROT, "qk_nope_head_dim": PLAIN, "qk_rope_head_dim": ROT, "v_head_dim": VALUE,
                 "kv_lora_rank": RANK}
    m.keys |= {"attention.head_count_kv": 1, "attention.kv_lora_rank": RANK, "rope.dimension_count": ROT,
               "attention.key_length": RANK + ROT, "attention.value_length": RANK,
               "attention.key_length_mla": PLAIN + ROT, "attention.value_length_mla": VALUE}


def mixer(name, to, n):
    """n numbers that mix the 2 streams of the residual."""
    return [(f"{name}_fn", f"{to}_fn.weight", [n, 2 * W]), (f"{name}_base", f"{to}_base.weight", [n]),
            (f"{name}_scale", f"{to}_scale.weight", [min(n // 2, 3)])]


LOW_QUERIES = [("self_attn.q_a_proj.weight", "attn_q_a.weight", [X, W]),
               ("self_attn.q_a_layernorm.weight", "attn_q_a_norm.weight", [X]),
               ("self_attn.q_b_proj.weight", "attn_q_b.weight", [HEADS * (PLAIN + ROT), X])]
INDEXER = [("self_attn.indexer." + stored, f"indexer.{to}", shape) for stored, to, shape in (
    ("wq_b.weight", "attn_q_b.weight", [16, X]), ("wk.weight", "attn_k.weight", [8, W]),
    ("k_norm.weight", "k_norm.weight", [8]), ("k_norm.bias", "k_norm.bias", [8]),
    ("weights_proj.weight", "proj.weight", [2, W]))]


def glm_dsa(m):
    """kv_b_proj cut into two, and a layer that uses the choice of the one before."""
    m.common("GlmMoeDsaForCausalLM", "glm-dsa", n_routed_experts=E, q_lora_rank=X, index_n_heads=2, index_head_dim=8,
             index_topk=4, index_topk_freq=4, index_skip_topk_offset=1, first_k_dense_replace=1,
             n_shared_experts=1)
    latent(m)
    experts(m, routed_scaling_factor=2.5)
    m.keys |= {"attention.q_lora_rank": X, "attention.indexer.head_count": 2, "attention.indexer.key_length": 8,
               "attention.indexer.top_k": 4, "attention.indexer.types": [True, False], "expert_gating_func": 2,
               "expert_weights_norm": True, "expert_weights_scale": 2.5, "leading_dense_block_count": 1,
               "expert_shared_count": 1}
    m.ends()
    both = LATENT + LOW_QUERIES + norms(*TWO)
    layer(m, 0, both + DENSE + INDEXER)
    layer(m, 1, both + ROUTER + EACH + [("mlp.gate.e_score_correction_bias", *BIAS)] + gated(
        "mlp.shared_experts.", "ffn_{}_shexp.weight", X))


def hy_v4(m):
    """Experts and streams as they are published."""
    m.common("HYV4ForCausalLM", "hy_v4", n_routed_experts=E, q_lora_rank=X, index_n_heads=2, index_head_dim=8,
             index_topk=4, indexer_types=["full", "shared"], mlp_layer_types=["dense", "sparse"], n_shared_experts=1,
             hc_mult=2, hc_eps=1e-4, hc_magnitude=1.5, swiglu_limit=0.5, norm_topk_prob=True, num_nextn_predict_layers=1)
    latent(m)
    experts(m, routed_scaling_factor=2.5)
    m.keys |= {"attention.q_lora_rank": X, "attention.indexer.head_count": 2, "attention.indexer.key_length": 8,
               "attention.indexer.top_k": 4, "attention.indexer.types": [True, False], "expert_gating_func": 2,
               "expert_weights_norm": True, "expert_weights_scale": 2.5, "leading_dense_block_count": 1,
               "expert_shared_count": 1, "hyper_connection.count": 2, "hyper_connection.epsilon": f32(1e-4),
               "hyper_connection.magnitude": 1.5, "swiglu_clamp_exp": [0.5, 0.5]}
    m.ends()
    for line in mixer("model.hc_head.hc_head", "output_hc", 2):
        add(m, *line)
    both = LATENT + LOW_QUERIES + norms(*TWO) + mixer("hc_attn_layer.hc_pre.hc", "hc_attn", 4) + mixer(
        "hc_mlp_layer.hc_pre.hc", "hc_ffn", 4) + [
        ("self_attn.learnable_sink_param", "attn_sinks.weight", [HEADS]),
        ("self_attn.linear_gate.weight", "attn_gate.weight", [HEADS * VALUE, W])]
    at = "mlp.experts."
    layer(m, 0, both + DENSE + INDEXER)
    layer(m, 1, both + ROUTER + [("mlp.gate.e_score_correction_bias", *BIAS)] + SHARED + [
        (at + "gate_up_proj", "ffn_gate_exps.weight", [E, 2 * X, W], "first"),
        (at + "gate_up_proj", "ffn_up_exps.weight", [E, 2 * X, W], "second"),
        (at + "down_proj", "ffn_down_exps.weight", [E, W, X])])
    m.random("model.mtp_layers.0.eh_proj.weight", [W, 2 * W])


def dots3note(m):
    """A layer that slides, with heads of its own number and sizes, and a block that predicts another token."""
    heads, plain, value, rank = 4, 4, 8, 8
    m.common("Dots3NoteForConditionalGeneration", "dots3note", n_routed_experts=E, q_lora_rank=X, index_n_heads=2,
             index_head_dim=8, index_topk=4, n_shared_experts=1, first_k_dense_replace=1, scoring_func="sigmoid",
             topk_method="noaux_tc", norm_topk_prob=True, apply_mla_qkv_lora_rescale=True, use_dsa=True,
             attention_gate_type="headwise", swa_num_attention_heads=heads, swa_q_lora_rank=X, swa_kv_lora_rank=rank,
             swa_qk_nope_head_dim=plain, swa_qk_rope_head_dim=ROT, swa_v_head_dim=value, swa_rope_theta=10,
             moe_shared_expert_intermediate_size=X, sliding_window_size=3, vision_config={},
             layer_types=["full_attention", "sliding_attention"])
    latent(m)
    experts(m, routed_scaling_factor=1.5)
    m.keys |= {"attention.head_count": [HEADS, heads], "attention.head_count_kv": [1, 1], "attention.q_lora_rank": X,
               "attention.indexer.head_count": 2, "attention.indexer.key_length": 8, "attention.indexer.top_k": 4,
               "attention.indexer.types": [True, False], "attention.sliding_window": 3,
               "attention.sliding_window_pattern": [False, True], "attention.kv_lora_rank_swa": rank,
               "attention.key_length_mla_swa": plain + ROT, "attention.value_length_mla_swa": value,
               "rope.freq_base_swa": 10.0, "expert_gating_func": 2, "expert_weights_norm": True,
               "expert_weights_scale": 1.5, "leading_dense_block_count": 1, "expert_shared_count": 1}
    m.ends()
    at, kv = "self_attn.", f"{heads} {plain}"
    for i, (n, dk, dv, r, cut, more) in enumerate(((HEADS, PLAIN + ROT, VALUE, RANK, "", DENSE + INDEXER), (
            heads, plain + ROT, value, rank, kv, ROUTER + EACH + SHARED + [("mlp.gate.e_score_correction_bias", *BIAS)]))):
        layer(m, i, norms(*TWO) + more + [
            (at + "q_a_proj.weight", "attn_q_a.weight", [X, W]),
            (at + "q_a_layernorm.weight", "attn_q_a_norm.weight", [X], "long"),
            (at + "q_b_proj.weight", "attn_q_b.weight", [n * dk, X]),
            (at + "kv_a_proj_with_mqa.weight", "attn_kv_a_mqa.weight", [r + ROT, W]),
            (at + "kv_a_layernorm.weight", "attn_kv_a_norm.weight", [r], "long"),
            (at + "k_rope_only_layernorm.weight", "attn_k_norm.weight", [ROT]),
            (at + "kv_b_proj.weight", "attn_k_b.weight", [n * (dk - ROT + dv), r], f"keys {cut}"),
            (at + "kv_b_proj.weight", "attn_v_b.weight", [n * (dk - ROT + dv), r], f"values {cut}"),
            (at + "g_proj.weight", "attn_gate.weight", [n, W]),
            (at + "o_proj.weight", "attn_output.weight", [W, n * dv])])
    m.random("model.mtp.embed_tokens.weight", [m.vocabulary.n_vocab, W])
    m.random("model.layers.2.eh_proj.weight", [W, 2 * W])


def kimi(m):
    m.common("KimiLinearForCausalLM", "kimi-linear", linear_attn_config={
        "head_dim": SIZE, "num_heads": HEADS, "short_conv_kernel_size": 4, "full_attn_layers": [2]}, num_experts=0)
    latent(m)
    at = "self_attn."
    m.keys |= {"attention.head_count": [HEADS, HEADS], "attention.head_count_kv": [0, 1], "kda.head_dim": SIZE,
               "ssm.conv_kernel": 4}
    m.ends()
    layer(m, 0, norms(*TWO) + DENSE)
    kimi_delta_net(m, 0)
    layer(m, 1, norms(*TWO) + DENSE + LATENT + [(at + "q_proj.weight", "attn_q.weight", [HEADS * (PLAIN + ROT), W])])


def kimi_delta_net(m, i):
    n, at = HEADS * SIZE, "self_attn."
    layer(m, i, [(a, b, [n, W]) for a, b, _ in attention()[:3]] + [
        (f"{at}{c}_conv1d.weight", f"ssm_conv1d_{c}.weight", [n, 1, 4], "squeeze") for c in "qkv"] + [
        (at + "f_a_proj.weight", "ssm_f_a.weight", [SIZE, W]), (at + "f_b_proj.weight", "ssm_f_b.weight", [n, SIZE]),
        (at + "g_a_proj.weight", "ssm_g_a.weight", [SIZE, W]), (at + "g_b_proj.weight", "ssm_g_b.weight", [n, SIZE]),
        (at + "b_proj.weight", "ssm_beta.weight", [HEADS, W]), (at + "dt_bias", "ssm_dt.bias", [n]),
        (at + "o_norm.weight", "ssm_norm.weight", [SIZE]), (at + "o_proj.weight", "attn_output.weight", [W, n])])
    data = m.random(f"model.layers.{i}.{at}A_log", [1, 1, HEADS, 1])
    values = [f32(-math.exp(v)) for v in Tensor("", m.kind, [HEADS], data).values()]
    m.tensors.append(Tensor(f"blk.{i}.ssm_a", "F32", [1, HEADS], Tensor.of("", values).data))


def product(m, stored, to):
    """A norm's gain times a projection to one number."""
    parts = [Tensor("", m.kind, [W], m.random(f"model.{stored}_{part}.weight", shape)).values()
             for part, shape in (("norm", [W]), ("proj", [1, W]))]
    m.tensors.append(Tensor(to, "F32", [W], Tensor.of(to, [f32(a * b) for a, b in zip(*parts)]).data))


def kimi_k3(m):
    """Scores that are products, gates of one name and two kinds, and decays of more heads than there are."""
    n, at, moe = HEADS * SIZE, "self_attn.", "block_sparse_moe."
    m.common("KimiK3ForConditionalGeneration", "kimi-k3", hidden_act="situ", activation_situ_beta=4.0,
             activation_situ_linear_beta=25.0, attn_res_block_size=2, first_k_dense_replace=1, mla_use_nope=True,
             mla_use_output_gate=True, latent_moe_use_norm=True, moe_renormalize=True, num_expert_group=1, topk_group=1,
             moe_router_activation_func="sigmoid", num_shared_experts=1, routed_expert_hidden_size=32, q_lora_rank=X,
             linear_attn_config={"head_dim": SIZE, "num_heads": HEADS, "short_conv_kernel_size": 4,
                                 "full_attn_layers": [2], "gate_lower_bound": -5.0, "use_full_rank_gate": True})
    latent(m)
    experts(m, routed_scaling_factor=1.5)
    m.config["num_experts_per_token"] = m.config.pop("num_experts_per_tok")
    m.config = {"architectures": m.config.pop("architectures"), "vision_config": {}, "text_config": m.config}
    m.keys |= {"attention.head_count": [HEADS] * 2, "attention.head_count_kv": [0, 1], "attention.q_lora_rank": X,
               "kda.head_dim": SIZE, "ssm.conv_kernel": 4, "kda.gate_lower_bound": -5.0, "attn_res.block_size": 2,
               "activation.situ_beta": 4.0, "activation.situ_linear_beta": 25.0, "expert_latent_length": 32,
               "expert_gating_func": 2, "expert_weights_norm": True, "expert_weights_scale": 1.5,
               "leading_dense_block_count": 1, "expert_shared_count": 1, "expert_group_count": 1,
               "expert_group_used_count": 1}
    m.ends()
    product(m, "output_attn_res", "output_res_score.weight")
    for i in range(2):
        product(m, f"layers.{i}.self_attention_res", f"blk.{i}.attn_res_score.weight")
        product(m, f"layers.{i}.mlp_res", f"blk.{i}.ffn_res_score.weight")
    layer(m, 0, norms(*TWO) + DENSE + [(a, b, [n, W]) for a, b, _ in attention()[:3]] + [
        (f"{at}{c}_conv1d.weight", f"ssm_conv1d_{c}.weight", [n, 1, 4], "squeeze") for c in "qkv"] + [
        (at + "f_a_proj.weight", "ssm_f_a.weight", [SIZE, W]), (at + "f_b_proj.weight", "ssm_f_b.weight", [n, SIZE]),
        (at + "g_proj.weight", "ssm_g.weight", [n, W]), (at + "b_proj.weight", "ssm_beta.weight", [HEADS, W]),
        (at + "dt_bias", "ssm_dt.bias", [n]), (at + "o_norm.weight", "ssm_norm.weight", [SIZE]),
        (at + "o_proj.weight", "attn_output.weight", [W, n])])
    decays = Tensor("", m.kind, [HEADS + 2], m.random(f"model.layers.0.{at}A_log", [HEADS + 2])).values()[:HEADS]
    m.tensors.append(Tensor("blk.0.ssm_a", "F32", [HEADS], Tensor.of("", [f32(-math.exp(v)) for v in decays]).data))
    layer(m, 1, norms(*TWO) + LATENT + LOW_QUERIES + [
        (at + "g_proj.weight", "attn_gate.weight", [HEADS * VALUE, W]),
        (moe + "gate.weight", "ffn_gate_inp.weight", [E, W]), (moe + "gate.e_score_correction_bias", *BIAS),
        (moe + "routed_expert_down_proj.weight", "ffn_routed_down.weight", [32, W]),
        (moe + "routed_expert_up_proj.weight", "ffn_routed_up.weight", [W, 32]),
        (moe + "routed_expert_norm.weight", "ffn_routed_norm.weight", [32])] + gated(
            moe + "experts.{}.", "ffn_{}_exps.weight", 32, 32, WS) + gated(
            moe + "shared_experts.", "ffn_{}_shexp.weight", 32))
    m.config["text_config"]["moe_intermediate_size"] = m.keys["expert_feed_forward_length"] = 32
    m.stored = {"language_model." + name: t for name, t in m.stored.items()}
    m.stored["vision_tower.patch_embed.proj.weight"] = ("F32", [1], bytes(4))


def step35(m):
    """Lists for each layer, with one value more for a block that predicts."""
    m.common("Step3p5ForCausalLM", "step35", moe_num_experts=E, moe_layers_enum="1", moe_top_k=2, moe_intermediate_size=X,
             share_expert_dim=X, sliding_window=5, layer_types=["full_attention", *["sliding_attention"] * 2],
             partial_rotary_factors=[0.5, 1.0, 1.0], rope_theta=[1000, 10, 10], swiglu_limits=[None, 0.5, 0.1],
             swiglu_limits_shared=[0.25, 0, 0], attention_other_setting={"num_attention_heads": 6},
             moe_router_scaling_factor=1.5, norm_expert_weight=True)
    m.config["num_attention_groups"] = m.config.pop("num_key_value_heads")
    m.keys |= {"attention.head_count": [HEADS, 6], "attention.head_count_kv": [KV, KV], "rope.freq_base_swa": 10.0,
               "attention.sliding_window": 5, "attention.sliding_window_pattern": [False, True],
               "swiglu_clamp_exp": [0.0, 0.5], "swiglu_clamp_shexp": [0.25, 0.0], "expert_count": E,
               "expert_used_count": 2, "expert_feed_forward_length": X, "expert_shared_feed_forward_length": X,
               "expert_weights_scale": 1.5, "expert_weights_norm": True}
    m.ends(plus=1)
    both = norms(*TWO, plus="+1") + norms(*QK, n=SIZE, plus="+1")
    layer(m, 0, both + attention() + DENSE + [("self_attn.g_proj.weight", "attn_gate.weight", [HEADS, W])])
    layer(m, 1, both + attention(6) + gated("share_expert.", "ffn_{}_shexp.weight", X) + [
        ("self_attn.g_proj.weight", "attn_gate.weight", [6, W]), ("moe.gate.weight", "ffn_gate_inp.weight", [E, W]),
        ("moe.router_bias", *BIAS), ("moe.gate_proj.weight", "ffn_gate_exps.weight", [E, X, W]),
        ("moe.up_proj.weight", "ffn_up_exps.weight", [E, X, W]),
        ("moe.down_proj.weight", "ffn_down_exps.weight", [E, W, X])])


def mimo2(m):
    m.common("MiMoV2FlashForCausalLM", "mimo2", n_routed_experts=E, v_head_dim=4, hybrid_layer_pattern=[0, 1],
             swa_num_key_value_heads=HEADS, sliding_window=5, swa_rope_theta=10, partial_rotary_factor=0.51,
             attention_value_scale=0.75)
    experts(m)
    m.keys |= {"attention.head_count": [HEADS] * 2, "attention.head_count_kv": [KV, HEADS],
               "attention.value_length": 4, "attention.value_scale": 0.75, "rope.dimension_count": 4,
               "rope.freq_base_swa": 10.0, "attention.sliding_window": 5,
               "attention.sliding_window_pattern": [False, True]}
    m.ends()
    layer(m, 0, attention(value=4) + norms(*TWO) + DENSE)
    layer(m, 1, attention(kv=HEADS, value=4) + norms(*TWO) + ROUTER + EACH + [
        ("mlp.gate.e_score_correction_bias", *BIAS), ("self_attn.attention_sink_bias", "attn_sinks.weight", [HEADS])])


def minimax_m3(m):
    m.common("MiniMaxM3SparseForCausalLM", "minimax-m3", num_local_experts=E, num_experts_per_tok=2,
             intermediate_size=X, dense_intermediate_size=FF, partial_rotary_factor=0.5, moe_layer_freq=[0, 1],
             sparse_attention_config={
                 "sparse_num_index_heads": KV, "sparse_index_dim": SIZE, "sparse_topk_blocks": 2,
                 "sparse_block_size": 3, "sparse_local_block": 1, "sparse_attention_freq": [0, 1]})
    m.keys |= {"expert_count": E, "expert_used_count": 2, "expert_feed_forward_length": X, "expert_shared_count": 1,
               "expert_weights_scale": 2.0, "expert_weights_norm": True, "expert_gating_func": 2,
               "leading_dense_block_count": 1, "rope.dimension_count": 4, "attention.indexer.head_count": KV,
               "attention.indexer.key_length": SIZE, "attention.indexer.top_k": 2, "attention.indexer.block_size": 3,
               "attention.indexer.local_blocks": 1}
    m.ends(plus=1)
    both = attention() + norms(*TWO, plus="+1") + norms(*QK, n=SIZE, plus="+1")
    at, to = "self_attn.index_", "indexer."
    layer(m, 0, both + DENSE)
    layer(m, 1, both + gated("block_sparse_moe.experts.{}.", "ffn_{}_exps.weight", X, W, WS) + gated(
        "block_sparse_moe.shared_experts.", "ffn_{}_shexp.weight", X) + norms(
            (at + "q_norm", to + "q_norm"), (at + "k_norm", to + "k_norm"), n=SIZE, plus="+1") + [
        ("block_sparse_moe.gate.weight", "ffn_gate_inp.weight", [E, W]),
        ("block_sparse_moe.e_score_correction_bias", *BIAS),
        (at + "q_proj.weight", to + "q_proj.weight", [KV * SIZE, W]),
        (at + "k_proj.weight", to + "k_proj.weight", [SIZE, W])])


def laguna(m):
    m.common("LagunaForCausalLM", "laguna", shared_expert_intermediate_size=X, sliding_window=5,
             layer_types=["full_attention", "sliding_attention"], num_attention_heads_per_layer=[HEADS, 6],
             moe_routed_scaling_factor=1.5, rope_parameters={
                 "full_attention": {"rope_theta": 1000, "partial_rotary_factor": 0.5},
                 "sliding_attention": {"rope_theta": 10, "partial_rotary_factor": 1.0}})
    experts(m)
    m.keys |= {"attention.head_count": [HEADS, 6], "attention.head_count_kv": [KV, KV], "rope.dimension_count": 4,
               "rope.dimension_count_swa": 8, "rope.freq_base_swa": 10.0, "attention.sliding_window": 5,
               "attention.sliding_window_pattern": [False, True], "expert_weights_norm": True,
               "expert_weights_scale": 1.5}
    m.ends()
    both = norms(*TWO) + norms(*QK, n=SIZE)
    layer(m, 0, both + attention() + DENSE + [("self_attn.g_proj.weight", "attn_gate.weight", [HEADS, W])])
    layer(m, 1, both + attention(6) + ROUTER + EACH + gated("mlp.shared_expert.", "ffn_{}_shexp.weight", X) + [
        ("self_attn.g_proj.weight", "attn_gate.weight", [6, W]),
        ("mlp.experts.e_score_correction_bias", *BIAS)])


def apertus(m):
    """Numbers of its curve are tensors of one element."""
    m.common("ApertusForCausalLM", "apertus", rope_scaling={"rope_type": "default"})
    m.ends()
    numbers = {"alpha_p": [], "alpha_n": [], "beta": [], "eps": []}
    for i in range(2):
        layer(m, i, attention() + norms(*QK, n=SIZE) + gated("mlp.", "ffn_{}.weight", FF)[1:] + norms(
            ("attention_layernorm", "attn_norm"), ("feedforward_layernorm", "ffn_norm")))
        for name, values in numbers.items():
            data = m.random(f"model.layers.{i}.mlp.act_fn.{name}", [1])
            values += Tensor("", m.kind, [1], data).values()
    m.others = {"xielu." + name: values for name, values in numbers.items()}


def bailingmoe2(m):
    m.common("BailingMoeV2ForCausalLM", "bailingmoe2", partial_rotary_factor=0.5, n_group=1, topk_group=1,
             num_shared_experts=1, first_k_dense_replace=1, routed_scaling_factor=1.5, norm_topk_prob=True,
             score_function="sigmoid")
    experts(m)
    m.keys |= {"rope.dimension_count": 4, "expert_group_count": 1, "expert_group_used_count": 1,
               "expert_shared_count": 1, "leading_dense_block_count": 1, "expert_weights_scale": 1.5,
               "expert_weights_norm": True, "expert_gating_func": 2}
    m.ends()
    m.stored["model.word_embeddings.weight"] = m.stored.pop("model.embed_tokens.weight")
    both = norms(*TWO) + norms(("attention.query_layernorm", "attn_q_norm"), ("attention.key_layernorm", "attn_k_norm"),
                               n=SIZE) + [
        ("attention.query_key_value.weight", "attn_qkv.weight", [(HEADS + 2 * KV) * SIZE, W]),
        ("attention.dense.weight", "attn_output.weight", [W, HEADS * SIZE])]
    layer(m, 0, both + DENSE)
    layer(m, 1, both + ROUTER + EACH + SHARED + [("mlp.gate.expert_bias", *BIAS)])


def ling3(m):
    """Gates of one name and two kinds; limits of SwiGLU in lists; pictures, and a block that predicts another token."""
    n, at = HEADS * SIZE, "attention."
    m.common("BailingMoeV3VLForConditionalGeneration", "bailingmoe3", head_dim=SIZE, layer_group_size=2, no_kda_lora=True,
             short_conv_kernel_size=4, kda_safe_gate=True, kda_lower_bound=-3.0, num_shared_experts=1,
             gated_attention_proj_granularity_type="head_wise", first_k_dense_replace=1, n_group=1, topk_group=1,
             norm_topk_prob=True, score_function="sigmoid", moe_shared_expert_intermediate_size=X,
             num_nextn_predict_layers=1, expert_swiglu_limit_list=[None, 0.2, None], use_qk_norm=True,
             share_expert_swiglu_limit_list=[0, 0.25, 0.5], partial_rotary_factor=0.5, q_lora_rank=None,
             mrope_section=[1, 1, 0])
    latent(m)
    m.config["head_dim"] = SIZE
    experts(m, routed_scaling_factor=1.5)
    m.keys |= {"attention.head_count": [HEADS] * 2, "attention.head_count_kv": [0, 1], "kda.head_dim": SIZE,
               "ssm.conv_kernel": 4, "kda.gate_lower_bound": -3.0, "kda.safe_gate": True, "expert_group_count": 1,
               "expert_group_used_count": 1, "expert_shared_count": 1, "leading_dense_block_count": 1,
               "expert_weights_scale": 1.5, "expert_weights_norm": True, "swiglu_clamp_exp": [0.0, 0.2],
               "swiglu_clamp_shexp": [0.0, 0.25], "rope.dimension_sections": [1, 1, 0, 0]}
    m.config = {"architectures": m.config.pop("architectures"), "vision_config": {}, "text_config": m.config}
    m.ends()
    m.stored["model.word_embeddings.weight"] = m.stored.pop("model.embed_tokens.weight")
    layer(m, 0, norms(*TWO) + DENSE + [(f"{at}{c}_proj.weight", f"attn_{c}.weight", [n, W]) for c in "qkv"] + [
        (f"{at}{c}_conv1d.weight", f"ssm_conv1d_{c}.weight", [n, 1, 4], "squeeze") for c in "qkv"] + [
        (at + "f_proj.weight", "ssm_f_a.weight", [n, W]), (at + "g_proj.weight", "ssm_g_a.weight", [n, W]),
        (at + "b_proj.weight", "ssm_beta.weight", [HEADS, W]), (at + "dt_bias", "ssm_dt.bias", [n]),
        (at + "A_log", "ssm_a", [HEADS], "exp"), (at + "o_norm.weight", "ssm_norm.weight", [SIZE]),
        (at + "o_proj.weight", "attn_output.weight", [W, n])])
    layer(m, 1, norms(*TWO) + ROUTER + EACH + SHARED + [("mlp.gate.expert_bias", *BIAS)] + [
        (a.replace("self_attn", "attention").replace("o_proj", "dense"), *b) for a, *b in LATENT] + [
        (at + "q_proj.weight", "attn_q.weight", [HEADS * (PLAIN + ROT), W]),
        (at + "g_proj.weight", "attn_gate.weight", [HEADS, W])])
    m.random("model.layers.2.eh_proj.weight", [W, 2 * W])
    m.random("model.visual.merger.norm.weight", [W])
    m.random("linear_proj.0.weight", [W, W])


def smallthinker(m):
    m.common("SmallThinkerForCausalLM", "smallthinker", moe_num_primary_experts=E, moe_num_active_primary_experts=2,
             moe_ffn_hidden_size=X, moe_primary_router_apply_softmax=True, sliding_window_layout=[0, 1],
             rope_layout=[0, 1], sliding_window_size=5)
    del m.config["intermediate_size"]
    m.keys |= {"expert_count": E, "expert_used_count": 2, "expert_feed_forward_length": X, "feed_forward_length": X,
               "expert_gating_func": 1, "attention.sliding_window": 5,
               "attention.sliding_window_pattern": [False, True]}
    m.ends()
    at = "block_sparse_moe."
    for i in range(2):
        layer(m, i, attention() + norms(*TWO) + [(at + "primary_router.weight", "ffn_gate_inp.weight", [E, W])] + gated(
            at + "experts.{}.", "ffn_{}_exps.weight", X, W, ("gate", "up", "down")))


def cohere2moe(m):
    m.common("Cohere2MoeForCausalLM", "cohere2moe", prefix_dense_intermediate_size=FF, intermediate_size=X,
             num_shared_experts=1, logit_scale=0.5, sliding_window=5, expert_selection_fn="sigmoid",
             layer_types=["full_attention", "sliding_attention"], norm_topk_prob=False,
             mlp_layer_types=["dense", "sparse"])
    experts(m)
    m.config["layer_norm_eps"] = m.config.pop("rms_norm_eps")
    m.keys["attention.layer_norm_epsilon"] = m.keys.pop("attention.layer_norm_rms_epsilon")
    m.keys |= {"expert_shared_count": 1, "logit_scale": 0.5, "expert_gating_func": 2, "expert_weights_norm": False,
               "attention.sliding_window": 5, "attention.sliding_window_pattern": [False, True]}
    m.ends(head=False)
    layer(m, 0, attention() + norms(TWO[0]) + DENSE)
    layer(m, 1, attention() + norms(TWO[0]) + ROUTER + EACH + SHARED)


def afmoe(m):
    m.common("AfmoeForCausalLM", "afmoe", num_dense_layers=1, num_shared_experts=1, route_scale=1.5, sliding_window=5,
             global_attn_every_n_layers=2, mup_enabled=True)
    experts(m)
    m.keys |= {"expert_shared_count": 1, "leading_dense_block_count": 1, "expert_weights_norm": True,
               "expert_weights_scale": 1.5, "attention.sliding_window": 5, "attention.sliding_window_pattern": 2}
    m.ends()
    both = attention() + norms(*QK, n=SIZE) + norms(
        TWO[0], ("post_attention_layernorm", "post_attention_norm"), ("pre_mlp_layernorm", "ffn_norm"),
        ("post_mlp_layernorm", "post_ffw_norm")) + [
        ("self_attn.gate_proj.weight", "attn_gate.weight", [HEADS * SIZE, W])]
    layer(m, 0, both + DENSE)
    layer(m, 1, both + EACH + SHARED + [("mlp.router.gate.weight", "ffn_gate_inp.weight", [E, W]),
                                        ("mlp.expert_bias", *BIAS)])


def exaone_moe(m):
    m.common("ExaoneMoeForCausalLM", "exaone-moe", first_k_dense_replace=1, num_shared_experts=1, sliding_window=5,
             routed_scaling_factor=1.5, layer_types=["sliding_attention", "full_attention"])
    experts(m)
    m.keys |= {"expert_shared_count": 1, "leading_dense_block_count": 1, "expert_weights_norm": True,
               "expert_weights_scale": 1.5, "attention.sliding_window": 5,
               "attention.sliding_window_pattern": [True, False]}
    m.ends()
    both = attention() + norms(*TWO) + norms(*QK, n=SIZE)
    layer(m, 0, both + DENSE)
    layer(m, 1, both + ROUTER + EACH + SHARED + [("mlp.e_score_correction_bias", *BIAS)])
    m.random("mtp.fc.weight", [W, 2 * W])


def compressor(name, to, n):
    return [(f"{name}.wkv.weight", f"{to}_kv.weight", [n, W]), (f"{name}.wgate.weight", f"{to}_gate.weight", [n, W]),
            (f"{name}.ape", f"{to}_ape.weight", [4, n]), (f"{name}.norm.weight", f"{to}_norm.weight", [n // 2])]


def deepseek4(m):
    """Names as they are published; experts by token in the first layer, runs of 4 tokens in the second."""
    d, rank, x = 16, 32, 64
    m.common("DeepseekV4ForCausalLM", "deepseek4", head_dim=d, qk_rope_head_dim=ROT, q_lora_rank=rank, o_groups=2,
             o_lora_rank=X, index_n_heads=2, index_head_dim=8, index_topk=2, compress_ratios=[0, 4, 0],
             compress_rope_theta=2000, hc_mult=2, hc_sinkhorn_iters=3, sliding_window=5, n_routed_experts=E,
             num_experts_per_tok=2, moe_intermediate_size=x, n_shared_experts=1, num_hash_layers=1,
             routed_scaling_factor=1.5, scoring_func="sqrtsoftplus", norm_topk_prob=True, swiglu_limit=0.5,
             expert_dtype="fp4", rope_scaling={"type": "yarn", "factor": 4, "beta_fast": 8,
                                               "original_max_position_embeddings": 16})
    m.config |= {"num_key_value_heads": 1}
    del m.config["intermediate_size"]
    m.keys |= {"attention.head_count_kv": 1, "attention.key_length": d, "attention.value_length": d,
               "rope.dimension_count": ROT, "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0,
               "rope.scaling.original_context_length": 16, "rope.scaling.yarn_beta_fast": 8.0,
               "attention.q_lora_rank": rank, "attention.output_group_count": 2, "attention.output_lora_rank": X,
               "attention.indexer.head_count": 2, "attention.indexer.key_length": 8, "attention.indexer.top_k": 2,
               "attention.compress_ratios": [0, 4], "attention.compress_rope_freq_base": 2000.0,
               "attention.sliding_window": 5, "hyper_connection.count": 2, "hyper_connection.epsilon": f32(1e-6),
               "hyper_connection.sinkhorn_iterations": 3, "expert_count": E, "expert_used_count": 2,
               "expert_feed_forward_length": x, "expert_shared_count": 1, "expert_weights_scale": 1.5,
               "expert_weights_norm": True, "expert_gating_func": 4, "hash_layer_count": 1,
               "swiglu_clamp_exp": [0.5, 0.5]}
    n = m.vocabulary.n_vocab
    for lines in ([("embed.weight", "token_embd.weight", [n, W]), ("norm.weight", "output_norm.weight", [W]),
                   ("head.weight", "output.weight", [n, W])], mixer("hc_head", "output_hc", 2)):
        for line in lines:
            add(m, *line)
    both = mixer("hc_attn", "hc_attn", 8) + mixer("hc_ffn", "hc_ffn", 8) + [
        ("attn_norm.weight", "attn_norm.weight", [W]), ("ffn_norm.weight", "ffn_norm.weight", [W]),
        ("attn.attn_sink", "attn_sinks.weight", [HEADS]), ("attn.wq_a.weight", "attn_q_a.weight", [rank, W]),
        ("attn.q_norm.weight", "attn_q_a_norm.weight", [rank]),
        ("attn.wq_b.weight", "attn_q_b.weight", [HEADS * d, rank]), ("attn.wkv.weight", "attn_kv.weight", [d, W]),
        ("attn.kv_norm.weight", "attn_kv_a_norm.weight", [d]),
        ("attn.wo_a.weight", "attn_output_a.weight", [2 * X, HEADS * d // 2]),
        ("attn.wo_b.weight", "attn_output_b.weight", [W, 2 * X]), ("ffn.gate.weight", "ffn_gate_inp.weight", [E, W]),
        *gated("ffn.shared_experts.", "ffn_{}_shexp.weight", x, W, WS)]
    at = "attn.indexer."
    more = [[], [("ffn.gate.bias", *BIAS), (at + "wq_b.weight", "indexer.attn_q_b.weight", [16, rank]),
                 (at + "weights_proj.weight", "indexer.proj.weight", [2, W]),
                 *compressor("attn.compressor", "attn_compressor", 2 * d),
                 *compressor(at + "compressor", "indexer_compressor", 16)]]
    for i in range(2):
        for stored, to, shape in both + more[i] + gated("ffn.experts.{}.", "ffn_{}_exps.weight", x, W, WS):
            add(m, f"layers.{i}.{stored}", f"blk.{i}.{to}", shape)
    ids = [e for _ in range(n) for e in m.rng.sample(range(E), 2)]
    m.stored["layers.0.ffn.gate.tid2eid"] = ("I64", [n, 2], struct.pack(f"<{2 * n}q", *ids))
    m.tensors.append(Tensor("blk.0.ffn_gate_tid2eid.weight", "I32", [2, n], struct.pack(f"<{2 * n}i", *ids)))
    m.random("mtp.0.ffn.experts.0.w1.weight", [x, W])  # predicts another token


def glm5_next(m):
    """Delta nets in the first layer, latent attention without positions and experts in the second."""
    n, at = HEADS * PLAIN, "self_attn."
    m.common("Glm5NextForConditionalGeneration", "glm5-next", n_routed_experts=E, q_lora_rank=X, kv_lora_rank=RANK,
             qk_rope_head_dim=0, qk_nope_head_dim=PLAIN, v_head_dim=VALUE, index_n_heads=2, index_head_dim=8, index_topk=6,
             index_kpool=3, layer_types=["linear_attention", "full_attention"], first_k_dense_replace=1,
             n_shared_experts=1, hc_mult=2, hc_sinkhorn_iters=3, swiglu_limit=0.5, linear_attn_config={
                 "head_dim": SIZE, "num_heads": HEADS, "short_conv_kernel_size": 4, "gate_lower_bound": -3.0})
    m.config["num_key_value_heads"] = HEADS
    experts(m, routed_scaling_factor=2.5)
    m.keys |= {"attention.head_count": [HEADS] * 2, "attention.head_count_kv": [0, 1], "attention.kv_lora_rank": RANK,
               "rope.dimension_count": 0, "attention.key_length": RANK, "attention.value_length": RANK,
               "attention.key_length_mla": PLAIN, "attention.value_length_mla": VALUE, "attention.q_lora_rank": X,
               "kda.head_dim": SIZE, "ssm.conv_kernel": 4, "kda.gate_lower_bound": -3.0,
               "attention.indexer.head_count": 2, "attention.indexer.key_length": 8, "attention.indexer.top_k": 6,
               "attention.indexer.kpool": 3, "hyper_connection.count": 2, "hyper_connection.sinkhorn_iterations": 3,
               "hyper_connection.epsilon": f32(1e-6), "expert_gating_func": 2, "expert_weights_norm": True,
               "expert_weights_scale": 2.5, "leading_dense_block_count": 1, "expert_shared_count": 1,
               "swiglu_clamp_exp": [0.5, 0.5], "swiglu_clamp_shexp": [0.5, 0.5]}
    m.ends()
    both = norms(*TWO) + mixer("hc_attn", "hc_attn", 8) + mixer("hc_ffn", "hc_ffn", 8)
    layer(m, 0, both + DENSE)
    kimi_delta_net(m, 0)
    layer(m, 1, both + ROUTER + EACH + SHARED + [
        ("mlp.gate.e_score_correction_bias", *BIAS), (at + "q_a_proj.weight", "attn_q_a.weight", [X, W]),
        (at + "q_a_layernorm.weight", "attn_q_a_norm.weight", [X]), (at + "q_b_proj.weight", "attn_q_b.weight", [n, X]),
        (at + "kv_a_proj_with_mqa.weight", "attn_kv_a_mqa.weight", [RANK, W]), *LATENT[1:]])
    at += "indexer."
    layer(m, 1, [
        (at + "wq_b.weight", "indexer.attn_q_b.weight", [16, X]), (at + "wk.weight", "indexer.attn_k.weight", [8, W]),
        (at + "k_norm.weight", "indexer.k_norm.weight", [8]), (at + "k_norm.bias", "indexer.k_norm.bias", [8]),
        (at + "weights_proj.weight", "indexer.proj.weight", [2, W]),
        (at + "index_kpool_compress_gate", "indexer_compressor_gate.weight", [8, W]),
        (at + "index_kpool_compress_ape", "indexer_compressor_ape.weight", [3, 8])])


def low_rank(name, to, inject=True):
    """A mixer of two streams."""
    at = f"{name}.input_mix_weight_"
    return [(f"{name}.hc_norm.weight", f"{to}_norm.weight", [2 * W], "+1"),
            (f"{at}down.weight", f"{to}_down.weight", [X, 2 * W]), (f"{at}up.weight", f"{to}_up.weight", [2 * W, X]),
            (f"{name}.block_inject_weight.weight", f"{to}_inject.weight", [2, 2 * W])][:3 + inject]


def qwen4exp(m):
    """A table of n-grams in parts, constants of it that are tensors, and an indexer's product of queries and keys."""
    sizes, multipliers = [11, 13, 17, 19], [m.rng.getrandbits(62) | 1 for _ in range(3)]
    firsts, n_rows, width, n_parts = [0, 11, 24, 41], 64, W // 4, 3
    end = m.rng.choice([*m.vocabulary.letters.values()])[0]
    qwen35_common(m, "Qwen4ExpForConditionalGeneration", "qwen4exp", hc_count=2, hc_lowrank=X, indexer_n_heads=2,
                  indexer_kv_heads=1, indexer_head_dim=8, indexer_budget=4, indexer_compress_ratio=2,
                  output_gate_type="sigmoid", shared_expert_intermediate_size=X, ple_layer_ids=[1], ngram_size=3,
                  heads_per_ngram=2, ple_conv_kernel_size=4, split_ngram_parts=n_parts, eos_token_id=[end, 0])
    experts(m, norm_topk_prob=True)
    m.config = {"architectures": m.config.pop("architectures"), "vision_config": {}, "text_config": m.config}
    m.keys |= {"expert_shared_feed_forward_length": X, "hyper_connection.count": 2, "hyper_connection.low_rank": X,
               "attention.indexer.head_count": 2, "attention.indexer.key_length": 8, "attention.indexer.top_k": 4,
               "attention.compress_ratios": [0, 2], "ple.layers": [0], "ple.ngram_size": 3, "ple.heads_per_ngram": 2,
               "ple.conv_kernel": 4, "ple.eos_token_id": end, "embedding_length_per_layer_input": width,
               "ple.layer_multipliers": multipliers, "ple.head_offsets": firsts, "ple.head_vocab_sizes": sizes}
    n = m.vocabulary.n_vocab
    for line in [("model.embed_tokens.weight", "token_embd.weight", [n, W]), ("lm_head.weight", "output.weight", [n, W]),
                 *low_rank("model.hyper_connection_mixer", "output_hc", False)]:
        add(m, *line)
    for i in range(2):
        layer(m, i, low_rank("attn_hyper_connection", "hc_attn") + low_rank("mlp_hyper_connection", "hc_ffn") +
              ROUTER + EACH + gated("mlp.shared_expert.", "ffn_{}_shexp.weight", X) + [
                  ("mlp.shared_expert_gate.weight", "ffn_gate_inp_shexp.weight", [1, W], "squeeze")])
    qwen35_mixers(m)
    at = "self_attn.indexer."
    layer(m, 1, norms((at + "q_layernorm", "indexer.q_norm"), (at + "k_layernorm", "indexer.k_norm"), n=8, plus="+1"))
    data = m.random(f"model.layers.1.{at}index_qk_proj.weight", [24, W])
    for c, part in (("q", rows_of(data, 3)[:2]), ("k", rows_of(data, 3)[2:])):
        m.tensors.append(Tensor(f"blk.1.indexer.{c}_proj.weight", m.kind, [W, 8 * len(part)], b"".join(part)))
    layer(m, 0, norms(*((f"ple.norm_{c}", f"ple_norm_{c}") for c in ("key", "query", "conv")), n=2 * W, plus="+1") + [
        ("ple.key_proj.weight", "ple_key.weight", [2 * W, W]), ("ple.value_proj.weight", "ple_value.weight", [W, W]),
        ("ple.conv1d.weight", "ple_conv1d.weight", [2 * W, 1, 4], "squeeze")])
    at, each = "model.layers.0.ple.ple_embedding.", -(-n_rows // n_parts)
    table = b"".join(m.random(f"{at}ngram_embedding.shard_{i}.weight", [min(each, n_rows - i * each), width])
                     for i in range(n_parts))
    m.tensors.append(Tensor("per_layer_token_embd.weight", m.kind, [width, n_rows], table))
    for name, values in (("layer_multipliers", multipliers), ("ngram_heads_offsets", firsts),
                         ("ngram_heads_vocab_sizes", sizes)):
        m.stored[at + name] = ("I64", [len(values)], struct.pack(f"<{len(values)}q", *values))
    m.random("mtp.fc.weight", [W, 2 * W])  # predicts another token
    m.stored = {name.replace("model.", "model.language_model."): t for name, t in m.stored.items()}
    m.stored["model.visual.blocks.0.norm1.weight"] = ("F32", [1], bytes(4))


def exaone(m):
    m.common("ExaoneForCausalLM", "exaone", activation_function="silu", layer_norm_epsilon=1e-5)
    m.config["num_layers"] = m.config.pop("num_hidden_layers")
    del m.config["rms_norm_eps"], m.config["hidden_act"]
    n, at = m.vocabulary.n_vocab, "attn.attention."
    for line in (("transformer.wte.weight", "token_embd.weight", [n, W]), ("lm_head.weight", "output.weight", [n, W]),
                 ("transformer.ln_f.weight", "output_norm.weight", [W])):
        add(m, *line)
    for i in range(2):
        for stored, to, shape, *done in norms(("ln_1", "attn_norm"), ("ln_2", "ffn_norm")) + gated(
                "mlp.", "ffn_{}.weight", FF, names=("c_fc_0", "c_fc_1", "c_proj")) + [
                (at + "q_proj.weight", "attn_q.weight", [HEADS * SIZE, W]),
                (at + "k_proj.weight", "attn_k.weight", [KV * SIZE, W]),
                (at + "v_proj.weight", "attn_v.weight", [KV * SIZE, W]),
                (at + "out_proj.weight", "attn_output.weight", [W, HEADS * SIZE])]:
            add(m, f"transformer.h.{i}.{stored}", f"blk.{i}.{to}", shape, *done)


def neighbours(rows):
    """Rows of a head whose halves become neighbours."""
    half = len(rows) // 2
    return [row for pair in zip(rows[:half], rows[half:]) for row in pair]


def internlm2(m):
    """Query heads, key head and values in turns."""
    m.common("InternLM2ForCausalLM", "internlm2", bias=False, rope_scaling={"type": "dynamic", "factor": 2.0})
    n, per = m.vocabulary.n_vocab, HEADS // KV
    for line in (("model.tok_embeddings.weight", "token_embd.weight", [n, W]), ("output.weight", "output.weight", [n, W]),
                 ("model.norm.weight", "output_norm.weight", [W])):
        add(m, *line)
    for i in range(2):
        layer(m, i, norms(("attention_norm", "attn_norm"), ("ffn_norm", "ffn_norm")) +
              [("attention.wo.weight", "attn_output.weight", [W, HEADS * SIZE])] +
              gated("feed_forward.", "ffn_{}.weight", FF, names=WS))
        n_rows = (HEADS + 2 * KV) * SIZE
        heads = matrices(m.random(f"model.layers.{i}.attention.wqkv.weight", [n_rows, W]), HEADS + 2 * KV, SIZE)
        groups = [heads[g * (per + 2):(g + 1) * (per + 2)] for g in range(KV)]
        for c, part in (("q", [neighbours(h) for g in groups for h in g[:per]]),
                        ("k", [neighbours(g[per]) for g in groups]), ("v", [g[per + 1] for g in groups])):
            data = b"".join(b"".join(rows) for rows in part)
            m.tensors.append(Tensor(f"blk.{i}.attn_{c}.weight", m.kind, [W, len(part) * SIZE], data))


def deepseek(m):
    m.common("DeepseekForCausalLM", "deepseek")
    experts(m, first_k_dense_replace=1, moe_layer_freq=1, n_shared_experts=1, norm_topk_prob=False,
            scoring_func="softmax", n_routed_experts=E)
    del m.config["num_experts"]
    m.keys |= {"leading_dense_block_count": 1, "expert_shared_count": 1}
    m.ends()
    for i in range(2):
        m.norms(i, dict(TWO))
        m.attention(i, turn=True)
        layer(m, i, DENSE if i == 0 else ROUTER + EACH + SHARED)


def minicpm(m):
    lists = {"short_factor": [1.5, 2.0, 1.25, 1.0], "long_factor": [4.0, 2.5, 3.0, 1.0]}
    m.common("MiniCPMForCausalLM", "minicpm", scale_emb=3, scale_depth=1.5, dim_model_base=16, rope_scaling=lists | {
        "rope_type": "longrope", "original_max_position_embeddings": 16})
    m.keys |= {"embedding_scale": 3.0, "residual_scale": f32(1.5 / math.sqrt(2)), "logit_scale": W / 16,
               "rope.scaling.original_context_length": 16,
               "rope.scaling.attn_factor": f32(math.sqrt(1 + math.log(4) / math.log(16)))}
    m.ends(head=False)
    for name, values in lists.items():
        m.tensors.append(Tensor.of(f"rope_factors_{name.split('_')[0]}.weight", values))
    for i in range(2):
        m.norms(i, dict(TWO))
        m.attention(i, turn=True)
        m.dense(i)


def deci(m):
    """A whole block, one without attention, one with a matrix in its place and one without feed-forward."""
    blocks = ((2, False, 1.5), (None, False, 3.0), (None, True, 0.5), (HEADS, False, None))
    m.common("DeciLMForCausalLM", "deci", num_hidden_layers=4, num_key_value_heads=None, intermediate_size=None,
             block_configs=[{"attention": {"n_heads_in_group": n, "no_op": not n and not linear,
                                           "replace_with_linear": linear, "window_length": None},
                             "ffn": {"ffn_mult": mult, "no_op": mult is None, "replace_with_linear": False}}
                            for n, linear, mult in blocks])
    m.keys |= {"block_count": 4, "attention.head_count": [HEADS, 0, HEADS, HEADS],
               "attention.head_count_kv": [HEADS // 2, 0, 0, 1], "feed_forward_length": [256, 256, 256, 0]}
    m.ends()
    first, second = norms(*TWO)
    for i, (n, linear, mult) in enumerate(blocks):
        if n:
            m.matrix(f"model.layers.{i}.self_attn.q_proj", f"blk.{i}.attn_q", HEADS * SIZE, W, HEADS)
            m.matrix(f"model.layers.{i}.self_attn.k_proj", f"blk.{i}.attn_k", HEADS // n * SIZE, W, HEADS // n)
            layer(m, i, [first] + attention(kv=HEADS // n)[2:])
        if linear:
            layer(m, i, [first, ("self_attn.linear_attn.weight", "attn_output.weight", [W, W])])
        if mult:
            layer(m, i, [second] + gated("mlp.", "ffn_{}.weight", 256))


def phimoe(m):
    """Norms and matrices with biases, and one magnitude for both lists of factors."""
    lists = {"short_factor": [1.5, 2.0, 1.25, 1.0], "long_factor": [4.0, 2.5, 3.0, 1.0]}
    m.common("PhimoeForCausalLM", "phimoe", attention_bias=True, lm_head_bias=True, num_local_experts=E,
             num_experts_per_tok=2, router_jitter_noise=0.01, rope_scaling=lists | {
                 "type": "longrope", "short_mscale": 1.25, "long_mscale": 1.25, "original_max_position_embeddings": 16})
    m.keys |= {"expert_count": E, "expert_used_count": 2, "rope.scaling.original_context_length": 16,
               "rope.scaling.attn_factor": 1.25}
    m.ends()
    add(m, "lm_head.bias", "output.bias", [m.vocabulary.n_vocab])
    add(m, "model.norm.bias", "output_norm.bias", [W])
    for name, values in lists.items():
        m.tensors.append(Tensor.of(f"rope_factors_{name.split('_')[0]}.weight", values))
    at = "block_sparse_moe."
    for i in range(2):
        m.attention(i, bias=True)
        layer(m, i, [(f"{a}.{end}", f"{b}.{end}", [W]) for a, b in TWO for end in ("weight", "bias")] +
              [("self_attn.o_proj.bias", "attn_output.bias", [W]), (at + "gate.weight", "ffn_gate_inp.weight", [E, W])] +
              gated(at + "experts.{}.", "ffn_{}_exps.weight", FF, names=WS))


def gemma(m):
    m.common("GemmaForCausalLM", "gemma", hidden_act="gelu")
    m.ends(head=False, plus=1)
    for i in range(2):
        m.norms(i, dict(TWO), plus=1)
        m.attention(i)
        m.dense(i)


SLID = {"sliding_window": 5, "layer_types": ["sliding_attention", "full_attention"]}
SLID_KEYS = {"attention.sliding_window": 5, "attention.sliding_window_pattern": [True, False]}


def muse_glimmer(m):
    """Norms of heads that a number stands for, and norms less 1, but for the last."""
    m.common("MuseGlimmerForConditionalGeneration", "muse-glimmer", qk_scale_factor=3.5, output_multiplier=0.25,
             final_logit_softcapping=20.0, post_norm_eps=1e-8, layer_rope_theta=[1000, 0], **SLID)
    m.config = {"architectures": m.config.pop("architectures"), "vision_config": {}, "text_config": m.config}
    m.keys |= SLID_KEYS | {"logit_scale": 0.25, "final_logit_softcapping": 20.0}
    m.ends()
    for i in range(2):
        m.norms(i, FOUR, plus=1)
        m.attention(i, turn=True)
        m.dense(i)
        m.matrix(f"model.layers.{i}.self_attn.gate_proj", f"blk.{i}.attn_gate", HEADS * SIZE, W)
        for c, value in (("q", 3.5), ("k", 1.0)):
            m.tensors.append(Tensor.of(f"blk.{i}.attn_{c}_norm.weight", [value] * SIZE))
    m.stored = {name.replace("model.", "model.language_model."): t for name, t in m.stored.items()}
    m.stored["model.vision_tower.ln_pre.weight"] = ("F32", [1], bytes(4))


def spark2_5(m):
    m.common("Spark2_5ForCausalLM", "spark2_5", hidden_act="gelu", headwise_attn_output_gate=True,
             gate_attn_act_mode="sigmoid", rope_parameters={
                 "full_attention": {"rope_type": "default", "rope_theta": 1000, "partial_rotary_factor": 0.5},
                 "sliding_attention": {"rope_type": "default", "rope_theta": 10, "partial_rotary_factor": 1.0}}, **SLID)
    del m.config["rope_theta"]
    m.keys |= SLID_KEYS | {"rope.dimension_count": 4, "rope.dimension_count_swa": 8, "rope.freq_base_swa": 10.0}
    m.ends()
    for i in range(2):
        layer(m, i, norms(*TWO) + DENSE + attention()[3:] + [
            ("self_attn.q_k_v_proj.weight", "attn_qkv.weight", [(HEADS + 2 * KV) * SIZE, W]),
            ("self_attn.g_proj.weight", "attn_gate.weight", [HEADS, W])])


def maple(m):
    m.common("MapleForCausalLM", "maple", nope_on_global_attention=True, num_shared_experts=0, norm_topk_prob=True,
             partial_rotary_factor=0.5, **SLID)
    experts(m)
    m.keys |= SLID_KEYS | {"rope.dimension_count": 4, "swiglu_clamp_exp": [7.0, 7.0]}
    m.ends()
    for i in range(2):
        layer(m, i, attention() + norms(*TWO) + norms(*QK, n=SIZE) + ROUTER + EACH)


def granite_swa(m):
    """Experts as wide as a dense feed-forward; gate and up lie in one tensor."""
    m.common("GraniteMoeSWAForCausalLM", "granite_swa", num_local_experts=EXPERTS, num_experts_per_tok=2,
             shared_intermediate_size=16, attention_multiplier=0.25, embedding_multiplier=3, residual_multiplier=0.5,
             logits_scaling=2, layer_rope_theta=[1000, 0], **SLID)
    m.keys |= SLID_KEYS | {
        "expert_count": EXPERTS, "expert_used_count": 2, "expert_shared_feed_forward_length": 16, "logit_scale": 2.0,
        "attention.scale": 0.25, "embedding_scale": 3.0, "residual_scale": 0.5, "attention.rope_pattern": [True, False]}
    m.ends(head=False)
    for i in range(2):
        m.norms(i, dict(TWO))
        m.attention(i, turn=True)
        at = "block_sparse_moe."
        layer(m, i, [
            ("self_attn.sinks", "attn_sinks.weight", [HEADS]), (at + "router.layer.weight", "ffn_gate_inp.weight", [E, W]),
            (at + "experts.gate_up_proj", "ffn_gate_up_exps.weight", [E, 2 * FF, W]),
            (at + "experts.down_proj", "ffn_down_exps.weight", [E, W, FF]),
            ("shared_mlp.input_linear.weight", "ffn_up_shexp.weight", [32, W]),
            ("shared_mlp.output_linear.weight", "ffn_down_shexp.weight", [W, 16])])


def nemotron_puzzle(m):
    """Layers that say their own number and width of experts."""
    m.common("NemotronHPuzzleForCausalLM", "nemotron_h_moe", num_hidden_layers=3, n_routed_experts=E,
             block_configs=[{"block_type": "attention"},
                            {"block_type": "moe", "moe_intermediate_size": 8, "num_experts_per_tok": 2},
                            {"block_type": "moe", "moe_intermediate_size": X, "num_experts_per_tok": 1}],
             moe_shared_expert_intermediate_size=X, norm_topk_prob=True, routed_scaling_factor=1.5, conv_kernel=4,
             ssm_state_size=8, n_groups=1, mamba_num_heads=2, mamba_head_dim=8, mlp_hidden_act="relu2",
             layer_norm_epsilon=1e-5, use_conv_bias=False)
    del m.config["hidden_act"], m.config["intermediate_size"], m.config["rms_norm_eps"]
    m.keys |= {"block_count": 3, "attention.head_count_kv": [KV, 0, 0], "feed_forward_length": [0, 8, X],
               "expert_feed_forward_length": [0, 8, X], "expert_used_count": [0, 2, 1], "expert_count": E,
               "expert_shared_feed_forward_length": X, "expert_weights_norm": True, "expert_weights_scale": 1.5,
               "ssm.conv_kernel": 4, "ssm.state_size": 8, "ssm.group_count": 1, "ssm.time_step_rank": 2,
               "ssm.inner_size": 16}
    n = m.vocabulary.n_vocab
    for line in (("model.embeddings.weight", "token_embd.weight", [n, W]),
                 ("model.norm_f.weight", "output_norm.weight", [W]), ("lm_head.weight", "output.weight", [n, W])):
        add(m, *line)
    at = "model.layers.0.mixer."
    m.vector("model.layers.0.norm.weight", "blk.0.attn_norm.weight", W)
    for c, rows, columns, heads in (("q", HEADS * SIZE, W, HEADS), ("k", KV * SIZE, W, KV), ("v", KV * SIZE, W, 0),
                                    ("o", W, HEADS * SIZE, 0)):
        m.matrix(f"{at}{c}_proj", "blk.0.attn_" + ("output" if c == "o" else c), rows, columns, heads)
    for i, f in ((1, 8), (2, X)):
        layer(m, i, [("norm.weight", "attn_norm.weight", [W]), ("mixer.gate.weight", "ffn_gate_inp.weight", [E, W]),
                     ("mixer.gate.e_score_correction_bias", *BIAS)] + [
            (f"mixer.{stored}.{name}_proj.weight", f"ffn_{name}_{to}.weight", shape)
            for stored, to, n_ff in (("experts.{}", "exps", f), ("shared_experts", "shexp", X))
            for name, shape in (("up", [n_ff, W]), ("down", [W, n_ff]))])


ALL = (exaone, internlm2, deepseek, minicpm, gemma, deci, phimoe, qwen3vlmoe, ernie4_5moe, lfm2moe, glm_dsa, kimi, kimi_k3, step35, mimo2, minimax_m3, laguna, apertus, bailingmoe2, ling3,
       smallthinker, cohere2moe, afmoe, exaone_moe, deepseek4, glm5_next, qwen4exp, hy_v4, dots3note, muse_glimmer, spark2_5, maple, granite_swa,
       nemotron_puzzle)

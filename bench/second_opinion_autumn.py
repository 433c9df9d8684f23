"""Models of second_opinion.py of autumn 2026."""
from second_opinion_families import Granite, GraniteMoe, NemotronHMoe, Qwen35Moe
from second_opinion_models import (FAMILIES, FOUR_NORMS, WINDOW, DeepseekV3, Family, expert_keys,
                                   rope)
from second_opinion_operations import INDEXER, DeepseekV4, KimiLinear, indexer_keys
from second_opinion_recent import SIGMOID, slides


class Gemma(Family):
    name = architecture = "gemma"
    model, note, norms_offset = "Gemma", "GELU, tied, heads wider than D/H", True

    def more(self):
        return {"head_dim": 32, "tie_word_embeddings": True, **rope(3000.0)}


class GraniteSwa(Granite):
    name = architecture = "granite_swa"
    model, note = "GraniteSWA", "sinks, windows, layers without positions"
    names = {"self_attn.sinks": "attn_sinks.weight"}
    bases = [3000.0, 3000.0, 0.0, 3000.0]

    def more(self):
        return super().more() | {"attention_bias": True, "sliding_window": WINDOW,
                                 "layer_rope_theta": list(self.bases)}

    def keys(self, c):
        return super().keys(c) | {
            "attention.sliding_window": c.sliding_window,
            "attention.sliding_window_pattern": slides(c),
            "attention.rope_pattern": [base > 0 for base in self.bases]}


class GraniteSwaMoe(GraniteSwa):
    name, model, note = "granite_swa-moe", "GraniteMoeSWA", "the same with experts, shared expert"
    names = GraniteMoe.names | GraniteSwa.names | {
        "block_sparse_moe.experts.gate_up_proj": "ffn_gate_up_exps.weight",
        "shared_mlp.input_linear": "ffn_up_shexp"}

    def more(self):
        return super().more() | {"num_local_experts": 8, "num_experts_per_tok": 3,
                                 "shared_intermediate_size": 56, "intermediate_size": 40}

    def split(self, c, name, t):
        return None

    def keys(self, c):
        return super().keys(c) | expert_keys(c, c.intermediate_size) | {
            "expert_shared_feed_forward_length": c.shared_intermediate_size}


class MuseGlimmer(Family):
    name = architecture = "muse-glimmer"
    model, note = "MuseGlimmerText", "embedding's norm, gates, four norms, windows, cap"
    names, permuted = FOUR_NORMS | {"self_attn.gate_proj": "attn_gate"}, True

    def gain_is_offset(self, name):
        return name != "norm.weight"

    def more(self):
        return {"head_dim": 32, "sliding_window": WINDOW, "final_logit_softcapping": 3.0,
                "output_multiplier": 0.3, "qk_scale_factor": 1.7, **rope(3000.0)}

    def head(self, model, hidden):
        c = model.config
        logits = super().head(model, hidden) * c.output_multiplier
        return c.final_logit_softcapping * (logits / c.final_logit_softcapping).tanh()

    def keys(self, c):
        return {"attention.sliding_window": c.sliding_window,
                "attention.sliding_window_pattern": slides(c), "logit_scale": c.output_multiplier,
                "final_logit_softcapping": c.final_logit_softcapping}

    def further(self, torch, model):
        c = model.config
        gains = {"q": c.qk_scale_factor, "k": 1.0}
        return {f"blk.{i}.attn_{x}_norm.weight": torch.full((c.head_dim,), gain, dtype=torch.single)
                for i in range(c.num_hidden_layers) for x, gain in gains.items()} | {
            "output.weight": model.embed_tokens.weight.detach().to(torch.single)}


class PhiMoe(Family):
    name = architecture = "phimoe"
    model, note = "Phimoe", "LayerNorm, biases, two experts in turn, short factors, windows"
    names = {"mlp.router": "ffn_gate_inp"}
    factors = [1 + 0.1 * i for i in range(12)]

    def more(self):
        return {"attention_bias": True, "lm_head_bias": True, "num_local_experts": 8,
                "intermediate_size": 40, "sliding_window": WINDOW,
                **rope(3000.0, rope_type="longrope", short_factor=self.factors,
                       long_factor=[2 * x for x in self.factors], short_mscale=1.2,
                       long_mscale=1.3, original_max_position_embeddings=256)}

    def keys(self, c):
        return expert_keys(c, c.intermediate_size) | {
            "attention.sliding_window": c.sliding_window,
            "rope.scaling.original_context_length": 256, "rope.scaling.attn_factor": 1.2}

    def further(self, torch, model):
        p = model.config.rope_parameters
        return {f"rope_factors_{n}.weight": torch.tensor(p[f"{n}_factor"]).to(torch.single)
                for n in ("long", "short")}


class NemotronHPuzzle(NemotronHMoe):
    name, note = "nemotron_h_moe-arrays", "counts and widths of experts by layer"
    counts, widths = [0, 3, 0, 0, 5], [0, 40, 0, 0, 24]

    def adapt(self, torch, model):
        """The class has one count and one width; its experts are cut to the layer's."""
        for layer, n_used, width in zip(model.model.layers, self.counts, self.widths):
            if n_used:
                experts = layer.mixer.experts
                layer.mixer.gate.top_k = n_used
                experts.up_proj = torch.nn.Parameter(experts.up_proj[:, :width])
                experts.down_proj = torch.nn.Parameter(experts.down_proj[..., :width])

    def keys(self, c):
        return super().keys(c) | {
            "expert_used_count": self.counts, "expert_feed_forward_length": self.widths,
            "feed_forward_length": self.widths}


class BailingMoe3(KimiLinear):
    name = architecture = "bailingmoe3"
    model, note = "BailingHybrid", "delta nets whose decay has a floor, gates, groups; no limits"
    names = KimiLinear.names | {"self_attn.forget_gate.f_proj": "ssm_f_a"}

    def more(self):
        return super().more() | {
            "num_local_experts": 8, "kda_lower_bound": -3.0, "n_group": 4, "topk_group": 2,
            "first_k_dense_replace": 1,
            "layer_types": ["linear_attention", "full_attention"] * 2, **rope(3000.0)}

    def split(self, c, name, t):
        if name == "self_attn.g_proj.weight":
            kind = "attn_gate" if len(t) == c.num_attention_heads else "ssm_g_a"
            return {f"{kind}.weight": t}
        if name == "self_attn.forget_gate.A_log":
            return {"ssm_a": t.exp()[:, None]}
        return super().split(c, name, t)

    def keys(self, c):
        return super().keys(c) | {
            "expert_weights_norm": True, "expert_group_count": c.n_group,
            "expert_group_used_count": c.topk_group, "kda.gate_lower_bound": c.kda_lower_bound,
            "kda.safe_gate": True, "swiglu_clamp_exp": 0.0, "swiglu_clamp_shexp": 0.0}


class Latent(DeepseekV3):
    """Latent attention with an indexer; sigmoid experts behind one dense layer."""
    names = DeepseekV3.names | INDEXER
    kinds = ["indexed_attention"] * 4

    def more(self):
        absent = ("rope_parameters", "first_k_dense_replace")
        return {k: v for k, v in super().more().items() if k not in absent} | {
            "n_group": 1, "topk_group": 1, "layer_types": list(self.kinds),
            "mlp_layer_types": ["dense"] + ["sparse"] * 3, "index_n_heads": 4,
            "index_head_dim": 32, "index_topk": 40}

    def keys(self, c):
        r, rotated = c.kv_lora_rank, c.qk_rope_head_dim
        return expert_keys(c) | SIGMOID | indexer_keys(c, c.index_topk) | {
            "attention.q_lora_rank": c.q_lora_rank, "attention.kv_lora_rank": r,
            "attention.key_length": r + rotated, "attention.value_length": r,
            "attention.key_length_mla": c.qk_nope_head_dim + rotated,
            "attention.value_length_mla": c.v_head_dim, "attention.head_count_kv": 1,
            "rope.dimension_count": rotated, "leading_dense_block_count": 1,
            "expert_shared_count": c.n_shared_experts,
            "expert_weights_scale": float(c.routed_scaling_factor)}


class HyV4(Latent):
    name = architecture = "hy_v4"
    model, note = "HYV4", "streams, sinks, gates, an indexer; rotated rows permuted"
    names = Latent.names | DeepseekV4.streams | {
        "hc_head.hc_fn": "output_hc_fn.weight", "hc_head.hc_base": "output_hc_base.weight",
        "hc_head.hc_scale": "output_hc_scale.weight", "self_attn.sinks": "attn_sinks.weight",
        "self_attn.gate_proj": "attn_gate"}

    def more(self):
        return super().more() | {
            "hc_eps": 1e-4, "hc_magnitude": 1.7, "swiglu_limit": 0.8, **rope(3000.0),
            "indexer_types": ["full", "shared", "full", "shared"]}

    def neighbours(self, c, name, t):
        """The class turns halves, the file has neighbours: rows of the rotated ends of heads."""
        size = {"q_b_proj.weight": c.qk_head_dim, "kv_a_proj_with_mqa.weight": len(t),
                "indexer.wq_b.weight": c.index_head_dim, "indexer.wk.weight": len(t),
                "indexer.k_norm.weight": len(t), "indexer.k_norm.bias": len(t)}.get(name)
        if not size:
            return t
        t, n = t.reshape(-1, size, *t.shape[1:]).clone(), c.qk_rope_head_dim
        end = t[:, -n:]
        t[:, -n:] = end.reshape(len(t), 2, n // 2, *t.shape[2:]).transpose(1, 2).reshape(end.shape)
        return t.flatten(0, 1)

    def tensors(self, c, state):
        return super().tensors(c, {k: self.neighbours(c, k.rpartition("self_attn.")[2], t)
                                   for k, t in state.items()})

    def keys(self, c):
        return super().keys(c) | {
            "attention.indexer.types": [t == "full" for t in c.indexer_types],
            "hyper_connection.count": c.hc_mult, "hyper_connection.epsilon": c.hc_eps,
            "hyper_connection.magnitude": c.hc_magnitude, "swiglu_clamp_exp": c.swiglu_limit}


class Dots3Note(Latent):
    name = architecture = "dots3note"
    model, note = "Dots3NoteText", "two sizes of latent attention, gates, an indexer"
    kinds = ["indexed_attention", "sliding_attention", "indexed_attention", "sliding_attention"]
    names = Latent.names | {"self_attn.g_proj": "attn_gate",
                            "self_attn.k_rope_only_layernorm": "attn_k_norm"}
    sliding = {"num_attention_heads": 2, "num_key_value_heads": 2, "q_lora_rank": 40,
               "kv_lora_rank": 24, "head_dim": 36, "qk_nope_head_dim": 20, "v_head_dim": 24}

    def more(self):
        return super().more() | {
            "n_shared_experts": 1, "shared_experts_intermediate_size": 40, "rope_theta": 3000.0,
            "swa_rope_theta": 900.0, "sliding_window": WINDOW, "rms_norm_eps": 0.02,
            **{f"swa_{k}": v for k, v in self.sliding.items()}}

    def split(self, c, name, t):
        """Files have the factors behind the latent norms in their gains."""
        if name in ("self_attn.q_a_layernorm.weight", "self_attn.kv_a_layernorm.weight"):
            part = name.removeprefix("self_attn.").removesuffix("_layernorm.weight")
            return {f"attn_{part}_norm.weight": t * (c.hidden_size / len(t)) ** 0.5}
        if name == "self_attn.kv_b_proj.weight":
            full = t.shape[-1] != self.sliding["kv_lora_rank"]
            c = c.per_layer_config["indexed_attention" if full else "sliding_attention"]
        return super().split(c, name, t)

    def file(self, torch, model, state):
        model.config.allow_global_per_layer_attribute_access = True
        return super().file(torch, model, state)

    def keys(self, c):
        s, full = self.sliding, c.per_layer_config["indexed_attention"]
        return super().keys(full) | {
            "attention.head_count": [s["num_attention_heads"] if slide else full.num_attention_heads
                                     for slide in slides(c)],
            "attention.kv_lora_rank_swa": s["kv_lora_rank"],
            "attention.key_length_mla_swa": s["head_dim"],
            "attention.value_length_mla_swa": s["v_head_dim"],
            "attention.sliding_window": c.sliding_window,
            "attention.sliding_window_pattern": slides(c),
            "attention.indexer.types": [not slide for slide in slides(c)],
            "rope.freq_base": 3000.0, "rope.freq_base_swa": 900.0}


class Qwen4Exp(Qwen35Moe):
    name = architecture = "qwen4exp"
    model, note = "Qwen4ExpText", "low-rank streams, delta nets, n-grams, blocks of keys, gates"
    mixers = {f"{theirs}.{x}": f"{ours}_{y}"
              for theirs, ours in (("attn_hyper_connection", "hc_attn"),
                                   ("mlp_hyper_connection", "hc_ffn"),
                                   ("hyper_connection_mixer", "output_hc"))
              for x, y in (("hc_norm", "norm"), ("input_mix_weight_down", "down"),
                           ("input_mix_weight_up", "up"), ("block_inject_weight", "inject"))}
    names = Qwen35Moe.names | mixers | {
        "ple.key_proj": "ple_key", "ple.value_proj": "ple_value", "ple.norm_key": "ple_norm_key",
        "ple.norm_query": "ple_norm_query", "ple.norm_conv": "ple_norm_conv",
        "self_attn.indexer.q_layernorm": "indexer.q_norm",
        "self_attn.indexer.k_layernorm": "indexer.k_norm"}
    eos = 3

    def more(self):
        return super().more() | {
            "eos_token_id": self.eos, "output_gate_type": "sigmoid", "hc_lowrank": 20,
            "ple_layer_ids": [2], "ngram_vocab_size_base": 500, "heads_per_ngram": 4,
            "split_ngram_parts": 1, "indexer_n_heads": 4, "indexer_kv_heads": 1,
            "indexer_head_dim": 32, "indexer_budget": 40, "indexer_compress_ratio": 8}

    def split(self, c, name, t):
        if name.startswith("ple.ple_embedding."):
            return {}  # further() has it
        if name == "ple.conv1d.weight":
            return {"ple_conv1d.weight": t[:, 0]}
        if name == "self_attn.indexer.index_qk_proj.weight":
            q, k = t.split([c.indexer_n_heads * c.indexer_head_dim, c.indexer_head_dim])
            return {"indexer.q_proj.weight": q, "indexer.k_proj.weight": k}
        return super().split(c, name, t)

    def further(self, torch, model):
        table = self.ngrams(model).ngram_embedding.weight
        return {"per_layer_token_embd.weight": table.detach().to(torch.single)}

    def ngrams(self, model):
        return model.model.layers[1].ple.ple_embedding

    def file(self, torch, model, state):
        keys, tensors = super().file(torch, model, state)
        x = self.ngrams(model)
        return keys | {f"{self.architecture}.{k}": v for k, v in {
            "ple.layer_multipliers": x.layer_multipliers.tolist(),
            "ple.head_offsets": x.ngram_heads_offsets.tolist(),
            "ple.head_vocab_sizes": x.ngram_heads_vocab_sizes.tolist(),
            "embedding_length_per_layer_input": x.ngram_embedding.weight.shape[1]}.items()}, tensors

    def keys(self, c):
        sparse = [t == "indexed_attention" for t in c.layer_types]
        return super().keys(c) | {
            "attention.indexer.head_count": c.indexer_n_heads,
            "attention.indexer.key_length": c.indexer_head_dim,
            "attention.indexer.top_k": c.indexer_budget,
            "attention.compress_ratios": [c.indexer_compress_ratio * s for s in sparse],
            "hyper_connection.count": c.hc_count, "hyper_connection.low_rank": c.hc_lowrank,
            "ple.layers": [1], "ple.ngram_size": c.ngram_size,
            "ple.heads_per_ngram": c.heads_per_ngram, "ple.conv_kernel": c.ple_conv_kernel_size,
            "ple.eos_token_id": self.eos}


FAMILIES += [cls() for cls in (
    Gemma, GraniteSwa, GraniteSwaMoe, MuseGlimmer, PhiMoe, NemotronHPuzzle, BailingMoe3, HyV4,
    Dots3Note, Qwen4Exp)]

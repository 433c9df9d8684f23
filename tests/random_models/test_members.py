#!/usr/bin/env python3
"""Random published folders with one member of config.json changed: either it is refused with a
sentence, or the table of scores is that of the folder that says the same in full.

usage: test_members.py ASSAY SOURCE_DIR [SEED]

What classes of transformers have by default is what bench/class_defaults.py found.
"""
import copy
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

ASSAY, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
sys.path[:0] = [str(SOURCE / "tests" / "cli"), str(SOURCE / "tests" / "random_models")]
import folders  # noqa: E402
import folders_by_table  # noqa: E402
import rewrite  # noqa: E402

SEED = int((sys.argv[3:4] or ["1"])[0])
GONE = object()
DESCRIBE = {d.__name__: d for d in folders.ALL + folders_by_table.ALL}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 12000000, "factor": 8, "original_max_position_embeddings": 8192,
          "low_freq_factor": 1, "high_freq_factor": 4}

# (folder, members, others that say the same)
SAME = [
    ("mixtral", {"rope_theta": GONE}, {"rope_theta": 1000000}),
    ("qwen3", {"rope_theta": GONE}, {"rope_theta": 10000}),
    ("qwen3", {"rms_norm_eps": GONE}, {"rms_norm_eps": 1e-6}),
    ("qwen3", {"rope_theta": GONE, "rope_parameters": {"rope_theta": 1000}}, {}),
    ("qwen3", {"rope_parameters": None, "rope_scaling": None}, {}),
    ("gemma3", {"text_config.sliding_window": GONE}, {"text_config.sliding_window": 4096}),
    ("gemma3", {"text_config.rope_local_base_freq": GONE}, {"text_config.rope_local_base_freq": 10000}),
    ("gemma3", {"text_config.rope_theta": GONE}, {"text_config.rope_theta": 1000000}),
    ("gemma3", {"text_config.num_attention_heads": GONE}, {}),  # as Google's 4B has it
    ("granitemoe", {"attention_multiplier": GONE}, {"attention_multiplier": 1}),
    ("granitemoe", {"rms_norm_eps": 1e-5, "layer_norm_eps": 0.5}, {}),
    ("cohere2moe", {"logit_scale": GONE}, {"logit_scale": 0.0625}),
    ("deepseek3", {"norm_topk_prob": GONE}, {"norm_topk_prob": True}),
    ("deepseek3", {"routed_scaling_factor": GONE}, {"routed_scaling_factor": 2.5}),
    ("lfm2moe", {"rope_theta": GONE}, {"rope_theta": 1000000}),
    ("ernie4_5moe", {"rope_theta": GONE}, {"rope_theta": 500000}),
    ("laguna", {"moe_routed_scaling_factor": GONE}, {"moe_routed_scaling_factor": 1}),
    ("llama", {"rope_scaling.original_max_position_embeddings": GONE}, {}),
    ("qwen35", {"rope_parameters.partial_rotary_factor": GONE}, {"rope_parameters.partial_rotary_factor": 0.25}),
    ("apertus", {"rope_theta": GONE, "rope_scaling": GONE}, {"rope_theta": GONE, "rope_parameters": LLAMA3}),
    ("exaone_moe", {"norm_topk_prob": GONE}, {"norm_topk_prob": True}),
    ("gemma", {"hidden_act": GONE}, {}),
    ("phimoe", {"rope_theta": GONE}, {"rope_theta": 1000000}),
    ("muse_glimmer", {"text_config.qk_scale_factor": GONE}, {"text_config.qk_scale_factor": 3.87}),
    ("muse_glimmer", {"text_config.layer_types": GONE, "text_config.layer_rope_theta": GONE},
     {"text_config.layer_types": ["sliding_attention", "full_attention"]}),
    ("glm5_next", {"linear_attn_config.gate_lower_bound": GONE}, {"linear_attn_config.gate_lower_bound": -5}),
    ("glm5_next", {"linear_attn_config.gate_lower_bound": None}, {"linear_attn_config.gate_lower_bound": -5}),
    ("glm5_next", {"linear_attn_config.gate_lower_bound": GONE, "linear_lower_bound": -2},
     {"linear_attn_config.gate_lower_bound": -2}),
    ("glm5_next", {"linear_attn_config": GONE, "linear_head_dim": 8, "linear_num_heads": 8, "linear_conv_kernel_dim": 4,
                   "linear_lower_bound": None},
     {"linear_attn_config.gate_lower_bound": None, "linear_attn_config.safe_gate": False}),
    ("glm5_next", {"layer_types": ["linear_attention", "indexed_attention"], "indexer_types": ["full"] * 2}, {}),
    ("qwen4exp", {"text_config.layer_types": GONE, "text_config.full_attention_interval": 2}, {}),
    ("qwen4exp", {"text_config.layer_types": ["linear_attention", "indexed_attention"]}, {}),
    ("qwen4exp", {"text_config.ngram_size": GONE, "text_config.ple_conv_kernel_size": GONE}, {}),
    ("qwen4exp", {"text_config.ple_embed_dim": 64}, {"text_config.ple_embed_dim": None}),
    ("qwen4exp", {"text_config.eos_token_id": 7}, {"text_config.eos_token_id": [7, 3]}),
    ("qwen4exp", {"text_config.eos_token_id": GONE, "eos_token_id": 7}, {"text_config.eos_token_id": 7}),
    ("granite_swa", {"layer_types": GONE}, {"layer_types": ["full_attention", "sliding_attention"]}),
    ("granite_swa", {"layer_rope_theta": GONE}, {"layer_rope_theta": [1000, 1000]}),
]

# (folder, members, the sentence)
REFUSED = [
    ("llama", {"attention_bias": GONE}, r"'attention_bias' \(absent, and so by its class's default\) says that no layer "
     r"has attn_q.bias, but tensor 'model.layers.[01].self_attn.q_proj.bias' is there"),
    ("llama", {"attention_bias": False}, "'attention_bias' says that no layer has attn_q.bias, but"),
    ("qwen3", {"attention_bias": True}, "'attention_bias' says that layers have attn_q.bias, but no layer has it"),
    ("llama", {"tie_word_embeddings": False}, "'tie_word_embeddings' is false, .* no tensor 'lm_head.weight'"),
    ("llama", {"tie_word_embeddings": GONE}, "'tie_word_embeddings' is absent, which is false for its class"),
    ("gemma3", {"tie_word_embeddings": False}, "which is not read of this architecture; expected true"),
    ("gemma3", {"text_config.use_bidirectional_attention": True}, "'use_bidirectional_attention' is 1, expected 0"),
    ("gemma3", {"text_config.query_pre_attn_scalar": GONE}, "'query_pre_attn_scalar' is 256, expected 8"),
    ("gemma3", {"text_config.sliding_window": 0}, "'sliding_window' is 0, expected a number above 0, or null"),
    ("deepseek3", {"rope_interleave": False}, "'rope_interleave' is 0, expected 1"),
    ("deepseek3", {"rope_interleave": None}, "'rope_interleave' is 0, expected 1"),
    ("deepseek3", {"n_group": 1, "topk_group": 0}, "'topk_group' is 0, expected a number from 1"),
    ("deepseek3", {"first_k_dense_replace": 2}, "layer 1 has none by members .* but experts by its tensors"),
    ("deepseek3", {"n_shared_experts": 0}, "'n_shared_experts' says that no layer has ffn_up_shexp.weight"),
    ("deepseek3", {"rope_parameters": {"rope_type": "yarn", "factor": 4, "mscale": None, "mscale_all_dim": 1}},
     "'mscale' and 'mscale_all_dim' of RoPE differ"),
    ("afmoe", {"num_dense_layers": 2}, "layer 1 has none by members .* but experts by its tensors"),
    ("ernie4_5moe", {"moe_layer_interval": 3}, "layer 1 has none by members .* but experts"),
    ("cohere2moe", {"mlp_layer_types": ["sparse", "dense"]}, "layer 0 has experts by members such as 'mlp_layer_types'"),
    ("granitemoe", {"attention_multiplier": 0}, "'attention_multiplier' is 0, expected another number"),
    ("qwen3", {"rms_norm_eps": None}, "config.json: rms_norm_eps is null, expected a number"),
    ("qwen3", {"rope_theta": None}, "config.json: rope_theta is null, expected a number"),
    ("qwen3", {"num_hidden_layers": 1}, "is of layer 1, but config.json has 1 layers"),
    ("qwen3", {"rope_scaling": {"rope_type": "yarn", "factor": 4, "attention_factor": 2}}, "has the magnitude 2"),
    ("qwen3", {"rope_scaling": {"rope_type": "yarn", "factor": 4, "truncate": False}}, "config.json: rope_scaling.truncate is false, expected true"),
    ("llama", {"rope_scaling.factor": None}, "config.json: rope_scaling.factor is null, expected a number"),
    ("llama", {"rope_scaling.low_freq_factor": GONE}, "RoPE's factors are 8, 0, 4"),
    ("gpt_oss", {"rope_scaling.truncate": True}, "config.json: rope_scaling.truncate is not false, expected false"),
    ("phimoe", {"lm_head_bias": GONE}, "'lm_head_bias' is not true, expected true"),
    ("phimoe", {"router_jitter_noise": 0.1}, "'router_jitter_noise' is 0.1, expected 0.01"),
    ("phimoe", {"rope_scaling.long_mscale": 1.5}, "RoPE's magnitude is 1.25 for short windows and 1.5 for long ones"),
    ("minicpm", {"dim_model_base": 0}, "'scale_depth' and 'dim_model_base' are 1.5 and 0, expected"),
    ("deci", {"num_hidden_layers": 3}, "block_configs has 4 blocks, expected 3"),
    ("gemma", {"hidden_act": "relu"}, "hidden_act is 'relu', expected gelu_pytorch_tanh"),
    ("internlm2", {"num_key_value_heads": 4}, "has 96 rows, expected 128, those of queries, keys and values"),
    ("apertus", {"rope_scaling": GONE}, "'rope_theta' is 1000, but without 'rope_scaling' or 'rope_parameters'"),
    ("muse_glimmer", {"text_config.layer_rope_theta": [1000, 1000]}, "layer 1 slides without positions, or the reverse"),
    ("muse_glimmer", {"text_config.post_norm_eps": 1e-5}, "'post_norm_eps' is 1e-05, expected 1e-08"),
    ("spark2_5", {"hidden_act": "gelu_new"}, "hidden_act is 'gelu_new', expected gelu"),
    ("spark2_5", {"gate_attn_act_mode": "tanh"}, "gate_attn_act_mode is not sigmoid"),
    ("maple", {"nope_on_global_attention": False}, "'nope_on_global_attention' is not true, expected true"),
    ("glm5_next", {"index_kpool_always_select_tail": False}, "'index_kpool_always_select_tail' is 0, expected 1"),
    ("glm5_next", {"index_kpool": 4}, "indexer.kpool' is 4, expected a divisor of the 6 keys that are chosen"),
    ("glm5_next", {"qk_rope_head_dim": 4}, "'qk_rope_head_dim' is 4, expected 0"),
    ("glm5_next", {"indexer_types": ["full", "shared"]}, "says that block 1 has no indexer, expected one that later"),
    ("glm5_next", {"num_hidden_layers": 5000}, "5000 layers, expected at most 1024"),
    ("hy_v4", {"num_hidden_layers": 5000}, "5000 layers, expected at most 1024"),
    ("dots3note", {"swa_qk_rope_head_dim": 6}, "'swa_qk_rope_head_dim' is 6, expected the [0-9]+ of 'qk_rope_head_dim'"),
    ("dots3note", {"swa_q_lora_rank": 12}, "'swa_q_lora_rank' is 12, expected the [0-9]+ of 'q_lora_rank'"),
    ("dots3note", {"moe_shared_expert_intermediate_size": 12},
     "'moe_shared_expert_intermediate_size' is 12, expected the [0-9]+ of 'moe_intermediate_size'"),
    ("dots3note", {"swa_attention_gate_type": "elementwise"}, "member 'swa_attention_gate_type' is not headwise"),
    ("dots3note", {"attention_gate_type": "elementwise"}, "member 'attention_gate_type' is not headwise"),
    ("qwen4exp", {"text_config.output_gate_type": GONE}, "'output_gate_type' is absent, expected sigmoid"),
    ("qwen4exp", {"text_config.output_gate_type": "silu"}, "'output_gate_type' is 'silu', expected sigmoid"),
    ("qwen4exp", {"text_config.indexer_kv_heads": 2}, "'indexer_kv_heads' is 2, expected 1"),
    ("qwen4exp", {"text_config.indexer_n_heads": 4}, "has 24 rows, expected a multiple of 5, the heads of an indexer"),
    ("qwen4exp", {"text_config.indexer_budget": GONE}, "indexer_budget is missing, expected a number"),
    ("qwen4exp", {"text_config.indexer_compress_ratio": 3}, "top_k' is 4, expected a multiple of the 3 tokens of a key"),
    ("qwen4exp", {"text_config.ple_layer_ids": [1, 2]}, "ple_layer_ids has 2 numbers, expected 1"),
    ("qwen4exp", {"text_config.ple_layer_ids": [0]}, "ple_layer_ids has layer 0, expected 1 or more"),
    ("qwen4exp", {"text_config.ple_layer_ids": [2]}, "ple.layers' is 1, expected a delta net"),
    ("qwen4exp", {"text_config.ple_layer_ids": None}, r"key .qwen4exp.ple\.\w+. is not understood"),
    ("qwen4exp", {"text_config.ple_embed_dim": 32}, "'ple_embed_dim' is 32, expected 64, which is 'hidden_size'"),
    ("qwen4exp", {"text_config.heads_per_ngram": 3}, "embedding_length_per_layer_input' is 10, expected 64 / 6"),
    ("qwen4exp", {"text_config.ngram_size": 1}, "ple.ngram_size' is 1, expected"),
    ("qwen4exp", {"text_config.eos_token_id": GONE}, "eos_token_id is missing, expected a number"),
    ("granite_swa", {"layer_rope_theta": [1000, 500]}, "has the base 500 for layer 1, expected 0 or the 1000"),
    ("nemotron_puzzle", {"block_configs": [{"block_type": "moe", "moe_intermediate_size": 8}] * 2}, "has 2 layers, expected 3"),
]


def changed(config, members):
    config = copy.deepcopy(config)
    for path, value in members.items():
        *groups, name = path.split(".")
        inner = config
        for group in groups:
            inner = inner[group]
        inner.pop(name, None)
        if value is not GONE:
            inner[name] = value
    return config


class Members(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.kept.cleanup)
        cls.at, cls.made = pathlib.Path(cls.kept.name), {}

    def make(self, name):
        if name not in self.made:
            model = folders.Folder(random.Random(f"{name} {SEED}"), DESCRIBE[name])
            model.write(self.at / name, 1)
            file = rewrite.write(self.at, model.gguf_pairs(), model.tensors)
            (self.at / f"{name}.txt").write_text(model.vocabulary.text(60)[0])
            self.made[name] = model.config, file.rename(self.at / f"{name}.gguf")
        return self.made[name]

    def run_with(self, name, members):
        config, file = self.make(name)
        where = self.at / name
        (where / "config.json").write_text(json.dumps(changed(config, members)))
        return subprocess.run([ASSAY, "perplexity", "-q", where, "--tokenizer", file, "-f", self.at / f"{name}.txt",
                               "-c", "20", "-t", "1", "--precision", "exact", "--per-token", "-"],
                              capture_output=True, text=True)

    def test_defaults(self):
        for name, members, same in SAME:
            with self.subTest(f"{name} {members}"):
                one, other = self.run_with(name, members), self.run_with(name, same)
                self.assertEqual((one.returncode, one.stderr, one.stdout), (0, "", other.stdout))
                self.assertIn("logprob", one.stdout)

    def test_refused(self):
        for name, members, sentence in REFUSED:
            with self.subTest(f"{name} {members}"):
                done = self.run_with(name, members)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertRegex(done.stderr, sentence)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

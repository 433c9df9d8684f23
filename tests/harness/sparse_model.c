#include "tests/harness/sparse_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/rng.h"

enum {
    WIDTH = 32,
    VOCABULARY = 288,
    HEADS = 2,
    ROTATED = 4,
    KEY = 8, /* ROTATED and as many that are not */
    VALUE = 6,
    RANK = 8,
    INDEX_HEADS = 3,
    INDEX_KEY = 6,
    FF = 24,
    EXPERTS = 3,
    STREAMS = 2,
    MAX_TENSORS = 128
};

struct build {
    const struct sparse_model_options *o;
    struct gguf_writer *writer;
    void *bytes[MAX_TENSORS]; /* live until the file is written */
    size_t n_tensors;
};

/** n_rows 0: a vector. Each name has a stream of its own. */
static void put(struct build *b, const char *name, uint64_t n_cols, uint64_t n_rows,
                uint64_t n_matrices)
{
    uint64_t ne[] = {n_cols, n_rows, n_matrices}, hash = 1469598103934665603u; /* FNV-1a */
    size_t n = (size_t)(n_cols * (n_rows ? n_rows : 1) * (n_matrices ? n_matrices : 1));
    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    struct rng r = rng_open(1, hash);
    float *values = malloc(n * sizeof *values);
    if (!values || b->n_tensors == MAX_TENSORS)
        abort();
    for (size_t i = 0; i < n; i++)
        values[i] = n_rows ? rng_normal(&r) / sqrtf((float)n_cols) : rng_float(&r, 0.5f, 1.5f);
    b->bytes[b->n_tensors++] = values;
    gguf_writer_tensor(b->writer, name, GGUF_TYPE_F32, ne, n_matrices ? 3 : n_rows ? 2 : 1, values);
}

static void put_of(struct build *b, unsigned layer, const char *name, uint64_t n_cols,
                   uint64_t n_rows, uint64_t n_matrices)
{
    char whole[64];
    snprintf(whole, sizeof whole, "blk.%u.%s", layer, name);
    put(b, whole, n_cols, n_rows, n_matrices);
}

static bool is(const struct build *b, const char *arch)
{
    return strcmp(b->o->arch, arch) == 0;
}

/** Elements of a head that are rotated. */
static uint32_t rotated(const struct build *b)
{
    return is(b, "glm5-next") ? 0 : ROTATED;
}

static void put_streams(struct build *b, unsigned i)
{
    static const char *const branches[] = {"hc_attn", "hc_ffn"};
    char name[32];
    for (size_t k = 0; k < 2; k++) {
        snprintf(name, sizeof name, "%s_fn.weight", branches[k]);
        put_of(b, i, name, STREAMS * WIDTH, (2 + STREAMS) * STREAMS, 0);
        snprintf(name, sizeof name, "%s_scale.weight", branches[k]);
        put_of(b, i, name, 3, 0, 0);
        snprintf(name, sizeof name, "%s_base.weight", branches[k]);
        put_of(b, i, name, (2 + STREAMS) * STREAMS, 0, 0);
    }
}

static void put_latent(struct build *b, unsigned i)
{
    put_of(b, i, "attn_q_a.weight", WIDTH, RANK, 0);
    put_of(b, i, "attn_q_a_norm.weight", RANK, 0, 0);
    put_of(b, i, "attn_q_b.weight", RANK, HEADS * KEY, 0);
    put_of(b, i, "attn_kv_a_mqa.weight", WIDTH, RANK + rotated(b), 0);
    put_of(b, i, "attn_kv_a_norm.weight", RANK, 0, 0);
    put_of(b, i, "attn_k_b.weight", KEY - rotated(b), RANK, HEADS);
    put_of(b, i, "attn_v_b.weight", RANK, VALUE, HEADS);
    put_of(b, i, "attn_output.weight", HEADS * VALUE, WIDTH, 0);
    if (is(b, "deepseek2") || (is(b, "glm-dsa") && i == 1))
        return;
    put_of(b, i, "indexer.attn_q_b.weight", RANK, INDEX_HEADS * INDEX_KEY, 0);
    put_of(b, i, "indexer.attn_k.weight", WIDTH, INDEX_KEY, 0);
    put_of(b, i, "indexer.k_norm.weight", INDEX_KEY, 0, 0);
    put_of(b, i, "indexer.k_norm.bias", INDEX_KEY, 0, 0);
    put_of(b, i, "indexer.proj.weight", WIDTH, INDEX_HEADS, 0);
    if (!is(b, "glm5-next"))
        return;
    put_of(b, i, "indexer_compressor_gate.weight", WIDTH, INDEX_KEY, 0);
    put_of(b, i, "indexer_compressor_ape.weight", INDEX_KEY, SPARSE_MODEL_POOL, 0);
    put_streams(b, i);
}

/** Two key heads, each with two heads. */
static void put_attention(struct build *b, unsigned i)
{
    put_of(b, i, "attn_q.weight", WIDTH, 2 * HEADS * KEY, 0);
    put_of(b, i, "attn_k.weight", WIDTH, HEADS * KEY, 0);
    put_of(b, i, "attn_v.weight", WIDTH, HEADS * KEY, 0);
    put_of(b, i, "attn_q_norm.weight", KEY, 0, 0);
    put_of(b, i, "attn_k_norm.weight", KEY, 0, 0);
    put_of(b, i, "attn_output.weight", 2 * HEADS * KEY, WIDTH, 0);
    put_of(b, i, "indexer.q_proj.weight", WIDTH, HEADS * INDEX_KEY, 0);
    put_of(b, i, "indexer.k_proj.weight", WIDTH, INDEX_KEY, 0);
    put_of(b, i, "indexer.q_norm.weight", INDEX_KEY, 0, 0);
    put_of(b, i, "indexer.k_norm.weight", INDEX_KEY, 0, 0);
}

static void put_layer(struct build *b, unsigned i)
{
    put_of(b, i, "attn_norm.weight", WIDTH, 0, 0);
    put_of(b, i, "ffn_norm.weight", WIDTH, 0, 0);
    if (!is(b, "minimax-m3")) {
        put_latent(b, i);
        put_of(b, i, "ffn_gate.weight", WIDTH, FF, 0);
        put_of(b, i, "ffn_up.weight", WIDTH, FF, 0);
        put_of(b, i, "ffn_down.weight", FF, WIDTH, 0);
        return;
    }
    put_attention(b, i);
    put_of(b, i, "ffn_gate_inp.weight", WIDTH, EXPERTS, 0);
    put_of(b, i, "exp_probs_b.bias", EXPERTS, 0, 0);
    put_of(b, i, "ffn_gate_exps.weight", WIDTH, FF, EXPERTS);
    put_of(b, i, "ffn_up_exps.weight", WIDTH, FF, EXPERTS);
    put_of(b, i, "ffn_down_exps.weight", FF, WIDTH, EXPERTS);
}

static void put_keys(struct build *b)
{
    bool blocks = is(b, "minimax-m3"), pools = is(b, "glm5-next");
    const struct {
        const char *suffix;
        uint32_t value;
        bool wanted;
    } keys[] = {
        {"context_length", 256, true},
        {"embedding_length", WIDTH, true},
        {"block_count", SPARSE_MODEL_LAYERS, true},
        {"feed_forward_length", FF, true},
        {"rope.dimension_count", rotated(b), true},
        {"attention.head_count", blocks ? 2 * HEADS : HEADS, true},
        {"attention.head_count_kv", blocks ? HEADS : 1, true},
        {"attention.key_length", KEY, true},
        {"attention.key_length_mla", KEY, !blocks},
        {"attention.value_length_mla", VALUE, !blocks},
        {"attention.q_lora_rank", RANK, !blocks},
        {"attention.kv_lora_rank", RANK, !blocks},
        {"attention.indexer.head_count", blocks ? HEADS : INDEX_HEADS, !is(b, "deepseek2")},
        {"attention.indexer.key_length", INDEX_KEY, !is(b, "deepseek2")},
        {"attention.indexer.top_k", b->o->n_best, !is(b, "deepseek2")},
        {"attention.indexer.block_size", SPARSE_MODEL_BLOCK, blocks},
        {"attention.indexer.local_blocks", 1, blocks},
        {"attention.indexer.kpool", SPARSE_MODEL_POOL, pools},
        {"hyper_connection.count", STREAMS, pools},
        {"hyper_connection.sinkhorn_iterations", 3, pools},
        {"kda.head_dim", KEY, pools},
        {"ssm.conv_kernel", 4, pools},
        {"expert_count", EXPERTS, blocks},
        {"expert_used_count", 2, blocks},
        {"expert_gating_func", 2, blocks},
    };
    static const int32_t types[SPARSE_MODEL_LAYERS] = {1, 0, 1};
    char key[96];
    gguf_writer_string(b->writer, "general.architecture", b->o->arch);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        snprintf(key, sizeof key, "%s.%s", b->o->arch, keys[i].suffix);
        if (keys[i].wanted)
            gguf_writer_u32(b->writer, key, keys[i].value);
    }
    snprintf(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", b->o->arch);
    gguf_writer_f32(b->writer, key, 1e-5f);
    if (blocks) {
        gguf_writer_bool(b->writer, "minimax-m3.expert_weights_norm", false);
        gguf_writer_f32(b->writer, "minimax-m3.expert_weights_scale", 1);
    }
    if (pools) {
        gguf_writer_f32(b->writer, "glm5-next.hyper_connection.epsilon", 1e-6f);
        gguf_writer_f32(b->writer, "glm5-next.swiglu_clamp_exp", 10);
        gguf_writer_f32(b->writer, "glm5-next.swiglu_clamp_shexp", 10);
    }
    if (is(b, "glm-dsa"))
        gguf_writer_i32s(b->writer, "glm-dsa.attention.indexer.types", types, SPARSE_MODEL_LAYERS);
}

struct tiny_model sparse_model_make(const struct sparse_model_options *options)
{
    struct build b = {.o = options};
    struct tiny_model model = {NULL, 0};
    struct status_why why = {0};
    if (gguf_writer_new(&b.writer, &why) == STATUS_OK) {
        put_keys(&b);
        tiny_model_put_vocabulary(b.writer, VOCABULARY);
        put(&b, "token_embd.weight", WIDTH, VOCABULARY, 0);
        put(&b, "output_norm.weight", WIDTH, 0, 0);
        put(&b, "output.weight", WIDTH, VOCABULARY, 0);
        for (unsigned i = 0; i < SPARSE_MODEL_LAYERS; i++)
            put_layer(&b, i);
        gguf_writer_finish_memory(b.writer, &model.data, &model.n_bytes, &why);
    }
    if (!model.data) {
        fprintf(stderr, "sparse_model: %s\n", why.text);
        abort();
    }
    for (size_t i = 0; i < b.n_tensors; i++)
        free(b.bytes[i]);
    return model;
}

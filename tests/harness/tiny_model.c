#include "tests/harness/tiny_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/random_blocks.h"

enum {
    MAX_TENSORS = 4096,
    NAME_BYTES = 64,
    POOL_ELEMS = 1 << 12,
    N_BYTE_TOKENS = 256,
    N_SPECIAL = 3
};

/** A file being put together. */
struct build {
    struct tiny_model_options o;
    struct gguf_writer *writer;
    struct random_blocks weights, embeddings; /* of o.type */
    struct random_blocks floats;              /* F32 */
    void *bytes[MAX_TENSORS];                 /* live until the file is written */
    size_t n_tensors;
};

static void *must(void *memory)
{
    if (!memory) {
        fprintf(stderr, "tiny_model: no memory\n");
        abort();
    }
    return memory;
}

static bool is_skipped(const struct build *b, const char *name)
{
    return b->o.skip && strcmp(b->o.skip, name) == 0;
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name);
    return n >= strlen(end) && strcmp(name + n - strlen(end), end) == 0;
}

/** Each tensor has a stream of its own, so that leaving one out does not change the others. */
static struct rng stream_of(const struct build *b, const char *name)
{
    uint64_t hash = 1469598103934665603u; /* FNV-1a */
    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    return rng_open(b->o.seed, hash);
}

/** Norms, scales, factors and biases. */
static void fill_vector(struct rng *r, const char *name, float *values, size_t n)
{
    bool is_bias = ends_with(name, ".bias");
    for (size_t i = 0; i < n; i++)
        values[i] = is_bias ? 0.1f * rng_normal(r) : rng_float(r, 0.5f, 1.5f);
}

static void add_tensor(struct build *b, const char *name, enum gguf_type type, uint64_t n_cols,
                       uint64_t n_rows, uint64_t n_matrices)
{
    if (is_skipped(b, name))
        return;
    uint64_t ne[4] = {n_cols, n_rows ? n_rows : 1, n_matrices ? n_matrices : 1, 1};
    if (b->o.reshape && strcmp(b->o.reshape, name) == 0)
        ne[n_rows ? 1 : 0]++;
    size_t n_all_rows = (size_t)(ne[1] * ne[2]);
    size_t n_bytes = n_all_rows * random_blocks_row_bytes(type, (size_t)ne[0]);
    uint8_t *bytes = b->bytes[b->n_tensors++] =
        must(calloc(n_bytes + gguf_type_info(type)->tail_bytes, 1));
    struct rng r = stream_of(b, name);
    if (n_rows == 0) {
        fill_vector(&r, name, (float *)(void *)bytes, (size_t)ne[0]);
    } else {
        bool is_embedding = strcmp(name, "token_embd.weight") == 0;
        struct random_blocks *pool = is_embedding        ? &b->embeddings
                                     : type == b->o.type ? &b->weights
                                                         : &b->floats;
        pool->rng = r;
        random_blocks_draw(pool, bytes, n_all_rows, (size_t)ne[0]);
        if (type == GGUF_TYPE_I2_S)
            memcpy(bytes + n_bytes, pool->scale, sizeof pool->scale);
    }
    gguf_writer_tensor(b->writer, name, type, ne, n_matrices ? 3 : n_rows ? 2 : 1, bytes);
}

static void add_vector(struct build *b, const char *name, uint64_t n)
{
    add_tensor(b, name, GGUF_TYPE_F32, n, 0, 0);
}

/** blk.<layer>.<base>.weight and its companions. */
static void add_projection(struct build *b, uint32_t layer, const char *base, uint64_t n_cols,
                           uint64_t n_rows, uint64_t n_matrices)
{
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "blk.%u.%s.weight", layer, base);
    add_tensor(b, name, b->o.type, n_cols, n_rows, n_matrices);
    if (b->o.biases && n_matrices == 0) {
        snprintf(name, sizeof name, "blk.%u.%s.bias", layer, base);
        add_vector(b, name, n_rows);
    }
    if (b->o.scales) {
        snprintf(name, sizeof name, "blk.%u.%s.%sscale", layer, base, layer % 2 ? "weight." : "");
        add_vector(b, name, n_matrices ? n_matrices : 1);
        snprintf(name, sizeof name, "blk.%u.%s.input_scale", layer, base);
        add_vector(b, name, n_matrices ? n_matrices : 1);
    }
}

static bool is_varied(const struct build *b, uint32_t layer)
{
    return b->o.vary_layers && layer % 2 == 1;
}

static uint32_t heads_of(const struct build *b, uint32_t layer)
{
    return is_varied(b, layer) ? b->o.n_heads / 2 : b->o.n_heads;
}

static uint32_t kv_heads_of(const struct build *b, uint32_t layer)
{
    return is_varied(b, layer) ? b->o.n_kv_heads / 2 : b->o.n_kv_heads;
}

static uint32_t ff_of(const struct build *b, uint32_t layer)
{
    return is_varied(b, layer) ? b->o.n_ff / 2 * 3 : b->o.n_ff;
}

/** One matrix of the feed-forward, or those of all experts. */
static void add_ffn(struct build *b, uint32_t layer, const char *base, uint64_t n_cols,
                    uint64_t n_rows)
{
    char expert[NAME_BYTES / 2]; /* add_projection puts more around it */
    uint32_t n_experts = b->o.n_experts;
    if (n_experts == 0) {
        add_projection(b, layer, base, n_cols, n_rows, 0);
    } else if (!b->o.split_experts) {
        snprintf(expert, sizeof expert, "%s_exps", base);
        add_projection(b, layer, expert, n_cols, n_rows, n_experts);
    }
    for (uint32_t e = 0; b->o.split_experts && e < n_experts; e++) {
        snprintf(expert, sizeof expert, "%s.%u", base, e);
        add_projection(b, layer, expert, n_cols, n_rows, 0);
    }
}

static void add_layer(struct build *b, uint32_t i)
{
    const struct tiny_model_options *o = &b->o;
    uint64_t d = o->head_size ? o->head_size : o->n_embd / o->n_heads;
    uint64_t q_rows = d * heads_of(b, i);
    uint64_t kv_rows = d * kv_heads_of(b, i);
    uint64_t n_ff = ff_of(b, i);
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "blk.%u.attn_norm.weight", i);
    add_vector(b, name, o->n_embd);
    if (o->fused_qkv) {
        add_projection(b, i, "attn_qkv", o->n_embd, q_rows + 2 * kv_rows, 0);
    } else {
        add_projection(b, i, "attn_q", o->n_embd, q_rows, 0);
        add_projection(b, i, "attn_k", o->n_embd, kv_rows, 0);
        add_projection(b, i, "attn_v", o->n_embd, kv_rows, 0);
    }
    add_projection(b, i, "attn_output", q_rows, o->n_embd, 0);
    snprintf(name, sizeof name, "blk.%u.ffn_norm.weight", i);
    add_vector(b, name, o->n_embd);
    if (o->n_experts) {
        snprintf(name, sizeof name, "blk.%u.ffn_gate_inp.weight", i);
        add_tensor(b, name, GGUF_TYPE_F32, o->n_embd, o->n_experts, 0);
    }
    add_ffn(b, i, "ffn_gate", o->n_embd, n_ff);
    add_ffn(b, i, "ffn_up", o->n_embd, n_ff);
    add_ffn(b, i, "ffn_down", n_ff, o->n_embd);
}

static void put_u32(struct build *b, const char *key, uint32_t value)
{
    if (!is_skipped(b, key))
        gguf_writer_u32(b->writer, key, value);
}

static void put_f32(struct build *b, const char *key, float value)
{
    if (!is_skipped(b, key))
        gguf_writer_f32(b->writer, key, value);
}

/** One number, or one per layer. */
static void put_per_layer(struct build *b, const char *key,
                          uint32_t (*of)(const struct build *b, uint32_t layer))
{
    if (!b->o.vary_layers) {
        put_u32(b, key, of(b, 0));
        return;
    }
    int32_t *values = must(calloc(b->o.n_layers, sizeof *values));
    for (uint32_t i = 0; i < b->o.n_layers; i++)
        values[i] = (int32_t)of(b, i);
    gguf_writer_i32s(b->writer, key, values, b->o.n_layers);
    free(values);
}

static void put_rope(struct build *b)
{
    const struct tiny_model_options *o = &b->o;
    if (o->n_rot)
        put_u32(b, "llama.rope.dimension_count", o->n_rot);
    if (o->rope_freq_base != 0)
        put_f32(b, "llama.rope.freq_base", o->rope_freq_base);
    if (o->rope_scaling)
        gguf_writer_string(b->writer, "llama.rope.scaling.type", o->rope_scaling);
    if (o->rope_factor != 0 || o->rope_scaling)
        put_f32(b, "llama.rope.scaling.factor", o->rope_factor != 0 ? o->rope_factor : 4);
    if (o->rope_original_ctx)
        put_u32(b, "llama.rope.scaling.original_context_length", o->rope_original_ctx);
    if (o->rope_attn_factor != 0)
        put_f32(b, "llama.rope.scaling.attn_factor", o->rope_attn_factor);
}

static void put_keys(struct build *b)
{
    const struct tiny_model_options *o = &b->o;
    if (!is_skipped(b, "general.architecture"))
        gguf_writer_string(b->writer, "general.architecture", "llama");
    gguf_writer_string(b->writer, "general.name", "random");
    put_u32(b, "llama.context_length", 256);
    put_u32(b, "llama.embedding_length", o->n_embd);
    put_u32(b, "llama.block_count", o->n_layers);
    put_per_layer(b, "llama.feed_forward_length", ff_of);
    put_per_layer(b, "llama.attention.head_count", heads_of);
    put_per_layer(b, "llama.attention.head_count_kv", kv_heads_of);
    if (o->head_size) {
        put_u32(b, "llama.attention.key_length", o->head_size);
        put_u32(b, "llama.attention.value_length", o->head_size);
    }
    put_f32(b, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    if (o->n_experts) {
        put_u32(b, "llama.expert_count", o->n_experts);
        put_u32(b, "llama.expert_used_count", o->n_experts_used);
    }
    if (o->sliding_window)
        put_u32(b, "llama.attention.sliding_window", o->sliding_window);
    put_rope(b);
    if (o->add_key)
        gguf_writer_u32(b->writer, o->add_key, 1);
}

/** <unk>, <s>, </s>, the bytes, and words of letters. */
void tiny_model_put_vocabulary(struct gguf_writer *writer, size_t n)
{
    char(*texts)[32] = must(calloc(n, sizeof *texts));
    struct base_string *tokens = must(calloc(n, sizeof *tokens));
    float *scores = must(calloc(n, sizeof *scores));
    int32_t *types = must(calloc(n, sizeof *types));
    static const char *const special[N_SPECIAL] = {"<unk>", "<s>", "</s>"};
    for (size_t i = 0; i < n; i++) {
        if (i < N_SPECIAL)
            snprintf(texts[i], sizeof texts[i], "%s", special[i]);
        else if (i < N_SPECIAL + N_BYTE_TOKENS)
            snprintf(texts[i], sizeof texts[i], "<0x%02X>", (unsigned)(i - N_SPECIAL));
        else
            snprintf(texts[i], sizeof texts[i], "w%zu", i);
        types[i] = i == 0 ? 2 : i < N_SPECIAL ? 3 : i < N_SPECIAL + N_BYTE_TOKENS ? 6 : 1;
        scores[i] = -(float)i;
        tokens[i] = (struct base_string){texts[i], strlen(texts[i])};
    }
    gguf_writer_string(writer, "tokenizer.ggml.model", "llama");
    gguf_writer_strings(writer, "tokenizer.ggml.tokens", tokens, n);
    gguf_writer_f32s(writer, "tokenizer.ggml.scores", scores, n);
    gguf_writer_i32s(writer, "tokenizer.ggml.token_type", types, n);
    gguf_writer_u32(writer, "tokenizer.ggml.unknown_token_id", 0);
    gguf_writer_u32(writer, "tokenizer.ggml.bos_token_id", 1);
    gguf_writer_u32(writer, "tokenizer.ggml.eos_token_id", 2);
    free(texts);
    free(tokens);
    free(scores);
    free(types);
}

static void put_tensors(struct build *b)
{
    const struct tiny_model_options *o = &b->o;
    add_tensor(b, "token_embd.weight", o->type, o->n_embd, o->n_vocab, 0);
    for (uint32_t i = 0; i < o->n_layers; i++)
        add_layer(b, i);
    add_vector(b, "output_norm.weight", o->n_embd);
    if (!o->tied_head)
        add_tensor(b, "output.weight", o->type, o->n_embd, o->n_vocab, 0);
    uint32_t n_rot = o->n_rot ? o->n_rot : o->head_size ? o->head_size : o->n_embd / o->n_heads;
    if (o->rope_factors)
        add_vector(b, "rope_freqs.weight", n_rot / 2);
    if (o->long_factors) {
        add_vector(b, "rope_factors_long.weight", n_rot / 2);
        add_vector(b, "rope_factors_short.weight", n_rot / 2);
    }
    if (o->add_tensor)
        add_vector(b, o->add_tensor, 1);
}

/** Enough different blocks that a matrix drawn from them has about full rank. */
static void open_pool(struct random_blocks *pool, enum gguf_type type, float rms)
{
    size_t n_elems = 256 * gguf_type_info(type)->block_elems;
    if (!random_blocks_open(pool, type, (double)rms, n_elems < 2048 ? 2048 : n_elems))
        must(NULL);
}

static void set_default(uint32_t *value, uint32_t standard)
{
    if (*value == 0)
        *value = standard;
}

struct tiny_model tiny_model_make(const struct tiny_model_options *options)
{
    struct build *b = must(calloc(1, sizeof *b));
    b->o = *options;
    set_default(&b->o.n_layers, 2);
    set_default(&b->o.n_embd, 64);
    set_default(&b->o.n_ff, 96);
    set_default(&b->o.n_vocab, 288);
    set_default(&b->o.n_heads, 4);
    set_default(&b->o.n_kv_heads, 2);
    struct tiny_model model = {0};
    struct status_why why = {0};
    /*
     * Products keep about the size of their input, and the embedding is large beside what the
     * layers add to it, as in real models: so errors of one layer are not blown up by the next.
     */
    float rms = 1 / sqrtf((float)b->o.n_embd);
    open_pool(&b->weights, b->o.type, rms);
    open_pool(&b->embeddings, b->o.type, 0.5f);
    if (b->o.n_experts)
        open_pool(&b->floats, GGUF_TYPE_F32, rms); /* the routers */
    if (gguf_writer_new(&b->writer, &why) == STATUS_OK) {
        put_keys(b);
        tiny_model_put_vocabulary(b->writer, b->o.n_vocab);
        put_tensors(b);
        gguf_writer_finish_memory(b->writer, &model.data, &model.n_bytes, &why);
    }
    if (!model.data) {
        fprintf(stderr, "tiny_model: %s\n", why.text);
        abort();
    }
    for (size_t i = 0; i < b->n_tensors; i++)
        free(b->bytes[i]);
    random_blocks_close(&b->weights);
    random_blocks_close(&b->embeddings);
    random_blocks_close(&b->floats);
    free(b);
    return model;
}

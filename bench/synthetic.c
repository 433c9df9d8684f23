#include "bench/synthetic.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tests/harness/gguf_writer.h"
#include "tests/harness/random_blocks.h"
#include "tests/harness/types.h"

enum {
    POOL_ELEMS = 1 << 16, /* different weights, drawn again and again */
    MIN_VOCAB = 512,
    MAX_VOCAB = 1 << 20,
    MAX_LAYERS = 1024,
    MAX_EXPERTS = 1024,
    N_USED = 8,
    NAME_BYTES = 64
};

struct shape {
    const char *name;
    uint32_t n_layers, n_embd, n_ff, n_heads, n_kv_heads, n_vocab, n_experts;
};

static const struct shape shapes[] = {
    {"tiny", 4, 256, 768, 8, 4, 2048, 128},
    {"1b", 22, 2048, 5632, 32, 4, 32000, 128},
    {"8b", 32, 4096, 14336, 32, 8, 128256, 128},
};

/** A type for most matrices, and one for those that are thought to need more bits. */
struct mix {
    const char *name;
    enum gguf_type most, more;
};

static const struct mix mixes[] = {
    {"Q4_K_M", GGUF_TYPE_Q4_K, GGUF_TYPE_Q6_K},
    {"Q5_K_M", GGUF_TYPE_Q5_K, GGUF_TYPE_Q6_K},
};

/** Where the rows of one matrix width and type come from. */
struct source {
    struct random_blocks pool;
    size_t n_cols;
};

/* Matrices have the columns of n_embd, n_ff or an expert, and one of three types. */
enum { MAX_SOURCES = 8 };

/** What an architecture has beside LLaMA's tensors. */
struct arch {
    const char *name;
    bool norms_of_heads, norms_behind, experts;
};

static const struct arch archs[] = {
    {"llama", false, false, false},
    {"qwen3", true, false, false},
    {"gemma3", true, true, false},
    {"qwen3moe", true, false, true},
};

struct maker {
    struct gguf_writer *writer;
    struct arch arch;
    struct shape shape;
    struct mix mix;
    struct source sources[MAX_SOURCES];
    size_t n_sources;
    float *gains; /* n_embd: of what products take */
    float *ones;  /* n_embd: of the other norms */
};

static void fill_rows(void *user, size_t row, size_t n_rows, void *bytes)
{
    (void)row;
    struct source *source = user;
    random_blocks_draw(&source->pool, bytes, n_rows, source->n_cols);
}

/** The source for matrices of n_cols columns, made on first use; NULL if memory is short. */
static struct source *source_of(struct maker *m, enum gguf_type type, size_t n_cols)
{
    for (size_t i = 0; i < m->n_sources; i++)
        if (m->sources[i].n_cols == n_cols && m->sources[i].pool.type->type == type)
            return &m->sources[i];
    struct source *source = &m->sources[m->n_sources];
    /* Outputs of about the size of the inputs. */
    if (!random_blocks_open(&source->pool, type, 1 / sqrt((double)n_cols), POOL_ELEMS))
        return NULL;
    source->n_cols = n_cols;
    m->n_sources++;
    return source;
}

struct matrix {
    const char *name;
    size_t n_cols, n_rows;
    bool more_bits;
    size_t n_matrices; /* 0: one */
};

static bool add_matrix(struct maker *m, const struct matrix *matrix)
{
    enum gguf_type type = matrix->more_bits ? m->mix.more : m->mix.most;
    if (strstr(matrix->name, "ffn_gate_inp"))
        type = GGUF_TYPE_F32;
    struct source *source = source_of(m, type, matrix->n_cols);
    uint64_t ne[] = {matrix->n_cols, matrix->n_rows, matrix->n_matrices};
    if (source)
        gguf_writer_tensor_fill(m->writer, matrix->name, type, ne, matrix->n_matrices ? 3 : 2,
                                fill_rows, source);
    return source != NULL;
}

/** An expert is an eighth as wide as a dense feed-forward, in whole blocks of any type. */
static size_t expert_width(const struct shape *s)
{
    size_t width = s->n_ff / N_USED / 256 * 256;
    return width ? width : 256;
}

static void add_norm(struct maker *m, const char *name, uint32_t n, const float *gains)
{
    gguf_writer_tensor(m->writer, name, GGUF_TYPE_F32, (uint64_t[]){n}, 1, gains);
}

static void add_norms(struct maker *m, uint32_t layer)
{
    const struct shape *s = &m->shape;
    const struct {
        const char *name;
        uint32_t n; /* 0: it has none */
        const float *gains;
    } norms[] = {
        {"attn_norm", s->n_embd, m->gains},
        {"ffn_norm", s->n_embd, m->gains},
        {"attn_q_norm", m->arch.norms_of_heads ? s->n_embd / s->n_heads : 0, m->ones},
        {"attn_k_norm", m->arch.norms_of_heads ? s->n_embd / s->n_heads : 0, m->ones},
        {"post_attention_norm", m->arch.norms_behind ? s->n_embd : 0, m->ones},
        {"post_ffw_norm", m->arch.norms_behind ? s->n_embd : 0, m->ones},
    };
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "blk.%u.%s.weight", layer, norms[i].name);
        if (norms[i].n)
            add_norm(m, name, norms[i].n, norms[i].gains);
    }
}

/** llama.cpp's choice for the mixes: the first and last eighth of the layers, of others a third. */
static bool layer_needs_more(const struct maker *m, uint32_t layer)
{
    uint32_t eighth = m->shape.n_layers / 8;
    return layer < eighth || layer >= 7 * m->shape.n_layers / 8 || (layer - eighth) % 3 == 2;
}

static bool add_matrices(struct maker *m, uint32_t layer, const struct matrix *matrices, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "blk.%u.%s.weight", layer, matrices[i].name);
        struct matrix matrix = matrices[i];
        matrix.name = name;
        if (!add_matrix(m, &matrix))
            return false;
    }
    return true;
}

static bool add_layer(struct maker *m, uint32_t layer)
{
    const struct shape *s = &m->shape;
    size_t n_kv = (size_t)s->n_embd / s->n_heads * s->n_kv_heads;
    bool more = layer_needs_more(m, layer);
    size_t n_ff = expert_width(s), n = s->n_experts;
    const struct matrix attention[] = {{"attn_q", s->n_embd, s->n_embd, false, 0},
                                       {"attn_k", s->n_embd, n_kv, false, 0},
                                       {"attn_v", s->n_embd, n_kv, more, 0},
                                       {"attn_output", s->n_embd, s->n_embd, false, 0}};
    const struct matrix dense[] = {{"ffn_gate", s->n_embd, s->n_ff, false, 0},
                                   {"ffn_up", s->n_embd, s->n_ff, false, 0},
                                   {"ffn_down", s->n_ff, s->n_embd, more, 0}};
    const struct matrix experts[] = {{"ffn_gate_inp", s->n_embd, n, false, 0},
                                     {"ffn_gate_exps", s->n_embd, n_ff, false, n},
                                     {"ffn_up_exps", s->n_embd, n_ff, false, n},
                                     {"ffn_down_exps", n_ff, s->n_embd, more, n}};
    bool ok =
        add_matrices(m, layer, attention, 4) &&
        (m->arch.experts ? add_matrices(m, layer, experts, 4) : add_matrices(m, layer, dense, 3));
    add_norms(m, layer);
    return ok;
}
static void add_u32(struct maker *m, const char *suffix, uint32_t value)
{
    char key[NAME_BYTES];
    snprintf(key, sizeof key, "%s.%s", m->arch.name, suffix);
    gguf_writer_u32(m->writer, key, value);
}

static void add_hparams(struct maker *m)
{
    const struct shape *s = &m->shape;
    char eps[NAME_BYTES];
    snprintf(eps, sizeof eps, "%s.attention.layer_norm_rms_epsilon", m->arch.name);
    gguf_writer_string(m->writer, "general.architecture", m->arch.name);
    gguf_writer_string(m->writer, "general.name", "synthetic");
    add_u32(m, "context_length", 131072);
    add_u32(m, "embedding_length", s->n_embd);
    add_u32(m, "block_count", s->n_layers);
    add_u32(m, "feed_forward_length", s->n_ff);
    add_u32(m, "attention.head_count", s->n_heads);
    add_u32(m, "attention.head_count_kv", s->n_kv_heads);
    gguf_writer_f32(m->writer, eps, 1e-5f);
    add_u32(m, "rope.dimension_count", s->n_embd / s->n_heads);
    add_u32(m, "vocab_size", s->n_vocab);
    if (m->arch.experts) {
        add_u32(m, "expert_count", s->n_experts);
        add_u32(m, "expert_used_count", N_USED);
        add_u32(m, "expert_feed_forward_length", (uint32_t)expert_width(s));
    }
}

/** A SentencePiece vocabulary: three special tokens, the bytes, then numbered words. */
static bool add_vocabulary(struct maker *m)
{
    enum { WORD = 16, N_SPECIAL = 3, N_BYTES = 256 };
    uint32_t n = m->shape.n_vocab;
    char(*words)[WORD] = malloc((size_t)n * WORD);
    struct base_string *tokens = malloc(n * sizeof *tokens);
    float *scores = malloc(n * sizeof *scores);
    int32_t *types = malloc(n * sizeof *types);
    bool ok = words && tokens && scores && types;
    static const char *const special[N_SPECIAL] = {"<unk>", "<s>", "</s>"};
    for (uint32_t i = 0; ok && i < n; i++) {
        if (i < N_SPECIAL)
            snprintf(words[i], WORD, "%s", special[i]);
        else if (i < N_SPECIAL + N_BYTES)
            snprintf(words[i], WORD, "<0x%02X>", i - N_SPECIAL);
        else if (i < N_SPECIAL + N_BYTES + 26)
            snprintf(words[i], WORD, "%c", 'a' + (int)(i - N_SPECIAL - N_BYTES));
        else
            snprintf(words[i], WORD, "#%u", i);
        tokens[i] = (struct base_string){words[i], 0};
        while (words[i][tokens[i].n_bytes])
            tokens[i].n_bytes++;
        scores[i] = -(float)i;
        types[i] = i == 0 ? 2 : i < N_SPECIAL ? 3 : i < N_SPECIAL + N_BYTES ? 6 : 1;
    }
    if (ok) {
        gguf_writer_string(m->writer, "tokenizer.ggml.model", "llama");
        gguf_writer_strings(m->writer, "tokenizer.ggml.tokens", tokens, n);
        gguf_writer_f32s(m->writer, "tokenizer.ggml.scores", scores, n);
        gguf_writer_i32s(m->writer, "tokenizer.ggml.token_type", types, n);
        gguf_writer_u32(m->writer, "tokenizer.ggml.bos_token_id", 1);
        gguf_writer_u32(m->writer, "tokenizer.ggml.eos_token_id", 2);
        gguf_writer_u32(m->writer, "tokenizer.ggml.unknown_token_id", 0);
    }
    free(words);
    free(tokens);
    free(scores);
    free(types);
    return ok;
}

static bool add_all(struct maker *m, bool outliers)
{
    const struct shape *s = &m->shape;
    m->gains = malloc(s->n_embd * sizeof *m->gains);
    m->ones = malloc(s->n_embd * sizeof *m->ones);
    if (!m->gains || !m->ones)
        return false;
    for (uint32_t i = 0; i < s->n_embd; i++) {
        m->ones[i] = 1;
        m->gains[i] = outliers && i % 32 == i / 32 % 32 ? 16 : 1;
    }
    add_hparams(m);
    const struct matrix embedding = {"token_embd.weight", s->n_embd, s->n_vocab, false, 0};
    const struct matrix head = {"output.weight", s->n_embd, s->n_vocab, true, 0};
    bool ok = add_vocabulary(m) && add_matrix(m, &embedding) && add_matrix(m, &head);
    add_norm(m, "output_norm.weight", s->n_embd, m->ones);
    for (uint32_t layer = 0; ok && layer < s->n_layers; layer++)
        ok = add_layer(m, layer);
    return ok;
}

static enum status find_shape(struct shape *out, const struct synthetic *model,
                              struct status_why *why)
{
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        if (strcasecmp(shapes[i].name, model->shape) != 0)
            continue;
        *out = shapes[i];
        if (model->n_vocab)
            out->n_vocab = model->n_vocab;
        if (model->n_layers)
            out->n_layers = model->n_layers;
        if (model->n_experts)
            out->n_experts = model->n_experts;
        if (out->n_experts < N_USED || out->n_experts > MAX_EXPERTS)
            return status_fail(why, STATUS_USAGE, "%u experts; expected %d to %d", out->n_experts,
                               N_USED, MAX_EXPERTS);
        if (out->n_vocab < MIN_VOCAB || out->n_vocab > MAX_VOCAB || out->n_layers > MAX_LAYERS)
            return status_fail(why, STATUS_USAGE,
                               "%u tokens and %u layers; expected %d to %d and at most %d",
                               out->n_vocab, out->n_layers, MIN_VOCAB, MAX_VOCAB, MAX_LAYERS);
        return STATUS_OK;
    }
    return status_fail(why, STATUS_USAGE, "there is no shape \"%s\"; expected tiny, 1b or 8b",
                       model->shape);
}

static enum status find_arch(struct arch *out, const char *name, struct status_why *why)
{
    *out = archs[0];
    for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++)
        if (name && strcmp(archs[i].name, name) == 0)
            *out = archs[i];
    if (!name || strcmp(out->name, name) == 0)
        return STATUS_OK;
    return status_fail(why, STATUS_USAGE,
                       "there is no architecture \"%s\"; expected llama, qwen3, gemma3 or "
                       "qwen3moe",
                       name);
}

static enum status find_mix(struct mix *out, const char *name, struct status_why *why)
{
    for (size_t i = 0; i < sizeof mixes / sizeof mixes[0]; i++) {
        if (strcasecmp(mixes[i].name, name) == 0) {
            *out = mixes[i];
            return STATUS_OK;
        }
    }
    const struct gguf_type_info *info;
    for (size_t i = 0; (info = type_at(i)) != NULL; i++) {
        if (info->scale_elems == 0 && strcasecmp(info->name, name) == 0) {
            *out = (struct mix){info->name, info->type, info->type};
            return STATUS_OK;
        }
    }
    return status_fail(why, STATUS_USAGE, "there is no type or mix \"%s\"", name);
}

enum status synthetic_write(const struct synthetic *model, const char *path, struct status_why *why)
{
    struct maker m = {.writer = NULL};
    enum status status = find_shape(&m.shape, model, why);
    if (status == STATUS_OK)
        status = find_arch(&m.arch, model->arch, why);
    if (status == STATUS_OK)
        status = find_mix(&m.mix, model->type, why);
    if (status == STATUS_OK)
        status = gguf_writer_new(&m.writer, why);
    if (status != STATUS_OK)
        return status;
    if (add_all(&m, model->outliers)) {
        status = gguf_writer_finish(m.writer, path, why);
    } else {
        gguf_writer_abandon(m.writer);
        status = status_fail(why, STATUS_MEMORY, "no memory for a synthetic model");
    }
    for (size_t i = 0; i < m.n_sources; i++)
        random_blocks_close(&m.sources[i].pool);
    free(m.gains);
    free(m.ones);
    return status;
}

/**
 * Write a synthetic LLaMA model of a given shape and type, for measuring speed and memory.
 * Its weights are random, so its perplexity means nothing, but all its numbers are finite.
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "gguf/write.h"
#include "tests/harness/random_blocks.h"

enum { POOL_ELEMS = 1 << 16 }; /* different weights, drawn again and again */

struct shape {
    const char *name;
    uint32_t n_layers, n_embd, n_ff, n_heads, n_kv_heads, n_vocab;
};

static const struct shape shapes[] = {
    {"tiny", 4, 256, 768, 8, 4, 2048},
    {"1b", 22, 2048, 5632, 32, 4, 32000},
    {"8b", 32, 4096, 14336, 32, 8, 128256},
};

/** Where the rows of one matrix width come from. */
struct source {
    struct random_blocks pool;
    size_t n_cols, row_bytes;
};

enum { MAX_SOURCES = 2 }; /* matrices have n_embd or n_ff columns */

struct maker {
    struct gguf_writer *writer;
    struct shape shape;
    enum gguf_type type;
    struct source sources[MAX_SOURCES];
    size_t n_sources;
    float *ones; /* n_embd: the gain of every norm */
};

static const char usage[] =
    "usage: make_model [--shape tiny|1b|8b] [--type NAME] [--vocab N] [--layers N] -o FILE\n"
    "Writes a synthetic LLaMA model with random weights (default: 1b, Q4_K).\n";

static void fill_rows(void *user, size_t row, size_t n_rows, void *bytes)
{
    (void)row;
    struct source *source = user;
    random_blocks_draw(&source->pool, bytes, n_rows * source->row_bytes);
}

/** The source for matrices of n_cols columns, made on first use; NULL if memory is short. */
static struct source *source_of(struct maker *m, size_t n_cols)
{
    for (size_t i = 0; i < m->n_sources; i++)
        if (m->sources[i].n_cols == n_cols)
            return &m->sources[i];
    const struct gguf_type_info *info = gguf_type_info(m->type);
    struct source *source = &m->sources[m->n_sources];
    /* Outputs of about the size of the inputs. */
    if (!random_blocks_open(&source->pool, m->type, 1 / sqrt((double)n_cols), POOL_ELEMS))
        return NULL;
    source->n_cols = n_cols;
    source->row_bytes = n_cols / info->block_elems * info->block_bytes;
    m->n_sources++;
    return source;
}

static bool add_matrix(struct maker *m, const char *name, size_t n_cols, size_t n_rows)
{
    struct source *source = source_of(m, n_cols);
    if (source)
        gguf_writer_tensor_fill(m->writer, name, m->type, (uint64_t[]){n_cols, n_rows}, 2,
                                fill_rows, source);
    return source != NULL;
}

static void add_norm(struct maker *m, const char *name)
{
    gguf_writer_tensor(m->writer, name, GGUF_TYPE_F32, (uint64_t[]){m->shape.n_embd}, 1, m->ones);
}

static bool add_layer(struct maker *m, uint32_t layer)
{
    const struct shape *s = &m->shape;
    size_t n_kv = (size_t)s->n_embd / s->n_heads * s->n_kv_heads;
    const struct {
        const char *name;
        size_t n_cols, n_rows;
    } matrices[] = {
        {"attn_q", s->n_embd, s->n_embd}, {"attn_k", s->n_embd, n_kv},
        {"attn_v", s->n_embd, n_kv},      {"attn_output", s->n_embd, s->n_embd},
        {"ffn_gate", s->n_embd, s->n_ff}, {"ffn_up", s->n_embd, s->n_ff},
        {"ffn_down", s->n_ff, s->n_embd},
    };
    char name[64];
    for (size_t i = 0; i < sizeof matrices / sizeof matrices[0]; i++) {
        snprintf(name, sizeof name, "blk.%u.%s.weight", layer, matrices[i].name);
        if (!add_matrix(m, name, matrices[i].n_cols, matrices[i].n_rows))
            return false;
    }
    snprintf(name, sizeof name, "blk.%u.attn_norm.weight", layer);
    add_norm(m, name);
    snprintf(name, sizeof name, "blk.%u.ffn_norm.weight", layer);
    add_norm(m, name);
    return true;
}

static void add_hparams(struct maker *m)
{
    const struct shape *s = &m->shape;
    struct gguf_writer *w = m->writer;
    gguf_writer_string(w, "general.architecture", "llama");
    gguf_writer_string(w, "general.name", "synthetic");
    gguf_writer_u32(w, "llama.context_length", 131072);
    gguf_writer_u32(w, "llama.embedding_length", s->n_embd);
    gguf_writer_u32(w, "llama.block_count", s->n_layers);
    gguf_writer_u32(w, "llama.feed_forward_length", s->n_ff);
    gguf_writer_u32(w, "llama.attention.head_count", s->n_heads);
    gguf_writer_u32(w, "llama.attention.head_count_kv", s->n_kv_heads);
    gguf_writer_f32(w, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    gguf_writer_u32(w, "llama.rope.dimension_count", s->n_embd / s->n_heads);
    gguf_writer_u32(w, "llama.vocab_size", s->n_vocab);
}

/** A SentencePiece vocabulary: three special tokens, the bytes, then numbered words. */
static bool add_vocabulary(struct maker *m)
{
    enum { WORD = 16, N_SPECIAL = 3, N_BYTES = 256 };
    uint32_t n = m->shape.n_vocab;
    char(*words)[WORD] = malloc((size_t)n * WORD);
    struct gguf_string *tokens = malloc(n * sizeof *tokens);
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
        tokens[i] = (struct gguf_string){words[i], 0};
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

static bool add_all(struct maker *m)
{
    m->ones = malloc(m->shape.n_embd * sizeof *m->ones);
    if (!m->ones)
        return false;
    for (uint32_t i = 0; i < m->shape.n_embd; i++)
        m->ones[i] = 1;
    add_hparams(m);
    bool ok = add_vocabulary(m) &&
              add_matrix(m, "token_embd.weight", m->shape.n_embd, m->shape.n_vocab) &&
              add_matrix(m, "output.weight", m->shape.n_embd, m->shape.n_vocab);
    add_norm(m, "output_norm.weight");
    for (uint32_t layer = 0; ok && layer < m->shape.n_layers; layer++)
        ok = add_layer(m, layer);
    return ok;
}

static int make(struct maker *m, const char *path)
{
    struct status_why why = {""};
    if (gguf_writer_new(&m->writer, &why) == STATUS_OK) {
        if (!add_all(m)) {
            gguf_writer_abandon(m->writer);
            status_fail(&why, STATUS_MEMORY, "out of memory");
        } else {
            gguf_writer_finish(m->writer, path, &why);
        }
    }
    for (size_t i = 0; i < m->n_sources; i++)
        random_blocks_close(&m->sources[i].pool);
    free(m->ones);
    if (why.text[0])
        fprintf(stderr, "make_model: %s\n", why.text);
    return why.text[0] ? 1 : 0;
}

/** A row of `shapes`, or NULL. */
static const struct shape *shape_named(const char *name)
{
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        if (strcasecmp(shapes[i].name, name) == 0)
            return &shapes[i];
    return NULL;
}

/** The id of a type's name, or GGUF_TYPE_LIMIT. */
static enum gguf_type type_named(const char *name)
{
    const struct gguf_type_info *info;
    for (size_t i = 0; (info = gguf_type_at(i)) != NULL; i++)
        if (strcasecmp(info->name, name) == 0)
            return info->type;
    return GGUF_TYPE_LIMIT;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"shape", required_argument, NULL, 's'},
                                            {"type", required_argument, NULL, 't'},
                                            {"vocab", required_argument, NULL, 'v'},
                                            {"layers", required_argument, NULL, 'l'},
                                            {NULL, 0, NULL, 0}};
    const char *path = NULL;
    const struct shape *shape = shape_named("1b");
    enum gguf_type type = GGUF_TYPE_Q4_K;
    unsigned long n_vocab = 0, n_layers = 0;
    int option;
    while ((option = getopt_long(argc, argv, "o:", options, NULL)) != -1) {
        if (option == 'o')
            path = optarg;
        else if (option == 's')
            shape = shape_named(optarg);
        else if (option == 't')
            type = type_named(optarg);
        else if (option == 'v')
            n_vocab = strtoul(optarg, NULL, 10);
        else if (option == 'l')
            n_layers = strtoul(optarg, NULL, 10);
        else
            shape = NULL;
    }
    if (!path || !shape || type == GGUF_TYPE_LIMIT || optind != argc || n_vocab > 1u << 20 ||
        (n_vocab > 0 && n_vocab < 512) || n_layers > 1024) {
        fputs(usage, stderr);
        return 2;
    }
    struct maker m = {.shape = *shape, .type = type};
    if (n_vocab > 0)
        m.shape.n_vocab = (uint32_t)n_vocab;
    if (n_layers > 0)
        m.shape.n_layers = (uint32_t)n_layers;
    return make(&m, path);
}

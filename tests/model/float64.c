#include "tests/model/float64.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/quant/rows.h"
#include "tests/harness/rng.h"

/** Decoded rows, exact in float. */
struct matrix {
    float *values; /* NULL: absent */
    size_t n_rows, n_cols;
    double scale;
    float *bias; /* NULL: none */
};

struct layer {
    struct matrix attn_norm, ffn_norm, q, k, v, output, router;
    struct matrix *gate, *up, *down; /* [max(1, E)] */
    size_t n_heads, n_kv_heads;
};

struct float64_model {
    const struct gguf_file *file;
    size_t n_layers, width, head_size, n_rot, n_experts, n_used, window;
    double eps, magnitude;
    double *frequency; /* [n_rot / 2] */
    double unit;       /* rounding that products simulate; 0: none */
    struct rng rng;    /* of that */
    struct layer *layers;
    struct matrix embedding, output_norm, head;
};

static void stop(const char *what)
{
    fprintf(stderr, "float64: %s\n", what);
    abort();
}

static void *must(void *memory)
{
    if (!memory)
        stop("no memory");
    return memory;
}

static uint32_t key_u32(const struct gguf_file *f, const char *key, uint32_t value)
{
    if (gguf_get_u32(f, key, &value, &(bool){false}, NULL) != STATUS_OK)
        stop(key);
    return value;
}

static double key_f32(const struct gguf_file *f, const char *key, float value)
{
    if (gguf_get_f32(f, key, &value, &(bool){false}, NULL) != STATUS_OK)
        stop(key);
    return (double)value;
}

/** One number for all layers, or one each. */
static size_t key_at(const struct gguf_file *f, const char *key, size_t layer, size_t standard)
{
    const struct gguf_kv *kv = gguf_kv_find(f, key);
    if (!kv)
        return standard;
    return (size_t)gguf_kv_int(kv, kv->type == GGUF_VALUE_ARRAY ? layer : 0);
}

/** Matrix i of a tensor, decoded; values NULL where there is no such tensor. */
static struct matrix load(const struct gguf_file *f, const char *name, size_t i)
{
    struct matrix m = {.scale = 1};
    const struct gguf_tensor *t = gguf_tensor_find(f, name);
    if (!t)
        return m;
    const struct kern_quant *quant = kern_quant_find(t->type->type);
    m.n_cols = (size_t)t->ne[0];
    m.n_rows = (size_t)t->ne[1];
    m.values = must(malloc(m.n_rows * m.n_cols * sizeof *m.values));
    struct kern_rows rows = {.type = t->type->type, .data = t->data};
    rows.row_bytes = (size_t)t->row_bytes;
    rows.scales = gguf_tensor_scales(t, 0);
    for (size_t r = 0; r < m.n_rows; r++)
        kern_rows_decode(&rows, quant->decode, i * m.n_rows + r, 0, m.n_cols,
                         m.values + r * m.n_cols);
    return m;
}

/** blk.<layer>.<base>.weight with its scale and bias; matrix i of stacked ones. */
static struct matrix load_projection(const struct gguf_file *f, size_t layer, const char *base,
                                     size_t i)
{
    char name[96];
    snprintf(name, sizeof name, "blk.%zu.%s.weight", layer, base);
    struct matrix m = load(f, name, i);
    snprintf(name, sizeof name, "blk.%zu.%s.bias", layer, base);
    m.bias = load(f, name, 0).values;
    snprintf(name, sizeof name, "blk.%zu.%s.scale", layer, base);
    struct matrix scale = load(f, name, 0);
    if (!scale.values) {
        snprintf(name, sizeof name, "blk.%zu.%s.weight.scale", layer, base);
        scale = load(f, name, 0);
    }
    if (scale.values)
        m.scale = (double)scale.values[i];
    free(scale.values);
    return m;
}

static struct matrix load_norm(const struct gguf_file *f, size_t layer, const char *base)
{
    char name[96];
    snprintf(name, sizeof name, "blk.%zu.%s.weight", layer, base);
    return load(f, name, 0);
}

/** Copy rows [first, first + n) of a fused projection. */
static struct matrix take_rows(const struct matrix *from, size_t first, size_t n)
{
    struct matrix m = {.n_rows = n, .n_cols = from->n_cols, .scale = from->scale};
    size_t n_values = n * m.n_cols;
    m.values = must(malloc(n_values * sizeof *m.values));
    memcpy(m.values, from->values + first * m.n_cols, n_values * sizeof *m.values);
    if (from->bias) {
        m.bias = must(malloc(n * sizeof *m.bias));
        memcpy(m.bias, from->bias + first, n * sizeof *m.bias);
    }
    return m;
}

/** A matrix of the feed-forward: dense, one of a stack, or an expert's own tensor. */
static struct matrix load_ffn(const struct float64_model *m, size_t layer, const char *base,
                              size_t e)
{
    char name[64];
    if (m->n_experts == 0)
        return load_projection(m->file, layer, base, 0);
    snprintf(name, sizeof name, "%s_exps", base);
    struct matrix stacked = load_projection(m->file, layer, name, e);
    if (stacked.values)
        return stacked;
    snprintf(name, sizeof name, "%s.%zu", base, e);
    return load_projection(m->file, layer, name, 0);
}

static void load_layer(struct float64_model *m, size_t i)
{
    const struct gguf_file *f = m->file;
    struct layer *l = &m->layers[i];
    l->n_heads = key_at(f, "llama.attention.head_count", i, 0);
    l->n_kv_heads = key_at(f, "llama.attention.head_count_kv", i, l->n_heads);
    l->attn_norm = load_norm(f, i, "attn_norm");
    l->ffn_norm = load_norm(f, i, "ffn_norm");
    struct matrix fused = load_projection(f, i, "attn_qkv", 0);
    if (fused.values) {
        size_t q_rows = l->n_heads * m->head_size;
        size_t kv_rows = l->n_kv_heads * m->head_size;
        l->q = take_rows(&fused, 0, q_rows);
        l->k = take_rows(&fused, q_rows, kv_rows);
        l->v = take_rows(&fused, q_rows + kv_rows, kv_rows);
        free(fused.values);
        free(fused.bias);
    } else {
        l->q = load_projection(f, i, "attn_q", 0);
        l->k = load_projection(f, i, "attn_k", 0);
        l->v = load_projection(f, i, "attn_v", 0);
    }
    l->output = load_projection(f, i, "attn_output", 0);
    l->router = load_projection(f, i, "ffn_gate_inp", 0);
    size_t n = m->n_experts ? m->n_experts : 1;
    l->gate = must(calloc(n, sizeof *l->gate));
    l->up = must(calloc(n, sizeof *l->up));
    l->down = must(calloc(n, sizeof *l->down));
    for (size_t e = 0; e < n; e++) {
        l->gate[e] = load_ffn(m, i, "ffn_gate", e);
        l->up[e] = load_ffn(m, i, "ffn_up", e);
        l->down[e] = load_ffn(m, i, "ffn_down", e);
    }
}

/** Frequencies of the rotated pairs: plain, linear or YaRN. */
static void set_rope(struct float64_model *m)
{
    const struct gguf_file *f = m->file;
    struct base_string scaling = {"", 0};
    gguf_get_string(f, "llama.rope.scaling.type", &scaling, &(bool){false}, NULL);
    double base = key_f32(f, "llama.rope.freq_base", 10000);
    double factor = key_f32(f, "llama.rope.scaling.factor", 1);
    double original = key_u32(f, "llama.rope.scaling.original_context_length",
                              key_u32(f, "llama.context_length", 1));
    bool yarn = scaling.n_bytes == 4 && memcmp(scaling.data, "yarn", 4) == 0;
    struct matrix factors = load(f, "rope_freqs.weight", 0);
    m->magnitude = key_f32(f, "llama.rope.scaling.attn_factor", 1);
    if (yarn)
        m->magnitude *= 1 + 0.1 * log(factor);
    m->frequency = must(calloc(m->n_rot / 2, sizeof *m->frequency));
    double n = (double)m->n_rot;
    double two_pi = 2 * acos(-1.0);
    double low = floor(n * log(original / (32 * two_pi)) / (2 * log(base)));
    double high = ceil(n * log(original / two_pi) / (2 * log(base)));
    low = low < 0 ? 0 : low;
    high = high > n - 1 ? n - 1 : high;
    for (size_t i = 0; i < m->n_rot / 2; i++) {
        double w = pow(base, -2.0 * (double)i / n);
        if (factors.values)
            w /= (double)factors.values[i];
        double r = ((double)i - low) / (high - low > 0.001 ? high - low : 0.001);
        r = r < 0 ? 0 : r > 1 ? 1 : r;
        m->frequency[i] = yarn ? w * (1 - r + r / factor) : w / factor;
    }
    free(factors.values);
}

struct float64_model *float64_open(const struct gguf_file *file)
{
    struct float64_model *m = must(calloc(1, sizeof *m));
    m->file = file;
    m->n_layers = key_u32(file, "llama.block_count", 0);
    m->width = key_u32(file, "llama.embedding_length", 0);
    m->head_size = key_u32(file, "llama.attention.key_length", 0);
    if (m->head_size == 0)
        m->head_size = m->width / key_at(file, "llama.attention.head_count", 0, 1);
    m->n_rot = key_u32(file, "llama.rope.dimension_count", (uint32_t)m->head_size);
    m->n_experts = key_u32(file, "llama.expert_count", 0);
    m->n_used = key_u32(file, "llama.expert_used_count", 0);
    m->window = key_u32(file, "llama.attention.sliding_window", 0);
    m->eps = key_f32(file, "llama.attention.layer_norm_rms_epsilon", 0);
    set_rope(m);
    m->embedding = load(file, "token_embd.weight", 0);
    m->output_norm = load(file, "output_norm.weight", 0);
    m->head = load(file, "output.weight", 0);
    m->layers = must(calloc(m->n_layers, sizeof *m->layers));
    for (size_t i = 0; i < m->n_layers; i++)
        load_layer(m, i);
    return m;
}

static void free_matrix(struct matrix *matrix)
{
    free(matrix->values);
    free(matrix->bias);
}

void float64_close(struct float64_model *m)
{
    for (size_t i = 0; i < m->n_layers; i++) {
        struct layer *l = &m->layers[i];
        struct matrix *single[] = {&l->attn_norm, &l->ffn_norm, &l->q,     &l->k,
                                   &l->v,         &l->output,   &l->router};
        for (size_t k = 0; k < sizeof single / sizeof single[0]; k++)
            free_matrix(single[k]);
        for (size_t e = 0; e < (m->n_experts ? m->n_experts : 1); e++) {
            free_matrix(&l->gate[e]);
            free_matrix(&l->up[e]);
            free_matrix(&l->down[e]);
        }
        free(l->gate);
        free(l->up);
        free(l->down);
    }
    free_matrix(&m->embedding);
    free_matrix(&m->output_norm);
    free_matrix(&m->head);
    free(m->layers);
    free(m->frequency);
    free(m);
}

size_t float64_width(const struct float64_model *m)
{
    return m->width;
}

size_t float64_vocab(const struct float64_model *m)
{
    return m->embedding.n_rows;
}

void float64_simulate_rounding(struct float64_model *m, double unit, uint64_t seed)
{
    m->unit = unit;
    m->rng = rng_open(seed, 0);
}

/**
 * A sum as a chain of multiply-adds would have it. Simulated rounding: every partial sum is
 * rounded, with a relative error of unit / sqrt(3) rms.   squares: the sum of theirs.
 */
static double chained(struct float64_model *m, double sum, double squares)
{
    return m->unit == 0 ? sum : sum + m->unit * sqrt(squares / 3) * (double)rng_normal(&m->rng);
}

/** y = scale W x + bias. */
static void multiply(struct float64_model *m, const struct matrix *w, const double *x, double *y)
{
    for (size_t r = 0; r < w->n_rows; r++) {
        const float *row = w->values + r * w->n_cols;
        double sum = 0;
        double squares = 0;
        for (size_t c = 0; c < w->n_cols; c++) {
            sum += (double)row[c] * x[c];
            squares += sum * sum;
        }
        y[r] = chained(m, sum, squares) * w->scale + (w->bias ? (double)w->bias[r] : 0);
    }
}

static void normalise(const struct float64_model *m, const struct matrix *gain, const double *x,
                      double *y)
{
    double sum = 0;
    for (size_t i = 0; i < m->width; i++)
        sum += x[i] * x[i];
    double factor = 1 / sqrt(sum / (double)m->width + m->eps);
    for (size_t i = 0; i < m->width; i++)
        y[i] = x[i] * factor * (double)gain->values[i];
}

/** Rotate pairs (2i, 2i + 1) of every head. */
static void rotate(const struct float64_model *m, double *x, size_t n_heads, size_t position)
{
    for (size_t head = 0; head < n_heads; head++)
        for (size_t i = 0; i < m->n_rot / 2; i++) {
            double *pair = x + head * m->head_size + 2 * i;
            double angle = (double)position * m->frequency[i];
            double c = cos(angle) * m->magnitude;
            double s = sin(angle) * m->magnitude;
            double a = pair[0];
            double b = pair[1];
            pair[0] = a * c - b * s;
            pair[1] = a * s + b * c;
        }
}

/** out = attention of the query at position p over keys 0 .. p; weights: scratch [p + 1]. */
static void attend(struct float64_model *m, const struct layer *l, const double *q,
                   const double *keys, const double *values, size_t p, double *weights, double *out)
{
    size_t d = m->head_size;
    size_t row = l->n_kv_heads * d;
    size_t first = m->window && p + 1 > m->window ? p + 1 - m->window : 0;
    for (size_t head = 0; head < l->n_heads; head++) {
        size_t at = head / (l->n_heads / l->n_kv_heads) * d;
        double max = -HUGE_VAL;
        for (size_t j = first; j <= p; j++) {
            double dot = 0;
            for (size_t i = 0; i < d; i++)
                dot += q[head * d + i] * keys[j * row + at + i];
            weights[j] = dot / sqrt((double)d);
            max = fmax(max, weights[j]);
        }
        double total = 0, squares = 0;
        for (size_t j = first; j <= p; j++) {
            total += weights[j] = exp(weights[j] - max);
            squares += total * total;
        }
        total = chained(m, total, squares);
        for (size_t i = 0; i < d; i++) {
            double sum = squares = 0;
            for (size_t j = first; j <= p; j++) {
                sum += weights[j] * values[j * row + at + i];
                squares += sum * sum;
            }
            out[head * d + i] = chained(m, sum, squares) / total;
        }
    }
}

static void attention(struct float64_model *m, const struct layer *l, size_t n, double *x)
{
    size_t q_row = l->n_heads * m->head_size;
    size_t kv_row = l->n_kv_heads * m->head_size;
    double *h = must(malloc(m->width * sizeof *h));
    double *q = must(malloc(2 * q_row * sizeof *q));
    double *k = must(malloc(n * kv_row * sizeof *k));
    double *v = must(malloc(n * kv_row * sizeof *v));
    double *weights = must(malloc(n * sizeof *weights));
    for (size_t p = 0; p < n; p++) {
        double *stream = x + p * m->width;
        normalise(m, &l->attn_norm, stream, h);
        multiply(m, &l->q, h, q);
        multiply(m, &l->k, h, k + p * kv_row);
        multiply(m, &l->v, h, v + p * kv_row);
        rotate(m, q, l->n_heads, p);
        rotate(m, k + p * kv_row, l->n_kv_heads, p);
        attend(m, l, q, k, v, p, weights, q + q_row);
        multiply(m, &l->output, q + q_row, h);
        for (size_t i = 0; i < m->width; i++)
            stream[i] += h[i];
    }
    free(h);
    free(q);
    free(k);
    free(v);
    free(weights);
}

/** x += share * expert(h). */
static void add_expert(struct float64_model *m, const struct layer *l, size_t e, double share,
                       const double *h, double *x)
{
    size_t n_ff = l->gate[e].n_rows;
    size_t width = l->down[e].n_rows;
    double *gate = must(malloc((2 * n_ff + width) * sizeof *gate));
    double *up = gate + n_ff;
    double *out = up + n_ff;
    multiply(m, &l->gate[e], h, gate);
    multiply(m, &l->up[e], h, up);
    for (size_t i = 0; i < n_ff; i++)
        gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i];
    multiply(m, &l->down[e], gate, out);
    for (size_t i = 0; i < width; i++)
        x[i] += share * out[i];
    free(gate);
}

/** The used experts have the largest logits; their shares are a softmax over those alone. */
static void mixture(struct float64_model *m, const struct layer *l, const double *h, double *x)
{
    double *logits = must(malloc(2 * m->n_experts * sizeof *logits));
    double *chosen = logits + m->n_experts;
    multiply(m, &l->router, h, logits);
    for (size_t e = 0; e < m->n_experts; e++)
        chosen[e] = 0;
    double total = 0;
    for (size_t k = 0; k < m->n_used; k++) {
        size_t best = m->n_experts;
        for (size_t e = 0; e < m->n_experts; e++)
            if (chosen[e] == 0 && (best == m->n_experts || logits[e] > logits[best]))
                best = e;
        total += chosen[best] = exp(logits[best]);
    }
    for (size_t e = 0; e < m->n_experts; e++)
        if (chosen[e] != 0)
            add_expert(m, l, e, chosen[e] / total, h, x);
    free(logits);
}

void float64_hidden(struct float64_model *m, const int32_t *tokens, size_t n, double *hidden)
{
    double *x = hidden;
    double *h = must(malloc(m->width * sizeof *h));
    for (size_t t = 0; t < n; t++)
        for (size_t i = 0; i < m->width; i++)
            x[t * m->width + i] = (double)m->embedding.values[(size_t)tokens[t] * m->width + i];
    for (size_t i = 0; i < m->n_layers; i++) {
        const struct layer *l = &m->layers[i];
        attention(m, l, n, x);
        for (size_t t = 0; t < n; t++) {
            normalise(m, &l->ffn_norm, x + t * m->width, h);
            if (m->n_experts)
                mixture(m, l, h, x + t * m->width);
            else
                add_expert(m, l, 0, 1, h, x + t * m->width);
        }
    }
    for (size_t t = 0; t < n; t++)
        normalise(m, &m->output_norm, x + t * m->width, x + t * m->width);
    free(h);
}

void float64_log_probs(struct float64_model *m, const double *hidden, double *log_probs)
{
    const struct matrix *head = m->head.values ? &m->head : &m->embedding;
    multiply(m, head, hidden, log_probs);
    double max = -HUGE_VAL;
    for (size_t i = 0; i < head->n_rows; i++)
        max = fmax(max, log_probs[i]);
    double sum = 0;
    for (size_t i = 0; i < head->n_rows; i++)
        sum += exp(log_probs[i] - max);
    for (size_t i = 0; i < head->n_rows; i++)
        log_probs[i] -= max + log(sum);
}

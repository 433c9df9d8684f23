#include "tests/kernels/score_scene.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/numerics/fmath.h"
#include "tests/harness/cmocka.h"

static float *random_floats(struct rng *r, size_t n, float size)
{
    float *values = malloc(n * sizeof(float));
    for (size_t i = 0; i < n; i++)
        values[i] = size * rng_normal(r);
    return values;
}

static struct kern_weight float_matrix(const float *data, size_t n_rows, size_t n_cols, float scale)
{
    struct kern_weight matrix = f32_matrix(data, n_rows, n_cols);
    matrix.scale = scale;
    return matrix;
}

void scene_define_logits(struct scene *s, size_t h)
{
    size_t width = s->matrices[h].n_cols;
    for (size_t row = 0; row < s->op.n_rows; row++) {
        for (size_t v = 0; v < s->n_vocab; v++) {
            float acc = 0.0f;
            for (size_t c = 0; c < width; c++)
                acc = fmaf(s->memory[3 * h + 1][v * width + c], s->memory[3 * h][row * width + c],
                           acc);
            if (s->matrices[h].scale != 1.0f)
                acc *= s->matrices[h].scale;
            if (s->heads[h].bias)
                acc += s->memory[3 * h + 2][v] * s->biases[h].scale;
            float cap = s->heads[h].soft_cap;
            if (cap > 0)
                acc = fmath_soft_cap_f32(acc, cap, 1 / cap);
            s->logits[h][row * s->n_vocab + v] = acc;
        }
    }
}

void scene_open(struct scene *s, uint64_t stream, size_t n_heads, size_t n_rows, size_t n_vocab)
{
    scene_open_wide(s, stream, &(struct scene_size){n_heads, n_rows, n_vocab, 1});
}

void scene_open_wide(struct scene *s, uint64_t stream, const struct scene_size *size)
{
    const size_t widths[SCENE_HEADS] = {40 * size->times, 33 * size->times, 64 * size->times};
    size_t n_heads = size->n_heads, n_rows = size->n_rows, n_vocab = size->n_vocab;
    struct rng r = rng_open(rng_seed(), stream);
    s->n_vocab = n_vocab;
    s->op = (struct kern_score){.n_heads = n_heads,
                                .heads = s->heads,
                                .n_rows = n_rows,
                                .n_targets = n_rows < 100 ? 2 * n_rows : SCENE_TARGETS,
                                .targets = s->targets};
    for (size_t h = 0; h < n_heads; h++) {
        s->memory[3 * h] = random_floats(&r, n_rows * widths[h], 1.0f);
        s->memory[3 * h + 1] = random_floats(&r, n_vocab * widths[h], 0.3f);
        s->memory[3 * h + 2] = random_floats(&r, n_vocab, 1.0f);
        s->matrices[h] =
            float_matrix(s->memory[3 * h + 1], n_vocab, widths[h], h == 1 ? 1.25f : 1.0f);
        s->biases[h] = float_matrix(s->memory[3 * h + 2], 1, n_vocab, 0.8f);
        s->heads[h] = (struct kern_head){.hidden = s->memory[3 * h],
                                         .matrix = &s->matrices[h],
                                         .bias = h == 2 ? &s->biases[h] : NULL,
                                         .soft_cap = h == 1 ? 12.0f : 0.0f};
        s->logits[h] = malloc(n_rows * n_vocab * sizeof(float));
        scene_define_logits(s, h);
    }
    /* In no order, some rows with several targets and some without. */
    for (size_t i = 0; i < s->op.n_targets; i++)
        s->targets[i] = (struct kern_target){.row = (uint32_t)rng_below(&r, n_rows),
                                             .token = (int32_t)rng_below(&r, n_vocab)};
    s->op.rows = calloc(n_heads * n_rows, sizeof *s->op.rows);
    s->op.pairs = calloc(n_heads * n_rows, sizeof *s->op.pairs);
    s->op.target_scores = calloc(n_heads * s->op.n_targets + 1, sizeof *s->op.target_scores);
}

void scene_close(struct scene *s)
{
    for (size_t h = 0; h < s->op.n_heads; h++) {
        for (size_t i = 0; i < 3; i++)
            free(s->memory[3 * h + i]);
        free(s->logits[h]);
    }
    free(s->op.rows);
    free(s->op.pairs);
    free(s->op.target_scores);
}

void scene_cut(struct scene_cut *cut, struct scene *s, size_t n)
{
    for (size_t h = 0; h < s->op.n_heads; h++) {
        size_t n_others = s->n_vocab - n;
        bool has_bias = s->heads[h].bias;
        cut->matrices[0][h] = kern_weight_rows(&s->matrices[h], 0, n);
        cut->matrices[1][h] = kern_weight_rows(&s->matrices[h], n, n_others);
        cut->biases[0][h] = cut->biases[1][h] = s->biases[h];
        cut->biases[0][h].n_cols = n;
        cut->biases[1][h].n_cols = n_others;
        cut->biases[1][h].data = s->memory[3 * h + 2] + n;
        cut->heads[h] = cut->beyond[h] = s->heads[h];
        cut->heads[h].matrix = &cut->matrices[0][h];
        cut->heads[h].bias = has_bias ? &cut->biases[0][h] : NULL;
        cut->heads[h].beyond = h ? &cut->beyond[h] : NULL;
        cut->beyond[h].matrix = &cut->matrices[1][h];
        cut->beyond[h].bias = has_bias ? &cut->biases[1][h] : NULL;
    }
    for (size_t i = 0; i < s->op.n_targets; i++)
        s->targets[i].token %= (int32_t)n;
}

void scene_run(enum kern_isa isa, unsigned n_threads, const struct kern_score *op)
{
    struct kern_backend *b = backend_open(isa, n_threads);
    assert_int_equal(kern_score(b, op, NULL), STATUS_OK);
    kern_close(b);
}

long double scene_sum_error(size_t n)
{
    return (long double)(2 * n + 8) * 0x1p-53L;
}

void scene_assert_near(double found, long double expected, long double bound, const char *what)
{
    if (!(fabsl((long double)found - expected) <= bound))
        fail_msg("%s: %.17g, expected %.17Lg +- %.2Lg", what, found, expected, bound);
}

void scene_encode(uint16_t *record, const float *logits, size_t n_vocab)
{
    float max = -INFINITY, min = INFINITY;
    for (size_t i = 0; i < n_vocab; i++) {
        max = fmaxf(max, logits[i]);
        min = fminf(min, logits[i]);
    }
    min = fmaxf(min, max - 16.0f);
    double sum = 0.0;
    for (size_t i = 0; i < n_vocab; i++)
        sum += exp((double)logits[i] - (double)max);
    float log_sum = (float)log(sum), scale = (max - min) / 65535.0f;
    float floor = min - max - log_sum;
    memset(record, 0, kern_record_codes(n_vocab) * sizeof *record);
    memcpy(record, &scale, sizeof scale);
    memcpy(record + 2, &floor, sizeof floor);
    for (size_t i = 0; i < n_vocab && scale > 0.0f; i++) {
        if (logits[i] > min)
            record[4 + i] = (uint16_t)rint(((double)logits[i] - (double)min) / (double)scale);
    }
}

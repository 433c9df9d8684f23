#include "tests/kernels/flash_scene.h"

#include <stdlib.h>
#include <string.h>

#include "tests/harness/cmocka.h"
#include "tests/harness/run_kernel.h"
#include "tests/kernels/cuda_data.h"

void flash_scene_widths(const struct kern_attention *op, size_t widths[4])
{
    widths[0] = op->n_heads * op->head_size;
    widths[1] = op->n_kv_heads * op->head_size;
    widths[2] = op->n_kv_heads * op->value_size;
    widths[3] = op->n_heads * op->value_size;
}

void flash_scene_open(struct flash_scene *s, struct rng *r, struct attention_shape shape,
                      size_t n_tokens)
{
    s->n_tokens = n_tokens;
    s->op = attention_shape_op(&shape, r, &s->sinks);
    float **all[] = {&s->q, &s->k, &s->v, &s->out};
    size_t widths[4];
    flash_scene_widths(&s->op, widths);
    for (size_t i = 0; i < 4; i++)
        *all[i] = cuda_data_floats(r, n_tokens * widths[i], 1.5f);
    s->op.q = s->q;
    s->op.k = s->k;
    s->op.v = s->v;
    s->op.out = s->out;
}

void flash_scene_close(struct flash_scene *s)
{
    free(s->q);
    free(s->k);
    free(s->v);
    free(s->out);
}

void flash_scene_pair_of(struct cuda_pair *p, enum kern_precision precision, size_t way,
                         size_t shared_bytes)
{
    struct host_device_options options = cuda_pair_way(way % CUDA_PAIR_N_WAYS);
    options.shared_bytes = shared_bytes;
    cuda_pair_open(p, precision, &options);
}

void flash_scene_pair(struct cuda_pair *p, enum kern_precision precision, size_t way)
{
    flash_scene_pair_of(p, precision, way, FLASH_SCENE_SHARED_BYTES);
}

void flash_scene_run_skewed(struct cuda_pair *p, struct flash_scene *s, size_t skew)
{
    struct kern_attention op = s->op;
    const float *from[] = {s->q, s->k, s->v, s->out};
    size_t sizes[4];
    flash_scene_widths(&op, sizes);
    float *copies[4];
    for (size_t i = 0; i < 4; i++) {
        sizes[i] *= s->n_tokens;
        float *skewed = calloc(sizes[i] + skew, sizeof *skewed);
        assert_non_null(skewed);
        memcpy(skewed + skew, from[i], sizes[i] * sizeof *skewed);
        copies[i] = cuda_pair_put(p, skewed, sizes[i] + skew);
        free(skewed);
    }
    op.q = copies[0] + skew;
    op.k = copies[1] + skew;
    op.v = copies[2] + skew;
    op.out = copies[3] + skew;
    struct status_why why = {""};
    if (kern_attention(p->cuda, &op, &why) != STATUS_OK)
        fail_msg("%s", why.text);
    for (size_t i = 0; i < 3; i++)
        cuda_pair_take(p, copies[i], NULL, 0);
    float *all = calloc(sizes[3] + skew, sizeof *all);
    assert_non_null(all);
    cuda_pair_take(p, copies[3], all, sizes[3] + skew);
    memcpy(s->out, all + skew, sizes[3] * sizeof *all);
    free(all);
}

void flash_scene_run(struct cuda_pair *p, struct flash_scene *s)
{
    flash_scene_run_skewed(p, s, 0);
}

/** Numbers in n parts, and sums that are rounded towards zero: see kernels/cuda/kernels/mma.h. */
struct attention_error flash_scene_check(const struct flash_scene *s, enum kern_precision precision)
{
    const bool high = precision == KERN_PRECISION_HIGH;
    const struct attention_rounding rounding = {.product = high ? 4 * 0x1p-24 : 3 * 0x1p-16,
                                                .unit = 0x1p-23,
                                                .n_products = high ? 6 : 3,
                                                .key_block = 32};
    return attention_truth_check(&s->op, &rounding);
}

void flash_scene_check_grouping(struct cuda_pair *p, struct flash_scene *s)
{
    if (run_kernel_is_slow())
        return; /* nothing new for a kernel */
    const struct kern_query_range *ranges = s->op.ranges;
    size_t n_ranges = s->op.n_ranges, n = s->n_tokens * s->op.n_heads * s->op.value_size;
    struct kern_query_range *cut = malloc((2 * n_ranges + s->n_tokens / 9 + 1) * sizeof *cut);
    float *expected = cuda_data_copy(s->out, n);
    assert_non_null(cut);
    size_t n_cut = 0;
    for (size_t i = 0; i < n_ranges; i++) {
        size_t from = 0;
        for (size_t next = 1; from < ranges[i].n_q; from = next, next += 9 + 60 * (next % 2)) {
            struct kern_query_range part = ranges[i];
            part.q_row += from;
            part.q_offset += from;
            part.n_q = next < part.n_q ? next - from : part.n_q - from;
            cut[n_cut++] = part;
        }
    }
    s->op.ranges = cut;
    s->op.n_ranges = n_cut;
    flash_scene_run(p, s);
    cuda_data_assert_same(s->out, expected, n, "queries grouped otherwise");
    s->op.ranges = ranges;
    s->op.n_ranges = n_ranges;
    free(cut);
    free(expected);
}

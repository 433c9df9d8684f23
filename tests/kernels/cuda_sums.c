#include "tests/kernels/cuda_sums.h"

#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/kernels/product.h"
#include "tests/harness/cmocka.h"
#include "tests/kernels/cuda_data.h"

enum { PARTS = 3 };

void cuda_sums_launch(struct cuda_pair *p, enum kern_cuda_kernel kernel, size_t n_blocks,
                      size_t shared_bytes, const void *args)
{
    struct status_why why = {""};
    const struct kern_cuda_launch launch = {
        .kernel = kernel, .n_blocks = n_blocks, .shared_bytes = shared_bytes, .args = args};
    if (kern_cuda_run_launch(kern_cuda_of(p->cuda), &launch, &why))
        fail_msg("%s", why.text);
}

size_t cuda_sums_launched(const struct cuda_pair *p, enum kern_cuda_kernel kernel)
{
    return p->log.n_launches[kernel];
}

void *cuda_sums_room(struct cuda_pair *p, const void *from, size_t n_bytes)
{
    void *copy;
    assert_int_equal(kern_alloc(p->cuda, &copy, n_bytes, NULL), STATUS_OK);
    if (from)
        assert_int_equal(kern_upload(p->cuda, copy, from, n_bytes, NULL), STATUS_OK);
    return copy;
}

float *cuda_sums_numbers(struct cuda_pair *p, struct rng *r, size_t n)
{
    float *x = cuda_data_floats(r, n, 1e4f), *copy = cuda_sums_room(p, x, n * sizeof *x);
    free(x);
    return copy;
}

uint32_t *cuda_sums_magnitudes(struct cuda_pair *p, struct rng *r, size_t n, bool mild)
{
    static const float all[] = {0.0f, 1e-45f, 1e-38f, 1e-20f, 0.3f, 1.0f, 5.5f, 1e20f, 3e38f};
    uint32_t *bits = malloc(n * sizeof *bits);
    assert_non_null(bits);
    for (size_t i = 0; i < n; i++)
        bits[i] = mild              ? kern_magnitude_bits(200.0f)
                  : rng_below(r, 8) ? kern_magnitude_bits(all[rng_below(r, 9)])
                                    : 0x7f800000u;
    uint32_t *copy = cuda_sums_room(p, bits, n * sizeof *bits);
    free(bits);
    return copy;
}

struct kern_powers cuda_sums_powers(struct cuda_pair *p, const uint32_t *largest, size_t n)
{
    struct kern_powers_args a = {.largest = largest, .n = n};
    a.to.largest = cuda_sums_room(p, NULL, n * sizeof(uint32_t));
    a.to.first = cuda_sums_room(p, NULL, n * sizeof(float));
    a.to.second = cuda_sums_room(p, NULL, n * sizeof(float));
    cuda_sums_launch(p, KERN_CUDA_POWERS, base_div_up(n, KERN_POWERS_THREADS), 0, &a);
    return a.to;
}

void cuda_sums_free_powers(struct cuda_pair *p, struct kern_powers powers)
{
    kern_free(p->cuda, powers.largest);
    kern_free(p->cuda, powers.first);
    kern_free(p->cuda, powers.second);
}

void cuda_sums_finish(struct cuda_pair *p, const struct kern_sums *sums, float *out, size_t n_rows,
                      size_t n_cols)
{
    const struct kern_finish_args finish = {.sums = sums->sums,
                                            .out = out,
                                            .sums_stride = n_cols,
                                            .out_stride = n_cols,
                                            .n_a = n_cols,
                                            .n_b = n_rows,
                                            .a_largest = sums->cols.largest,
                                            .b_largest = sums->rows.largest,
                                            .bias_a = sums->bias,
                                            .scale = sums->scale};
    size_t n_blocks = n_rows * base_div_up(n_cols, KERN_FINISH_ELEMS);
    cuda_sums_launch(p, KERN_CUDA_FINISH, n_blocks, 0, &finish);
}

static size_t halves_bytes(const struct kern_half_out *out, size_t n_blocks)
{
    return n_blocks * out->to.stride * sizeof(uint16_t);
}

struct kern_half_out cuda_sums_out(struct cuda_pair *p, size_t n_rows, size_t n_blocks,
                                   size_t n_cols, bool parts)
{
    struct kern_half_out out = {.to = {.stride = parts ? PARTS * n_cols : n_cols},
                                .largest = cuda_sums_room(p, NULL, n_blocks * sizeof(uint32_t)),
                                .n_rows = n_rows,
                                .n_cols = n_cols};
    out.to.hi = cuda_sums_room(p, NULL, halves_bytes(&out, n_blocks));
    out.to.lo = parts ? out.to.hi + n_cols : NULL;
    out.to.again = parts ? out.to.hi + 2 * n_cols : NULL;
    return out;
}

static void *take(struct cuda_pair *p, void *device, size_t n_bytes)
{
    void *copy = malloc(n_bytes);
    assert_non_null(copy);
    assert_int_equal(kern_download(p->cuda, copy, device, n_bytes, NULL), STATUS_OK);
    kern_free(p->cuda, device);
    return copy;
}

void cuda_sums_assert_same(struct cuda_pair *p, struct kern_half_out found,
                           struct kern_half_out expected, size_t n_blocks)
{
    const struct kern_half_out *out[] = {&found, &expected};
    void *halves[2], *largest[2];
    for (size_t i = 0; i < 2; i++) {
        halves[i] = take(p, out[i]->to.hi, halves_bytes(out[i], n_blocks));
        largest[i] = take(p, out[i]->largest, n_blocks * sizeof(uint32_t));
    }
    assert_memory_equal(largest[0], largest[1], n_blocks * sizeof(uint32_t));
    assert_memory_equal(halves[0], halves[1], halves_bytes(&found, n_blocks));
    for (size_t i = 0; i < 2; i++) {
        free(halves[i]);
        free(largest[i]);
    }
}

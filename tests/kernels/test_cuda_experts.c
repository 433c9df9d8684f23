/*
 * The CUDA backend's routing, gathering and scattering, on a device made of the host's memory and,
 * where there is one, on a real device: the CPU backend's bits.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/operations.h"
#include "tests/harness/cmocka.h"
#include "tests/kernels/cuda_data.h"
#include "tests/kernels/cuda_pair.h"

enum { ROUTE_T = 70, ROUTE_USED = 5 };

static const int32_t given[ROUTE_T * ROUTE_USED] = {1, 2, 3, 11, 0, 5};

/** A block has no room for all threads of 250 experts. */
static const struct kern_route routes[] = {
    {.n_experts = 20, .normalise = true},
    {.n_experts = 20,
     .gating = KERN_GATE_SIGMOID,
     .n_groups = 4,
     .n_groups_used = 2,
     .scale = 2.5f},
    {.n_experts = 20,
     .gating = KERN_GATE_SIGMOID,
     .n_groups = 20,
     .n_groups_used = 5,
     .groups_by_best = true},
    {.n_experts = 20, .n_groups = 4, .n_groups_used = 2, .groups_by_best = true},
    {.n_experts = 20, .n_groups = 1, .normalise = true, .sum_eps = 1e-20f},
    {.n_experts = 20, .gating = KERN_GATE_SOFTMAX_CHOSEN, .n_groups = 1},
    {.n_experts = 20, .gating = KERN_GATE_SPARSEMIXER, .scale = 2.5f},
    {.n_experts = 20, .gating = KERN_GATE_SPARSEMIXER, .n_groups = 1},
    {.n_experts = 20, .gating = KERN_GATE_SQRT_SOFTPLUS, .n_groups = 1},
    {.n_experts = 20, .gating = KERN_GATE_SQRT_SOFTPLUS, .given = given, .normalise = true},
    {.n_experts = 250},
};

/** Ties, NaN, infinities, beyond an exponential's range, and none above -infinity. */
static float *strange_logits(struct rng *r, size_t n_experts)
{
    float *logits = cuda_data_floats(r, ROUTE_T * n_experts, 2.0f);
    logits[4] = logits[5];
    logits[n_experts + 1] = NAN;
    logits[2 * n_experts + 2] = INFINITY;
    for (size_t i = 0; i < n_experts; i++) {
        logits[3 * n_experts + i] = i % 3 ? -1e4f : 1e4f;
        logits[4 * n_experts + i] = -INFINITY;
    }
    return logits;
}

/** With groups there is a selection bias. */
static void check_route(struct cuda_pair *p, struct rng *r, struct kern_route op)
{
    float *logits = strange_logits(r, op.n_experts);
    struct kern_weight bias = cuda_data_float_weight(r, 1, op.n_experts);
    bias.scale = 0.1f; /* so that it alone does not decide */
    int32_t experts[2][ROUTE_T * ROUTE_USED];
    float shares[2][ROUTE_T * ROUTE_USED];
    op.logits = logits;
    op.n_tokens = ROUTE_T;
    op.n_used = ROUTE_USED;
    op.selection_bias = op.n_groups ? &bias : NULL;
    op.experts = experts[0];
    op.shares = shares[0];
    assert_int_equal(kern_route(p->cpu, &op, NULL), STATUS_OK);
    float *device = cuda_pair_put(p, logits, ROUTE_T * op.n_experts);
    op.logits = device;
    op.experts = experts[1];
    op.shares = shares[1];
    assert_int_equal(kern_route(p->cuda, &op, NULL), STATUS_OK);
    cuda_pair_take(p, device, NULL, 0);
    assert_memory_equal(experts[0], experts[1], sizeof experts[0]);
    cuda_data_assert_same(shares[1], shares[0], ROUTE_T * ROUTE_USED, "route");
    cuda_data_weight_free(&bias);
    free(logits);
}

static void test_route(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUDA_PAIR_N_WAYS; i += cuda_pair_step()) {
        struct rng r = rng_open(rng_seed(), 4);
        struct cuda_pair p;
        struct host_device_options way = cuda_pair_way(i);
        cuda_pair_open(&p, KERN_PRECISION_EXACT, &way);
        for (size_t k = 0; k < sizeof routes / sizeof *routes; k++)
            check_route(&p, &r, routes[k]);
        cuda_pair_close(&p);
    }
}

/** So many that not one token has room. */
static void test_too_many(void **state)
{
    (void)state;
    enum { E = 20000 };
    struct cuda_pair p;
    struct host_device_options way = cuda_pair_way(0);
    cuda_pair_open(&p, KERN_PRECISION_EXACT, &way);
    struct rng r = rng_open(rng_seed(), 5);
    float *logits = cuda_data_floats(&r, E, 1.0f), *device = cuda_pair_put(&p, logits, E);
    int32_t expert;
    float share;
    struct kern_route op = {.logits = device,
                            .n_tokens = 1,
                            .n_experts = E,
                            .n_used = 1,
                            .experts = &expert,
                            .shares = &share};
    struct status_why why = {""};
    assert_int_equal(kern_route(p.cuda, &op, &why), STATUS_UNSUPPORTED);
    assert_non_null(strstr(why.text, "among 20000 experts"));
    cuda_pair_take(&p, device, NULL, 0);
    free(logits);
    cuda_pair_close(&p);
}

/** y on both backends: of rows in another order, or added to, each alone or several to one. */
static void check_rows(struct cuda_pair *p, struct rng *r, size_t n, size_t width)
{
    float *x = cuda_data_floats(r, n * width, 3.0f), *y = cuda_data_floats(r, n * width, 1.0f);
    float *found = cuda_data_copy(y, n * width), *shares = cuda_data_floats(r, n, 1.0f);
    float *device_x = cuda_pair_put(p, x, n * width), *device_y = cuda_pair_put(p, y, n * width);
    uint32_t *rows = malloc(2 * n * sizeof *rows), *to = rows + n;
    for (size_t i = 0; i < n; i++) {
        rows[i] = (uint32_t)(n - 1 - i);
        to[i] = rows[i] / 3;
    }
    struct kern_scatter op = {.rows = rows, .shares = shares, .n = n, .width = width};
    for (size_t k = 0; k < 2; k++) {
        op.x = x;
        op.y = y;
        assert_int_equal(kern_scatter_add(p->cpu, &op, NULL), STATUS_OK);
        op.x = device_x;
        op.y = device_y;
        assert_int_equal(kern_scatter_add(p->cuda, &op, NULL), STATUS_OK);
        op.rows = to;
        op.from = rows;
    }
    assert_int_equal(kern_download(p->cuda, found, device_y, n * width * sizeof *y, NULL), 0);
    cuda_data_assert_same(found, y, n * width, "scatter_add");
    struct kern_gather gather = {x, rows, n, width, y};
    assert_int_equal(kern_gather(p->cpu, &gather, NULL), STATUS_OK);
    gather.x = device_x;
    gather.y = device_y;
    assert_int_equal(kern_gather(p->cuda, &gather, NULL), STATUS_OK);
    cuda_pair_take(p, device_y, found, n * width);
    cuda_data_assert_same(found, y, n * width, "gather");
    cuda_pair_take(p, device_x, NULL, 0);
    free(found);
    free(x);
    free(y);
    free(shares);
    free(rows);
}

static void test_rows(void **state)
{
    (void)state;
    const size_t widths[] = {1, 3, 100, 450, 2048};
    for (size_t i = 0; i < CUDA_PAIR_N_WAYS; i += cuda_pair_step()) {
        struct rng r = rng_open(rng_seed(), 6);
        struct cuda_pair p;
        struct host_device_options way = cuda_pair_way(i);
        cuda_pair_open(&p, KERN_PRECISION_EXACT, &way);
        for (size_t k = 0; k < sizeof widths / sizeof *widths; k++)
            check_rows(&p, &r, 5 + rng_below(&r, 9), widths[k]);
        cuda_pair_close(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_route),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_rows),
    };
    int n_failed = cmocka_run_group_tests_name("host device", tests, NULL, NULL);
    if (!cuda_pair_use_real_device())
        return n_failed;
    return n_failed + cmocka_run_group_tests_name("CUDA device", tests, NULL, NULL);
}

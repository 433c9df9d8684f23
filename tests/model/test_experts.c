/*
 * What a tile costs in experts: each one that some token has chosen is multiplied once, with all
 * of its tokens together. A product decodes its weight once (kernels/cpu/gemm/linear.c). A device
 * gets rows for several experts at a time, and the host waits for it twice a tile and layer.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/context.h"
#include "kernels/implementation.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/host_device.h"
#include "tests/model/fixture.h"

enum { EXPERTS = 24, USED = 3, BATCH = 2048, WINDOW = 256, TILE = 1024, LAYERS = 2 };

/** What products have been seen of the tile at work. */
static struct {
    const struct model *model;
    kern_linear_fn *linear;
    size_t n_tiles, n_tokens, n_experts;
    size_t n_products[EXPERTS]; /* of three matrices each */
} seen;

static void end_tile(void)
{
    if (seen.n_tiles > 0)
        assert_int_equal(seen.n_tokens, TILE * USED);
    for (size_t e = 0; e < EXPERTS; e++)
        assert_true(seen.n_products[e] == 0 || seen.n_products[e] == 3);
    seen.n_tokens = 0;
    memset(seen.n_products, 0, sizeof seen.n_products);
}

static void count(const struct model_experts *experts, const struct kern_linear *op)
{
    if (op->weight->data == experts->router.weight.data) {
        end_tile();
        assert_int_equal(op->n_tokens, TILE);
        seen.n_tiles++;
    }
    for (size_t e = 0; e < EXPERTS; e++) {
        const struct model_ffn *each = &experts->each[e];
        bool is_up = op->weight->data == each->up.weight.data;
        if (is_up || op->weight->data == each->gate.weight.data ||
            op->weight->data == each->down.weight.data)
            seen.n_products[e]++;
        seen.n_tokens += is_up ? op->n_tokens : 0;
        seen.n_experts += is_up;
    }
}

static enum status count_linear(struct kern_backend *b, const struct kern_linear *op,
                                struct status_why *why)
{
    for (size_t i = 0; i < LAYERS; i++)
        count(&model_layer(seen.model, i)->experts, op);
    return seen.linear(b, op, why);
}

static struct fixture open_model(void)
{
    return fixture_open(&(struct tiny_model_options){
        .n_layers = LAYERS, .n_experts = EXPERTS, .n_experts_used = USED, .type = GGUF_TYPE_Q8_0});
}

/** Hidden rows of the batch, in windows. */
static float *run(struct fixture *f)
{
    int32_t *tokens = fixture_tokens(f, 1, BATCH);
    struct model_segment windows[BATCH / WINDOW];
    for (size_t i = 0; i < BATCH / WINDOW; i++)
        windows[i] = (struct model_segment){.start = i * WINDOW, .n_tokens = WINDOW, .parent = -1};
    struct model_batch batch = {tokens, BATCH, windows, BATCH / WINDOW};
    float *hidden = fixture_hidden(f, &batch, (struct fixture_run){.tile_tokens = TILE});
    free(tokens);
    return hidden;
}

static void test_once_a_tile(void **state)
{
    (void)state;
    struct fixture f = open_model();
    struct kern_backend_ops counting = *f.backend->ops;
    seen.model = f.model;
    seen.linear = counting.linear;
    counting.linear = count_linear;
    f.backend->ops = &counting;
    free(run(&f));
    end_tile();
    assert_int_equal(seen.n_tiles, LAYERS * BATCH / TILE);
    assert_true(seen.n_experts > EXPERTS);
    fixture_close(&f);
}

/** Calls of a device, of a run that finds all weights there. */
static void test_calls(void **state)
{
    (void)state;
    enum { TILES = LAYERS * BATCH / TILE, MOVES = 2 * USED /* two that follow fill a tile */ };
    struct fixture f = open_model();
    float *expected = run(&f);
    struct host_device_log log = {0}, before;
    struct host_device_options way = {.order = HOST_DEVICE_AT_ONCE};
    struct kern_cuda_options options = {
        .weight_bytes = 64 << 20, .product_tokens = TILE, .product_step = 16};
    kern_close(f.backend);
    assert_int_equal(kern_cuda_open(&f.backend, host_device_open(&way, &log), &options, NULL), 0);
    free(run(&f));
    before = log;
    float *hidden = run(&f);
    assert_memory_equal(hidden, expected, sizeof(float) * BATCH * model_hparams(f.model)->n_embd);
    size_t n_moves = log.n_launches[KERN_CUDA_SCATTER] - before.n_launches[KERN_CUDA_SCATTER];
    size_t n_routes = log.n_launches[KERN_CUDA_ROUTE] - before.n_launches[KERN_CUDA_ROUTE];
    size_t n_in = log.n_copies_in - before.n_copies_in;
    size_t n_out = log.n_copies_out - before.n_copies_out;
    print_message("of a layer's tile: rows moved %.1f times, %.1f copies in\n",
                  (double)n_moves / TILES, (double)n_in / TILES);
    assert_int_equal(n_routes, TILES);
    assert_in_range(n_moves, TILES * USED, TILES * MOVES);
    assert_in_range(n_in, 0, 4 * n_moves + 6 * TILES); /* rows, and rows, shares and order */
    assert_int_equal(n_out, 2 * TILES + 1);            /* experts, shares; the hidden rows */
    free(hidden);
    free(expected);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_once_a_tile),
        cmocka_unit_test(test_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

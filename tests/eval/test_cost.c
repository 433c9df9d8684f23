/*
 * The arithmetic of a forward pass: attention's against a count of the keys that each query of each
 * layer sees, one after the other.
 */
#include <stdlib.h>

#include "eval/scorer/cost.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/sparse_model.h"
#include "tests/model/fixture.h"

static bool sees(const struct model_layer_shape *layer, size_t query, size_t key)
{
    return key <= query && (!layer->window || query - key < layer->window) &&
           (!layer->chunk || query / layer->chunk == key / layer->chunk);
}

/** Twice as many numbers as n tokens multiply and add. width: of a key and a value. */
static double count(const struct model_layer_shape *layer, size_t width, size_t n)
{
    double total = 0;
    for (size_t query = 0; query < n; query++)
        for (size_t key = 0; key < n; key++)
            total += sees(layer, query, key) ? 2.0 * layer->n_heads * (double)width : 0;
    return total;
}

/** The layers that a model gets: window and chunk. */
static const uint32_t shapes[][2] = {{0, 0}, {7, 0}, {0, 10}, {7, 0}, {1, 0}, {0, 0}, {33, 0}};
enum { N_LAYERS = sizeof shapes / sizeof *shapes };

static void test_windows(void **state)
{
    (void)state;
    struct fixture f =
        fixture_open(&(struct tiny_model_options){.n_layers = N_LAYERS, .vary_layers = true});
    const struct model_hparams *h = model_hparams(f.model);
    double all = eval_cost_forward(f.model, 40);
    for (size_t i = 0; i < N_LAYERS; i++) {
        h->layers[i].window = shapes[i][0];
        h->layers[i].chunk = shapes[i][1];
    }
    struct eval_cost cost = {0};
    eval_cost_add(&cost, f.model);
    assert_int_equal(cost.n_spans, 5);
    for (size_t n = 1; n <= 40; n++) {
        double expected = (double)n * cost.token;
        for (size_t i = 0; i < N_LAYERS; i++)
            expected += count(&h->layers[i], h->layers[i].key_size + h->layers[i].value_size, n);
        assert_true(eval_cost_segment(&cost, n) == expected);
        assert_true(eval_cost_forward(f.model, n) == expected);
    }
    assert_true(eval_cost_forward(f.model, 40) < all);
    double once = eval_cost_segment(&cost, 29);
    eval_cost_add(&cost, f.model);
    assert_true(cost.n_spans == 5 && eval_cost_segment(&cost, 29) == 2 * once);
    fixture_close(&f);
}

/** There is room for so many windows; further ones are counted, too. */
static void test_many_windows(void **state)
{
    (void)state;
    struct fixture f = fixture_open(&(struct tiny_model_options){.n_layers = 20});
    const struct model_hparams *h = model_hparams(f.model);
    for (uint32_t i = 0; i < 20; i++)
        h->layers[i].window = 10 + i;
    struct eval_cost cost = {0};
    eval_cost_add(&cost, f.model);
    assert_int_equal(cost.n_spans, EVAL_COST_SPANS);
    double pairs = 0;
    for (size_t i = 0; i < EVAL_COST_SPANS; i++)
        pairs += cost.spans[i].pair;
    size_t width = h->layers[0].key_size + h->layers[0].value_size;
    assert_true(pairs == 20 * count(&h->layers[0], width, 1));
    fixture_close(&f);
}

/** Queries of all heads meet the compressed rows. */
static void test_compressed_rows(void **state)
{
    (void)state;
    struct fixture f = fixture_open_bytes(
        sparse_model_make(&(struct sparse_model_options){.arch = "deepseek2", .n_best = 4}));
    const struct model_hparams *h = model_hparams(f.model);
    struct eval_cost cost = {0};
    eval_cost_add(&cost, f.model);
    assert_true(h->compressed_keys && cost.n_spans == 1);
    size_t width = 2 * h->layers[0].kv_rank + h->ropes[MODEL_ROPE_FULL].n_rot;
    assert_true(cost.spans[0].pair == h->n_layers * count(&h->layers[0], width, 1));
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_many_windows),
        cmocka_unit_test(test_compressed_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

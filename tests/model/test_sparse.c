/*
 * Layers whose queries choose their keys: what is computed, and what memory is taken, where the
 * choice decides something and where it does not.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/implementation.h"
#include "model/split.h"
#include "model/swap.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/sparse_model.h"
#include "tests/model/fixture.h"

/** What a pass has asked of the backend. */
static struct {
    size_t multiply_adds; /* of products */
    size_t n_linears, n_norms, n_ropes, n_copies, n_attentions, n_sparse, n_choices;
} count;
static const struct kern_backend_ops *counted;

static enum status count_linear(struct kern_backend *b, const struct kern_linear *op,
                                struct status_why *why)
{
    count.n_linears++;
    count.multiply_adds += op->weight->n_rows * op->weight->n_cols * op->n_tokens;
    return counted->linear(b, op, why);
}

static enum status count_norm(struct kern_backend *b, const struct kern_norm *op,
                              struct status_why *why)
{
    count.n_norms++;
    return counted->norm(b, op, why);
}

static enum status count_rope(struct kern_backend *b, const struct kern_rope *op,
                              struct status_why *why)
{
    count.n_ropes++;
    return counted->rope(b, op, why);
}

static enum status count_copy(struct kern_backend *b, const struct kern_copy *op,
                              struct status_why *why)
{
    count.n_copies++;
    return counted->copy_rows(b, op, why);
}

static enum status count_attention(struct kern_backend *b, const struct kern_attention *op,
                                   struct status_why *why)
{
    count.n_attentions++;
    count.n_sparse += op->chosen.bits != NULL;
    return counted->attention(b, op, why);
}

static enum status count_choice(struct kern_backend *b, const struct kern_choose *op,
                                struct status_why *why)
{
    count.n_choices++;
    return counted->choose(b, op, why);
}

/** Hidden rows of a window of n tokens, and what they took; free(). */
static float *run(const char *arch, uint32_t n_best, size_t n, size_t tile)
{
    struct fixture f =
        fixture_open_bytes(sparse_model_make(&(struct sparse_model_options){arch, n_best}));
    counted = f.backend->ops;
    struct kern_backend_ops ops = *counted;
    ops.linear = count_linear;
    ops.norm = count_norm;
    ops.rope = count_rope;
    ops.copy_rows = count_copy;
    ops.attention = count_attention;
    ops.choose = count_choice;
    f.backend->ops = &ops;
    memset(&count, 0, sizeof count);
    struct model_segment segment;
    int32_t *tokens = fixture_tokens(&f, 1, n);
    struct model_batch batch = fixture_window(tokens, n, &segment);
    float *hidden = fixture_hidden(&f, &batch, (struct fixture_run){.tile_tokens = tile});
    f.backend->ops = counted;
    free(tokens);
    fixture_close(&f);
    return hidden;
}

enum { N = 60, WIDTH = 32 };

/** Windows of at most K tokens take what deepseek2 takes, and have its bits. */
static void test_nothing_is_decided(void **state)
{
    (void)state;
    float *expected = run("deepseek2", 0, N, 25);
    const size_t multiply_adds = count.multiply_adds, n_linears = count.n_linears;
    const size_t n_norms = count.n_norms, n_ropes = count.n_ropes, n_copies = count.n_copies;
    static const char *const archs[] = {"deepseek32", "glm-dsa"};
    for (size_t i = 0; i < 2; i++) {
        float *found = run(archs[i], N, N, 25);
        assert_int_equal(compare_bits(found, expected, N * WIDTH), N * WIDTH);
        assert_int_equal(count.multiply_adds, multiply_adds);
        assert_int_equal(count.n_linears, n_linears);
        assert_int_equal(count.n_norms, n_norms);
        assert_int_equal(count.n_ropes, n_ropes);
        assert_int_equal(count.n_copies, n_copies);
        assert_int_equal(count.n_sparse + count.n_choices, 0);
        free(found);
    }
    free(run("minimax-m3", (N + 7) / SPARSE_MODEL_BLOCK, N, 25));
    assert_int_equal(count.n_sparse + count.n_choices, 0);
    free(expected);
}

/**
 * Where a query leaves out a key: an indexer's keys in all tiles of the window, the rest from the
 * first tile on that has such a query; layers that share a choice compute nothing of it.
 */
static void test_what_is_computed(void **state)
{
    (void)state;
    enum { K = N - 5, TILES = 3, LINEARS = 3, INDEX_LINEARS = TILES + 2 };
    const struct {
        const char *arch;
        size_t n_best, n_indexers, index_linears;
    } rows[] = {{"deepseek32", K, 3, INDEX_LINEARS},
                {"glm-dsa", K, 2, INDEX_LINEARS},
                {"glm5-next", K - SPARSE_MODEL_POOL + 1, 3, 2 * TILES + 2},
                {"minimax-m3", 7, 3, TILES + 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        float *without = run(rows[i].arch, 100, N, 25);
        size_t n_linears = count.n_linears;
        float *found = run(rows[i].arch, (uint32_t)rows[i].n_best, N, 25);
        assert_int_equal(count.n_linears - n_linears, rows[i].n_indexers * rows[i].index_linears);
        assert_int_equal(count.n_choices, rows[i].n_indexers);
        assert_int_equal(count.n_attentions, SPARSE_MODEL_LAYERS * TILES);
        assert_int_equal(count.n_sparse, SPARSE_MODEL_LAYERS);
        /* Queries that see at most K keys have the same rows, later ones have not. */
        assert_int_equal(compare_bits(found, without, K * WIDTH), K * WIDTH);
        assert_true(compare_bits(found, without, N * WIDTH) < N * WIDTH);
        free(without);
        free(found);
    }
}

/** Keys of the indexer for R rows, and bits of a tile; of a batch where layers share a choice. */
static void test_memory(void **state)
{
    (void)state;
    enum { TILE = 16, BATCH = 200, SEGMENT = 100, K = 40, KEY = 6, WORDS = 2, LINE = 64 };
    static const struct {
        const char *arch;
        uint32_t n_best;
        size_t n_rows; /* of bits, times sets */
        size_t times;  /* rows of keys, and of what pools are made of */
    } rows[] = {{"deepseek32", K, TILE, 1},
                {"glm-dsa", K, BATCH, 1},
                {"glm5-next", K, TILE, 3},
                {"minimax-m3", K / 8, 2 * TILE, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sparse_model_options few = {rows[i].arch, rows[i].n_best}, all = {rows[i].arch, 100};
        struct fixture f = fixture_open_bytes(sparse_model_make(&few));
        struct fixture g = fixture_open_bytes(sparse_model_make(&all));
        struct model_session_options o = {
            .tile_tokens = TILE, .max_batch = BATCH, .max_segment = SEGMENT};
        size_t more = rows[i].times * SEGMENT * KEY * sizeof(float) +
                      rows[i].n_rows * WORDS * sizeof(uint64_t);
        assert_int_equal(model_session_bytes(f.model, &o) - model_session_bytes(g.model, &o), more);
        assert_true(model_operation_bytes(f.model, f.backend, &o) >=
                    model_operation_bytes(g.model, g.backend, &o));
        o.max_segment = K;
        assert_int_equal(model_session_bytes(f.model, &o), model_session_bytes(g.model, &o));
        fixture_close(&f);
        fixture_close(&g);
    }
}

/** A layer stays with that whose choice it uses; a pass begins at or before that one. */
static void test_shared_choices(void **state)
{
    (void)state;
    struct fixture f =
        fixture_open_bytes(sparse_model_make(&(struct sparse_model_options){"glm-dsa", 10}));
    struct model_layer_range r;
    struct status_why why = {""};
    assert_int_equal(model_split(f.model, 2, 0, &r, &why), STATUS_OK);
    assert_int_equal(r.to, 2);
    assert_int_equal(model_split(f.model, 3, 0, &r, &why), STATUS_USAGE);
    assert_non_null(strstr(why.text, "some use the keys of others"));
    assert_int_equal(model_swap_stage(f.model, "blk.1.ffn_up.weight"), 0);
    assert_int_equal(model_swap_stage(f.model, "blk.2.ffn_up.weight"), 2);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_decided),
        cmocka_unit_test(test_what_is_computed),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_shared_choices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

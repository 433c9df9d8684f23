/*
 * Layers in shares: as even as every other way to cut, whole with the keys that they use, refused
 * where there are too few; and a share is computed without a look at the weights of the others.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/implementation.h"
#include "model/split.h"
#include "model/state.h"
#include "model/swap.h"
#include "tests/harness/cmocka.h"
#include "tests/model/fixture.h"

enum { N_TOKENS = 20, MAX_SHARES = 4 };

/** The least sum of squares of n shares of the layers from `from` on, by trying all. */
static double least(const struct model *m, size_t from, size_t n)
{
    size_t n_layers = model_hparams(m)->n_layers;
    double best = -1;
    for (size_t to = n > 1 ? from + 1 : n_layers; to + n - 1 <= n_layers; to++) {
        double share = model_split_bytes(m, (struct model_layer_range){from, to});
        double sum = share * share + (n > 1 ? least(m, to, n - 1) : 0);
        best = best < 0 || sum < best ? sum : best;
    }
    return best;
}

static void as_even_as_can_be(void **state)
{
    (void)state;
    static const struct tiny_model_options models[] = {
        {.seed = 1, .n_layers = 7},
        {.seed = 2, .n_layers = 6, .vary_layers = true, .n_vocab = 3000},
        {.seed = 3, .n_layers = 9, .n_experts = 4, .n_experts_used = 2, .tied_head = true},
        {.seed = 4, .n_layers = 4, .n_vocab = 20000},
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct fixture f = fixture_open(&models[i]);
        size_t n_layers = model_hparams(f.model)->n_layers;
        for (size_t n = 1; n <= MAX_SHARES; n++) {
            double sum = 0;
            size_t next = 0;
            for (size_t s = 0; s < n; s++) {
                struct model_layer_range r;
                assert_int_equal(model_split(f.model, n, s, &r, NULL), STATUS_OK);
                assert_int_equal(r.from, next);
                assert_true(r.to > r.from);
                next = r.to;
                sum += model_split_bytes(f.model, r) * model_split_bytes(f.model, r);
            }
            assert_int_equal(next, n_layers);
            assert_true(sum == least(f.model, 0, n));
        }
        fixture_close(&f);
    }
}

/** Bytes of all tensors once: what all layers together read. */
static void bytes_are_those_of_the_file(void **state)
{
    (void)state;
    struct fixture f = fixture_open(&(struct tiny_model_options){.n_layers = 5});
    double all = 0;
    for (size_t i = 0; i < gguf_n_tensors(model_file(f.model)); i++)
        all += (double)model_in_force(f.model, i).n_bytes;
    double found = model_split_bytes(f.model, (struct model_layer_range){0, 5});
    double norm = 4.0 * model_hparams(f.model)->n_embd; /* the output norm: not worth counting */
    assert_true(found == all - norm);
    fixture_close(&f);
}

static void scales_that_lie_apart_count(void **state)
{
    (void)state;
    struct fixture f = fixture_open(&(struct tiny_model_options){.n_layers = 2});
    struct model_layer_range second = {1, 2};
    double before = model_split_bytes(f.model, second);
    size_t i = 0;
    while (strcmp(gguf_tensor_at(model_file(f.model), i)->name, "blk.1.ffn_down.weight") != 0)
        i++;
    const struct gguf_tensor *t = f.model->tensors[i].source;
    float scale = 1; /* two rows share one */
    struct gguf_scales scales = {.data = &scale, .block_rows = 2, .block_cols = 8, .n_cols = 3};
    f.model->tensors[i].scales = &scales;
    double more = (double)((t->ne[1] + 1) / 2 * 3 * sizeof scale);
    assert_true(model_split_bytes(f.model, second) == before + more);
    f.model->tensors[i].scales = NULL;
    fixture_close(&f);
}

static void keys_stay_with_who_uses_them(void **state)
{
    (void)state;
    struct fixture f = fixture_open(&(struct tiny_model_options){.n_layers = 6});
    struct model_hparams *h = (struct model_hparams *)(uintptr_t)model_hparams(f.model);
    struct status_why why = {""};
    struct model_layer_range r;
    h->layers[5].kv_layer = 2;
    for (size_t n = 2; n <= 3; n++) {
        assert_int_equal(model_split(f.model, n, n - 1, &r, &why), STATUS_OK);
        assert_true(r.from <= 2);
    }
    assert_int_equal(model_split(f.model, 4, 0, &r, &why), STATUS_USAGE);
    assert_non_null(strstr(why.text, "its 6 layers cannot be divided among 4 processes: some use"));
    h->layers[5].kv_layer = 5;
    assert_int_equal(model_split(f.model, 6, 5, &r, &why), STATUS_OK);
    assert_int_equal(model_split(f.model, 7, 0, &r, &why), STATUS_USAGE);
    assert_non_null(strstr(why.text, "its 6 layers cannot be divided among 7 processes"));
    fixture_close(&f);
}

/** Let the whole pages of tensors that are not the share's be touched, or not. */
static void protect(const struct model *m, struct model_layer_range r, int how)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < gguf_n_tensors(model_file(m)); i++) {
        const char *name = gguf_tensor_at(model_file(m), i)->name;
        struct model_in_force t = model_in_force(m, i);
        size_t block;
        bool own = sscanf(name, "blk.%zu.", &block) == 1
                       ? block >= r.from && block < r.to
                       : r.from == 0 && strcmp(name, "token_embd.weight") == 0;
        uintptr_t from = ((uintptr_t)t.data + page - 1) / page * page;
        uintptr_t to = ((uintptr_t)t.data + t.n_bytes) / page * page;
        if (!own && to > from)
            assert_int_equal(mprotect((void *)from, to - from, how), 0);
    }
}

static void no_share_touches_the_others_weights(void **state)
{
    (void)state;
    struct fixture f =
        fixture_open_file(ASSAY_SOURCE_DIR "/data/tiny.Q4_K_M.gguf", &(struct model_options){0});
    const struct model_hparams *h = model_hparams(f.model);
    size_t n_bytes = N_TOKENS * h->n_embd * sizeof(float);
    int32_t *tokens = fixture_tokens(&f, 1, N_TOKENS);
    float *whole = malloc(n_bytes), *found = malloc(n_bytes);
    struct model_segment segment;
    struct model_batch batch = fixture_window(tokens, N_TOKENS, &segment);
    void *x;
    assert_int_equal(kern_alloc(f.backend, &x, n_bytes, NULL), STATUS_OK);
    for (size_t n = 1; n <= 3; n++) {
        for (size_t s = 0; s < n; s++) {
            struct model_session_options options = {.max_batch = N_TOKENS, .max_segment = N_TOKENS};
            struct model_session *session;
            struct model_layer_range *r = &options.layers;
            assert_int_equal(model_split(f.model, n, s, r, NULL), STATUS_OK);
            protect(f.model, *r, PROT_NONE);
            assert_int_equal(model_session_open(&session, f.model, f.backend, &options, NULL), 0);
            if (s == 0)
                assert_int_equal(model_embed(session, &batch, x, NULL), STATUS_OK);
            assert_int_equal(model_forward(session, &batch, r->from, r->to, x, NULL), STATUS_OK);
            if (n > 1) /* not its own */
                assert_int_equal(model_forward(session, &batch, 0, h->n_layers, x, NULL),
                                 STATUS_USAGE);
            model_session_close(session);
            protect(f.model, *r, PROT_READ);
        }
        assert_int_equal(kern_download(f.backend, n == 1 ? whole : found, x, n_bytes, NULL), 0);
        if (n > 1)
            assert_memory_equal(whole, found, n_bytes);
    }
    kern_free(f.backend, x);
    free(whole);
    free(found);
    free(tokens);
    fixture_close(&f);
}

/** A device with memory of its own, which counts what it is to hold. */
struct device {
    struct kern_backend base;
    double n_bytes;
};

static enum status lend(struct kern_backend *b, void **out, size_t n_bytes, struct status_why *why)
{
    (void)b, (void)why;
    *out = malloc(n_bytes);
    return STATUS_OK;
}

static void take_back(struct kern_backend *b, void *memory)
{
    (void)b;
    free(memory);
}

static enum status hold(struct kern_backend *b, const struct kern_weight *weight,
                        struct status_why *why)
{
    (void)why;
    ((struct device *)b)->n_bytes += (double)weight->n_rows * (double)weight->row_bytes;
    return STATUS_OK;
}

static void a_device_holds_its_share_alone(void **state)
{
    (void)state;
    static const struct kern_backend_ops ops = {
        .name = "device", .alloc = lend, .free = take_back, .preload = hold};
    struct fixture f = fixture_open(&(struct tiny_model_options){.n_layers = 5});
    double whole = 0, sum = 0;
    for (size_t n = 1; n <= 3; n++) {
        sum = 0;
        for (size_t s = 0; s < n; s++) {
            struct device d = {.base = {.ops = &ops}};
            struct model_session_options options = {.max_batch = 1, .max_segment = 1};
            struct model_session *session;
            assert_int_equal(model_split(f.model, n, s, &options.layers, NULL), STATUS_OK);
            assert_int_equal(model_session_open(&session, f.model, &d.base, &options, NULL), 0);
            assert_true(d.n_bytes < model_split_bytes(f.model, options.layers));
            sum += d.n_bytes;
            model_session_close(session);
        }
        whole = n == 1 ? sum : whole;
        assert_true(sum == whole && sum > 0);
    }
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_even_as_can_be),
        cmocka_unit_test(bytes_are_those_of_the_file),
        cmocka_unit_test(scales_that_lie_apart_count),
        cmocka_unit_test(keys_stay_with_who_uses_them),
        cmocka_unit_test(no_share_touches_the_others_weights),
        cmocka_unit_test(a_device_holds_its_share_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Files that are known to be wrong: each generator changes a count, a shape, a type, an offset
 * or the length of a good file, so that something in it must be read from the wrong place. None
 * of them may be accepted.
 */
#include "tests/harness/cmocka.h"
#include <setjmp.h> /* IWYU pragma: keep (cmocka.h wants these four) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/cursor.h"
#include "tests/gguf/sample.h"
#include "tests/gguf/walk.h"
#include "tests/harness/types.h"

struct good {
    const char *name;
    struct sample bytes;
    struct gguf_file *file;
    size_t n_tried;
};

static void expect_refused(struct good *g, const void *data, size_t n_bytes, const char *what)
{
    struct status_why why;
    g->n_tried++;
    if (walk_bytes(data, n_bytes, &why) == STATUS_OK)
        fail_msg("%s with %s was accepted", g->name, what);
}

/* The file with the integer of n_bytes at `at` changed; it is put back. */
static void change(struct good *g, size_t at, uint64_t value, size_t n_bytes, const char *what)
{
    uint64_t old = 0;
    memcpy(&old, g->bytes.data + at, n_bytes);
    if (value == old)
        return;
    memcpy(g->bytes.data + at, &value, n_bytes);
    expect_refused(g, g->bytes.data, g->bytes.n_bytes, what);
    memcpy(g->bytes.data + at, &old, n_bytes);
}

/* Where a tensor's entry has its number of dimensions. */
static size_t entry_of(const struct good *g, const char *name)
{
    size_t n = strlen(name);
    uint8_t *key = malloc(8 + n);
    assert_non_null(key);
    memcpy(key, &(uint64_t){n}, 8);
    memcpy(key + 8, name, n);
    const uint8_t *found = memmem(g->bytes.data, g->bytes.n_bytes, key, 8 + n);
    free(key);
    assert_non_null(found);
    return (size_t)(found - g->bytes.data) + 8 + n;
}

static void wrong_counts(struct good *g)
{
    uint64_t n_tensors = gguf_load_u64(g->bytes.data + 8), n_pairs = gguf_n_kv(g->file);
    for (uint64_t less = 1; less <= n_tensors; less++)
        change(g, 8, n_tensors - less, 8, "fewer tensors");
    for (uint64_t more = 1; more < 4; more++) {
        change(g, 8, n_tensors + more, 8, "more tensors");
        change(g, 16, n_pairs + more, 8, "more pairs");
        change(g, 16, n_pairs - more, 8, "fewer pairs");
    }
}

/* A tensor of another size overlaps, leaves the file, or leaves bytes without an owner. */
static void wrong_shapes(struct good *g, const struct gguf_tensor *tensor)
{
    char what[128];
    size_t entry = entry_of(g, tensor->name);
    snprintf(what, sizeof what, "another shape of %s", tensor->name);
    for (uint32_t k = 0; k < tensor->n_dims; k++) {
        uint64_t ne = tensor->ne[k];
        uint64_t step = k == 0 ? tensor->type->block_elems : 1;
        uint64_t unit = tensor->n_bytes / (ne / step);
        uint64_t values[] = {ne + step, 2 * ne, ne - step, ne / 2 / step * step, 0};
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
            uint64_t size = values[i] / step * unit;
            /* The same size with its padding is the same place for all that follow. */
            if ((size + 31) / 32 != (tensor->n_bytes + 31) / 32)
                change(g, entry + 4 + 8 * k, values[i], 8, what);
        }
    }
    size_t at = entry + 4 + 8 * (size_t)tensor->n_dims;
    const struct gguf_type_info *type;
    snprintf(what, sizeof what, "another type of %s", tensor->name);
    for (size_t i = 0; (type = type_at(i)) != NULL; i++) {
        uint64_t size = 0;
        (void)gguf_row_bytes(type, tensor->ne[0], &size);
        size = size * tensor->n_rows + type->tail_bytes;
        if ((size + 31) / 32 != (tensor->n_bytes + 31) / 32)
            change(g, at, type->type, 4, what);
    }
    uint64_t offset = gguf_load_u64(g->bytes.data + at + 4);
    snprintf(what, sizeof what, "another offset of %s", tensor->name);
    for (uint64_t delta = 1; delta <= 4096; delta *= 2) {
        change(g, at + 4, offset + delta, 8, what);
        change(g, at + 4, offset - delta, 8, what);
    }
}

/* Lengths and counts of keys and values: all that follows is read from elsewhere. */
static void wrong_pairs(struct good *g)
{
    for (size_t i = 0; i < gguf_n_kv(g->file); i++) {
        const struct gguf_kv *kv = gguf_kv_at(g->file, i);
        size_t key = (size_t)((const uint8_t *)kv->key.data - g->bytes.data);
        size_t value = (size_t)(kv->data - g->bytes.data);
        for (uint64_t delta = 1; delta <= 4; delta++) {
            change(g, key - 8, kv->key.n_bytes + delta, 8, "a longer key");
            change(g, key - 8, kv->key.n_bytes - delta, 8, "a shorter key");
            if (kv->type == GGUF_VALUE_ARRAY) {
                change(g, value - 8, kv->count + delta, 8, "a larger array");
                change(g, value - 8, kv->count - delta, 8, "a smaller array");
            }
        }
    }
}

/* Cut anywhere in the data, and with bytes after it. */
static void wrong_lengths(struct good *g)
{
    size_t n = g->bytes.n_bytes;
    for (size_t cut = 64; cut < n; cut += 1 + n / 97)
        expect_refused(g, g->bytes.data, n - cut, "its end cut off");
    uint8_t *longer = malloc(n + 256);
    assert_non_null(longer);
    memcpy(longer, g->bytes.data, n);
    for (size_t more = 1; more <= 256; more++) {
        longer[n + more - 1] = (uint8_t)more | 1;
        expect_refused(g, longer, n + more, "bytes behind it");
    }
    free(longer);
}

static void check_all(struct good *g)
{
    g->file = sample_open(&g->bytes);
    wrong_counts(g);
    wrong_pairs(g);
    wrong_lengths(g);
    for (size_t i = 0; i < gguf_n_tensors(g->file); i++)
        wrong_shapes(g, gguf_tensor_at(g->file, i));
    gguf_close(g->file);
    free(g->bytes.data);
    print_message("%s: %zu wrong files refused\n", g->name, g->n_tried);
    assert_true(g->n_tried > 100);
}

static void test_sample(void **state)
{
    (void)state;
    check_all(&(struct good){.name = "the sample", .bytes = sample_make()});
}

static void test_models(void **state)
{
    (void)state;
    static const char *const names[] = {"/data/tiny.Q4_K_M.gguf", "/data/tiny.F16.gguf"};
    for (size_t i = 0; i < 2; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s%s", ASSAY_SOURCE_DIR, names[i]);
        check_all(&(struct good){.name = names[i], .bytes = sample_read(path)});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sample),
        cmocka_unit_test(test_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Exact sums: the floats nearest to them, files that give them back, parts in any order. Hand-made
 * files, and what is refused, are in tests/cli/test_imatrix_files.py. */
#include "tests/harness/cmocka.h"
#include <stdlib.h>

#include "clients/imatrix/add.h"
#include "clients/imatrix/file/read.h"
#include "clients/imatrix/file/write.h"
#include "clients/imatrix/sum.h"
#include "tests/harness/rng.h"
#include "tests/harness/temp.h"

enum { N_ENTRIES = 4, N_COLUMNS = 9, N_PARTS = 5, N_ROUNDS = 20 };

#define OK(call) assert_int_equal((call), STATUS_OK)

static struct imat_sum any_sum(struct rng *r)
{
    imat_wide bits = (imat_wide)rng_next(r) << 64 | rng_next(r);
    return imat_sum_of(bits >> (4 + rng_below(r, 124)));
}

/* A part of windows [begin, end) with entries of all sizes; a matrix may have no rows. */
static void make(struct imat_matrix *m, struct rng *r, uint64_t begin, uint64_t end)
{
    *m = (struct imat_matrix){.n = N_ENTRIES, .exact = true, .chunk_size = 32, .n_datasets = 1};
    assert_non_null(m->entries = calloc(N_ENTRIES, sizeof *m->entries));
    for (size_t i = 0; i < N_ENTRIES; i++) {
        struct imat_entry *e = &m->entries[i];
        assert_true(asprintf(&e->name, "blk.%zu.x.weight", i) > 0);
        e->n_columns = N_COLUMNS;
        e->n_matrices = i + 1;
        assert_non_null(e->counts = calloc(i + 1, sizeof *e->counts));
        assert_non_null(e->sums = calloc(N_COLUMNS * (i + 1), sizeof *e->sums));
        for (size_t k = 0; k <= i; k++)
            e->counts[k] = rng_below(r, 4) ? rng_next(r) >> (6 + rng_below(r, 57)) : 0;
        for (size_t j = 0; j < N_COLUMNS * (i + 1); j++)
            e->sums[j] = e->counts[j / N_COLUMNS] ? any_sum(r) : (struct imat_sum){0};
    }
    m->n_chunks = 0;
    assert_non_null(m->datasets = calloc(1, sizeof *m->datasets));
    assert_non_null(m->texts = calloc(1, sizeof *m->texts));
    assert_non_null(m->ranges = calloc(1, sizeof *m->ranges));
    m->datasets[0] = strdup("a text");
    m->texts[0] = strdup("its windows");
    m->model = strdup("a model");
    m->ranges[0] = (struct imat_range){0, begin, end};
    m->n_ranges = 1;
}

static void assert_same(const struct imat_matrix *a, const struct imat_matrix *b)
{
    assert_int_equal(a->n, b->n);
    assert_true(a->exact == b->exact && a->counts_lost == b->counts_lost);
    assert_true(a->n_chunks == b->n_chunks && a->chunk_size == b->chunk_size);
    assert_int_equal(a->n_ranges, b->n_ranges);
    assert_memory_equal(a->ranges, b->ranges, a->n_ranges * sizeof *a->ranges);
    assert_string_equal(a->model, b->model);
    for (size_t i = 0; i < a->n; i++) {
        const struct imat_entry *x = &a->entries[i], *y = &b->entries[i];
        assert_string_equal(x->name, y->name);
        assert_true(x->n_columns == y->n_columns && x->n_matrices == y->n_matrices);
        assert_memory_equal(x->counts, y->counts, x->n_matrices * sizeof *x->counts);
        assert_memory_equal(x->sums, y->sums, x->n_matrices * x->n_columns * sizeof *x->sums);
    }
}

static void read_back(struct imat_matrix *out, const struct imat_matrix *m)
{
    char folder[64], path[128];
    struct base_file *file;
    struct status_why why = {""};
    temp_make(folder);
    temp_path(path, folder, "m");
    OK(base_file_create(&file, path, NULL, &why));
    OK(imat_write_gguf(m, file, &why));
    OK(base_file_commit(file, &why));
    enum status status = imat_read(out, path, &why);
    unlink(path);
    rmdir(folder);
    assert_string_equal(why.text, "");
    OK(status);
}

/* What is nearest is no further than either neighbour, and a tie is even. */
static void nearest_floats(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 0);
    for (size_t i = 0; i < 10000; i++) {
        struct imat_sum s = any_sum(&r);
        imat_wide quanta = imat_sum_quanta(s),
                  near = (imat_wide)((double)imat_sum_float(s) * 0x1p64);
        size_t spare = 0;
        while (quanta >> spare >> 24)
            spare++;
        imat_wide unit = (imat_wide)1 << spare, low = quanta & (unit - 1), down = quanta - low;
        bool up = 2 * low > unit || (2 * low == unit && (down >> spare & 1));
        assert_true(near == (up ? down + unit : down));
        assert_true(near + (imat_wide)imat_sum_remainder(s) == quanta);
    }
    struct imat_sum tie = imat_sum_of(((imat_wide)1 << 40) + ((imat_wide)1 << 16));
    assert_true(imat_sum_remainder(tie) == 1 << 16);
    tie = imat_sum_of(((imat_wide)1 << 40) + ((imat_wide)3 << 16));
    assert_true(imat_sum_remainder(tie) == -(1 << 16));
}

static void files_give_back(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 1);
    for (size_t i = 0; i < N_ROUNDS; i++) {
        struct imat_matrix m, back = {0};
        make(&m, &r, i, i + 3);
        read_back(&back, &m);
        assert_same(&m, &back);
        imat_free(&m);
        imat_free(&back);
    }
}

/* Sums are those of integers, in any order and in two steps. */
static void parts_in_any_order(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 2);
    struct status_why why = {""};
    for (size_t i = 0; i < N_ROUNDS; i++) {
        struct imat_part parts[N_PARTS], two[2] = {{.path = "x"}, {.path = "y"}};
        struct imat_matrix sum = {0}, again = {0};
        struct base_buffer notes = {0};
        for (size_t k = 0; k < N_PARTS; k++) {
            parts[k].path = "p";
            make(&parts[k].matrix, &r, 10 * k, 10 * k + 10);
        }
        OK(imat_add(&sum, parts, N_PARTS, &notes, &why));
        imat_wide first = 0;
        for (size_t k = 0; k < N_PARTS; k++)
            first += imat_sum_quanta(parts[k].matrix.entries[0].sums[0]);
        assert_true(imat_sum_quanta(sum.entries[0].sums[0]) == first);
        assert_true(sum.n_ranges == 1 && sum.ranges[0].begin == 0 && sum.ranges[0].end == 50);
        assert_int_equal(sum.n_chunks, imat_most_rows(&sum) / 32);
        for (size_t k = N_PARTS - 1; k > 0; k--) {
            size_t other = rng_below(&r, k + 1);
            struct imat_part moved = parts[k];
            parts[k] = parts[other];
            parts[other] = moved;
        }
        size_t n = 1 + rng_below(&r, N_PARTS - 1);
        OK(imat_add(&two[0].matrix, parts, n, &notes, &why));
        OK(imat_add(&two[1].matrix, parts + n, N_PARTS - n, &notes, &why));
        OK(imat_add(&again, two, 2, &notes, &why));
        assert_same(&sum, &again);
        assert_int_equal(notes.n, 0);
        for (size_t k = 0; k < N_PARTS; k++)
            imat_free(&parts[k].matrix);
        imat_free(&two[0].matrix);
        imat_free(&two[1].matrix);
        imat_free(&sum);
        imat_free(&again);
        base_buffer_free(&notes);
    }
}

static void too_large(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 3);
    struct imat_part parts[2] = {{.path = "a"}, {.path = "b"}};
    struct imat_matrix sum = {0};
    struct base_buffer notes = {0};
    struct status_why why = {""};
    for (size_t i = 0; i < 2; i++) {
        make(&parts[i].matrix, &r, i, i + 1);
        parts[i].matrix.entries[0].counts[0] = 1;
        parts[i].matrix.entries[0].sums[3] = (struct imat_sum){0, UINT64_C(1) << 62};
    }
    assert_int_equal(imat_add(&sum, parts, 2, &notes, &why), STATUS_UNSUPPORTED);
    assert_string_equal(why.text,
                        "b: matrix 'blk.0.x.weight': the sum has a number of 2^63 or more, "
                        "expected less");
    imat_free(&sum);
    base_buffer_free(&notes);
    imat_free(&parts[0].matrix);
    imat_free(&parts[1].matrix);
}

static void cannot_be_written(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 4);
    struct imat_matrix m = {0};
    struct base_file *file;
    struct status_why why = {""};
    OK(base_file_create(&file, "/dev/null", NULL, &why));
    assert_int_equal(imat_write_gguf(&m, file, &why), STATUS_UNSUPPORTED);
    assert_int_equal(imat_write_dat(&m, file, &why), STATUS_UNSUPPORTED);
    make(&m, &r, 0, 1);
    m.entries[0].counts[0] = UINT64_C(1) << 40;
    assert_int_equal(imat_write_dat(&m, file, &why), STATUS_UNSUPPORTED);
    assert_non_null(strstr(why.text, "the older format has 31 bits"));
    m.chunk_size = UINT64_C(1) << 32;
    assert_int_equal(imat_write_gguf(&m, file, &why), STATUS_UNSUPPORTED);
    assert_non_null(strstr(why.text, "GGUF has 32 bits"));
    imat_free(&m);
    base_file_abandon(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nearest_floats),     cmocka_unit_test(files_give_back),
        cmocka_unit_test(parts_in_any_order), cmocka_unit_test(too_large),
        cmocka_unit_test(cannot_be_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

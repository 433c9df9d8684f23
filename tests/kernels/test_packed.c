/**
 * Packed integers (kernels/quant/packed.h): each way in which words, scales, zero points and groups
 * of columns may lie, against their definition in double. ASSAY_TEST_SEED repeats a run.
 */
#include <string.h>

#include "kernels/quant/packed.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/rng.h"

enum { PACKED_ROWS = 24, PACKED_COLS = 192, MOST_GROUPS = PACKED_COLS / 32 };

struct packing {
    enum gguf_type type;
    bool across; /* rows and columns take the place of each other */
    bool of_rows, turned, ordered, zeros;
    int zero_more;
    size_t n_groups;
};

/** Numbers of random bits, and their words: a word has rows or columns, and a next one follows it
 * in the row or in the column. */
struct numbers {
    unsigned values[PACKED_ROWS][PACKED_COLS];
    uint8_t words[PACKED_ROWS * PACKED_COLS];
    struct gguf_words at;
};

static void draw_numbers(struct rng *r, struct numbers *n, struct gguf_words at, bool across,
                         size_t n_cols)
{
    size_t each = 32u / at.bits, height = at.of_rows ? each : 1, width = at.of_rows ? 1 : each;
    size_t n_words[] = {PACKED_ROWS / height, (n_cols + width - 1) / width};
    memset(n->words, 0, sizeof n->words);
    at.data = n->words;
    at.row_step = 4 * (across ? 1 : n_words[1]);
    at.col_step = 4 * (across ? n_words[0] : 1);
    n->at = at;
    for (size_t row = 0; row < PACKED_ROWS; row++)
        for (size_t col = 0; col < n_cols; col++) {
            size_t i = (at.of_rows ? row : col) % each;
            static const size_t turned[] = {0, 4, 1, 5, 2, 6, 3, 7};
            size_t bit = at.bits * (at.turned ? turned[i] : i);
            uint8_t *word = n->words + row / height * at.row_step + col / width * at.col_step;
            n->values[row][col] = (unsigned)rng_below(r, 1u << at.bits);
            word[bit / 8] |= (uint8_t)(n->values[row][col] << bit % 8);
        }
}

static void check_packed(struct rng *r, const struct packing *p)
{
    static struct numbers codes, zeros;
    unsigned bits = gguf_type_info((uint32_t)p->type)->packed_bits;
    struct gguf_words words = {.bits = (uint8_t)bits, .of_rows = p->of_rows, .turned = p->turned};
    uint32_t groups[PACKED_COLS];
    float scales[PACKED_ROWS * MOST_GROUPS];
    draw_numbers(r, &codes, words, p->across, PACKED_COLS);
    words.of_rows = true;
    draw_numbers(r, &zeros, words, p->across, p->n_groups);
    for (size_t i = 0; i < PACKED_ROWS * p->n_groups; i++)
        scales[i] = rng_normal(r);
    for (size_t i = 0; i < PACKED_COLS; i++)
        groups[i] = (uint32_t)rng_below(r, p->n_groups);
    struct gguf_packed packed = {.codes = codes.at,
                                 .zero_more = p->zero_more,
                                 .scale_row_step = 4 * (p->across ? 1 : p->n_groups),
                                 .scale_col_step = 4 * (p->across ? (size_t)PACKED_ROWS : 1),
                                 .groups = p->ordered ? groups : NULL};
    if (p->zeros)
        packed.zeros = zeros.at;
    size_t first = rng_below(r, 8), block = PACKED_COLS / p->n_groups;
    struct kern_rows rows = {.type = p->type,
                             .data = codes.words,
                             .scales = {.data = scales,
                                        .block_rows = 1,
                                        .block_cols = block,
                                        .n_cols = p->n_groups,
                                        .first_row = first,
                                        .packed = &packed}};
    for (size_t row = 0; row < PACKED_ROWS - first; row++) {
        float found[PACKED_COLS], expected[PACKED_COLS];
        kern_rows_decode(&rows, kern_quant_find(p->type)->decode, row, 0, PACKED_COLS, found);
        for (size_t col = 0; col < PACKED_COLS; col++) {
            size_t group = p->ordered ? groups[col] : col / block;
            int zero =
                p->zeros ? (int)zeros.values[first + row][group] + p->zero_more : 1 << (bits - 1);
            float scale =
                scales[((first + row) * packed.scale_row_step + group * packed.scale_col_step) / 4];
            expected[col] = (float)((double)scale * ((int)codes.values[first + row][col] - zero));
        }
        size_t k = compare_bits(found, expected, PACKED_COLS);
        if (k < PACKED_COLS)
            fail_msg("%s, across %d, of rows %d, turned %d, ordered %d, zeros %d: element %zu of "
                     "row %zu is %a, expected %a",
                     gguf_type_name(p->type), p->across, p->of_rows, p->turned, p->ordered,
                     p->zeros, k, row, (double)found[k], (double)expected[k]);
    }
}

static void test_packed(void **state)
{
    (void)state;
    static const enum gguf_type types[] = {GGUF_TYPE_INT4_APART, GGUF_TYPE_INT8_APART,
                                           GGUF_TYPE_INT4_VALUES, GGUF_TYPE_INT8_VALUES};
    struct rng r = rng_open(rng_seed(), 78);
    for (unsigned i = 0; i < 4 * 64; i++) {
        bool values = i % 4 > 1, eight = i % 4 % 2;
        struct packing p = {.type = types[i % 4],
                            .across = i & 4,
                            .of_rows = i & 8,
                            .turned = i & 16 && i & 8 && !eight,
                            .ordered = i & 32 && values,
                            .zeros = i & 64 && (values || !eight),
                            .zero_more = i & 128 ? 1 : 0,
                            .n_groups = i % 3 ? MOST_GROUPS / (i % 3) : 1};
        check_packed(&r, &p);
    }
}

static void test_wrong_zeros(void **state)
{
    (void)state;
    uint8_t words[2][12]; /* 2 columns of 3 words, 8 rows each */
    struct kern_packed_zero wrong;
    struct gguf_packed packed = {.zero_more = 1, .symmetric = true};
    packed.zeros = (struct gguf_words){
        .data = words, .row_step = 4, .col_step = 12, .bits = 4, .of_rows = true, .turned = true};
    struct gguf_scales s = {.n_cols = 2, .packed = &packed};
    memset(words, 0x77, sizeof words);
    assert_false(kern_packed_find_wrong(&s, 24, &wrong));
    words[1][6] = 0x7f; /* the fifth place: the number of row 1 */
    assert_true(kern_packed_find_wrong(&s, 24, &wrong));
    assert_int_equal(wrong.row, 9);
    assert_int_equal(wrong.group, 1);
    assert_int_equal(wrong.value, 15);
    assert_false(kern_packed_find_wrong(&s, 9, &wrong));
    packed.symmetric = false;
    assert_true(kern_packed_find_wrong(&s, 24, &wrong));
    packed.zero_more = 0;
    assert_false(kern_packed_find_wrong(&s, 24, &wrong));
    packed.symmetric = true; /* now 8, not 7, is the middle */
    assert_true(kern_packed_find_wrong(&s, 1, &wrong));
    assert_int_equal(wrong.value, 7);
}

int main(void)
{
    rng_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packed),
        cmocka_unit_test(test_wrong_zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

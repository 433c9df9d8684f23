/*
 * Rows of any type, any bytes: every ISA's decoder gives the scalar one's bits, the integers are
 * within their limits, and nothing beyond the rows is read. The first byte chooses the type, the
 * second how many blocks a row has; the rest are rows.
 */
#include "kernels/cpu/kernels.h"
#include "kernels/quant/rows.h"
#include "tests/fuzz/fuzz.h"
#include "tests/harness/blocks.h"
#include "tests/harness/types.h"

enum { MAX_COLS = 16 * 256 };

/* But for the sign and payload of a NaN. */
static bool same(float a, float b)
{
    return kern_bits_of(a) == kern_bits_of(b) || (a != a && b != b);
}

static void check_integers(const struct kern_rows *rows, size_t row, size_t n, unsigned bits)
{
    const struct kern_integers *format = kern_integers_find(rows->type, bits);
    if (!format)
        return;
    uint8_t work[KERN_ROWS_WORK_BYTES * MAX_COLS];
    int16_t integers[MAX_COLS];
    blocks_integers(format, kern_quant_find(rows->type)->decode,
                    kern_rows_blocks(rows, row, 0, n, work), n, integers);
    for (size_t i = 0; i < n; i++)
        require(integers[i] >= -format->largest && integers[i] <= format->largest);
}

static void check_row(const struct kern_rows *rows, size_t row, size_t n)
{
    static float expected[MAX_COLS], found[MAX_COLS];
    kern_rows_decode(rows, kern_quant_find(rows->type)->decode, row, 0, n, expected);
    for (int isa = 1; isa <= (int)kern_isa_detect(); isa++) {
        struct kern_kernels kernels;
        kern_kernels_build(&kernels, (enum kern_isa)isa);
        kern_rows_decode(rows, kernels.decode[rows->type], row, 0, n, found);
        for (size_t i = 0; i < n; i++)
            require(same(found[i], expected[i]));
    }
    check_integers(rows, row, n, 8);
    check_integers(rows, row, n, 16);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    const struct gguf_type_info *type = n_bytes < 2 ? NULL : type_at(data[0]);
    uint64_t row_bytes;
    if (!type)
        return 0;
    size_t n_cols = (size_t)(1 + data[1] % 16) * type->block_elems;
    require(gguf_row_bytes(type, n_cols, &row_bytes) && row_bytes > 0);
    size_t n_rows = (n_bytes - 2) / row_bytes / type->bundle_rows * type->bundle_rows;
    uint8_t *copy = fuzz_copy(data + 2, n_rows * row_bytes);
    struct kern_rows rows = {.type = type->type, .data = copy, .row_bytes = row_bytes};
    if (type->scale_elems) /* the rows' own bytes, which are more than these */
        rows.scales = (struct gguf_scales){copy, GGUF_SCALE_F32, 1, 128, (n_cols + 127) / 128, 0};
    for (size_t row = 0; row < n_rows && row < 2 * GGUF_MAX_BUNDLE; row++)
        check_row(&rows, row, n_cols);
    free(copy);
    return 0;
}

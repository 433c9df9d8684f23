#include "clients/imatrix/squares.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"

/* HIGH_BITS: of a square below 2^33 in units of 2^-16; MAX_ROWS of them are below 2^63. SHARED:
 * numbers of a tile, some 20 microseconds, that are worth waking threads for. */
enum { MAX_ROWS = 16384, BLOCK = 256, GROUP = 4, HIGH_BITS = 49, SHARED = 16384 };

#define HIGH_UNIT 0x1.8p+36 /* added to a number below 2^35, it leaves a multiple of 2^-16 */
#define LOW_UNIT  0x1.8p-12 /* and a multiple of 2^-64, the quantum, of one below 2^-16 */

bool imat_squares_add(struct imat_sum *sum, float x)
{
    double square = (double)x * (double)x; /* exact */
    if (!(square < 0x1p63))
        return false;
    uint64_t whole = (uint64_t)square;
    uint64_t part = (uint64_t)rint((square - (double)whole) / IMAT_QUANTUM);
    whole += (sum->part + part) < part;
    if (sum->whole + whole >= UINT64_C(1) << 63)
        return false;
    sum->part += part;
    sum->whole += whole;
    return true;
}

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/**
 * Squares of n columns of n_rows rows that lie `stride` apart. A square and HIGH_UNIT add up to a
 * double whose last bit is worth 2^-16, so the sum's bits count such units from HIGH_UNIT's own on.
 * What this rounding leaves is exact, and is counted in quanta likewise. Bits are added as they
 * are. Returns all bits of the sums.
 */
static inline uint64_t add_group(uint64_t *restrict high, uint64_t *restrict low,
                                 const float *restrict x, size_t n, size_t stride, size_t n_rows)
{
    uint64_t all = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t highs = 0, lows = 0;
        for (size_t row = 0; row < n_rows; row++) {
            double square = (double)x[row * stride + i] * (double)x[row * stride + i];
            double sum = square + HIGH_UNIT;
            highs += bits_of(sum);
            lows += bits_of(square - (sum - HIGH_UNIT) + LOW_UNIT);
            all |= bits_of(sum);
        }
        high[i] += highs;
        low[i] += lows;
    }
    return all;
}

/**
 * n columns, at most BLOCK, of all rows. False: a square is too large, or no number. A sum with
 * such a square is above those that differ from HIGH_UNIT in their last HIGH_BITS bits only, so it
 * has a bit above these that HIGH_UNIT has not.
 */
static bool add_rows(uint64_t *high, uint64_t *low, const float *x, size_t n, size_t n_rows,
                     size_t stride)
{
    uint64_t all = bits_of(HIGH_UNIT);
    size_t row = 0;
    for (size_t i = 0; i < n; i++) { /* what the units' own bits will add, from 2^64 */
        high[i] = -(n_rows * bits_of(HIGH_UNIT));
        low[i] = -(n_rows * bits_of(LOW_UNIT));
    }
    for (; n == BLOCK && row + GROUP <= n_rows; row += GROUP) /* numbers that the compiler knows */
        all |= add_group(high, low, x + row * stride, BLOCK, stride, GROUP);
    for (; row < n_rows; row++)
        all |= add_group(high, low, x + row * stride, n, stride, 1);
    return all >> HIGH_BITS == bits_of(HIGH_UNIT) >> HIGH_BITS;
}

static enum status reserve(struct imat_squares *s, size_t n, struct status_why *why)
{
    s->n_columns = n;
    if (n <= s->capacity)
        return STATUS_OK;
    free(s->high);
    free(s->low);
    s->high = malloc(n * sizeof *s->high);
    s->low = malloc(n * sizeof *s->low);
    s->capacity = s->high && s->low ? n : 0;
    return s->capacity
               ? STATUS_OK
               : status_fail(why, STATUS_MEMORY, "no memory for the sums of %zu columns", n);
}

/** A tile, whose blocks of columns are independent. */
struct tile {
    const struct imat_squares *s;
    const float *x;
    size_t n_rows;
    atomic_bool too_large; /* a square is */
};

static void add_block(void *context, size_t block, unsigned thread)
{
    (void)thread;
    struct tile *tile = context;
    size_t n_columns = tile->s->n_columns, from = block * BLOCK;
    if (!add_rows(tile->s->high + from, tile->s->low + from, tile->x + from,
                  base_min(BLOCK, n_columns - from), tile->n_rows, n_columns))
        atomic_store(&tile->too_large, true);
}

enum status imat_squares_make(struct imat_squares *s, const float *x, size_t n_rows,
                              size_t n_columns, bool *plain, struct status_why *why)
{
    enum status status = reserve(s, n_columns, why);
    *plain = n_rows > MAX_ROWS;
    if (status || *plain)
        return status;
    struct tile tile = {.s = s, .x = x, .n_rows = n_rows};
    size_t n_blocks = base_div_up(n_columns, BLOCK);
    if (s->pool && n_rows * n_columns >= SHARED)
        status = base_pool_run(s->pool, n_blocks, add_block, &tile, NULL);
    else
        for (size_t i = 0; i < n_blocks; i++)
            add_block(&tile, i, 0);
    *plain = tile.too_large;
    return status;
}

size_t imat_squares_give(const struct imat_squares *s, struct imat_sum *sums)
{
    for (size_t i = 0; i < s->n_columns; i++) {
        uint64_t part = s->high[i] << 48, whole = s->high[i] >> 16;
        uint64_t low = s->low[i], minus = low >> 63 ? UINT64_MAX : 0;
        part += low;
        whole += minus + (part < low);
        sums[i].part += part;
        sums[i].whole += whole + (sums[i].part < part);
        if (sums[i].whole >> 63)
            return i;
    }
    return s->n_columns;
}

bool imat_squares_equal(const struct imat_squares *a, const struct imat_squares *b)
{
    size_t n_bytes = a->n_columns * sizeof *a->high;
    return a->n_columns == b->n_columns && memcmp(a->high, b->high, n_bytes) == 0 &&
           memcmp(a->low, b->low, n_bytes) == 0;
}

void imat_squares_free(struct imat_squares *s)
{
    free(s->high);
    free(s->low);
    *s = (struct imat_squares){0};
}

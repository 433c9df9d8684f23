#include "clients/conversion/rules.h"

#include <math.h>

#include "base/arithmetic.h"
#include "kernels/kernels.h"
#include "kernels/quant/round.h"

enum conv_rule conv_rule_of(enum gguf_type type, double near)
{
    switch (type) {
    case GGUF_TYPE_F32:
    case GGUF_TYPE_F16:
    case GGUF_TYPE_BF16:
        return near > 0 ? CONV_NEAR : CONV_EXACT;
    case GGUF_TYPE_Q8_0:
        return near > 0 ? CONV_STEP : CONV_BLOCK;
    default:
        return CONV_STEP;
    }
}

struct conv_sums conv_sums_none(void)
{
    return (struct conv_sums){.first_row = UINT64_MAX};
}

double conv_error(const struct conv_sums *s)
{
    if (s->xx == 0)
        return s->ee == 0 ? 0 : (double)INFINITY;
    return sqrt(s->ee / s->xx);
}

double conv_correlation(const struct conv_sums *s)
{
    if (s->xx == 0 || s->yy == 0)
        return s->xx == s->yy ? 1 : 0;
    return s->xy / sqrt(s->xx * s->yy);
}

static bool same(float a, float b)
{
    return kern_bits_of(a) == kern_bits_of(b) || a == b || (isnan(a) && isnan(b));
}

/** The nearest number of a type without blocks. */
static float nearest(enum gguf_type type, float x)
{
    if (type == GGUF_TYPE_F16)
        return kern_half_to_float(kern_half_from_float(x));
    return type == GGUF_TYPE_BF16 ? kern_float_from_bits((uint32_t)kern_bf16_from_float(x) << 16)
                                  : x;
}

/** Programs that write BF16 may have zeros for numbers below the smallest normal one. */
static bool is_nearest(enum gguf_type type, float x, float y)
{
    return same(nearest(type, x), y) || (type == GGUF_TYPE_BF16 && y == 0 && fabsf(x) < 0x1p-126f);
}

/** Half a unit in the last place of the type, and what the caller allows. */
static bool is_near(const struct conv_judge *judge, float x, float y)
{
    enum gguf_type type = judge->type->type;
    double of_type = type == GGUF_TYPE_BF16 ? 0x1p-9 : type == GGUF_TYPE_F16 ? 0x1p-11 : 0;
    double least = type == GGUF_TYPE_F16 ? 0x1p-25 : 0x1p-140;
    double most = fabs((double)x) * (of_type + judge->near) + least;
    return same(x, y) || fabs((double)y - (double)x) <= most;
}

/** Halves are whole numbers of this where they are small; scales are rounded to one. */
static const double least_half = 0x1p-25, half_unit = 0x1p-11;

/**
 * A block of Q8_0: codes are made with d = max / 127, values with d rounded to a half. So a value
 * is off by half a step, and by what the rounding moves 127 steps; a little of float32's.
 */
static double q8_bound(double largest)
{
    return largest * (0.5 / 127 + half_unit + 1e-6) + 127 * least_half;
}

/** The largest product of codes by which the types' scales in half precision are multiplied. */
static double floor_of(const struct gguf_type_info *type)
{
    return (type->block_elems > KERN_PACK_ELEMS ? 4096 : 128) * least_half;
}

static void add_steps(const struct gguf_type_info *type, double largest, double n,
                      struct conv_sums *sums)
{
    double bits = 8.0 * type->block_bytes / type->block_elems;
    double step = largest * exp2(1 - bits), least = floor_of(type);
    sums->steps += n * step * step / 12;
    sums->floor += n * least * least;
}

static void add_block(const struct conv_judge *judge, const float *x, const float *y, size_t n,
                      struct conv_sums *sums)
{
    enum gguf_type type = judge->type->type;
    double largest = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i]))
            largest = fmax(largest, fabs((double)x[i]));
    double bound = q8_bound(largest);
    for (size_t i = 0; i < n; i++) {
        double a = (double)x[i], b = (double)y[i], e = b - a;
        bool finite = isfinite(a), lost = finite && !isfinite(b), right = true;
        if (judge->rule == CONV_EXACT)
            right = is_nearest(type, x[i], y[i]);
        else if (judge->rule == CONV_NEAR)
            right = is_near(judge, x[i], y[i]);
        else if (judge->rule == CONV_BLOCK)
            right = fabs(e) <= bound || !finite;
        sums->n_wrong += !right || lost;
        sums->n_nonfinite += lost;
        sums->n_made_finite += !finite && isfinite(b);
        if (!finite || lost)
            continue;
        sums->xx += a * a;
        sums->yy += b * b;
        sums->xy += a * b;
        sums->ee += e * e;
        sums->largest = fmax(sums->largest, fabs(e));
    }
    sums->n += n;
    sums->largest_expected = fmax(sums->largest_expected, largest);
    if (judge->rule == CONV_STEP)
        add_steps(judge->type, largest, (double)n, sums);
}

void conv_judge_piece(const struct conv_judge *judge, const float *x, const float *y, size_t n,
                      struct conv_sums *sums)
{
    size_t block = judge->rule == CONV_STEP ? judge->type->block_elems : KERN_PACK_ELEMS;
    for (size_t i = 0; i < n; i += block)
        add_block(judge, x + i, y + i, base_min(block, n - i), sums);
}

/** Whether nothing is left of numbers that are too small for the type. */
static bool has_vanished(const struct conv_sums *s)
{
    return s->ee <= s->floor && s->yy < s->xx / 4;
}

/*
 * Of 27 types of a trained model, with and without an importance matrix, the error was 0.8 to 2.3
 * times the step's in tensors and up to 2.7 times in rows; the correlation was 0.66 or more in
 * tensors and 0.31 in rows of 256, where the type has three values, and 0.79 and 0.66 in all
 * others. Numbers of another tensor have an error of 1.4 times their own size, and no correlation.
 */
static const double most_of_row = 4, most_of_matrix = 3;
static const double least_of_row = 0.15, least_of_matrix = 0.5;
static const double least_slope = 0.4, most_slope = 1.6;
enum { FEW_VALUES = 256 /* whose correlation with anything else may be beyond least_of_row */ };

bool conv_judge_row(const struct conv_judge *judge, const struct conv_sums *row)
{
    if (row->n_wrong)
        return false;
    if (judge->rule != CONV_STEP || has_vanished(row))
        return true;
    if (row->n >= FEW_VALUES && conv_correlation(row) < least_of_row)
        return false;
    return row->ee <= most_of_row * most_of_row * row->steps + row->floor;
}

bool conv_judge_unrelated(const struct conv_sums *matrix)
{
    return matrix->n >= FEW_VALUES && matrix->yy > 0 &&
           fabs(conv_correlation(matrix)) < least_of_row;
}

bool conv_judge_likeness(const struct conv_sums *matrix)
{
    double slope = matrix->xx > 0 ? matrix->xy / matrix->xx : 1;
    return has_vanished(matrix) || (conv_correlation(matrix) >= least_of_matrix &&
                                    slope >= least_slope && slope <= most_slope);
}

bool conv_judge_matrix(const struct conv_judge *judge, const struct conv_sums *matrix)
{
    if (matrix->n_wrong || judge->rule != CONV_STEP || has_vanished(matrix))
        return matrix->n_wrong == 0;
    return conv_judge_likeness(matrix) &&
           matrix->ee <= most_of_matrix * most_of_matrix * matrix->steps + matrix->floor;
}

void conv_sums_add_row(struct conv_sums *to, const struct conv_sums *row, bool right,
                       uint64_t number)
{
    struct conv_sums one = *row;
    one.n_rows_wrong = !right;
    one.first_row = right ? UINT64_MAX : number;
    conv_sums_add(to, &one);
}

void conv_sums_add(struct conv_sums *to, const struct conv_sums *rows)
{
    to->n += rows->n;
    to->n_wrong += rows->n_wrong;
    to->n_rows_wrong += rows->n_rows_wrong;
    if (rows->first_row < to->first_row)
        to->first_row = rows->first_row;
    to->n_nonfinite += rows->n_nonfinite;
    to->n_made_finite += rows->n_made_finite;
    to->xx += rows->xx;
    to->yy += rows->yy;
    to->xy += rows->xy;
    to->ee += rows->ee;
    to->steps += rows->steps;
    to->floor += rows->floor;
    to->largest = fmax(to->largest, rows->largest);
    to->largest_expected = fmax(to->largest_expected, rows->largest_expected);
}

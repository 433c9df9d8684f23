/** How far values of a type may be from those that they were made of. */
#ifndef CONVERSION_RULES_H
#define CONVERSION_RULES_H

#include "clients/conversion/conversion.h"

/** near: as in struct conv_view. */
enum conv_rule conv_rule_of(enum gguf_type type, double near);

/** What rows of a tensor are judged by. */
struct conv_judge {
    enum conv_rule rule;
    const struct gguf_type_info *type;
    double near; /* of CONV_NEAR */
};

/** Begin the sums of no values. */
struct conv_sums conv_sums_none(void);

/**
 * Add a piece of a row to the sums: x as expected, y as found.
 * Both begin at a multiple of a block; n is a number of whole blocks.
 */
void conv_judge_piece(const struct conv_judge *judge, const float *x, const float *y, size_t n,
                      struct conv_sums *sums);
/** Whether the sums of a row are what a right one has; of a matrix, or of several rows. */
bool conv_judge_row(const struct conv_judge *judge, const struct conv_sums *row);
bool conv_judge_matrix(const struct conv_judge *judge, const struct conv_sums *matrix);
/** Whether values have less in common than the worst row of any type with its own. */
bool conv_judge_unrelated(const struct conv_sums *matrix);
/** Whether values are those of the other side at all, whatever their types: most, and to scale. */
bool conv_judge_likeness(const struct conv_sums *matrix);
/** Add those of a row (number `row`) or of several to others. */
void conv_sums_add_row(struct conv_sums *to, const struct conv_sums *row, bool right,
                       uint64_t number);
void conv_sums_add(struct conv_sums *to, const struct conv_sums *rows);

#endif

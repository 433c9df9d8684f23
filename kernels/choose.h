/** What both backends ask of kern_choose() and of the rows of bits that it writes. */
#ifndef KERNELS_CHOOSE_H
#define KERNELS_CHOOSE_H

#include "kernels/operations.h"

/** Fails: STATUS_USAGE (a query sees more keys than there is room for). */
enum status kern_choose_check(const struct kern_choose *op, struct status_why *why);
/** Fails: STATUS_USAGE (the number of sets; a scale that is not above 0). */
enum status kern_chosen_check(const struct kern_attention *op, struct status_why *why);

#endif

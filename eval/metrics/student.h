/** Student's t: what a mean of few numbers is off by. */
#ifndef EVAL_METRICS_STUDENT_H
#define EVAL_METRICS_STUDENT_H

#include <stddef.h>

/**
 * The value that Student's t exceeds with probability `tail`, to 1e-9 of itself.
 * freedom: above 0.   tail: above 0, below 1/2.
 */
double eval_student(size_t freedom, double tail);

#endif

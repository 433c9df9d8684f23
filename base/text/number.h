/** Floats in sentences: with all the digits that tell one from another. */
#ifndef BASE_TEXT_NUMBER_H
#define BASE_TEXT_NUMBER_H

/** Room for one number; lives in the caller's frame. */
struct base_number {
    char text[24];
};

/** Fill `number` with the fewest digits that are read back as `value`, and return its text. */
const char *base_float_text(struct base_number *number, float value);

/* Figures for people: as many digits as mean something. */

enum { BASE_FIGURE_BYTES = 64 };

/**
 * "0.003623 ± 0.000048", "4.34e-05 ± 4.2e-07": the error with two digits, the value down to the
 * last of them; where that takes more than six decimals, in scientific notation. Without an error
 * (0, or not finite) the value has six digits.   Returns out.
 */
const char *base_figure_with_error(char out[BASE_FIGURE_BYTES], double value, double error);

/** A value that has no error, with n digits; below 0.0001 in scientific notation. */
const char *base_figure(char out[BASE_FIGURE_BYTES], double value, int n_digits);

#endif

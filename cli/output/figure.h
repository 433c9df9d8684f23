/** Figures for people: as many digits as mean something. */
#ifndef CLI_OUTPUT_FIGURE_H
#define CLI_OUTPUT_FIGURE_H

enum { CLI_FIGURE_BYTES = 64 };

/**
 * "0.003623 ± 0.000048", "4.34e-05 ± 4.2e-07": the error with two digits, the value down to the
 * last of them; where that takes more than six decimals, in scientific notation. Without an error
 * (0, or not finite) the value has six digits.   Returns out.
 */
const char *cli_figure_with_error(char out[CLI_FIGURE_BYTES], double value, double error);

/** A value that has no error, with n digits; below 0.0001 in scientific notation. */
const char *cli_figure(char out[CLI_FIGURE_BYTES], double value, int n_digits);

#endif

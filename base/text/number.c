#include "base/text/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/printable.h"

const char *base_float_text(struct base_number *number, float value)
{
    enum { MAX_DIGITS = 9 }; /* that many tell all floats apart */
    for (int n = 1; n <= MAX_DIGITS; n++) {
        snprintf(number->text, sizeof number->text, "%.*g", n, (double)value);
        if (strtof(number->text, NULL) == value)
            break;
    }
    return number->text;
}

enum { MOST_DECIMALS = 6, MOST_DIGITS = 17 /* what a double has */ };
static const double least_fixed = 1e-4, most_fixed = 1e7;

/* The power of ten of the first of n digits, rounded to so many. */
static int exponent_of(double x, int n_digits)
{
    char text[BASE_FIGURE_BYTES];
    snprintf(text, sizeof text, "%.*e", n_digits - 1, x);
    return (int)strtol(strchr(text, 'e') + 1, NULL, 10);
}

const char *base_figure(char out[BASE_FIGURE_BYTES], double value, int n_digits)
{
    double size = fabs(value);
    if (!isfinite(value))
        snprintf(out, BASE_FIGURE_BYTES, "%g", base_unsigned_nan(value));
    else if (size == 0)
        snprintf(out, BASE_FIGURE_BYTES, "0");
    else if (size < least_fixed || size >= most_fixed)
        snprintf(out, BASE_FIGURE_BYTES, "%.*e", n_digits - 1, value);
    else
        snprintf(out, BASE_FIGURE_BYTES, "%.*f",
                 (int)fmax(0, n_digits - 1 - exponent_of(value, n_digits)), value);
    return out;
}

/* Both down to the second digit of the error, which is that of 10^last. */
static void put_pair(char out[BASE_FIGURE_BYTES], double value, double error, int last)
{
    int n_decimals = last < 0 ? -last : 0;
    if (n_decimals > MOST_DECIMALS || fabs(value) >= most_fixed) {
        int n_digits = (int)fmin(MOST_DIGITS - 1, fmax(0, exponent_of(value, 1) - last));
        char shown[MOST_DIGITS + 8] = "0"; /* a sign, a point, e+308 */
        if (value != 0)
            snprintf(shown, sizeof shown, "%.*e", n_digits, value);
        snprintf(out, BASE_FIGURE_BYTES, "%s ± %.1e", shown, error);
        return;
    }
    if (last > 0) {
        double step = pow(10, last);
        value = step * round(value / step);
        error = step * round(error / step);
    }
    snprintf(out, BASE_FIGURE_BYTES, "%.*f ± %.*f", n_decimals, base_shown(value, n_decimals),
             n_decimals, error);
}

const char *base_figure_with_error(char out[BASE_FIGURE_BYTES], double value, double error)
{
    if (isfinite(value) && isfinite(error) && error > 0) {
        put_pair(out, value, error, exponent_of(error, 2) - 1);
        return out;
    }
    char shown[BASE_FIGURE_BYTES];
    snprintf(shown, sizeof shown, "%.6g", base_unsigned_nan(value));
    if (isfinite(value) && error == 0)
        snprintf(out, BASE_FIGURE_BYTES, "%.40s ± 0", shown);
    else
        snprintf(out, BASE_FIGURE_BYTES, "%.40s", shown);
    return out;
}

#include "base/text/printable.h"

#include <math.h>
#include <string.h>

#include "base/text/escape.h"

const char *base_printable_text(char *out, size_t capacity, const char *text)
{
    return base_printable(out, capacity, text, strlen(text));
}

const char *base_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

double base_unsigned_nan(double x)
{
    return isnan(x) ? fabs(x) : x;
}

double base_shown(double x, int n_decimals)
{
    return fabs(x) <= 0.5 * pow(10, -n_decimals) ? 0 : base_unsigned_nan(x);
}

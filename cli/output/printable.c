#include "cli/output/printable.h"

#include <math.h>
#include <string.h>

/* Bytes that go on with a character of UTF-8. */
static int continues(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

const char *cli_printable(char *out, size_t capacity, const char *text)
{
    size_t n = 0;
    for (; *text && n + 1 < capacity; text++)
        out[n++] = (unsigned char)*text < 0x20 || *text == 0x7f ? ' ' : *text;
    if (continues(*text)) { /* cut inside a character: leave it out */
        while (n && continues(out[n - 1]))
            n--;
        n -= n > 0;
    }
    out[n] = '\0';
    return out;
}

const char *cli_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

double cli_unsigned_nan(double x)
{
    return isnan(x) ? fabs(x) : x;
}

double cli_shown(double x, int n_decimals)
{
    return fabs(x) <= 0.5 * pow(10, -n_decimals) ? 0 : cli_unsigned_nan(x);
}

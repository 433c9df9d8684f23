#include "base/text/size.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct base_size_unit units[] = {
    {"", 1},         {"B", 1},    {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30},
    {"TiB", 0x1p40}, {"kB", 1e3}, {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},
};
enum { N_UNITS = sizeof units / sizeof *units, MIB = 3, GIB = 4 };

/* The number of a size, and its unit; NULL: it is none. */
static const struct base_size_unit *read(const char *text, double *number)
{
    size_t n = strspn(text, "0123456789.");
    char *end;
    *number = strtod(text, &end);
    if (n == 0 || end != text + n)
        return NULL;
    end += *end == ' ' && end[1];
    for (size_t i = 0; i < N_UNITS; i++)
        if (strcasecmp(end, units[i].name) == 0)
            return &units[i];
    return NULL;
}

bool base_size_parse(const char *text, uint64_t *n_bytes)
{
    double number;
    const struct base_size_unit *unit = read(text, &number);
    if (!unit || number * unit->n_bytes >= 0x1p63)
        return false;
    *n_bytes = (uint64_t)(number * unit->n_bytes);
    return true;
}

bool base_size_lacks_unit(const char *text)
{
    enum { LEAST = 10000 };
    double number;
    return read(text, &number) == units && number > 0 && number < LEAST;
}

const struct base_size_unit *base_size_unit(const char *text, double n_bytes)
{
    double number;
    const struct base_size_unit *unit = text ? read(text, &number) : NULL;
    return unit && unit->n_bytes > 1 ? unit : &units[n_bytes >= 0x1p30 ? GIB : MIB];
}

const char *base_size_digits(char out[BASE_SIZE_BYTES], double n_bytes,
                             const struct base_size_unit *unit)
{
    double x = n_bytes / unit->n_bytes;
    int before = x > 0 ? (int)floor(log10(x)) + 1 : 1;
    snprintf(out, BASE_SIZE_BYTES, "%.*f", before < 4 ? 4 - before : 0, x);
    return out;
}

const char *base_size_text(char out[BASE_SIZE_BYTES], double n_bytes,
                           const struct base_size_unit *unit)
{
    base_size_digits(out, n_bytes, unit);
    size_t n = strlen(out);
    snprintf(out + n, BASE_SIZE_BYTES - n, " %s", unit->name);
    return out;
}

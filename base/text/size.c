#include "base/text/size.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool base_size_parse(const char *text, uint64_t *n_bytes)
{
    static const struct {
        const char *name;
        double n_bytes;
    } units[] = {
        {"", 1},         {"B", 1},    {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30},
        {"TiB", 0x1p40}, {"kB", 1e3}, {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},
    };
    size_t n = strspn(text, "0123456789.");
    char *end;
    double number = strtod(text, &end);
    if (n == 0 || end != text + n)
        return false;
    end += *end == ' ' && end[1];
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcasecmp(end, units[i].name) == 0 && number * units[i].n_bytes < 0x1p63) {
            *n_bytes = (uint64_t)(number * units[i].n_bytes);
            return true;
        }
    return false;
}

#include "clients/documents/results/drawn.h"

#include <math.h>
#include <stddef.h>

static const struct {
    double share; /* of the tokens, at most */
    const char *words;
} bounds[] = {
    {0.01, "at most 1 in 100"}, {0.02, "at most 1 in 50"}, {0.05, "at most 1 in 20"},
    {0.1, "at most 1 in 10"},   {0.2, "at most 1 in 5"},   {0.5, "at most 1 in 2"},
};

const char *doc_drawn_otherwise(double kld, double rounding)
{
    if (kld <= rounding)
        return "none beyond rounding";
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (sqrt(fmax(kld, 0) / 2) <= bounds[i].share)
            return bounds[i].words;
    return "perhaps most";
}

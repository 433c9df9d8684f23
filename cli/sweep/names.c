#include "cli/sweep/names.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MATCH_LIMIT = 100000 }; /* steps of a pattern on a name */

struct cli_sweep_names {
    enum cli_sweep_by by;
    const struct cli_list *patterns;
    pcre2_code **codes;      /* [patterns->n] */
    pcre2_match_data *found; /* for the largest of them */
    pcre2_match_context *limits;
};

struct cli_sweep_place cli_sweep_place(const char *tensor)
{
    struct cli_sweep_place place = {.layer = SIZE_MAX};
    unsigned layer;
    int n_prefix = 0;
    if (sscanf(tensor, "blk.%u.%n", &layer, &n_prefix) == 1 && n_prefix)
        place.layer = layer;
    snprintf(place.role, sizeof place.role, "%s", tensor + n_prefix);
    char *end = strrchr(place.role, '.');
    if (end && strcmp(end, ".weight") == 0)
        *end = '\0';
    return place;
}

static enum status compile(struct cli_sweep_names *names, size_t i, struct status_why *why)
{
    const char *pattern = names->patterns->items[i];
    int error;
    PCRE2_SIZE at;
    names->codes[i] =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, 0, &error, &at, NULL);
    if (names->codes[i])
        return STATUS_OK;
    char message[128];
    pcre2_get_error_message(error, (PCRE2_UCHAR *)message, sizeof message);
    return status_fail(why, STATUS_USAGE, "--group '%s' is no pattern: %s at character %zu",
                       pattern, message, (size_t)at);
}

enum status cli_sweep_names_open(struct cli_sweep_names **out, enum cli_sweep_by by,
                                 const struct cli_list *patterns, struct status_why *why)
{
    struct cli_sweep_names *names = *out = calloc(1, sizeof *names);
    if (!names)
        return status_fail(why, STATUS_MEMORY, "no memory for the groups");
    names->by = by;
    names->patterns = patterns;
    names->codes = calloc(patterns->n + 1, sizeof *names->codes);
    names->found = pcre2_match_data_create(16, NULL);
    names->limits = pcre2_match_context_create(NULL);
    enum status status = STATUS_OK;
    if (!names->codes || !names->found || !names->limits)
        status = status_fail(why, STATUS_MEMORY, "no memory for the groups");
    else
        pcre2_set_match_limit(names->limits, MATCH_LIMIT);
    for (size_t i = 0; i < patterns->n && !status; i++)
        status = compile(names, i, why);
    return status;
}

void cli_sweep_names_close(struct cli_sweep_names *names)
{
    if (!names)
        return;
    for (size_t i = 0; names->codes && i < names->patterns->n; i++)
        pcre2_code_free(names->codes[i]);
    free(names->codes);
    pcre2_match_data_free(names->found);
    pcre2_match_context_free(names->limits);
    free(names);
}

/** What the n - 1 parentheses of a match hold, commas between them. */
static void join_parts(const struct cli_sweep_names *names, const char *tensor, int n,
                       char group[CLI_SWEEP_NAME_BYTES])
{
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(names->found);
    size_t used = 0;
    for (int i = 1; i < n; i++) {
        bool matched = ends[2 * i] != PCRE2_UNSET;
        int length = matched ? (int)(ends[2 * i + 1] - ends[2 * i]) : 0;
        int written = snprintf(group + used, CLI_SWEEP_NAME_BYTES - used, "%s%.*s",
                               i > 1 ? "," : "", length, matched ? tensor + ends[2 * i] : "");
        used += (size_t)written;
        if (used >= CLI_SWEEP_NAME_BYTES)
            return;
    }
}

static enum status match(const struct cli_sweep_names *names, const char *tensor,
                         char group[CLI_SWEEP_NAME_BYTES], bool *in_group, struct status_why *why)
{
    *in_group = false;
    for (size_t i = 0; i < names->patterns->n; i++) {
        const char *pattern = names->patterns->items[i];
        int n = pcre2_match(names->codes[i], (PCRE2_SPTR)tensor, strlen(tensor), 0, 0, names->found,
                            names->limits);
        if (n == PCRE2_ERROR_NOMATCH)
            continue;
        if (n < 0)
            return status_fail(why, STATUS_USAGE,
                               "--group '%s' takes too many steps to be found in '%s'", pattern,
                               tensor);
        *in_group = true;
        if (n > 1)
            join_parts(names, tensor, n, group);
        if (n == 1 || !*group)
            snprintf(group, CLI_SWEEP_NAME_BYTES, "%s", pattern);
        return STATUS_OK;
    }
    return STATUS_OK;
}

enum status cli_sweep_name(const struct cli_sweep_names *names, const char *tensor,
                           char group[CLI_SWEEP_NAME_BYTES], bool *in_group, struct status_why *why)
{
    if (names->patterns->n)
        return match(names, tensor, group, in_group, why);
    *in_group = true;
    struct cli_sweep_place place = cli_sweep_place(tensor);
    if (names->by == CLI_SWEEP_BY_TENSOR || place.layer == SIZE_MAX)
        snprintf(group, CLI_SWEEP_NAME_BYTES, "%s", tensor);
    else if (names->by == CLI_SWEEP_BY_LAYER)
        snprintf(group, CLI_SWEEP_NAME_BYTES, "blk.%zu", place.layer);
    else
        snprintf(group, CLI_SWEEP_NAME_BYTES, "%s", place.role);
    return STATUS_OK;
}

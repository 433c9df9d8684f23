#include "clients/cluster/merge.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/json/parse.h"
#include "base/json/read.h"
#include "eval/run.h"

/** A number of the settings that a part's range determines. */
struct ranged {
    const char *object, *key;
};
enum { CHUNKS, CHUNK_FROM, N_WINDOWS, FIRST, N_RANGED };
static const struct ranged ranged[N_RANGED] = {
    {"settings", "chunks"}, {"settings", "chunk_from"}, {"windows", "n"}, {"windows", "first"}};

struct part {
    const char *path;
    struct eval_journal *journal;
    char *settings; /* with zeros for what depends on the range */
    size_t first, n, n_in_text;
};

/** A member of a member of the settings, as a count; -1 where there is none. */
static double number(const cJSON *root, const char *object, const char *key)
{
    const cJSON *o = base_json_member(root, object);
    const cJSON *value = base_json_member(o, key);
    return cJSON_IsNumber(value) ? value->valuedouble : -1;
}

/** How many windows the text has, or the base's file: what a run without --chunks evaluates. */
static size_t count_windows(const cJSON *root)
{
    double in_base = number(root, "base", "n_chunks"), n = number(root, "tokens", "n");
    double in_documents = number(base_json_member(root, "tokens"), "documents", "n_windows");
    double size = number(root, "windows", "n_tokens"), step = number(root, "windows", "step");
    if (in_base > 0)
        return (size_t)in_base;
    if (in_documents > 0)
        return (size_t)in_documents;
    if (size < 1 || step < 1 || n < size)
        return 0;
    if (step < size) /* eval_plan_make, strided */
        return base_max(base_div_up((size_t)(n - size), (size_t)step), 1);
    return (size_t)(n / size);
}

/**
 * Put a number in the place of one of the ranged ones. Names of members stand in quotes that no
 * text has: there they are escaped.
 */
static enum status put(char **settings, const struct ranged *what, long value,
                       struct status_why *why)
{
    char name[32], digits[24], *made = NULL;
    snprintf(name, sizeof name, "\"%s\":", what->object);
    const char *at = strstr(*settings, name);
    snprintf(name, sizeof name, "\"%s\":", what->key);
    at = at ? strstr(at, name) : NULL;
    if (!at)
        return status_fail(why, STATUS_FORMAT, "settings without %s.%s", what->object, what->key);
    at += strlen(name);
    at += strspn(at, " \t");
    size_t n_before = (size_t)(at - *settings), n_digits = strspn(at, "-0123456789");
    int n_new = snprintf(digits, sizeof digits, "%ld", value);
    made = calloc(strlen(*settings) + (size_t)n_new + 1, 1);
    if (!made)
        return status_fail(why, STATUS_MEMORY, "no memory for the settings of a journal");
    memcpy(made, *settings, n_before);
    memcpy(made + n_before, digits, (size_t)n_new);
    memcpy(made + n_before + n_new, at + n_digits, strlen(at + n_digits));
    free(*settings);
    *settings = made;
    return STATUS_OK;
}

static enum status refuse_kind(const struct part *part, const cJSON *root, struct status_why *why)
{
    const cJSON *name = base_json_member(root, "evaluator");
    const cJSON *recording = base_json_member(root, "recording");
    const cJSON *format = base_json_member(recording, "format");
    if (number(root, "windows", "first") < 0)
        return status_fail(why, STATUS_USAGE,
                           "%s: is of %s, which has no ranges of windows (--chunk-from)",
                           part->path, cJSON_IsString(name) ? name->valuestring : "something");
    if (cJSON_IsTrue(base_json_member(root, "sums_apart")))
        return status_fail(why, STATUS_USAGE,
                           "%s: is of assay %s, whose sums are in another file; give each range of "
                           "the windows an output of its own (-o), and merge those",
                           part->path, cJSON_IsString(name) ? name->valuestring : "something");
    if (cJSON_IsString(format))
        return status_fail(why, STATUS_USAGE,
                           "%s: is of a recording, whose rows are not in it; under mpirun one "
                           "recording is made by several processes",
                           part->path);
    return STATUS_OK;
}

static enum status open_part(struct part *part, const char *path, struct status_why *why)
{
    cJSON *root = NULL;
    *part = (struct part){.path = path};
    enum status status = eval_journal_look(&part->journal, path, &part->settings, why);
    if (status)
        return status;
    status = base_json_parse(&root, part->settings, strlen(part->settings), NULL, why);
    if (status == STATUS_FORMAT)
        return status_fail(why, status, "%s: settings that are no JSON", path);
    if (!status)
        status = refuse_kind(part, root, why);
    if (!status) {
        part->first = (size_t)number(root, "windows", "first");
        part->n = (size_t)number(root, "windows", "n");
        part->n_in_text = count_windows(root);
    }
    cJSON_Delete(root);
    for (int i = 0; i < N_RANGED && !status; i++)
        status = put(&part->settings, &ranged[i], 0, why);
    return status;
}

static enum status compare(const struct part *a, const struct part *b, struct status_why *why)
{
    struct eval_difference d = {0};
    if (strcmp(a->settings, b->settings) == 0)
        return STATUS_OK;
    enum status status = eval_difference_find(&d, a->settings, b->settings, why);
    return status ? status
                  : status_fail(why, STATUS_USAGE,
                                "%s was made with %s %s, %s with %s; only parts of one evaluation "
                                "can be merged",
                                a->path, *d.name ? d.name : "other settings", d.first, b->path,
                                d.second);
}

static int by_first(const void *left, const void *right)
{
    const struct part *a = left, *b = right;
    return (a->first > b->first) - (a->first < b->first);
}

static enum status refuse_missing(size_t first, size_t end, const char *more, const char *path,
                                  struct status_why *why)
{
    return status_fail(why, STATUS_USAGE, "windows %zu to %zu (from 0) are in no part%s%s", first,
                       end - 1, more, path);
}

/** Each window up to n_windows is in one part, as far as the parts' settings say. */
static enum status check_ranges(const struct part *parts, size_t n_parts, size_t n_windows,
                                struct status_why *why)
{
    size_t next = 0;
    for (size_t i = 0; i < n_parts; i++) {
        const struct part *part = &parts[i];
        if (part->first > next)
            return refuse_missing(next, part->first, "", "", why);
        if (part->first < next)
            return status_fail(why, STATUS_USAGE,
                               "windows %zu to %zu (from 0) are there twice: in %s and %s",
                               part->first, base_min(next, part->first + part->n) - 1,
                               parts[i - 1].path, part->path);
        next = part->first + part->n;
    }
    if (next < n_windows)
        return refuse_missing(next, n_windows, "", "", why);
    if (next > n_windows)
        return status_fail(why, STATUS_USAGE, "%s has windows beyond the first %zu",
                           parts[n_parts - 1].path, n_windows);
    return STATUS_OK;
}

/** Append the entries of a part. */
static enum status take(struct eval_journal *out, const struct part *part,
                        const atomic_bool *cancel, struct status_why *why)
{
    for (size_t i = 0; i < part->n; i++) {
        double *values;
        size_t n;
        enum status status = eval_journal_next(part->journal, &values, &n, why);
        if (!status && !values)
            status = refuse_missing(part->first + i, part->first + part->n,
                                    ": the journal of their run ends before; repeat the command "
                                    "of ",
                                    part->path, why);
        if (!status)
            status = eval_journal_append(out, values, n, why);
        if (!status && cancel && atomic_load(cancel))
            status = status_fail(why, STATUS_CANCELLED, "interrupted: nothing was written");
        free(values);
        if (status)
            return status;
    }
    return STATUS_OK;
}

static enum status write_all(const struct part *parts, const struct cluster_merge *merge,
                             char **settings, struct base_file *out, struct status_why *why)
{
    struct eval_journal *journal = NULL;
    const struct part *last = &parts[merge->n_parts - 1];
    size_t n = last->first + last->n;
    const long values[N_RANGED] = {
        [CHUNKS] = n == parts[0].n_in_text ? -1 : (long)n, [N_WINDOWS] = (long)n};
    enum status status = STATUS_OK;
    for (int i = 0; i < N_RANGED && !status; i++)
        status = put(settings, &ranged[i], values[i], why);
    if (!status)
        status = eval_journal_begin(&journal, out, *settings, why);
    for (size_t i = 0; i < merge->n_parts && !status; i++)
        status = take(journal, &parts[i], merge->cancel, why);
    eval_journal_close(journal);
    return status;
}

enum status cluster_merge(const struct cluster_merge *merge, struct base_file *out,
                          size_t *n_merged, struct status_why *why)
{
    size_t n_parts = merge->n_parts;
    struct part *parts;
    enum status status = base_array_new(parts, n_parts, "parts", why);
    if (status)
        return status;
    for (size_t i = 0; i < n_parts && !status; i++) {
        status = open_part(&parts[i], merge->parts[i], why);
        if (!status)
            status = compare(&parts[0], &parts[i], why);
    }
    if (!status) {
        *n_merged = merge->n_windows ? merge->n_windows : parts[0].n_in_text;
        qsort(parts, n_parts, sizeof *parts, by_first);
        status = check_ranges(parts, n_parts, *n_merged, why);
    }
    if (!status)
        status = write_all(parts, merge, &parts[0].settings, out, why);
    for (size_t i = 0; i < n_parts; i++) {
        eval_journal_close(parts[i].journal);
        free(parts[i].settings);
    }
    free(parts);
    return status;
}

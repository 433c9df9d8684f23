/* What is said of rows of llama-bench that were taken or left out. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "clients/documents/results/speeds/rows.h"

static const char tests[] = "n_prompt n_gen n_depth";

/* "pp512 and tg128 @ d4096", as llama-bench itself calls them. */
static void put_tests(const struct doc_speeds *s, char *out, size_t capacity)
{
    static const char *const names[] = {"pp", "tg"};
    size_t n = 0;
    *out = '\0';
    for (size_t kind = 0; kind < DOC_N_SPEEDS; kind++) {
        const struct doc_speed_row *row = s->shown[kind];
        if (!row)
            continue;
        n += (size_t)snprintf(out + n, capacity - n, "%s%s%" PRIu64, n ? " and " : "", names[kind],
                              row->length);
        if (row->depth)
            n += (size_t)snprintf(out + n, capacity - n, " @ d%" PRIu64, row->depth);
    }
}

/* A member of the rows that are shown, NULL: they do not have the same. */
static const cJSON *common(const struct doc_speeds *s, const char *name)
{
    const struct doc_speed_row *const *rows = s->shown;
    const struct doc_speed_row *first = rows[DOC_PROMPT] ? rows[DOC_PROMPT] : rows[DOC_GENERATION];
    const struct doc_speed_row *last = rows[DOC_GENERATION] ? rows[DOC_GENERATION] : first;
    const cJSON *a = base_json_member(first->at.json, name);
    return cJSON_Compare(a, base_json_member(last->at.json, name), true) ? a : NULL;
}

/* A text that both have; "": they have no such text, or do not know it. */
static const char *common_text(const struct doc_speeds *s, const char *name)
{
    const cJSON *found = common(s, name);
    return cJSON_IsString(found) && strcmp(found->valuestring, "unknown") != 0 ? found->valuestring
                                                                               : "";
}

/* A count that both have; 0: they have no such count. */
static double common_count(const struct doc_speeds *s, const char *name)
{
    const cJSON *found = common(s, name);
    return cJSON_IsNumber(found) && found->valuedouble > 0 ? found->valuedouble : 0;
}

void doc_speeds_about(const struct doc_speeds *s, char out[DOC_SPEEDS_TEXT])
{
    char shown[128], differences[sizeof s->differences];
    const struct doc_speed_row *a = s->shown[DOC_PROMPT], *b = s->shown[DOC_GENERATION];
    *out = '\0';
    if (!a && !b)
        return;
    put_tests(s, shown, sizeof shown);
    size_t n = (size_t)snprintf(out, DOC_SPEEDS_TEXT, "%s of llama-bench", shown);
    double build = common_count(s, "build_number"), n_threads = common_count(s, "n_threads");
    if (build > 0)
        n += (size_t)snprintf(out + n, DOC_SPEEDS_TEXT - n, " %.9g", build);
    const char *gpu = common_text(s, "gpu_info"), *commit = common_text(s, "build_commit");
    if (*commit)
        n += (size_t)snprintf(out + n, DOC_SPEEDS_TEXT - n, " (%.12s)", commit);
    const char *const machine[] = {*gpu ? gpu : common_text(s, "cpu_info"),
                                   common_text(s, "backends")};
    for (size_t i = 0; i < 2; i++)
        if (*machine[i])
            n += (size_t)snprintf(out + n, DOC_SPEEDS_TEXT - n, ", %.64s", machine[i]);
    if (n_threads > 0)
        n += (size_t)snprintf(out + n, DOC_SPEEDS_TEXT - n, ", %.9g thread%s", n_threads,
                              n_threads > 1 ? "s" : "");
    if (a && b && doc_speeds_differ(a->at, b->at, tests, differences, sizeof differences))
        snprintf(out + n, DOC_SPEEDS_TEXT - n, ", of two configurations: %s", differences);
}

static void note_left_out(const struct doc_speeds *s, struct status_why *notes, size_t *n)
{
    size_t n_rows[DOC_ROW_N_FITS] = {0};
    const struct doc_speed_row *last[DOC_ROW_N_FITS] = {NULL}, *resized;
    for (size_t i = 0; i < s->n; i++) {
        n_rows[s->rows[i].fit]++;
        last[s->rows[i].fit] = &s->rows[i];
    }
    if (last[DOC_ROW_NO_MODEL])
        status_fail(&notes[(*n)++], STATUS_OK,
                    "left out: %zu row%s of llama-bench, of no model here, such as %.80s",
                    n_rows[DOC_ROW_NO_MODEL], status_plural(n_rows[DOC_ROW_NO_MODEL]),
                    last[DOC_ROW_NO_MODEL]->file);
    if (last[DOC_ROW_OF_TASKS])
        status_fail(&notes[(*n)++], STATUS_OK,
                    "left out: %zu row%s of llama-bench: a table of choice tasks has no speeds",
                    n_rows[DOC_ROW_OF_TASKS], status_plural(n_rows[DOC_ROW_OF_TASKS]));
    if ((resized = last[DOC_ROW_OTHER_SIZE]))
        status_fail(&notes[(*n)++], STATUS_OK,
                    "%s: the rows of %.80s are left out: there it has %" PRIu64 " bytes in %" PRIu64
                    " weights, the model here %" PRIu64 " in %" PRIu64,
                    resized->at.reader->file, resized->file, resized->n_bytes, resized->n_weights,
                    s->other_size.n_bytes, s->other_size.n_weights);
    if (last[DOC_ROW_OTHER_RUN])
        status_fail(&notes[(*n)++], STATUS_OK,
                    "left out: %zu row%s of llama-bench, such as of %.80s: the model here has "
                    "another type_k or type_v, or --experts-used",
                    n_rows[DOC_ROW_OTHER_RUN], status_plural(n_rows[DOC_ROW_OTHER_RUN]),
                    last[DOC_ROW_OTHER_RUN]->file);
}

void doc_speeds_note(const struct doc_speeds *s, struct status_why *notes, size_t *n)
{
    char about[DOC_SPEEDS_TEXT];
    doc_speeds_about(s, about);
    if (*about)
        status_fail(&notes[(*n)++], STATUS_OK, "speeds are %s", about);
    if (*s->differences)
        status_fail(&notes[(*n)++], STATUS_OK, "speeds are not all of one configuration: %s",
                    s->differences);
    if (*s->several)
        status_fail(&notes[(*n)++], STATUS_OK,
                    "llama-bench measured a file in several configurations, of which one is shown: "
                    "%s",
                    s->several);
    if (s->repeated)
        status_fail(&notes[(*n)++], STATUS_OK,
                    "llama-bench measured a file several times: the last of its rows counts");
    note_left_out(s, notes, n);
}

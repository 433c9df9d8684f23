#include "clients/documents/results/speeds/rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text/hash.h"
#include "base/text/printable.h"
#include "base/text/words.h"

static const uint64_t most = UINT64_C(1) << 53;

/* What a row has beside its configuration. */
static const char no_configuration[] =
    "model_filename model_type model_size model_n_params test avg_ns stddev_ns avg_ts stddev_ts "
    "samples_ns samples_ts test_time";
const char doc_speed_builds[] = "build_commit build_number";

static void check_sign(struct base_field at, const char *path, bool is_right, const char *expected)
{
    if (!at.reader->status && !is_right)
        base_field_refuse(at, path, expected);
}

static bool is_ignored(const char *name, const char *also)
{
    return base_words_index(no_configuration, name) >= 0 || base_words_index(also, name) >= 0;
}

/* The members may stand in any order. */
static uint64_t hash_of(struct base_field at)
{
    uint64_t sum = 0;
    for (struct base_field item = {0}; base_field_next(at, &item);) {
        const char *name = item.json->string, *text = item.json->valuestring;
        double number = item.json->valuedouble;
        if (!is_ignored(name, doc_speed_builds))
            sum += base_hash_bytes(base_hash_bytes(0, name, strlen(name)),
                                   text ? text : (const char *)&number,
                                   text ? strlen(text) : sizeof number);
    }
    return sum;
}

static struct doc_speed_row row_of(struct base_field at)
{
    uint64_t n_prompt = base_field_uint(at, "n_prompt", most);
    uint64_t n_generated = base_field_uint(at, "n_gen", most);
    struct doc_speed_row row = {
        .at = at,
        .file = base_file_name(base_field_text(at, "model_filename")),
        .n_bytes = base_field_uint(at, "model_size", most),
        .n_weights = base_field_uint(at, "model_n_params", most),
        .kind = !n_generated ? DOC_PROMPT
                : !n_prompt  ? DOC_GENERATION
                             : DOC_ROW_OF_BOTH,
        .length = n_generated ? n_generated : n_prompt,
        .depth = base_field_uint_or(at, "n_depth", most, 0),
        .hash = hash_of(at),
        .speed = {true, base_field_real(at, "avg_ts"),
                  base_field_real_or(at, "stddev_ts", (double)NAN)},
    };
    check_sign(at, "avg_ts", row.speed.value > 0, "tokens per second, above 0");
    check_sign(at, "stddev_ts", !(row.speed.error < 0), "a standard deviation");
    if (base_field_count(base_field_list_or_none(at, "samples_ts")) == 1)
        row.speed.error = (double)NAN;
    return row;
}

static enum status add_rows(struct doc_speeds *s, struct doc_document *bench,
                            struct status_why *why)
{
    struct base_field list = base_field_list(doc_root(bench), "rows"), item = {0};
    if (base_array_reserve(s->rows, s->capacity, s->n + base_field_count(list), "rows", why))
        return STATUS_MEMORY;
    while (base_field_next(list, &item))
        s->rows[s->n++] = row_of(item);
    return doc_status(bench, why);
}

bool doc_speeds_differ(struct base_field a, struct base_field b, const char *ignored, char *out,
                       size_t capacity)
{
    enum { SHOWN = 3 };
    size_t n = 0, length = 0;
    *out = '\0';
    for (int side = 0; side < 2; side++)
        for (struct base_field item = {0}; base_field_next(side ? b : a, &item);) {
            const char *name = item.json->string;
            struct base_field x = {a.reader, cJSON_GetObjectItemCaseSensitive(a.json, name), 0};
            struct base_field y = {b.reader, cJSON_GetObjectItemCaseSensitive(b.json, name), 0};
            struct base_field_shown shown[2];
            if ((side && x.json) || is_ignored(name, ignored) ||
                cJSON_Compare(x.json, y.json, true))
                continue;
            if (n++ < SHOWN && length < capacity)
                length +=
                    (size_t)snprintf(out + length, capacity - length, "%s%.32s is %.24s and %.24s",
                                     n > 1 ? ", " : "", name, base_field_show(&shown[0], x),
                                     base_field_show(&shown[1], y));
        }
    return n;
}

static void find_like(struct doc_speeds *s, size_t i)
{
    char differences[sizeof s->differences];
    struct doc_speed_row *row = &s->rows[i], *first = s->rows;
    while (first < row && (first->hash != row->hash || first->kind != row->kind ||
                           first->like != (size_t)(first - s->rows) ||
                           doc_speeds_differ(first->at, row->at, doc_speed_builds, differences,
                                             sizeof differences)))
        first++;
    row->like = (size_t)(first - s->rows);
    first->n_like++;
}

enum status doc_speeds_open(struct doc_speeds *s, struct doc_document *documents, size_t n,
                            struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < n && !status; i++)
        if (documents[i].json.root && documents[i].kind == DOC_BENCH)
            status = add_rows(s, &documents[i], why);
    for (size_t i = 0; i < s->n && !status; i++)
        find_like(s, i);
    return status;
}

void doc_speeds_close(struct doc_speeds *s)
{
    free(s->rows);
    *s = (struct doc_speeds){0};
}

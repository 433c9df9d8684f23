#include "clients/documents/results/speeds.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text/printable.h"
#include "base/text/words.h"
#include "gguf/type.h"

static const uint64_t most = UINT64_C(1) << 53;

/* What a row has beside its configuration. A later build or time takes the place of an earlier. */
static const char no_configuration[] =
    "model_filename model_type model_size model_n_params test avg_ns stddev_ns avg_ts stddev_ts "
    "samples_ns samples_ts build_commit build_number test_time";

enum { OF_BOTH = DOC_N_SPEEDS }; /* a prompt and a generation in one time: no speed of either */

struct doc_speed_row {
    struct base_field at;
    const char *file;
    uint64_t n_bytes, n_weights;
    size_t kind;
    struct doc_metric_value speed;
    bool taken, other_size;
};

static void check_sign(struct base_field at, const char *path, bool is_right, const char *expected)
{
    if (!at.reader->status && !is_right)
        base_field_refuse(at, path, expected);
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
                             : OF_BOTH,
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

enum status doc_speeds_open(struct doc_speeds *s, struct doc_document *documents, size_t n,
                            struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < n && !status; i++)
        if (documents[i].json.root && documents[i].kind == DOC_BENCH)
            status = add_rows(s, &documents[i], why);
    return status;
}

void doc_speeds_close(struct doc_speeds *s)
{
    free(s->rows);
    *s = (struct doc_speeds){0};
}

/* Whether the sizes are the same, but for a tensor that was counted twice: then what is too much
 * has the bits per weight of a type. */
static bool has_size(const struct doc_speed_row *row, const struct doc_measured *file)
{
    uint64_t bytes = row->n_bytes - file->n_bytes, weights = row->n_weights - file->n_weights;
    if (!bytes && !weights)
        return true;
    if (row->n_bytes <= file->n_bytes || row->n_weights <= file->n_weights ||
        weights >= file->n_weights)
        return false;
    for (uint32_t id = 0; id < GGUF_TYPE_LIMIT; id++) {
        const struct gguf_type_info *type = gguf_type_listed(id);
        if (type->block_bytes && bytes * type->block_elems == weights * type->block_bytes)
            return true;
    }
    return false;
}

/* What the configurations of two rows differ in, the first of it: "n_threads is 2 and 8". Returns
 * whether they do. */
static bool differ(struct base_field a, struct base_field b, char *out, size_t capacity)
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
            if ((side && x.json) || base_words_index(no_configuration, name) >= 0 ||
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

static bool is_older(const struct doc_speed_row *a, const struct doc_speed_row *b)
{
    const char *x = base_field_string(a->at, "test_time");
    const char *y = base_field_string(b->at, "test_time");
    return x && y && strcmp(x, y) < 0;
}

static const char *const words[] = {[DOC_PROMPT] = "prompt", [DOC_GENERATION] = "generation"};

/* The row of a kind after `last`, which is of the same file. Returns which of both counts. */
static enum status take(struct doc_speeds *s, const struct doc_speed_row **last,
                        const struct doc_speed_row *row, struct status_why *why)
{
    char differences[sizeof s->differences];
    if (*last && differ((*last)->at, row->at, differences, sizeof differences))
        return status_fail(why, STATUS_USAGE,
                           "%s: %.80s has several %s speeds: %s; expected rows of one "
                           "configuration",
                           row->at.reader->file, row->file, words[row->kind], differences);
    s->repeated |= *last != NULL;
    if (!*last || !is_older(row, *last))
        *last = row;
    return STATUS_OK;
}

enum status doc_speeds_of(struct doc_speeds *s, struct doc_metric_value out[DOC_N_SPEEDS],
                          const struct doc_measured *file, struct status_why *why)
{
    const struct doc_speed_row *last[DOC_N_SPEEDS] = {NULL};
    enum status status = STATUS_OK;
    for (struct doc_speed_row *row = s->rows; row < s->rows + s->n && !status; row++) {
        if (strcmp(row->file, file->file) != 0)
            continue;
        row->other_size = !has_size(row, file);
        row->taken |= !row->other_size;
        if (row->other_size)
            s->other_size = *file;
        else if (row->kind != OF_BOTH)
            status = take(s, &last[row->kind], row, why);
    }
    for (size_t kind = 0; kind < DOC_N_SPEEDS; kind++) {
        out[kind] = last[kind] ? last[kind]->speed : (struct doc_metric_value){0};
        if (!s->shown[kind])
            s->shown[kind] = last[kind];
        else if (last[kind] && !*s->differences)
            differ(s->shown[kind]->at, last[kind]->at, s->differences, sizeof s->differences);
    }
    return status;
}

/* "pp512 and tg128 @ d4096", as llama-bench itself calls them. */
static void put_tests(const struct doc_speeds *s, char *out, size_t capacity)
{
    static const char *const names[] = {"pp", "tg"}, *const members[] = {"n_prompt", "n_gen"};
    size_t n = 0;
    *out = '\0';
    for (size_t kind = 0; kind < DOC_N_SPEEDS; kind++) {
        if (!s->shown[kind])
            continue;
        struct base_field at = s->shown[kind]->at;
        uint64_t depth = base_field_uint_or(at, "n_depth", most, 0);
        n += (size_t)snprintf(out + n, capacity - n, "%s%s%" PRIu64, n ? " and " : "", names[kind],
                              base_field_uint(at, members[kind], most));
        if (depth)
            n += (size_t)snprintf(out + n, capacity - n, " @ d%" PRIu64, depth);
    }
}

void doc_speeds_about(const struct doc_speeds *s, char out[DOC_SPEEDS_TEXT])
{
    char tests[128];
    const struct doc_speed_row *row =
        s->shown[DOC_GENERATION] ? s->shown[DOC_GENERATION] : s->shown[DOC_PROMPT];
    *out = '\0';
    if (!row)
        return;
    put_tests(s, tests, sizeof tests);
    const char *gpu = base_field_string(row->at, "gpu_info");
    const char *const machine[] = {gpu && *gpu ? gpu : base_field_string(row->at, "cpu_info"),
                                   base_field_string(row->at, "backends")};
    size_t n = (size_t)snprintf(out, DOC_SPEEDS_TEXT, "%s of llama-bench", tests);
    for (size_t i = 0; i < 2; i++)
        if (machine[i] && *machine[i])
            n += (size_t)snprintf(out + n, DOC_SPEEDS_TEXT - n, ", %.64s", machine[i]);
    uint64_t n_threads = base_field_uint_or(row->at, "n_threads", most, 0);
    if (n_threads)
        snprintf(out + n, DOC_SPEEDS_TEXT - n, ", %" PRIu64 " thread%s", n_threads,
                 status_plural(n_threads));
}

static void note_left_out(const struct doc_speeds *s, struct status_why *notes, size_t *n)
{
    const struct doc_speed_row *no_model = NULL, *resized = NULL;
    size_t n_others = 0;
    for (const struct doc_speed_row *row = s->rows; row < s->rows + s->n; row++) {
        if (row->taken)
            continue;
        n_others += !row->other_size;
        *(row->other_size ? &resized : &no_model) = row;
    }
    if (no_model)
        status_fail(&notes[(*n)++], STATUS_OK,
                    "left out: %zu row%s of llama-bench, of no model here, such as %.80s", n_others,
                    status_plural(n_others), no_model->file);
    if (resized)
        status_fail(&notes[(*n)++], STATUS_OK,
                    "%s: the rows of %.80s are left out: there it has %" PRIu64 " bytes in %" PRIu64
                    " weights, the model here %" PRIu64 " in %" PRIu64,
                    resized->at.reader->file, resized->file, resized->n_bytes, resized->n_weights,
                    s->other_size.n_bytes, s->other_size.n_weights);
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
    if (s->repeated)
        status_fail(&notes[(*n)++], STATUS_OK,
                    "llama-bench measured a file several times: the last of its rows counts");
    note_left_out(s, notes, n);
}

enum status doc_speeds_put(struct doc_speeds *s, struct doc_scoreboard *board,
                           struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < board->n && s->n && !status; i++) {
        struct doc_scoreboard_run *run = &board->runs[i];
        const struct doc_measured file = {run->file,
                                          base_field_uint_or(run->model, "n_bytes", most, 0),
                                          base_field_uint_or(run->model, "n_weights", most, 0)};
        struct doc_metric_value speeds[DOC_N_SPEEDS];
        status = doc_speeds_of(s, speeds, &file, why);
        for (size_t kind = 0; kind < DOC_N_SPEEDS && !status; kind++) {
            run->values[doc_speed_metric(kind)] = speeds[kind];
            board->has_speeds |= speeds[kind].known;
        }
        if (!status)
            status = doc_status(doc_of(run->from), why);
    }
    doc_speeds_about(s, board->speeds_about);
    return status;
}

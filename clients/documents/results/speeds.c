#include "clients/documents/results/speeds.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text/hash.h"
#include "base/text/printable.h"
#include "base/text/words.h"
#include "gguf/type.h"

static const uint64_t most = UINT64_C(1) << 53;

/* What a row has beside its configuration. */
static const char no_configuration[] =
    "model_filename model_type model_size model_n_params test avg_ns stddev_ns avg_ts stddev_ts "
    "samples_ns samples_ts test_time";
/* A later build takes the place of an earlier. */
static const char builds[] = "build_commit build_number";
static const char tests[] = "n_prompt n_gen n_depth";

/* How near a row came to a model: of several models the nearest counts. */
enum fit { NO_MODEL, OF_TASKS, OTHER_SIZE, OTHER_RUN, TAKEN, N_FITS };

enum { OF_BOTH = DOC_N_SPEEDS }; /* a prompt and a generation in one time: no speed of either */

struct doc_speed_row {
    struct base_field at;
    const char *file;
    uint64_t n_bytes, n_weights;
    size_t kind;
    uint64_t length, depth; /* in tokens: of the prompt or of what was generated, and before it */
    uint64_t hash;          /* of the configuration without its build */
    size_t like, n_like;    /* the first row of that configuration; there: how many rows have it */
    struct doc_metric_value speed;
    enum fit fit;
};

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
        if (!is_ignored(name, builds))
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
                             : OF_BOTH,
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

/* What the configurations of two rows differ in, the first of it: "n_threads is 2 and 8". Returns
 * whether they do. ignored: members that may differ. */
static bool differ(struct base_field a, struct base_field b, const char *ignored, char *out,
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
                           differ(first->at, row->at, builds, differences, sizeof differences)))
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

static bool is_older(const struct doc_speed_row *a, const struct doc_speed_row *b)
{
    const char *x = base_field_string(a->at, "test_time");
    const char *y = base_field_string(b->at, "test_time");
    return x && y && strcmp(x, y) < 0;
}

/* Whether a type of a row's cache is that of a model; f32 is what was not rounded, which stands for
 * halves, too. */
static bool has_type(const struct doc_speed_row *row, const char *member, const char *type)
{
    const char *own = base_field_string(row->at, member);
    return base_words_index_any_case(type && strcmp(type, "F32") != 0 ? type : "f16 f32",
                                     own ? own : "f16") >= 0;
}

static enum fit fit_of(const struct doc_speed_row *row, const struct doc_measured *file)
{
    if (strcmp(row->file, file->file) != 0)
        return NO_MODEL;
    if (!has_size(row, file))
        return OTHER_SIZE;
    return !file->other_experts && has_type(row, "type_k", file->k) &&
                   has_type(row, "type_v", file->v)
               ? TAKEN
               : OTHER_RUN;
}

/* Whether a row's configuration is the one to show: most rows have it, it is of the least depth, of
 * as many tokens as llama-bench takes unless it is told, or of fewer. */
static bool is_preferred(const struct doc_speeds *s, const struct doc_speed_row *a,
                         const struct doc_speed_row *b)
{
    uint64_t usual = a->kind == DOC_PROMPT ? 512 : 128;
    const uint64_t x[] = {s->rows[b->like].n_like, a->depth, a->length != usual, a->length};
    const uint64_t y[] = {s->rows[a->like].n_like, b->depth, b->length != usual, b->length};
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        if (x[i] != y[i])
            return x[i] < y[i];
    return false;
}

static const char *const words[] = {[DOC_PROMPT] = "prompt", [DOC_GENERATION] = "generation"};

/* Choose between the row of a kind so far, or NULL, and another of the same file. */
static enum status take(struct doc_speeds *s, const struct doc_speed_row **last,
                        const struct doc_speed_row *row, struct status_why *why)
{
    bool again = *last && (*last)->like == row->like;
    bool better = !*last || (again ? !is_older(row, *last) : is_preferred(s, row, *last));
    if (*last && !again) {
        differ(better ? row->at : (*last)->at, better ? (*last)->at : row->at, builds, s->several,
               sizeof s->several);
        if (s->refuses_several)
            return status_fail(why, STATUS_USAGE,
                               "%s: %.80s has several %s speeds: %s; expected rows of one "
                               "configuration",
                               row->at.reader->file, row->file, words[row->kind], s->several);
    }
    s->repeated |= again;
    if (better)
        *last = row;
    return STATUS_OK;
}

enum status doc_speeds_of(struct doc_speeds *s, struct doc_metric_value out[DOC_N_SPEEDS],
                          const struct doc_measured *file, struct status_why *why)
{
    const struct doc_speed_row *last[DOC_N_SPEEDS] = {NULL};
    enum status status = STATUS_OK;
    for (struct doc_speed_row *row = s->rows; row < s->rows + s->n && !status; row++) {
        enum fit fit = fit_of(row, file);
        if (fit > row->fit)
            row->fit = fit;
        if (fit == OTHER_SIZE)
            s->other_size = *file;
        else if (fit == TAKEN && row->kind != OF_BOTH)
            status = take(s, &last[row->kind], row, why);
    }
    for (size_t kind = 0; kind < DOC_N_SPEEDS; kind++) {
        out[kind] = last[kind] ? last[kind]->speed : (struct doc_metric_value){0};
        if (!s->shown[kind])
            s->shown[kind] = last[kind];
        else if (last[kind] && !*s->differences)
            differ(s->shown[kind]->at, last[kind]->at, "", s->differences, sizeof s->differences);
    }
    return status;
}

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

/* A text of theirs, "": it is none, or not known. */
static const char *common_text(const struct doc_speeds *s, const char *name)
{
    const cJSON *found = common(s, name);
    return cJSON_IsString(found) && strcmp(found->valuestring, "unknown") != 0 ? found->valuestring
                                                                               : "";
}

/* A count of theirs; 0: it is none. */
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
    if (a && b && differ(a->at, b->at, tests, differences, sizeof differences))
        snprintf(out + n, DOC_SPEEDS_TEXT - n, ", of two configurations: %s", differences);
}

static void note_left_out(const struct doc_speeds *s, struct status_why *notes, size_t *n)
{
    size_t n_rows[N_FITS] = {0};
    const struct doc_speed_row *last[N_FITS] = {NULL}, *resized;
    for (const struct doc_speed_row *row = s->rows; row < s->rows + s->n; row++) {
        n_rows[row->fit]++;
        last[row->fit] = row;
    }
    if (last[NO_MODEL])
        status_fail(&notes[(*n)++], STATUS_OK,
                    "left out: %zu row%s of llama-bench, of no model here, such as %.80s",
                    n_rows[NO_MODEL], status_plural(n_rows[NO_MODEL]), last[NO_MODEL]->file);
    if (last[OF_TASKS])
        status_fail(&notes[(*n)++], STATUS_OK,
                    "left out: %zu row%s of llama-bench: a table of choice tasks has no speeds",
                    n_rows[OF_TASKS], status_plural(n_rows[OF_TASKS]));
    if ((resized = last[OTHER_SIZE]))
        status_fail(&notes[(*n)++], STATUS_OK,
                    "%s: the rows of %.80s are left out: there it has %" PRIu64 " bytes in %" PRIu64
                    " weights, the model here %" PRIu64 " in %" PRIu64,
                    resized->at.reader->file, resized->file, resized->n_bytes, resized->n_weights,
                    s->other_size.n_bytes, s->other_size.n_weights);
    if (last[OTHER_RUN])
        status_fail(&notes[(*n)++], STATUS_OK,
                    "left out: %zu row%s of llama-bench, such as of %.80s: the model here has "
                    "another type_k or type_v, or --experts-used",
                    n_rows[OTHER_RUN], status_plural(n_rows[OTHER_RUN]), last[OTHER_RUN]->file);
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

void doc_speeds_pass(struct doc_speeds *s, const struct doc_scoreboard *board)
{
    for (size_t i = 0; i < board->n; i++)
        for (size_t k = 0; k < s->n; k++)
            if (s->rows[k].fit == NO_MODEL && strcmp(s->rows[k].file, board->runs[i].file) == 0)
                s->rows[k].fit = OF_TASKS;
}

enum status doc_speeds_put(struct doc_speeds *s, struct doc_scoreboard *board,
                           struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < board->n && s->n && !status; i++) {
        struct doc_scoreboard_run *run = &board->runs[i];
        const struct doc_measured file = {
            .file = run->file,
            .n_bytes = base_field_uint_or(run->model, "n_bytes", most, 0),
            .n_weights = base_field_uint_or(run->model, "n_weights", most, 0),
            .k = base_field_string(run->model, "kv_types.k"),
            .v = base_field_string(run->model, "kv_types.v"),
            .other_experts = base_field_find(run->model, "experts_used").json,
        };
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

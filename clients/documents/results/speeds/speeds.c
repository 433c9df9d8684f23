#include "clients/documents/results/speeds/speeds.h"

#include <string.h>

#include "base/text/printable.h"
#include "base/text/words.h"
#include "clients/documents/results/speeds/rows.h"
#include "gguf/type.h"

static const uint64_t most = UINT64_C(1) << 53;

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

static enum doc_speed_fit fit_of(const struct doc_speed_row *row, const struct doc_measured *file)
{
    if (strcmp(row->file, file->file) != 0)
        return DOC_ROW_NO_MODEL;
    if (!has_size(row, file))
        return DOC_ROW_OTHER_SIZE;
    return !file->other_experts && has_type(row, "type_k", file->k) &&
                   has_type(row, "type_v", file->v)
               ? DOC_ROW_TAKEN
               : DOC_ROW_OTHER_RUN;
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
        doc_speeds_differ(better ? row->at : (*last)->at, better ? (*last)->at : row->at,
                          doc_speed_builds, s->several, sizeof s->several);
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
    for (size_t i = 0; i < s->n && !status; i++) {
        struct doc_speed_row *row = &s->rows[i];
        enum doc_speed_fit fit = fit_of(row, file);
        if (fit > row->fit)
            row->fit = fit;
        if (fit == DOC_ROW_OTHER_SIZE)
            s->other_size =
                (struct doc_measured){.n_bytes = file->n_bytes, .n_weights = file->n_weights};
        else if (fit == DOC_ROW_TAKEN && row->kind != DOC_ROW_OF_BOTH)
            status = take(s, &last[row->kind], row, why);
    }
    for (size_t kind = 0; kind < DOC_N_SPEEDS; kind++) {
        out[kind] = last[kind] ? last[kind]->speed : (struct doc_metric_value){0};
        if (!s->shown[kind])
            s->shown[kind] = last[kind];
        else if (last[kind] && !*s->differences)
            doc_speeds_differ(s->shown[kind]->at, last[kind]->at, "", s->differences,
                              sizeof s->differences);
    }
    return status;
}

void doc_speeds_pass(struct doc_speeds *s, const struct doc_scoreboard *board)
{
    for (size_t i = 0; i < board->n; i++)
        for (size_t k = 0; k < s->n; k++)
            if (s->rows[k].fit == DOC_ROW_NO_MODEL &&
                strcmp(s->rows[k].file, board->runs[i].file) == 0)
                s->rows[k].fit = DOC_ROW_OF_TASKS;
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

#include "cli/session/windows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/output/say.h"

static enum status read_text(struct eval_text *out, const struct cli_text_settings *s,
                             struct status_why *why)
{
    if (s->prompt)
        return eval_text_copy(out, s->prompt, strlen(s->prompt), why);
    if (s->binary_file)
        return eval_text_read_whole(out, s->binary_file, EVAL_TEXT_MAX_BYTES, why);
    if (s->force_text)
        return eval_text_read(out, s->text_file, EVAL_TEXT_MAX_BYTES, why);
    enum status status =
        eval_text_read_utf8(out, s->text_file, EVAL_TEXT_MAX_BYTES, cli_text_remedy, why);
    if (!status)
        cli_text_note(out, s->text_file);
    return status;
}

enum status cli_text_open(struct eval_text *out, const struct cli_text_settings *s,
                          struct status_why *why)
{
    enum status status = read_text(out, s, why);
    if (status == STATUS_OK && s->escape)
        eval_text_unescape(out);
    return status;
}

struct eval_plan_options cli_plan_options(const struct cli_window_settings *s,
                                          const struct model *model)
{
    const struct model_tokenizer *tokenizer = model_tokenizer(model);
    return (struct eval_plan_options){
        .protocol = EVAL_PROTOCOL_DEFAULT,
        .n_ctx =
            s->n_ctx ? (size_t)(s->n_ctx > 0 ? s->n_ctx : 0) : model_hparams(model)->n_ctx_train,
        .skip_windows = (size_t)s->chunk_from,
        .max_windows = s->n_chunks > 0 ? (size_t)s->n_chunks : 0,
        .bos = model_adds_bos(tokenizer) ? model_token_bos(tokenizer) : -1,
    };
}

enum status cli_windows_read(struct cli_windows *w, const struct cli_text_settings *settings,
                             const struct eval_stream_options *options,
                             const struct model_tokenizer *tokenizer, struct status_why *why)
{
    enum status status;
    if (cli_text_documents(settings)) {
        status = cli_documents_read(&w->documents, settings, tokenizer, why);
        w->stream = w->documents.stream;
        w->documents.stream = (struct eval_stream){0};
        return status;
    }
    status = cli_text_open(&w->text, settings, why);
    return status ? status : eval_stream_make(&w->stream, tokenizer, &w->text, options, why);
}

enum status cli_windows_lay(struct cli_windows *w, const struct eval_plan_options *plan,
                            struct status_why *why)
{
    enum status status = w->documents.n
                             ? eval_plan_make_documents(&w->plan, plan, &w->documents, why)
                             : eval_plan_make(&w->plan, plan, w->stream.n, why);
    w->n_laid = w->plan.n_windows;
    if (!status)
        cli_print_notes(w->plan.warning);
    return status;
}

static void free_tables(struct cli_windows *w)
{
    eval_windows_close(&w->units);
    eval_stop_free(&w->stop);
    for (size_t i = 0; w->tables && i < w->units.n_tables; i++)
        eval_table_free(&w->tables[i]);
    free(w->tables);
    w->tables = NULL;
}

enum status cli_windows_make_tables(struct cli_windows *w, size_t n_pairs, struct status_why *why)
{
    free_tables(w);
    w->plan.n_windows = w->n_laid;
    if (base_array_new(w->tables, 1 + n_pairs, "models", why))
        return STATUS_MEMORY;
    w->units = (struct eval_windows){
        .plan = &w->plan, .stream = &w->stream, .tables = w->tables, .n_tables = 1 + n_pairs};
    enum status status = eval_table_make_for(&w->tables[0], EVAL_N_COLUMNS, &w->plan, why);
    for (size_t i = 1; i <= n_pairs && !status; i++)
        status = eval_table_make_for(&w->tables[i], EVAL_N_PAIR_COLUMNS, &w->plan, why);
    if (!status)
        eval_windows_open(&w->units);
    return status;
}

enum status cli_windows_stop_at(struct cli_windows *w, double se, struct status_why *why)
{
    if (isnan(se))
        return STATUS_OK;
    w->units.stop = &w->stop;
    return eval_stop_make(&w->stop, se, w->units.n_tables, why);
}

void cli_windows_close_plan(struct cli_windows *w)
{
    size_t n = w->units.units.n_enough;
    if (!n)
        return;
    w->plan.n_windows = n;
    for (size_t i = 0; i < w->units.n_tables; i++)
        memset(w->tables[i].done + n, 0, (w->tables[i].n_windows - n) * sizeof(bool));
}

void cli_windows_close(struct cli_windows *w)
{
    free_tables(w);
    eval_plan_free(&w->plan);
    eval_documents_free(&w->documents);
    eval_stream_free(&w->stream);
    eval_text_free(&w->text);
    *w = (struct cli_windows){0};
}

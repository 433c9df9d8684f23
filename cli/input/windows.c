#include "cli/input/windows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/process/say.h"

struct eval_plan_options cli_plan_options(const struct cli_window_settings *s,
                                          const struct model *model, size_t n_default)
{
    const struct model_tokenizer *tokenizer = model_tokenizer(model);
    return (struct eval_plan_options){
        .protocol = EVAL_PROTOCOL_DEFAULT,
        .n_ctx = s->n_ctx.value > 0    ? (size_t)s->n_ctx.value
                 : s->n_ctx.value == 0 ? model_hparams(model)->n_ctx_train
                                       : n_default,
        .skip_windows = (size_t)s->chunk_from,
        .max_windows = s->n_chunks > 0 ? (size_t)s->n_chunks : 0,
        .bos = model_adds_bos(tokenizer) ? model_token_bos(tokenizer) : -1,
    };
}

/** A byte that no token stands for is left out: what is evaluated is another text. */
static enum status doubt_dropped(const struct cli_windows *w, bool strict, struct status_why *why)
{
    size_t n = w->stream.n_dropped;
    return n ? cli_doubt(strict, why,
                         "%zu byte%s of the text %s no token in the vocabulary and %s left out", n,
                         status_plural(n), n == 1 ? "has" : "have", n == 1 ? "is" : "are")
             : STATUS_OK;
}

/* The tokens of documents; text: JSON that was read, or NULL. */
static enum status read_documents(struct cli_windows *w, const struct cli_text_settings *settings,
                                  struct base_text *text, const struct model_tokenizer *tokenizer,
                                  struct status_why *why)
{
    enum status status = cli_documents_read(&w->documents, settings, text, tokenizer,
                                            (enum model_chat_mask)settings->chat.usual, why);
    w->stream = w->documents.stream;
    w->documents.stream = (struct eval_stream){0};
    return status ? status : doubt_dropped(w, settings->strict, why);
}

enum status cli_windows_read(struct cli_windows *w, const struct cli_text_settings *settings,
                             const struct eval_stream_options *options, const char *what,
                             const struct model_tokenizer *tokenizer, struct status_why *why)
{
    bool documents = false;
    if (cli_text_documents(settings))
        return read_documents(w, settings, NULL, tokenizer, why);
    enum status status = cli_text_read(&w->text, settings, why);
    if (settings->prompt)
        documents = settings->lines;
    else if (!status && cli_text_is_doubtful(settings))
        status = cli_text_recognise(&documents, &w->text, settings->text_file, settings, why);
    if (!status && documents && what)
        status = status_fail(
            why, STATUS_USAGE,
            "%s%s has JSON documents; %s takes one text: --force-text evaluates "
            "the bytes as they stand",
            settings->prompt ? "" : "-f: ", settings->prompt ? "-p" : settings->text_file, what);
    if (!status && documents) {
        cli_text_note(&w->text, settings->text_file);
        status = read_documents(w, settings, &w->text, tokenizer, why);
        base_text_free(&w->text);
        return status;
    }
    if (!status)
        status = cli_chat_check(&settings->chat, 0, why);
    if (!status)
        status = cli_text_prepare(&w->text, settings, why);
    if (!status)
        status = eval_stream_make(&w->stream, tokenizer, &w->text, options, why);
    return status ? status : doubt_dropped(w, settings->strict, why);
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
        status = eval_table_make_for(
            &w->tables[i], w->is_cut ? EVAL_N_CUT_COLUMNS : EVAL_N_PAIR_COLUMNS, &w->plan, why);
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
    base_text_free(&w->text);
    *w = (struct cli_windows){0};
}

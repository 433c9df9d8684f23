#include "eval/metrics/per_token.h"

#include <math.h>
#include <stdio.h>

#include "eval/input/spelling.h"

/** A column of numbers: those of the base, or of the model and what compares it. */
struct column {
    const char *name;
    bool of_base;
    enum eval_column column;
};

static const struct column of_one[] = {
    {"logprob", false, EVAL_LOG_PROB},
    {"rank", false, EVAL_RANK},
    {"entropy", false, EVAL_ENTROPY},
};

static const struct column of_pair[] = {
    {"base_logprob", true, EVAL_LOG_PROB},
    {"logprob", false, EVAL_LOG_PROB},
    {"base_rank", true, EVAL_RANK},
    {"rank", false, EVAL_RANK},
    {"base_entropy", true, EVAL_ENTROPY},
    {"entropy", false, EVAL_ENTROPY},
    {"kld", false, EVAL_KL},
    {"reverse_kld", false, EVAL_REVERSE_KL},
    {"js", false, EVAL_JS},
    {"tv", false, EVAL_TV},
    {"same_top", false, EVAL_SAME_TOP},
    {"common_5", false, EVAL_COMMON_5},
    {"common_10", false, EVAL_COMMON_10},
};

/** Which columns a table has, and what is the same in all of its lines. */
struct columns {
    const struct column *of;
    size_t n;
    const char *name_in_front, *value_in_front; /* with a tab at their end, or "" */
    bool without_js;                            /* columns of the second pass are empty */
};

/** What the lines share. */
struct writing {
    const struct model_tokenizer *tokenizer;
    struct eval_spelling spelling;
};

void eval_per_token_number(struct base_file *file, double value)
{
    if (isnan(value))
        base_file_printf(file, "\tnan");
    else
        base_file_printf(file, "\t%.12g", value);
}

static void put_names(struct base_file *file, const struct columns *columns)
{
    base_file_printf(file, "%swindow\tposition\ttoken_id\ttoken", columns->name_in_front);
    for (size_t k = 0; k < columns->n; k++)
        base_file_printf(file, "\t%s", columns->of[k].name);
    base_file_write(file, "\n", 1);
}

static enum status put_line(struct base_file *file, const struct eval_kld_tables *t,
                            const struct columns *columns, struct eval_scored_token at,
                            struct writing *writing, struct status_why *why)
{
    size_t w = at.window, position = eval_plan_position(t->plan, w, at.index);
    int32_t id = t->stream->ids[eval_plan_target(t->plan, w, position)];
    enum status status = eval_spell(&writing->spelling, writing->tokenizer, id, why);
    if (status)
        return status;
    base_file_printf(file, "%s%zu\t%zu\t%d\t", columns->value_in_front, w, position, id);
    base_file_write(file, writing->spelling.escaped, writing->spelling.n_escaped);
    for (size_t k = 0; k < columns->n; k++) {
        const struct eval_table *table = columns->of[k].of_base ? t->base : t->candidate;
        enum eval_column column = columns->of[k].column;
        if (columns->without_js && (column == EVAL_JS || column == EVAL_TV))
            base_file_write(file, "\t", 1);
        else
            eval_per_token_number(file, eval_table_row(table, column, w)[at.index]);
    }
    base_file_write(file, "\n", 1);
    return STATUS_OK;
}

static enum status put_lines(struct base_file *file, const struct eval_kld_tables *t,
                             const struct columns *columns, const struct model_tokenizer *tokenizer,
                             struct status_why *why)
{
    enum status status = STATUS_OK;
    struct writing writing = {.tokenizer = tokenizer};
    for (size_t w = 0; w < t->candidate->n_windows; w++) {
        size_t n = t->candidate->done[w] ? eval_table_n(t->candidate, w) : 0;
        for (size_t i = 0; i < n && !status; i++)
            status = put_line(file, t, columns, (struct eval_scored_token){w, i}, &writing, why);
    }
    eval_spelling_free(&writing.spelling);
    return status;
}

enum status eval_per_token_write(struct base_file *file, const struct eval_plan *plan,
                                 const struct eval_stream *stream, const struct eval_table *table,
                                 const struct model_tokenizer *tokenizer, struct status_why *why)
{
    const struct columns columns = {of_one, sizeof of_one / sizeof *of_one, "", ""};
    put_names(file, &columns);
    return put_lines(file, &(struct eval_kld_tables){plan, stream, NULL, table}, &columns,
                     tokenizer, why);
}

enum status eval_pair_per_token_write(struct base_file *file, const struct eval_kld_tables *t,
                                      size_t candidate, bool with_js,
                                      const struct model_tokenizer *tokenizer,
                                      struct status_why *why)
{
    char value[32];
    snprintf(value, sizeof value, "%zu\t", candidate);
    const struct columns columns = {of_pair, sizeof of_pair / sizeof *of_pair, "candidate\t", value,
                                    !with_js};
    if (candidate == 0)
        put_names(file, &columns);
    return put_lines(file, t, &columns, tokenizer, why);
}

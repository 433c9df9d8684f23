#include "eval/metrics/pair_per_token.h"

#include "eval/input/spelling.h"
#include "eval/metrics/per_token.h"

/** A column of one of the two tables. */
struct column {
    const char *name;
    bool of_base;
    enum eval_column column;
};

static const struct column columns[] = {
    {"base_logprob", true, EVAL_LOG_PROB},
    {"logprob", false, EVAL_LOG_PROB},
    {"base_rank", true, EVAL_RANK},
    {"rank", false, EVAL_RANK},
    {"base_entropy", true, EVAL_ENTROPY},
    {"entropy", false, EVAL_ENTROPY},
    {"kld", false, EVAL_KL},
    {"reverse_kld", false, EVAL_REVERSE_KL},
    {"js", false, EVAL_JS},
    {"same_top", false, EVAL_SAME_TOP},
    {"common_5", false, EVAL_COMMON_5},
    {"common_10", false, EVAL_COMMON_10},
};
enum { N_COLUMNS = sizeof columns / sizeof *columns };

static void put_names(struct base_file *file)
{
    base_file_printf(file, "candidate\twindow\tposition\ttoken_id\ttoken");
    for (size_t k = 0; k < N_COLUMNS; k++)
        base_file_printf(file, "\t%s", columns[k].name);
    base_file_write(file, "\n", 1);
}

static void put_numbers(struct base_file *file, const struct eval_kld_tables *t, size_t w, size_t i)
{
    for (size_t k = 0; k < N_COLUMNS; k++) {
        const struct eval_table *table = columns[k].of_base ? t->base : t->candidate;
        eval_per_token_number(file, eval_table_row(table, columns[k].column, w)[i]);
    }
    base_file_write(file, "\n", 1);
}

enum status eval_pair_per_token_write(struct base_file *file, const struct eval_kld_tables *t,
                                      size_t candidate, const struct model_tokenizer *tokenizer,
                                      struct status_why *why)
{
    enum status status = STATUS_OK;
    struct eval_spelling spelling = {0};
    if (candidate == 0)
        put_names(file);
    for (size_t w = 0; w < t->base->n_windows && !status; w++) {
        for (size_t i = 0; t->base->done[w] && i < t->base->n_scored; i++) {
            size_t position = t->plan->first_scored + i;
            int32_t id = t->stream->ids[eval_plan_target(t->plan, w, position)];
            status = eval_spell(&spelling, tokenizer, id, why);
            if (status)
                break;
            base_file_printf(file, "%zu\t%zu\t%zu\t%d\t", candidate, w, position, id);
            base_file_write(file, spelling.escaped, spelling.n_escaped);
            put_numbers(file, t, w, i);
        }
    }
    eval_spelling_free(&spelling);
    return status;
}

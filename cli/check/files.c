/* What assay check writes: a table with a line for each token, and the result document. */
#include "cli/check/check_evaluator.h"
#include "cli/output/json_parts.h"
#include "cli/output/passage.h"
#include "eval/input.h"
#include "eval/metrics.h"

static void put_token(const struct cli_check *c, struct base_file *file, size_t w, size_t i)
{
    static const enum eval_column of_pair[] = {EVAL_KL, EVAL_REVERSE_KL, EVAL_SAME_TOP};
    struct eval_check_floor floor = eval_check_floor_of(c->check, w, i);
    for (int k = EVAL_LOG_PROB; k < EVAL_N_COLUMNS; k++)
        for (int t = 0; t < 2; t++)
            eval_per_token_number(file,
                                  eval_table_row(&c->windows.tables[t], (enum eval_column)k, w)[i]);
    for (size_t k = 0; k < sizeof of_pair / sizeof *of_pair; k++)
        eval_per_token_number(file, eval_table_row(&c->windows.tables[1], of_pair[k], w)[i]);
    eval_per_token_number(file, floor.kld);
    eval_per_token_number(file, floor.nll);
    base_file_write(file, "\n", 1);
}

enum status cli_check_write_table(const void *self, struct base_file *file, struct status_why *why)
{
    const struct cli_check *c = self;
    enum status status = STATUS_OK;
    struct eval_spelling spelling = {0};
    base_file_printf(file, "window\tposition\ttoken_id\ttoken\tlogprob\trecorded_logprob\trank\t"
                           "recorded_rank\tentropy\trecorded_entropy\tkld\treverse_kld\tsame_top\t"
                           "file_kld\tfile_nll\n");
    for (size_t w = 0; w < c->windows.plan.n_windows && !status; w++) {
        for (size_t i = 0; c->windows.tables[0].done[w] && i < c->windows.plan.n_scored; i++) {
            size_t position = c->windows.plan.first_scored + i;
            int32_t id = c->windows.stream.ids[eval_plan_target(&c->windows.plan, w, position)];
            status = eval_spell(&spelling, model_tokenizer(c->model.model), id, why);
            if (status)
                break;
            base_file_printf(file, "%zu\t%zu\t%d\t", w, position, id);
            base_file_write(file, spelling.escaped, spelling.n_escaped);
            put_token(c, file, w, i);
        }
    }
    eval_spelling_free(&spelling);
    return status;
}

static void add_limits(struct base_json *json, cJSON *parent, const struct cli_check *c)
{
    struct cli_check_limit limits[CLI_CHECK_LIMITS];
    cli_check_limits(c, limits);
    bool within = true;
    for (size_t i = 0; i < CLI_CHECK_LIMITS; i++)
        within = within && !(limits[i].found > limits[i].limit);
    base_json_flag(json, parent, "within_limits", within);
}

static void add_figures(struct base_json *json, const struct cli_check *c)
{
    const struct eval_check_result *r = &c->result;
    cJSON *o = base_json_object(json, json->root, "result");
    base_json_flag(json, o, "complete", r->kld.complete);
    base_json_uint(json, o, "n_windows", r->kld.n_windows);
    base_json_uint(json, o, "n_tokens", r->kld.n_tokens);
    add_limits(json, o, c);
    cli_check_add_figures(json, o, r);
}

static void add_worst(struct base_json *json, const struct cli_check *c)
{
    const struct eval_table *exact = &c->windows.tables[0], *recorded = &c->windows.tables[1];
    cJSON *list = base_json_list(json, json->root, "worst");
    for (size_t k = 0; k < c->result.kld.n_worst; k++) {
        struct cli_passage token = {&c->windows, model_tokenizer(c->model.model),
                                    c->result.kld.worst[k]};
        size_t w = token.place.window, i = token.place.index;
        cJSON *o = cli_json_add_passage(json, list, &token);
        base_json_real(json, o, "kld", eval_table_row(recorded, EVAL_KL, w)[i]);
        base_json_real(json, o, "file_kld", eval_check_floor_of(c->check, w, i).kld);
        base_json_real(json, o, "logprob", eval_table_row(exact, EVAL_LOG_PROB, w)[i]);
        base_json_real(json, o, "recorded_logprob", eval_table_row(recorded, EVAL_LOG_PROB, w)[i]);
    }
}

/* limits: also what the figures are held against, which changes none of them. */
static void add_settings(struct base_json *json, const struct cli_check *c, bool limits)
{
    const struct cli_check_settings *s = c->settings;
    cJSON *o = base_json_object(json, json->root, "settings");
    cli_json_add_window_settings(json, o, &s->windows, &c->windows.plan);
    if (limits) {
        base_json_real(json, o, "max_kld", s->max_kld);
        base_json_real(json, o, "max_beyond", s->max_beyond);
        if (s->against)
            base_json_real(json, o, "resolve", s->resolve);
    }
    cli_json_add_computation(json, o, &c->e);
}

/* What else a journal's windows have scores of. */
static void add_further(struct base_json *json, const struct cli_check *c)
{
    if (c->settings->against)
        base_json_text(json, json->root, "against", c->against.recorded.id);
    cJSON *again = c->settings->again.n ? base_json_list(json, json->root, "again") : NULL;
    for (size_t i = 0; i < c->settings->again.n; i++)
        base_json_text(json, again, NULL, c->noise.runs[i].recorded.id);
    cJSON *others = c->n_fits > 1 ? base_json_list(json, json->root, "others") : NULL;
    for (size_t i = 1; i < c->n_fits; i++)
        cli_json_add_model(json, base_json_object(json, others, NULL), "model", c->fits[i].model,
                           false);
}

static void describe(const void *self, struct base_json *json, bool for_journal)
{
    const struct cli_check *c = self;
    cli_json_add_model(json, json->root, "model", &c->model, !for_journal);
    cli_base_add_json(json, json->root, &c->recorded, !for_journal);
    if (for_journal)
        add_further(json, c);
    add_settings(json, c, !for_journal);
    cli_json_add_text(json, &c->windows, model_tokenizer(c->model.model));
}

static void add_result(const void *self, struct base_json *json)
{
    const struct cli_check *c = self;
    add_figures(json, c);
    cli_budget_add_json(json, json->root, &c->budget);
    if (c->settings->divergence.curve.wanted)
        cli_json_add_curve(json, json->root, &c->windows.plan, c->result.kld.positions);
    if (c->result.kld.n_worst)
        add_worst(json, c);
    cli_fits_add_json(json, c);
    cli_again_add_json(json, c);
    cli_against_add_json(json, c);
}

static void add_files(const void *self, struct base_json *json, cJSON *run)
{
    const struct cli_check *c = self;
    base_json_text(json, run, "base_file", c->recorded.path);
    if (c->settings->against)
        base_json_text(json, run, "against_file", c->settings->against);
    cJSON *again = c->settings->again.n ? base_json_list(json, run, "again_files") : NULL;
    for (size_t i = 0; i < c->settings->again.n; i++)
        base_json_text(json, again, NULL, c->settings->again.items[i]);
    cJSON *others = c->n_fits > 1 ? base_json_list(json, run, "or_files") : NULL;
    for (size_t i = 1; i < c->n_fits; i++)
        base_json_text(json, others, NULL, c->fits[i].model->path);
}

const struct cli_members cli_check_members = {"assay-check", add_result, describe, NULL, add_files};

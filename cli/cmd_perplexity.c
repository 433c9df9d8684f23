/* assay perplexity: how well a model predicts a text. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/evaluation.h"
#include "cli/interrupt.h"
#include "cli/run.h"
#include "eval/per_token.h"

/* The model computes with float32: what has no positive float32 is refused, not rounded away. */
static enum status check_rotary_settings(const struct cli_perplexity *s, struct status_why *why)
{
    const struct {
        const char *name;
        double value;
        bool negative_allowed; /* llama-perplexity's way to say: as the file says */
    } numbers[] = {
        {"--rope-scale", s->rope_scale, false},
        {"--rope-freq-base", s->rope_freq_base, false},
        {"--rope-freq-scale", s->rope_freq_scale, false},
        {"--yarn-attn-factor", s->yarn_attn_factor, true},
        {"--yarn-beta-fast", s->yarn_beta_fast, true},
        {"--yarn-beta-slow", s->yarn_beta_slow, true},
    };
    const double least = (double)FLT_MIN, most = 1 / least;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        double value = numbers[i].value;
        bool as_the_file_says = isnan(value) || (value < 0 && numbers[i].negative_allowed);
        if (!as_the_file_says && !(value >= least && value <= most))
            return status_fail(why, STATUS_USAGE, "%s: %g is out of range, expected %g to %g",
                               numbers[i].name, value, least, most);
    }
    if (s->yarn_ext_factor > most)
        return status_fail(why, STATUS_USAGE, "--yarn-ext-factor: %g is out of range",
                           s->yarn_ext_factor);
    if (!isnan(s->rope_scale) && !isnan(s->rope_freq_scale))
        return status_fail(why, STATUS_USAGE,
                           "--rope-scale and --rope-freq-scale say the same thing; give one");
    return STATUS_OK;
}

/* What the table of options cannot say: what belongs together and what excludes each other. */
static enum status check_settings(const struct cli_perplexity *s, struct status_why *why)
{
    int n_texts = (s->text_file != NULL) + (s->binary_file != NULL) + (s->prompt != NULL);
    if (!s->model)
        return status_fail(why, STATUS_USAGE, "-m is missing; see assay help perplexity");
    if (n_texts != 1)
        return status_fail(why, STATUS_USAGE,
                           "expected exactly one text, by -f, -bf or -p; found %d", n_texts);
    if (s->n_chunks == 0)
        return status_fail(why, STATUS_USAGE, "--chunks: 0 leaves nothing to evaluate; -1 is all");
    if (s->protocol == CLI_PROTOCOL_FIXED && s->stride)
        return status_fail(why, STATUS_USAGE, "--ppl-stride goes with --protocol default only");
    if (s->protocol != CLI_PROTOCOL_FIXED && s->split_lines)
        return status_fail(why, STATUS_USAGE, "--split-lines goes with --protocol fixed only");
    return check_rotary_settings(s, why);
}

static void on_window(void *user, size_t w)
{
    cli_report_window(user, w);
}

static void on_progress(void *user, const struct eval_progress *now)
{
    struct cli_evaluation *e = user;
    cli_progress_update(&e->progress, now);
}

/* The outputs come before the computation, so that one that cannot be written costs no hours. */
static enum status create_outputs(struct cli_evaluation *e, struct status_why *why)
{
    const struct cli_perplexity *s = e->settings;
    enum status status = STATUS_OK;
    if (s->json_file)
        status = eval_file_create(&e->json_file, s->json_file, why);
    if (status == STATUS_OK && s->per_token_file)
        status = eval_file_create(&e->per_token_file, s->per_token_file, why);
    return status;
}

/* Commit a file that was filled with `filled` as its outcome; *file is NULL afterwards. */
static enum status commit(struct eval_file **file, enum status filled, struct status_why *why)
{
    struct eval_file *done = *file;
    *file = NULL;
    if (filled == STATUS_OK)
        return eval_file_commit(done, why);
    eval_file_abandon(done);
    return filled;
}

static enum status write_outputs(struct cli_evaluation *e, struct status_why *why)
{
    enum status status = STATUS_OK;
    if (e->per_token_file)
        status = commit(&e->per_token_file,
                        eval_per_token_write(e->per_token_file, &e->plan, &e->stream, &e->table,
                                             model_tokenizer(e->model), why),
                        why);
    if (status == STATUS_OK && e->json_file)
        status = commit(&e->json_file, cli_report_json(e, e->json_file, why), why);
    return status;
}

/* The windows that are done are reported whether or not all of them are. */
static enum status evaluate(struct cli_evaluation *e, struct status_why *why)
{
    kern_set_cancel(e->backend, cli_interrupt_catch());
    enum status status = create_outputs(e, why);
    if (status != STATUS_OK)
        return status;
    cli_report_beginning(e);
    cli_progress_begin(&e->progress, e->settings->quiet);
    e->run_options.window_done = on_window;
    e->run_options.progress = on_progress;
    e->run_options.user = e;

    struct eval_task task = cli_evaluation_task(e);
    enum status run_status = eval_run(&task, &e->run_options, &e->table, &e->stats, why);
    cli_progress_clear(&e->progress);
    if (run_status != STATUS_OK && run_status != STATUS_CANCELLED)
        return run_status;
    eval_perplexity(&e->result, &e->plan, &e->stream, &e->table);
    if (e->settings->context_curve)
        status = eval_curve_make(&e->curve, &e->table, why);
    if (status == STATUS_OK) {
        cli_report_end(e);
        status = write_outputs(e, why);
    }
    if (status != STATUS_OK)
        return status;
    if (run_status == STATUS_CANCELLED)
        return status_fail(why, run_status, "interrupted: the result is incomplete");
    if (e->result.nonfinite.n)
        return status_fail(why, STATUS_NONFINITE, "the perplexity is not finite");
    return STATUS_OK;
}

static int run_perplexity(const struct cli_command *self, int argc, char **argv)
{
    struct cli_perplexity settings;
    cli_perplexity_defaults(&settings);
    struct cli_args args;
    int exit_code;
    if (cli_begin(self, argc, argv, &settings, &args, &exit_code)) {
        struct status_why why = {""};
        struct cli_evaluation e = {0};
        enum status status = check_settings(&settings, &why);
        if (status == STATUS_OK)
            status = cli_evaluation_open(&e, &settings, &why);
        if (status == STATUS_OK)
            status = evaluate(&e, &why);
        exit_code = status == STATUS_OK ? cli_end(CLI_EXIT_DONE) : cli_fail(status, &why);
        cli_evaluation_close(&e);
    }
    cli_list_clear(&settings.overrides);
    return exit_code;
}

const struct cli_command cli_command_perplexity = {
    .name = "perplexity",
    .usage = "-m MODEL -f TEXT [options]",
    .summary = "Evaluate the perplexity of a model on a text.",
    .description =
        "Takes the options of llama-perplexity with its meaning. Those that cannot change a "
        "number here\n(-fa, -ub, -ngl, --mlock, ...) are accepted and ignored; those that "
        "could, and are not\nimplemented, are errors.",
    .table = cli_perplexity_table,
    .run = run_perplexity,
};

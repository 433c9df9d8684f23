/* How far the file's predictions are from the folder's: assay kld, with a sentence for its lines.
 */
#include <stdio.h>

#include "base/text/printable.h"
#include "cli/check/conversion/conversion.h"
#include "cli/kld/kld_evaluator.h"
#include "cli/process/run.h"
#include "cli/process/say.h"

/** A comparison that keeps its figures. */
struct comparing {
    struct cli_kld kld; /* the first member: an evaluator's self */
    struct cli_conversion_divergence *out;
};

static void print_end(void *self)
{
    struct comparing *c = self;
    const struct eval_kld_result *r = &c->kld.results[0];
    struct cli_conversion_divergence *d = c->out;
    *d = (struct cli_conversion_divergence){r->n_windows > 0, r->figures.kld, r->figures.same_top,
                                            r->n_tokens, r->n_windows};
    if (!d->measured)
        return;
    printf("\nOn the text the file is %.4e ± %.1e nats per token from the folder, and %.3f %% of "
           "%zu tokens have the same likeliest one\n",
           d->kld.value, base_unsigned_nan(base_estimate_error(d->kld)), 100 * d->same_top.value,
           d->n_tokens);
    cli_flush();
}

enum status cli_conversion_diverge(struct cli_conversion *c, struct status_why *why)
{
    const struct cli_conversion_settings *s = c->settings;
    struct cli_kld_settings settings;
    char *models[] = {(char *)(uintptr_t)s->model}; /* which nobody writes to */
    cli_kld_defaults(&settings);
    settings.base = s->folder;
    settings.models = (struct cli_list){models, 1};
    settings.text.text_file = s->text_file;
    settings.windows = s->windows;
    settings.evaluate = s->evaluate;
    settings.evaluate.output = (struct cli_output_settings){0};
    struct cli_model_settings *load = &settings.evaluate.load;
    if (!load->tokenizer) {
        load->tokenizer = s->model;
        load->tokenizer_chosen = true;
    }
    const struct cli_lines lines = {.beginning = cli_kld_lines.beginning, .end = print_end};
    struct cli_evaluator evaluator = cli_kld_evaluator;
    evaluator.lines = &lines;
    evaluator.finish = NULL;
    struct comparing comparing = {.kld = {.settings = &settings,
                                          .e = {.kind = &evaluator,
                                                .settings = &settings.evaluate,
                                                .name = "check",
                                                .inputs = {{"--base", s->folder}},
                                                .model_paths = settings.models,
                                                .text = &settings.text}},
                                  .out = &c->divergence};
    return cli_evaluate(&comparing.kld.e, why);
}

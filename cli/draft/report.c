/* The lines of assay draft, and its document. */
#include <stdio.h>

#include "cli/draft/draft_command.h"
#include "cli/output/figure.h"
#include "cli/output/json_parts.h"
#include "cli/process/version.h"

static void print_share(const char *what, struct base_estimate share)
{
    char text[CLI_FIGURE_BYTES];
    printf("%-42s %s %%\n", what,
           cli_figure_with_error(text, 100 * share.value, 100 * base_estimate_error(share)));
}

static void print_figure(const char *what, struct base_estimate figure)
{
    char text[CLI_FIGURE_BYTES];
    printf("%-42s %s\n", what,
           cli_figure_with_error(text, figure.value, base_estimate_error(figure)));
}

void cli_draft_print(const struct cli_draft *d)
{
    const struct draft_figures *f = &d->figures;
    printf("Drafts of blk.%u, which predicts the token after the next, at %zu positions in %zu "
           "windows of %zu\n\n",
           model_hparams(d->model.model)->n_layers, f->n, d->windows.plan.n_windows,
           d->windows.plan.window);
    print_share("The guess is the text's token:", f->hits);
    print_share("The guess is the model's likeliest token:", f->agrees);
    print_share("Probability that the model gives it:", f->guess_prob);
    print_share("Accepted by speculative sampling:", f->accepted);
    print_figure("Tokens per pass, greedy:", f->tokens_greedy);
    print_figure("Tokens per pass, sampling:", f->tokens_sampled);
    print_figure("Perplexity of the model:", f->ppl);
    print_figure("Perplexity of the drafts:", f->ppl_draft);
}

static void add_figures(struct base_json *json, const struct draft_figures *f)
{
    cJSON *o = base_json_object(json, json->root, "result");
    base_json_uint(json, o, "n_positions", f->n);
    cli_json_estimate(json, o, "hits", f->hits);
    cli_json_estimate(json, o, "agrees", f->agrees);
    cli_json_estimate(json, o, "guess_probability", f->guess_prob);
    cli_json_estimate(json, o, "accepted", f->accepted);
    cli_json_estimate(json, o, "tokens_per_pass_greedy", f->tokens_greedy);
    cli_json_estimate(json, o, "tokens_per_pass_sampled", f->tokens_sampled);
    cli_json_estimate(json, o, "ppl", f->ppl);
    cli_json_estimate(json, o, "draft_ppl", f->ppl_draft);
}

enum status cli_draft_write(const struct cli_draft *d, struct base_file *file,
                            struct status_why *why)
{
    const struct cli_draft_settings *s = d->settings;
    const struct kern_description device = kern_describe(d->backends.items[0]);
    struct base_json json;
    struct cli_versions versions;
    cli_versions_read(&versions);
    doc_json_begin(&json, DOC_DRAFT_SCHEMA);
    add_figures(&json, &d->figures);
    cli_json_add_model(&json, json.root, "model", &d->model, true);
    cli_json_add_text(&json, &d->windows, model_tokenizer(d->model.model));
    cJSON *settings = base_json_object(&json, json.root, "settings");
    cli_json_add_window_settings(&json, settings, &s->windows, &d->windows.plan);
    cli_json_add_text_settings(&json, settings, &s->text);
    base_json_flag(&json, settings, "llama_compat", s->llama_compat);
    base_json_text(&json, settings, "precision", cli_precision_name(s->machine.precision));
    base_json_text(&json, settings, "products", device.products);
    cJSON *run = base_json_object(&json, json.root, "run");
    base_json_text(&json, run, "device", device.device);
    base_json_text(&json, run, "isa", device.isa);
    base_json_text(&json, run, "assay", versions.assay);
    base_json_text(&json, run, "commit", versions.commit);
    return doc_json_end(&json, file, why);
}

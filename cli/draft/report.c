/* The lines of assay draft, and its document. */
#include <stdio.h>

#include "base/text/number.h"
#include "cli/draft/draft_command.h"
#include "cli/output/json_parts.h"
#include "cli/output/metrics.h"
#include "cli/process/version.h"

#define AT(member) offsetof(struct draft_figures, member)

static const struct doc_metric metrics[] = {
    {"hits", DOC_ESTIMATE, AT(hits), &doc_as_percent, .line = "The guess is the text's token:"},
    {"agrees", DOC_ESTIMATE, AT(agrees), &doc_as_percent,
     .line = "The guess is the model's likeliest token:"},
    {"guess_probability", DOC_ESTIMATE, AT(guess_prob), &doc_as_percent,
     .line = "Probability that the model gives it:"},
    {"accepted", DOC_ESTIMATE, AT(accepted), &doc_as_percent,
     .line = "Accepted by speculative sampling:"},
    {"tokens_per_pass_greedy", DOC_ESTIMATE, AT(tokens_greedy), &doc_as_number,
     .line = "Tokens per pass, greedy:"},
    {"tokens_per_pass_sampled", DOC_ESTIMATE, AT(tokens_sampled), &doc_as_number,
     .line = "Tokens per pass, sampling:"},
    {"ppl", DOC_ESTIMATE, AT(ppl), &doc_as_number, .line = "Perplexity of the model:"},
    {"draft_ppl", DOC_ESTIMATE, AT(ppl_draft), &doc_as_number, .line = "Perplexity of the drafts:"},
};
enum { N_METRICS = sizeof metrics / sizeof *metrics };

void cli_draft_print(const struct cli_draft *d)
{
    const struct draft_figures *f = &d->figures;
    printf("Drafts of blk.%u, which predicts the token after the next, at %zu positions in %zu "
           "windows of %zu\n\n",
           model_hparams(d->model.model)->n_layers, f->n, d->windows.plan.n_windows,
           d->windows.plan.window);
    for (size_t i = 0; i < N_METRICS; i++) {
        const struct doc_metric *m = &metrics[i];
        struct base_estimate x = cli_metric_value(m, f);
        char text[BASE_FIGURE_BYTES];
        base_figure_with_error(text, m->as->scale * x.value, m->as->scale * base_estimate_error(x));
        printf("%-42s %s%s%s\n", m->line, text, *m->as->unit ? " " : "", m->as->unit);
    }
}

static void add_figures(struct base_json *json, const struct draft_figures *f)
{
    cJSON *o = base_json_object(json, json->root, "result");
    base_json_uint(json, o, "n_positions", f->n);
    cli_json_metrics(json, o, &(struct cli_metrics){metrics, N_METRICS, f, 0});
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

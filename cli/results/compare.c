/* assay compare: whether two results on the same inputs differ by more than chance. */
#include "cli/results/compare.h"

#include "cli/commands.h"
#include "cli/options/common.h"
#include "cli/session/outputs.h"

enum { MOST_MODELS = 1000000, MOST_RESAMPLES = 1000000 };

/* What a base was computed with: a recorded one may have another precision than the run. */
static struct cli_field base_precision(const struct cli_field *root)
{
    struct cli_field found;
    bool recorded = cli_field_find(&found, root, "base.precision");
    return cli_field_at(root, recorded ? "base.precision" : "settings.precision");
}

static enum status check_same_base(const struct cli_field *a, const struct cli_field *b,
                                   struct status_why *why)
{
    struct cli_field id_a = cli_base_id(a), id_b = cli_base_id(b);
    enum status status = cli_values_equal(&id_a, &id_b, why);
    if (status)
        return status;
    struct cli_field precision_a = base_precision(a), precision_b = base_precision(b);
    return cli_values_equal(&precision_a, &precision_b, why);
}

/*
 * A choice task is the same in both where its file is; its tokens depend on the model. Windows are
 * the same where the same positions of the same tokens are scored. Models may be opened and
 * computed with other settings: that may be what is to be compared. But two divergences must be
 * from the same base, opened and computed in the same way.
 */
static enum status check_same_inputs(struct cli_compare *c, struct status_why *why)
{
    struct cli_document *a = &c->sides[0].document, *b = &c->sides[1].document;
    struct cli_field in_a = cli_document_root(a), in_b = cli_document_root(b);
    if (a->kind != b->kind)
        return status_fail(why, STATUS_USAGE,
                           "%s is a result of schema %s, %s of %s; only results of the same "
                           "evaluator can be compared",
                           a->file, cli_document_schema(a->kind), b->file,
                           cli_document_schema(b->kind));
    if (a->kind == CLI_DOCUMENT_TASKS)
        return cli_fields_equal(&in_a, &in_b,
                                "kind text.sha256 settings.llama_compat settings.parse_special "
                                "settings.escape",
                                NULL, why);
    enum status status = cli_fields_same_text(&in_a, &in_b, why);
    if (!status)
        status = cli_fields_equal(&in_a, &in_b,
                                  "tokens.sha256 tokens.bos_in_windows windows.n_tokens "
                                  "windows.step windows.n_inputs windows.first_scored",
                                  NULL, why);
    if (status)
        return status;
    bool is_kld = a->kind == CLI_DOCUMENT_KLD;
    if (is_kld)
        status = check_same_base(&in_a, &in_b, why);
    return status
               ? status
               : cli_fields_equal(
                     &in_a, &in_b, is_kld ? "settings" : "settings.llama_compat",
                     is_kld ? "chunks chunk_from js cache_type_k cache_type_v kv_rotation" : NULL,
                     why);
}

/* The candidate of a kld result that is meant, or the whole document. */
static enum status choose(struct cli_field *out, struct cli_compare *c, size_t side,
                          struct status_why *why)
{
    struct cli_document *d = &c->sides[side].document;
    *out = cli_document_root(d);
    size_t wanted = (size_t)c->settings.candidates[side], n;
    const char *option = side ? "--candidate-b" : "--candidate-a";
    if (d->kind != CLI_DOCUMENT_KLD)
        return wanted == 0 ? STATUS_OK
                           : status_fail(why, STATUS_USAGE, "%s: %s is a result of one model",
                                         option, d->file);
    struct cli_field list = cli_field_list(&n, out, "candidates"), item = {0};
    enum status status = cli_document_status(d, why);
    if (status)
        return status;
    if (wanted > n || (wanted == 0 && n != 1))
        return status_fail(why, STATUS_USAGE,
                           "%s has %zu model%s; choose one with %s N, N from 1 to %zu", d->file, n,
                           status_plural(n), option, n);
    while (cli_field_next(&list, &item) && item.index + 1 < wanted) {
    }
    *out = item;
    return STATUS_OK;
}

enum status cli_compare_status(const struct cli_compare *c, struct status_why *why)
{
    enum status status = cli_document_status(&c->sides[0].document, why);
    return status ? status : cli_document_status(&c->sides[1].document, why);
}

enum status cli_compare_make(struct cli_compare *c, struct status_why *why)
{
    enum status status = check_same_inputs(c, why);
    for (size_t side = 0; side < 2 && !status; side++) {
        struct cli_compared *s = &c->sides[side];
        status = choose(&s->field, c, side, why);
        if (status)
            return status;
        struct cli_field model = cli_field_at(&s->field, "model");
        s->file = cli_model_file_in(&model);
        cli_model_kv_in(s->kv, &model);
        s->name = cli_field_text(&s->field, "model.name");
        s->id = cli_field_text(&s->field, "model.id");
        status = cli_compare_status(c, why);
    }
    if (status)
        return status;
    return c->sides[0].document.kind == CLI_DOCUMENT_TASKS ? cli_compare_tasks(c, why)
                                                           : cli_compare_windows(c, why);
}

void cli_compare_close(struct cli_compare *c)
{
    cli_document_free(&c->sides[0].document);
    cli_document_free(&c->sides[1].document);
}

static void defaults(void *settings)
{
    *(struct cli_compare_settings *)settings =
        (struct cli_compare_settings){.n_resamples = 10000, .seed = 1};
}

static enum status run_compare(const void *settings, const struct cli_args *args,
                               struct status_why *why)
{
    struct cli_compare c = {.settings = *(const struct cli_compare_settings *)settings};
    const struct cli_named_file output = {"--json", c.settings.json_file};
    const struct cli_named_file inputs[] = {{"A", args->operands[0]}, {"B", args->operands[1]}};
    struct base_file *json_file = NULL;
    enum status status = cli_outputs_check(&output, 1, inputs, 2, why);
    for (size_t side = 0; side < 2 && !status; side++)
        status = cli_document_read(&c.sides[side].document, args->operands[side], why);
    if (!status)
        status = cli_compare_make(&c, why);
    if (!status)
        status = cli_output_create(&json_file, c.settings.json_file, why);
    if (!status)
        cli_compare_print(&c);
    if (json_file)
        status = cli_output_commit(&json_file, cli_compare_write_json(&c, json_file, why), why);
    if (!status)
        status = cli_compare_verdict(&c, why);
    cli_compare_close(&c);
    return status;
}

#define AT(member) offsetof(struct cli_compare_settings, member)

static const struct cli_option options[] = {
    {"--candidate-a", CLI_COUNT, "N", "which model of A, a result of assay kld of several, from 1",
     AT(candidates[0]), 1, MOST_MODELS},
    {"--candidate-b", CLI_COUNT, "N", "which model of B; A and B may be the same file",
     AT(candidates[1]), 1, MOST_MODELS},
    {"--resamples", CLI_COUNT, "N",
     "resamples of the block bootstrap over windows (default: 10000)", AT(n_resamples), 1,
     MOST_RESAMPLES},
    {"--seed", CLI_COUNT, "N",
     "seed of its generator; the same seed gives the same intervals (default: 1)", AT(seed), 0,
     UINT32_MAX},
    {.type = CLI_GROUP, .group = cli_json_options, .offset = AT(json_file)},
    {0},
};

const struct cli_command cli_command_compare = {
    .name = "compare",
    .usage = "A.json B.json [options]",
    .n_operands = 2,
    .summary = "Tell whether two results differ by more than chance.",
    .description = "A and B are what --json wrote: two results of the same evaluator on the same "
                   "inputs; others are\nrefused. Choice tasks: McNemar's test. Perplexity and KL "
                   "divergence: a block bootstrap over windows.",
    .options = options,
    .settings_bytes = sizeof(struct cli_compare_settings),
    .defaults = defaults,
    .run = run_compare,
};

/* What lines, document and evaluator ask of a run. */
#include <math.h>

#include "cli/kld/kld_evaluator.h"

const struct model *cli_kld_reader(const struct cli_kld *k)
{
    const struct model *reader = cli_base_has_rows(&k->base) ? k->models[0] : k->base.model.model;
    for (size_t i = 0; k->is_cut && i < k->n_candidates; i++)
        if (k->models[i] && model_hparams(k->models[i])->n_vocab > model_hparams(reader)->n_vocab)
            reader = k->models[i];
    return reader;
}

struct cli_passage cli_kld_passage(const struct cli_kld *k, const struct eval_scored_token *place)
{
    return (struct cli_passage){&k->windows, model_tokenizer(cli_kld_reader(k)), *place};
}

struct eval_kld_tables cli_kld_tables(const struct cli_kld *k, size_t i)
{
    const struct cli_windows *w = &k->windows;
    return (struct eval_kld_tables){&w->plan, &w->stream, &w->tables[0], &w->tables[1 + i]};
}

bool cli_kld_in_blocks(const struct cli_kld *k)
{
    const struct cli_kld_settings *s = k->settings;
    return !s->new_type && !s->markdown && (s->full || k->n_candidates == 1);
}

bool cli_kld_has_lists(const struct cli_kld *k)
{
    const struct cli_kld_settings *s = k->settings;
    bool asked = s->divergence.n_worst || s->divergence.curve.wanted;
    return asked && (cli_kld_in_blocks(k) || !s->evaluate.output.json_file);
}

struct cli_metrics cli_kld_metrics(const struct cli_kld *k, size_t i)
{
    const struct eval_kld_result *r = &k->results[i];
    struct cli_metrics figures = {
        .result = r,
        .hidden = (isinf(r->figures.ppl.value) ? DOC_PPL_FINITE : DOC_PPL_INFINITE) |
                  (isinf(r->figures.base_ppl.value) ? DOC_BASE_FINITE : DOC_BASE_INFINITE) |
                  (k->settings->js ? 0u : DOC_WITH_JS),
    };
    figures.rows = doc_kld_metrics(&figures.n);
    return figures;
}

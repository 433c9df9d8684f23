/* How fast files are, as llama-bench measured, and how fast they have to be. */
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/text/printable.h"
#include "cli/best/best.h"
#include "clients/documents/results/speeds/bench.h"

static enum status check_limit(const char *option, double limit, struct status_why *why)
{
    return limit >= 0 ? STATUS_OK
                      : status_fail(why, STATUS_USAGE,
                                    "%s: %g is no speed; expected tokens per second, as 30", option,
                                    limit);
}

enum status cli_best_read_speeds(struct cli_best *b, struct status_why *why)
{
    const struct cli_list *files = &b->settings->benches;
    const double *least = b->settings->least_speed;
    enum status status = check_limit("--prompt-speed", least[DOC_PROMPT], why);
    if (!status)
        status = check_limit("--speed", least[DOC_GENERATION], why);
    if (!status)
        status = base_array_new(b->benches, files->n + 1, "files of llama-bench", why);
    for (; b->n_benches < files->n && !status; b->n_benches++)
        status = doc_read_as(&b->benches[b->n_benches], files->items[b->n_benches],
                             DOC_BENCH_SCHEMA, NULL, why);
    b->speeds.refuses_several = least[DOC_PROMPT] > 0 || least[DOC_GENERATION] > 0;
    return status ? status : doc_speeds_open(&b->speeds, b->benches, b->n_benches, why);
}

static enum status measure(struct cli_best *b, struct doc_metric_value out[DOC_N_SPEEDS],
                           const struct cli_model *m, struct status_why *why)
{
    struct cli_model_size size = cli_model_size(m);
    const struct model_hparams *hparams = model_hparams(m->model);
    char k[CLI_KV_SPELLING], v[CLI_KV_SPELLING];
    const struct doc_measured measured = {
        .file = base_file_name(m->path),
        .n_bytes = size.n_bytes,
        .n_weights = size.n_weights,
        .k = cli_kv_spelling(k, hparams->kv.k, &hparams->kv.k_but),
        .v = cli_kv_spelling(v, hparams->kv.v, &hparams->kv.v_but),
        .other_experts = hparams->experts.n_used_chosen,
    };
    return doc_speeds_of(&b->speeds, out, &measured, why);
}

enum status cli_best_measure_speeds(struct cli_best *b, struct status_why *why)
{
    struct doc_metric_value of_base[DOC_N_SPEEDS]; /* taken so that its rows are no others */
    struct status_why notes[DOC_MOST_SPEED_NOTES];
    size_t n = 0;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < b->k.n_candidates && !status; i++)
        status = measure(b, b->files[i].speeds, &b->k.candidates[i], why);
    if (!cli_base_has_rows(&b->k.base))
        (void)measure(b, of_base, &b->k.base.model, NULL);
    doc_speeds_note(&b->speeds, notes, &n);
    for (size_t i = 0; i < n && !status; i++)
        cli_remark(&b->k.e, "%s", notes[i].text);
    return status;
}

bool cli_best_is_fast(const struct cli_best *b, const struct cli_best_file *f)
{
    bool fast = true;
    for (size_t kind = 0; kind < DOC_N_SPEEDS; kind++) {
        double least = b->settings->least_speed[kind];
        fast &= !(least > 0) || (f->speeds[kind].known && f->speeds[kind].value >= least);
    }
    return fast;
}

const char *cli_best_say_slow(char out[CLI_BEST_SLOW], const struct cli_best *b,
                              const struct cli_best_file *f)
{
    static const char *const words[] = {[DOC_PROMPT] = "reads", [DOC_GENERATION] = "generates"};
    for (size_t kind = 0; kind < DOC_N_SPEEDS; kind++) {
        double least = b->settings->least_speed[kind];
        const struct doc_metric_value *v = &f->speeds[kind];
        if (least > 0 && !v->known)
            snprintf(out, CLI_BEST_SLOW,
                     "no row of llama-bench is of it, so how fast it %s is not known", words[kind]);
        else if (least > 0 && v->value < least)
            snprintf(out, CLI_BEST_SLOW, "it %s %.4g tokens per second, less than %.4g",
                     words[kind], v->value, least);
    }
    return out;
}

void cli_best_close_speeds(struct cli_best *b)
{
    doc_speeds_close(&b->speeds);
    for (size_t i = 0; i < b->n_benches; i++)
        doc_free(&b->benches[i]);
    free(b->benches);
}

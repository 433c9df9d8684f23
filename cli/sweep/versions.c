/* Whether what a candidate has for a tensor is a version of the base's. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text/printable.h"
#include "base/text/quote.h"
#include "cli/sweep/sweep_evaluator.h"
#include "clients/conversion/conversion.h"

/** A pair for each tensor of each choice that the base has, too; returns how many there are. */
static size_t list_pairs(const struct cli_sweep *s, struct conv_version *pairs, size_t *choices)
{
    const struct gguf_file *base = model_file(s->base.model);
    size_t n = 0;
    for (size_t i = 0; i < s->groups.n_choices; i++) {
        const struct cli_sweep_choice *c = &s->groups.choices[i];
        for (size_t k = 0; k < c->n_swaps; k++) {
            const struct gguf_tensor *of = gguf_tensor_find(base, c->swaps[k].name);
            if (!of)
                continue;
            choices[n] = i;
            pairs[n++] = (struct conv_version){
                .file = c->swaps[k].file, .of_file = base, .tensor = c->swaps[k].from, .of = of};
        }
    }
    return n;
}

static void remark(struct cli_sweep *s)
{
    for (size_t k = 0; k < s->n_candidates; k++) {
        const struct cli_sweep_choice *first = NULL;
        size_t n = 0;
        for (size_t i = 0; i < s->groups.n_choices; i++) {
            const struct cli_sweep_choice *c = &s->groups.choices[i];
            if (c->candidate != k || !c->odd)
                continue;
            first = first ? first : c;
            n++;
        }
        struct base_quoted name;
        if (n)
            cli_remark(&s->e,
                       "%zu choice%s of %.100s ha%s a tensor that is no version of the base's (the "
                       "first: %s): another model's, or damaged; the figures are not what a type "
                       "costs",
                       n, status_plural(n), base_file_name(s->candidates[k].path),
                       n == 1 ? "s" : "ve",
                       base_quote(&name, (struct base_string){first->odd, strlen(first->odd)}));
    }
}

enum status cli_sweep_find_odd(struct cli_sweep *s, struct status_why *why)
{
    const struct cli_machine_settings *m = &s->settings->evaluate.machine;
    int64_t n_threads = m->n_threads_batch ? m->n_threads_batch : m->n_threads;
    struct conv_version *pairs = NULL;
    size_t n = 0, *choices = NULL;
    for (size_t i = 0; i < s->groups.n_choices; i++)
        n += s->groups.choices[i].n_swaps;
    enum status status = base_array_new(pairs, n, "tensors", why);
    if (!status)
        status = base_array_new(choices, n, "tensors", why);
    if (!status) {
        n = list_pairs(s, pairs, choices);
        status = conv_check_versions(pairs, n, n_threads > 0 ? (unsigned)n_threads : 0,
                                     cli_evaluation_cancel(&s->e), why);
    }
    for (size_t i = n; i-- > 0 && !status;)
        if (!pairs[i].is)
            s->groups.choices[choices[i]].odd = pairs[i].tensor->name;
    free(pairs);
    free(choices);
    if (!status)
        remark(s);
    return status;
}

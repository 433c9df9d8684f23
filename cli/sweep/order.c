#include "cli/sweep/order.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "eval/run.h"

/** A variant on its way into the order of evaluation. */
struct place {
    size_t stage;
    size_t number; /* that of a choice; from n_choices on: a candidate, all of its choices */
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->stage != y->stage)
        return x->stage < y->stage ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

/** What a variant takes of a window that begins at a layer. */
static double cost_of(const struct cli_sweep *s, size_t from)
{
    size_t n = s->windows.plan.n_inputs, n_rows = s->windows.plan.n_scored;
    size_t n_layers = model_hparams(s->swapped)->n_layers;
    return eval_cost_forward(s->swapped, n) * (double)(n_layers - from) / (double)n_layers +
           eval_cost_head(s->swapped, n_rows) + eval_cost_head(s->base.model, n_rows);
}

static bool same_bytes(const struct cli_sweep_choice *a, const struct cli_sweep_choice *b)
{
    bool same = a->group == b->group && a->n_swaps == b->n_swaps;
    for (size_t i = 0; i < a->n_swaps && same; i++) {
        const struct gguf_tensor *x = a->swaps[i].from, *y = b->swaps[i].from;
        same = strcmp(a->swaps[i].name, b->swaps[i].name) == 0 && x->type == y->type &&
               x->n_bytes == y->n_bytes && gguf_tensor_same(x, y);
    }
    return same;
}

/** An earlier choice with the same bytes, or the choice itself. */
static size_t first_of_bytes(const struct cli_sweep *s, size_t choice)
{
    const struct cli_sweep_choice *choices = s->groups.choices;
    size_t first = s->groups.items[choices[choice].group].first_choice;
    if (s->settings->unmade) /* all of them are the base's */
        return choice;
    while (first < choice && !same_bytes(&choices[first], &choices[choice]))
        first++;
    return first;
}

/** Gather the swaps of all choices of a candidate. Without swaps: there are fewer than two. */
static enum status join(struct cli_sweep *s, size_t candidate, struct place *place,
                        struct eval_variant *variant, struct status_why *why)
{
    size_t n_choices = 0;
    *place = (struct place){SIZE_MAX, s->groups.n_choices + candidate};
    *variant = (struct eval_variant){0};
    for (size_t i = 0; i < s->groups.n_choices; i++) {
        const struct cli_sweep_choice *c = &s->groups.choices[i];
        if (c->candidate == candidate) {
            n_choices++;
            variant->n += c->n_swaps;
        }
    }
    if (n_choices < 2)
        return STATUS_OK;
    if (base_array_new(s->swaps[candidate], variant->n, "swaps", why))
        return STATUS_MEMORY;
    variant->swaps = s->swaps[candidate];
    for (size_t i = 0, n = 0; i < s->groups.n_choices; i++) {
        const struct cli_sweep_choice *c = &s->groups.choices[i];
        if (c->candidate != candidate)
            continue;
        memcpy(s->swaps[candidate] + n, c->swaps, c->n_swaps * sizeof *c->swaps);
        n += c->n_swaps;
        place->stage = c->stage < place->stage ? c->stage : place->stage;
    }
    return STATUS_OK;
}

/** The variants of `places`, after the reference. */
static void lay(struct cli_sweep *s, const struct place *places, size_t n,
                const struct eval_variant *joined)
{
    size_t n_choices = s->groups.n_choices, n_reference = s->around.model != NULL, before = 0;
    if (n_reference)
        s->costs[0] = cost_of(s, 0);
    s->n_variants = n_reference + n;
    for (size_t i = 0; i < n; i++) {
        size_t number = places[i].number, v = n_reference + i;
        bool all = number >= n_choices;
        const struct cli_sweep_choice *c = all ? NULL : &s->groups.choices[number];
        s->variants[v] =
            c ? (struct eval_variant){c->swaps, c->n_swaps} : joined[number - n_choices];
        s->costs[v] = cost_of(s, before);
        *(all ? &s->together[number - n_choices] : &s->variant_of[number]) = v;
        before = places[i].stage;
    }
    s->costs[0] += eval_cost_forward(s->base.model, s->windows.plan.n_inputs);
}

enum status cli_sweep_order(struct cli_sweep *s, struct status_why *why)
{
    size_t n_choices = s->groups.n_choices, most = n_choices + s->n_candidates, n = 0;
    struct place *places = NULL;
    struct eval_variant *joined = NULL;
    size_t *same = NULL;
    enum status status = STATUS_MEMORY;
    if (!base_array_new(s->variants, 1 + most, "variants", why) &&
        !base_array_new(s->costs, 1 + most, "variants", why) &&
        !base_array_new(s->variant_of, n_choices, "variants", why) &&
        !base_array_new(s->together, s->n_candidates, "variants", why) &&
        !base_array_new(s->swaps, s->n_candidates, "variants", why) &&
        !base_array_new(places, most, "variants", why) &&
        !base_array_new(joined, s->n_candidates, "variants", why) &&
        !base_array_new(same, n_choices, "variants", why))
        status = STATUS_OK;
    for (size_t i = 0; i < n_choices && !status; i++) {
        same[i] = first_of_bytes(s, i);
        if (same[i] == i)
            places[n++] = (struct place){s->groups.choices[i].stage, i};
    }
    for (size_t k = 0; k < s->n_candidates && !status; k++) {
        s->together[k] = SIZE_MAX;
        status = join(s, k, &places[n], &joined[k], why);
        n += joined[k].n != 0 && joined[k].swaps;
    }
    if (!status) {
        qsort(places, n, sizeof *places, compare_places);
        lay(s, places, n, joined);
        for (size_t i = 0; i < n_choices; i++)
            s->variant_of[i] = s->variant_of[same[i]];
    }
    free(places);
    free(joined);
    free(same);
    return status;
}

void cli_sweep_order_begin(struct cli_sweep *s)
{
    s->variants = NULL;
    s->costs = NULL;
    s->variant_of = s->together = NULL;
    s->swaps = NULL;
}

void cli_sweep_order_free(struct cli_sweep *s)
{
    for (size_t k = 0; s->swaps && k < s->n_candidates; k++)
        free(s->swaps[k]);
    free(s->variants);
    free(s->costs);
    free(s->variant_of);
    free(s->together);
    free(s->swaps);
    cli_sweep_order_begin(s);
}

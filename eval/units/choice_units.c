/* Tasks as units of a run: each is a group of sequences, its choices. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "eval/units/choice.h"

/** The first choice of a misread task, with the token after it that is read there. */
struct eval_choice_extension {
    int32_t *ids;
    double *log_probs; /* from the task's first_scored on */
};

static struct eval_choices *of(const struct eval_units *units)
{
    return (struct eval_choices *)(uintptr_t)units;
}

static struct eval_size longest(const struct eval_units *units, size_t *n_sequences)
{
    size_t n = of(units)->n_tokens_max;
    *n_sequences = 4 * (units->n - units->n_finished);
    return (struct eval_size){.n_tokens = n, .n_rows = n, .longest = n ? n - 1 : 0};
}

static enum status extend(const struct eval_choice_task *t, struct eval_choice_extension *e,
                          struct eval_sequence *first, struct status_why *why)
{
    assert(t->n_choices >= 2 && first->ids);
    size_t n = first->n_tokens;
    if (base_array_new(e->ids, n + 1, "tokens", why) ||
        base_array_new(e->log_probs, n + 1 - t->first_scored, "scores", why))
        return STATUS_MEMORY;
    memcpy(e->ids, first->ids, n * sizeof *e->ids);
    e->ids[n] = t->choices[1].tokens.ids[t->n_common];
    first->ids = e->ids;
    first->n_tokens = n + 1;
    first->log_probs = e->log_probs;
    return STATUS_OK;
}

/** Every choice of a task as a sequence, the task as a group: of choices on both sides of the
 * model's boundary, one that shares nothing. */
static enum status add_task(struct eval_choices *c, const struct eval_choice_task *t,
                            struct status_why *why)
{
    struct eval_sequences *s = &c->sequences;
    struct eval_choice_extension *extension = &c->extensions[s->units.n_items];
    struct eval_sequence *first = &s->items[s->n];
    struct eval_sequence_group *group = &s->groups[s->units.n_items++];
    *group =
        (struct eval_sequence_group){.first = s->n, .n = t->n_choices, .n_common = t->n_common};
    for (size_t i = 0; i < t->n_choices; i++) {
        const struct eval_choice *choice = &t->choices[i];
        s->items[s->n++] = (struct eval_sequence){.ids = choice->tokens.ids,
                                                  .n_tokens = choice->tokens.n,
                                                  .first_scored = t->first_scored,
                                                  .log_probs = choice->log_probs + t->first_scored};
    }
    enum status status = t->misread ? extend(t, extension, first, why) : STATUS_OK;
    for (size_t i = 0; !status && i < t->n_choices; i++)
        if (eval_sequence_is_long(&first[i], &s->units) != eval_sequence_is_long(first, &s->units))
            group->n_common = 0;
    return status;
}

static enum status make_items(struct eval_units *units, struct status_why *why)
{
    struct eval_choices *c = of(units);
    eval_choice_units_close(c);
    c->first = units->n_finished;
    size_t n = 0;
    for (size_t k = c->first; k < c->n; k++)
        n += c->tasks[k].n_choices;
    enum status status = base_array_new(c->sequences.items, n + 1, "choices", why);
    if (!status)
        status = base_array_new(c->sequences.groups, c->n + 1, "tasks", why);
    if (!status)
        status = base_array_new(c->extensions, c->n + 1, "tasks", why);
    for (size_t k = c->first; k < c->n && !status; k++)
        status = add_task(c, &c->tasks[k], why);
    return status;
}

static size_t n_values(const struct eval_units *units, size_t unit)
{
    const struct eval_choice_task *t = &of(units)->tasks[unit];
    size_t n = 0;
    for (size_t i = 0; i < t->n_choices; i++)
        n += t->choices[i].tokens.n;
    return n;
}

static double n_bytes(const struct eval_units *units)
{
    double n = 0;
    for (size_t k = units->n_finished; k < units->n; k++)
        n += (double)n_values(units, k) * sizeof(double);
    return n;
}

/** What was read after the first choice counts for the second. */
static void misread(const struct eval_choice_task *t, const struct eval_choice_extension *e)
{
    struct eval_choice *c = t->choices;
    size_t n = c->tokens.n - t->first_scored;
    memcpy(c[0].log_probs + t->first_scored, e->log_probs, n * sizeof *e->log_probs);
    c[1].log_probs[t->n_common] = e->log_probs[n];
}

static void finish(struct eval_units *units, size_t item)
{
    struct eval_choices *c = of(units);
    struct eval_choice_task *t = &c->tasks[c->first + item];
    if (t->misread)
        misread(t, &c->extensions[item]);
    t->done = true;
    units->n_finished = c->first + item + 1;
}

static enum status save(const struct eval_units *units, size_t unit, double *values,
                        struct status_why *why)
{
    (void)why;
    const struct eval_choice_task *t = &of(units)->tasks[unit];
    for (size_t i = 0, n; i < t->n_choices; i++, values += n) {
        n = t->choices[i].tokens.n;
        memcpy(values, t->choices[i].log_probs, n * sizeof *values);
    }
    return STATUS_OK;
}

static enum status restore(struct eval_units *units, size_t unit, const double *values,
                           bool *restored, struct status_why *why)
{
    (void)why;
    struct eval_choice_task *t = &of(units)->tasks[unit];
    for (size_t i = 0, n; i < t->n_choices; i++, values += n) {
        n = t->choices[i].tokens.n;
        memcpy(t->choices[i].log_probs, values, n * sizeof *values);
    }
    t->done = *restored = true;
    return STATUS_OK;
}

static const struct eval_unit_kind kind = {
    .name = "task",
    .longest = longest,
    .make_items = make_items,
    .check_ids = eval_sequences_check_ids,
    .n_bytes = n_bytes,
    .size = eval_group_size,
    .lay = eval_group_lay,
    .take = eval_group_take,
    .finish = finish,
    .n_values = n_values,
    .save = save,
    .restore = restore,
};

void eval_choice_units_open(struct eval_choices *choices)
{
    choices->sequences.units = (struct eval_units){.kind = &kind, .n = choices->n};
}

void eval_choice_units_close(struct eval_choices *c)
{
    for (size_t k = 0; c->extensions && k < c->sequences.units.n_items; k++) {
        free(c->extensions[k].ids);
        free(c->extensions[k].log_probs);
    }
    free(c->extensions);
    free(c->sequences.items);
    free(c->sequences.groups);
    c->extensions = NULL;
    c->sequences = (struct eval_sequences){.units = c->sequences.units};
    c->sequences.units.n_items = 0;
}

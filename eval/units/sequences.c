#include "eval/units/sequences.h"

#include <string.h>

#include "base/arithmetic.h"

/** A group; *members: its first sequence. */
static const struct eval_sequence_group *group_of(const struct eval_units *units, size_t i,
                                                  struct eval_sequence **members)
{
    const struct eval_sequences *all = (const struct eval_sequences *)units;
    *members = all->items + all->groups[i].first;
    return &all->groups[i];
}

/** The first position of the common tokens that predicts a scored one; n_common if none does. */
static size_t first_shared_row(const struct eval_sequence *s, const struct eval_sequence_group *g)
{
    size_t first = g->n_common;
    for (size_t i = 0; i < g->n; i++)
        first = base_min(first, s[i].first_scored - 1);
    return first;
}

/** The first of a sequence's own positions that predicts a scored token. */
static size_t first_own_row(const struct eval_sequence *s, size_t n_common)
{
    return base_max(s->first_scored - 1, n_common);
}

enum status eval_sequences_check_ids(const struct eval_units *units, const struct model *model,
                                     struct status_why *why)
{
    const struct eval_sequences *all = (const struct eval_sequences *)units;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < all->n && !status; i++)
        status = eval_check_ids(model, all->items[i].ids, all->items[i].n_tokens, why);
    return status;
}

struct eval_size eval_group_size(const struct eval_units *units, size_t i)
{
    struct eval_sequence *s;
    const struct eval_sequence_group *g = group_of(units, i, &s);
    struct eval_size size = {.n_tokens = g->n_common,
                             .n_segments = g->n_common > 0,
                             .n_rows = g->n_common - first_shared_row(s, g)};
    for (size_t k = 0; k < g->n; k++) {
        size_t n_inputs = s[k].n_tokens - 1;
        size.n_tokens += n_inputs - g->n_common;
        size.n_segments += n_inputs > g->n_common;
        size.n_rows += n_inputs - first_own_row(&s[k], g->n_common);
        size.n_targets += s[k].n_tokens - s[k].first_scored;
        size.longest = base_max(size.longest, n_inputs);
    }
    return size;
}

/** Positions [from, to) of a sequence as a segment; the batch's token that `from` is. */
static size_t add_segment(struct eval_batch *batch, const struct eval_sequence *s, size_t from,
                          size_t to, ptrdiff_t parent)
{
    size_t start = eval_batch_add_segment(batch, to - from, from, parent);
    for (size_t p = from; p < to; p++)
        batch->tokens[start + p - from] = s->ids[p];
    return start;
}

static void lay_common(const struct eval_sequence *s, const struct eval_sequence_group *g,
                       struct eval_batch *batch)
{
    size_t start = add_segment(batch, s, 0, g->n_common, -1);
    for (size_t p = first_shared_row(s, g); p < g->n_common; p++) {
        eval_batch_add_row(batch, start + p, 0);
        for (size_t i = 0; i < g->n; i++)
            if (p + 1 >= s[i].first_scored)
                eval_batch_add_target(batch, s[i].ids[p + 1]);
    }
}

void eval_group_lay(const struct eval_units *units, size_t i, struct eval_batch *batch)
{
    struct eval_sequence *first;
    const struct eval_sequence_group *g = group_of(units, i, &first);
    ptrdiff_t parent = g->n_common ? (ptrdiff_t)batch->n.n_segments : -1;
    if (g->n_common)
        lay_common(first, g, batch);
    for (size_t k = 0; k < g->n; k++) {
        const struct eval_sequence *s = &first[k];
        size_t n_inputs = s->n_tokens - 1;
        if (n_inputs == g->n_common)
            continue;
        size_t start = add_segment(batch, s, g->n_common, n_inputs, parent);
        for (size_t p = first_own_row(s, g->n_common); p < n_inputs; p++) {
            eval_batch_add_row(batch, start + p - g->n_common, 0);
            eval_batch_add_target(batch, s->ids[p + 1]);
        }
    }
}

/** The score of the token after position p; at: its row in the scores. */
static void take_target(struct eval_sequence *s, size_t p, const struct eval_scores *scores,
                        size_t at, const struct kern_target_score *target)
{
    size_t i = p + 1 - s->first_scored;
    const struct kern_row_score *row = &scores->rows[at];
    s->log_probs[i] = target->log_prob;
    if (s->likeliest && scores->tops)
        memcpy(s->likeliest + i * s->n_likeliest, scores->tops + at * KERN_TOP_MAX,
               s->n_likeliest * sizeof *s->likeliest);
    else if (s->likeliest) /* as the score of a target, whose logit is the maximum */
        s->likeliest[i] = (struct kern_top){row->argmax, 0 - row->log_sum};
    s->greedy = s->greedy && row->argmax == s->ids[p + 1];
}

/** In the order in which eval_group_lay adds rows and targets. */
void eval_group_take(struct eval_units *units, size_t i, const struct eval_scores *scores)
{
    struct eval_sequence *s;
    const struct eval_sequence_group *g = group_of(units, i, &s);
    size_t row = 0;
    const struct kern_target_score *target = scores->targets;
    for (size_t k = 0; k < g->n; k++)
        s[k].greedy = true;
    for (size_t p = first_shared_row(s, g); p < g->n_common; p++, row++)
        for (size_t k = 0; k < g->n; k++)
            if (p + 1 >= s[k].first_scored)
                take_target(&s[k], p, scores, row, target++);
    for (size_t k = 0; k < g->n; k++)
        for (size_t p = first_own_row(&s[k], g->n_common); p < s[k].n_tokens - 1; p++)
            take_target(&s[k], p, scores, row++, target++);
}

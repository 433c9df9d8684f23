#include "clients/probe/exact/ties.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/** Errors of a gap, as standard deviations, that make a tie. */
static const double tie_errors = 4;

enum status probe_ties_begin(struct probe_ties *t, const struct model *model, size_t n_tokens,
                             bool rounds, struct status_why *why)
{
    t->collects = !rounds;
    t->status = STATUS_OK;
    t->n_passes += rounds;
    if (rounds)
        return STATUS_OK;
    t->n_tokens = n_tokens;
    t->n_layers = model_hparams(model)->n_layers;
    size_t n = t->n_layers * n_tokens;
    if (base_array_new(t->gaps, n, "gaps of experts", why) ||
        base_array_new(t->chosen, n, "experts", why) ||
        base_array_new(t->squares, t->n_layers, "layers", why) ||
        base_array_new(t->counts, t->n_layers, "layers", why) ||
        base_array_new(t->tied, n_tokens, "tokens", why))
        return STATUS_MEMORY;
    return STATUS_OK;
}

static void keep_logits(struct probe_ties *t, const struct model_shown *shown)
{
    size_t n = shown->n_rows * shown->size;
    t->n_logits = shown->size;
    if (base_array_reserve(t->logits, t->capacity, n, "logits", NULL))
        t->status = STATUS_MEMORY;
    else
        memcpy(t->logits, shown->data, n * sizeof *t->logits);
}

/** Which experts a row chose, in any order, and by how much the last one leads. */
static uint64_t choice_of(const struct probe_ties *t, const int32_t *ids, size_t n_used, size_t row,
                          float *gap)
{
    const float *logits = t->logits + row * t->n_logits;
    float least = INFINITY, most = -INFINITY;
    uint64_t chosen = 0;
    for (size_t e = 0; e < t->n_logits; e++) {
        bool is_chosen = false;
        for (size_t i = 0; i < n_used; i++)
            is_chosen |= (size_t)ids[i] == e;
        if (is_chosen)
            least = fminf(least, logits[e]);
        else
            most = fmaxf(most, logits[e]);
        if (is_chosen)
            chosen += ((uint64_t)e + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    }
    *gap = least - most;
    return chosen;
}

static void note_experts(struct probe_ties *t, const struct model_shown *shown)
{
    size_t layer = (size_t)shown->layer;
    for (size_t row = 0; row < shown->n_rows; row++) {
        float gap;
        uint64_t chosen = choice_of(t, shown->ids + row * shown->size, shown->size, row, &gap);
        size_t token = shown->first + row, at = layer * t->n_tokens + token;
        if (t->collects) {
            t->gaps[at] = gap;
            t->chosen[at] = chosen;
            t->tied[token] |= gap < 0; /* a bias or a group has chosen: the logits do not tell */
        } else if (t->chosen[at] != chosen) {
            t->tied[token] = true;
        } else if (isfinite(gap)) {
            double off = (double)gap - (double)t->gaps[at];
            t->squares[layer] += off * off;
            t->counts[layer]++;
        }
    }
}

void probe_ties_shown(void *user, struct kern_backend *backend, const struct model_shown *shown)
{
    (void)backend;
    struct probe_ties *t = user;
    if (t->status)
        return;
    if (shown->place == MODEL_AT_ROUTER)
        keep_logits(t, shown);
    else if (shown->place == MODEL_AT_EXPERTS && shown->ids && t->n_logits)
        note_experts(t, shown);
}

size_t probe_ties_first(const struct probe_ties *t)
{
    size_t first = 0;
    for (; first < t->n_tokens && !t->tied[first]; first++) {
        bool near = false;
        for (size_t l = 0; l < t->n_layers; l++) {
            size_t at = l * t->n_tokens + first;
            double error = t->counts[l] ? sqrt(t->squares[l] / (double)t->counts[l]) : 0;
            near |= t->chosen[at] && (double)t->gaps[at] <= tie_errors * error;
        }
        if (near)
            break;
    }
    return first;
}

void probe_ties_free(struct probe_ties *t)
{
    free(t->gaps);
    free(t->chosen);
    free(t->squares);
    free(t->counts);
    free(t->tied);
    free(t->logits);
    *t = (struct probe_ties){0};
}

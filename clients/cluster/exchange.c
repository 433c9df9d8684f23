#include "clients/cluster/exchange.h"

#include <stdio.h>

size_t cluster_remote_n_state(const struct eval_worker *w)
{
    const struct eval_row_sink *sink = w->dispatch->models->sink;
    return sink && sink->is_all_state ? sink->n_state * (w->at.end - w->at.first) : 0;
}

size_t cluster_remote_window(const struct eval_worker *w, size_t item)
{
    size_t n_rows = w->dispatch->units->kind->size(w->dispatch->units, item).n_rows;
    return w->batch.plan_rows[(item - w->at.first) * n_rows] / n_rows;
}

size_t cluster_remote_parts(const struct eval_worker *w, const struct eval_scorer_times *times,
                            const double *state, struct cluster_part parts[CLUSTER_REMOTE_PARTS])
{
    size_t n_heads = eval_models_n_heads(w->dispatch->models), n = 0;
    const struct eval_size *size = &w->batch.n;
    parts[n++] = (struct cluster_part){times, sizeof *times};
    parts[n++] =
        (struct cluster_part){w->row_scores, n_heads * size->n_rows * sizeof *w->row_scores};
    parts[n++] = (struct cluster_part){w->target_scores,
                                       n_heads * size->n_targets * sizeof *w->target_scores};
    if (w->pair_scores)
        parts[n++] =
            (struct cluster_part){w->pair_scores, n_heads * size->n_rows * sizeof *w->pair_scores};
    if (cluster_remote_n_state(w))
        parts[n++] = (struct cluster_part){state, cluster_remote_n_state(w) * sizeof *state};
    return n;
}

/** "layers 4 to 7 of ": what the share has of the model; "" where all have all. */
static void say_layers(char *out, size_t size, const struct model *model, size_t i, size_t n)
{
    struct model_layer_range layers;
    *out = '\0';
    if (n > 1 && !model_split(model, n, i, &layers, NULL))
        snprintf(out, size, "layers %zu to %zu of ", layers.from, layers.to - 1);
}

/* Items are units, but where units share beginnings. */
enum status cluster_remote_say_lost(const struct cluster_rank_crew *ranks,
                                    const struct eval_dispatch *d, size_t rank,
                                    struct status_why *why)
{
    const struct eval_units *units = d->units;
    size_t group = rank / ranks->n_shares;
    const struct eval_worker *w = &d->workers[group ? d->models->n_backends + group - 1 : 0];
    const struct cluster_link *link = &ranks->team->links[rank - 1];
    bool are_units = units->n_items == units->n - units->n_resumed;
    size_t before = are_units ? units->n_resumed : 0;
    size_t end = w->at.end, n_tokens = w->at.n_tokens;
    char layers[64];
    if (end == 0)
        return status_fail(why, STATUS_DEVICE, "%s died before it was given anything", link->name);
    say_layers(layers, sizeof layers, d->models->model, cluster_pipe_share(rank, ranks->n_shares),
               ranks->n_shares);
    for (size_t i = 0; i < w->n_ahead; i++) {
        end = w->ahead[i].end;
        n_tokens += w->ahead[i].n_tokens;
    }
    return status_fail(
        why, STATUS_DEVICE, "%s died while it evaluated %s%s%ss %zu to %zu of %zu (%zu tokens)",
        link->name, layers, are_units ? "" : "groups of ", units->kind->name, before + w->at.first,
        before + end - 1, are_units ? units->n : units->n_items, n_tokens);
}

/* The divergences of a sweep as a picture: layers by roles. */
#include "clients/documents/report/heatmap.h"
#include "base/array.h"

#include <stdlib.h>

#include "base/text/printable.h"
#include "cli/sweep/sweep_evaluator.h"

static struct doc_heat_cell cell_of(const struct cli_sweep *s, size_t i)
{
    const struct cli_sweep_choice *c = &s->groups.choices[i];
    const struct cli_sweep_group *g = &s->groups.items[c->group];
    struct cli_sweep_figures f = cli_sweep_figures(s, i);
    return (struct doc_heat_cell){
        .group = g->name,
        .kind = *g->place.role ? g->place.role : g->name,
        .layer = g->place.layer,
        .candidate = c->candidate,
        .type = c->type,
        .below = cli_sweep_doubts[f.doubt],
        .nats = f.excess.value,
        .error = base_estimate_error(f.excess),
        .saved_bytes = (double)g->n_bytes - (double)c->n_bytes,
    };
}

enum status cli_sweep_write_heatmap(const void *self, struct base_file *file,
                                    struct status_why *why)
{
    const struct cli_sweep *s = self;
    struct doc_heat_cell *cells = NULL;
    const char **names = NULL;
    enum status status = base_array_new(cells, s->groups.n_choices, "cells of a picture", why);
    if (!status)
        status = base_array_new(names, s->n_candidates, "models", why);
    for (size_t i = 0; i < s->groups.n_choices && !status; i++)
        cells[i] = cell_of(s, i);
    for (size_t i = 0; i < s->n_candidates && !status; i++)
        names[i] = base_file_name(s->candidates[i].path);
    const struct doc_heatmap map = {names, s->n_candidates, cells, s->groups.n_choices, true, "MB",
                                    1e6};
    if (!status)
        status = doc_heatmap_draw(file, &map, why);
    free(cells);
    free(names);
    return status;
}

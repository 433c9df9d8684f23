/**
 * A picture (SVG) of what tensors cost in other types: layers by kinds of tensors, a panel for each
 * candidate, from dark (little) to bright. assay sweep draws its own, assay report that of a
 * sweep's document.
 */
#ifndef DOCUMENTS_REPORT_HEATMAP_H
#define DOCUMENTS_REPORT_HEATMAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/file/atomic_file.h"

/** Tensors that are taken together, in the type of one candidate. */
struct doc_heat_cell {
    const char *group; /* its name */
    const char *kind;  /* its column */
    size_t layer;      /* its row; SIZE_MAX: it belongs to none */
    size_t candidate;  /* its panel */
    const char *type;
    const char *below;  /* why the figure says nothing; NULL: it does */
    double nats, error; /* what the type adds to the divergence, and its standard error */
    double saved_bytes;
};

/** Everything is borrowed. */
struct doc_heatmap {
    const char *const *candidates; /* [n_candidates]: names */
    size_t n_candidates;
    const struct doc_heat_cell
        *cells; /* [n_cells]; columns are in the order of their first cells */
    size_t n_cells;
    bool stands_alone; /* a file of its own, with its style; else that of page/chart.css */
    const char *unit;  /* of sizes, and its bytes */
    double unit_bytes;
};

/** More layers and kinds than any model has; bounds what a hostile document can ask for. */
enum { DOC_MOST_HEAT_LINES = 1024 };

/** A colour from 0 (dark blue) over green to 1 (yellow); between, and beyond, the nearest. */
void doc_heat_colour(double x, char out[8]);

/** Fails: STATUS_UNSUPPORTED (more layers or kinds than that), STATUS_MEMORY. */
enum status doc_heatmap_draw(struct base_file *file, const struct doc_heatmap *map,
                             struct status_why *why);

#endif

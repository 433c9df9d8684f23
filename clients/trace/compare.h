/** Another program's tensors against the exact ones, in units of the error to expect. */
#ifndef TRACE_COMPARE_H
#define TRACE_COMPARE_H

#include "clients/trace/file.h"
#include "clients/trace/trace.h"

/** A tensor that both have. Distances are RMS of error / error to expect; 1 is what is expected. */
struct trace_distance {
    const struct trace_tensor *tensor;
    const struct trace_record *record;
    size_t n_rows;    /* that the record has: the last ones */
    size_t n_values;  /* compared */
    double rms;       /* of all values */
    double most;      /* of the head of the row where it is the largest */
    size_t row, head; /* that one; row: position in the window */
    double sum;       /* of the printed sum; NaN: none is printed, or it has none that is finite */
    double error;     /* to expect, of the whole tensor, as a share of its values' RMS */
    /* Where it departs. */
    bool departs;
    size_t first_row, last_row, n_rows_off, n_rows_seen; /* n_rows_seen: from first_row on */
    size_t first_head, n_heads_off;
    /* Slots where the other program has chosen another expert, and those of them where
     * no near tie excuses it. These depart. */
    size_t n_other_experts, n_wrong_experts;
};

/** Zero-initialise; release with trace_distances_free. */
struct trace_distances {
    struct trace_distance *items; /* in the order of the computation */
    size_t n;
    size_t first_departure; /* n: none */
    size_t n_diverged;      /* positions that a near tie led through other experts */
};

/** Distances beyond which a tensor departs. */
struct trace_limits {
    double rms, most, sum;
};

/**
 * Line up and compare. arch: general.architecture. trace: with passes that round.
 * Fails: STATUS_FORMAT (another model's or window's, two runs in one file, nothing in common),
 *        STATUS_MEMORY.
 */
enum status trace_compare(struct trace_distances *out, const struct trace *trace,
                          const struct trace_file *file, const char *arch,
                          const struct trace_limits *limits, struct status_why *why);
void trace_distances_free(struct trace_distances *distances);

/** Whether the file has a record for the place: before there is a trace. */
bool trace_file_has(const struct trace_file *file, const char *arch, enum model_place place,
                    int layer);

#endif

/**
 * What a run evaluates: units of one kind, and how they pass through batches.
 *
 * A unit is a window of a text, a choice task or a request: what is finished as a whole, reported
 * in order and kept by the journal. An item is what enters a batch as a whole: a window, all the
 * sequences of a task, or sequences of several requests that share a beginning. A kind of units is
 * a struct of functions; eval/units/ has three. All the rest is the runner's.
 */
#ifndef EVAL_RUN_UNIT_H
#define EVAL_RUN_UNIT_H

#include "base/buffer.h"
#include "base/text/string.h"
#include "eval/scorer/scorer.h"

/** What an item, or a batch of items, takes. */
struct eval_size {
    size_t n_tokens, n_segments, n_rows, n_targets;
    size_t longest; /* tokens of the longest segment and its parent */
};

/** A batch that is being laid out; each array is as long as `n` says, with room for more. */
struct eval_batch {
    struct eval_size n;
    int32_t *tokens;
    struct model_segment *segments;
    uint32_t *rows;              /* tokens of the batch that are scored, each once */
    size_t *plan_rows;           /* [rows]: the row of the plan that each is; of windows only */
    struct kern_target *targets; /* .row is an index into rows; in non-falling order */
    uint8_t *marks;              /* [tokens]; of units that want them */
};

/** The scores of an item, from its first row and target on. Head h begins h strides later. */
struct eval_scores {
    size_t n_heads;
    const struct kern_row_score *rows;       /* stride: row_stride */
    const struct kern_pair_score *pairs;     /* the same; NULL with one head */
    const struct kern_target_score *targets; /* stride: target_stride */
    size_t row_stride, target_stride;
    const struct kern_top *tops; /* KERN_TOP_MAX of each row, the last head's; NULL: not wanted */
};

struct eval_units;

/** The functions of a kind. Only those from size to take are called by several threads at a time.
 */
struct eval_unit_kind {
    const char *name; /* of one: "window" */

    /**
     * The longest sequence and how many there are, roughly: what the batch is chosen by. `longest`,
     * the positions that are evaluated in it, is exact.
     */
    struct eval_size (*longest)(const struct eval_units *units, size_t *n_sequences);
    /** The journal has been read, the batch chosen: make the items of the units that are left. */
    enum status (*make_items)(struct eval_units *units, struct status_why *why);
    /** Refuse ids that the model has no embedding of. Fails: STATUS_FORMAT. */
    enum status (*check_ids)(const struct eval_units *units, const struct model *model,
                             struct status_why *why);
    /** Bytes that the scores of all units take. */
    double (*n_bytes)(const struct eval_units *units);

    struct eval_size (*size)(const struct eval_units *units, size_t item);
    /** Append an item to the batch: eval_batch_add_segment and so on. */
    void (*lay)(const struct eval_units *units, size_t item, struct eval_batch *batch);
    /** How much arithmetic an item is, in any unit. NULL: its tokens. */
    double (*cost)(const struct eval_units *units, size_t item);
    /**
     * Which of the models' variants an item is evaluated with; it is then a batch of its own.
     * NULL: of none.
     */
    size_t (*variant)(const struct eval_units *units, size_t item);
    /** Keep the scores of an item. */
    void (*take)(struct eval_units *units, size_t item, const struct eval_scores *scores);
    /** All items up to this one have been taken: raise units->n_finished. */
    void (*finish)(struct eval_units *units, size_t item);
    /**
     * Whether the units up to this one, which is finished, are enough. Asked once for each unit, in
     * order, until they are; what is finished after it goes into the journal and is not reported.
     * NULL: never.
     */
    bool (*enough)(struct eval_units *units, size_t unit);

    /* Sums over batches, of which no unit has a part of its own; all NULL: there are none. */

    /**
     * Add what the last batch of a backend, of items up to `end`, has left. In the order of the
     * batches, one at a time. Fails: as the kind says.
     */
    enum status (*merge)(struct eval_units *units, size_t backend, size_t end,
                         struct status_why *why);
    /** Move the sums to the end of `out`, for another process. */
    enum status (*pack)(struct eval_units *units, struct base_buffer *out, struct status_why *why);
    /** `merge` of a batch of another process, which packed it. */
    enum status (*unpack)(struct eval_units *units, struct base_string bytes, size_t end,
                          struct status_why *why);
    /** Whether a batch ends with this item, even if more would fit. NULL: never. */
    bool (*ends_batch)(const struct eval_units *units, size_t item);

    /* The journal's entry of a unit. */

    size_t (*n_values)(const struct eval_units *units, size_t unit);
    enum status (*save)(const struct eval_units *units, size_t unit, double *values,
                        struct status_why *why);
    /** restored: false where what belongs to the entry is gone; the unit is evaluated again. */
    enum status (*restore)(struct eval_units *units, size_t unit, const double *values,
                           bool *restored, struct status_why *why);
    /** Bring to the disk what entries vouch for. May be NULL. */
    enum status (*sync)(const struct eval_units *units, struct status_why *why);
};

/** The part of a kind's object that the runner knows; its first member. */
struct eval_units {
    const struct eval_unit_kind *kind;
    bool wants_marks;  /* batches have marks: struct model_batch */
    bool wants_tops;   /* scores have tops; from workers of this process alone */
    size_t n;          /* units */
    size_t n_resumed;  /* of them, those that the journal had */
    size_t n_finished; /* the units before this one are */
    size_t n_judged;   /* asked whether they are enough */
    size_t n_enough;   /* so many of them are, no more are wanted; 0: not known yet */
    size_t n_look;     /* after so many they may be enough; 0: not before all are evaluated */
    double idle;       /* part of the arithmetic of further items that is not wanted any more */
    size_t n_reported; /* and these have been reported */

    /* By eval_run_prepare. */

    size_t batch_tokens;   /* of a batch, at most, unless a single item has more */
    size_t boundary;       /* of the model: model_rope_boundary */
    size_t n_items;        /* set by make_items */
    struct eval_size most; /* of any batch */
    size_t n_tokens;       /* of all items */
    double cost;           /* likewise */
};

/** Append a segment; returns its first token in batch->tokens, which the caller fills in. */
static inline size_t eval_batch_add_segment(struct eval_batch *batch, size_t n_tokens,
                                            size_t first_position, ptrdiff_t parent)
{
    size_t start = batch->n.n_tokens;
    batch->segments[batch->n.n_segments++] = (struct model_segment){
        .start = start,
        .n_tokens = n_tokens,
        .first_position = (int32_t)first_position,
        .parent = parent,
        .n_unwanted = n_tokens,
    };
    batch->n.n_tokens += n_tokens;
    return start;
}

/** Score a token of the segment that was added last. plan_row: the row of the plan that it is, or
 * 0.
 */
static inline void eval_batch_add_row(struct eval_batch *batch, size_t token, size_t plan_row)
{
    struct model_segment *segment = &batch->segments[batch->n.n_segments - 1];
    size_t n_before = token - segment->start;
    if (segment->n_unwanted > n_before)
        segment->n_unwanted = n_before;
    batch->rows[batch->n.n_rows] = (uint32_t)token;
    batch->plan_rows[batch->n.n_rows++] = plan_row;
}

/** Score `id` as what follows the row that was added last. */
static inline void eval_batch_add_target(struct eval_batch *batch, int32_t id)
{
    batch->targets[batch->n.n_targets++] =
        (struct kern_target){(uint32_t)(batch->n.n_rows - 1), id};
}

/**
 * Refuse ids that are not rows of the model's embedding: a vocabulary may be longer than the
 * matrices of a broken file. Fails: STATUS_FORMAT.
 */
enum status eval_check_ids(const struct model *model, const int32_t *ids, size_t n,
                           struct status_why *why);

#endif

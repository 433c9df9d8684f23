/**
 * What recurrent layers are made of (kernels/recurrent.h has the operations): runs of tokens.
 *
 * Tokens come in runs. What a run begins with is the end of another run of the call, a state that
 * an earlier call saved, or nothing. So a sequence may be cut anywhere between tokens, and several
 * sequences may go on from the end of one: the bits are those of each sequence in one run.
 */
#ifndef KERNELS_RECURRENT_TYPES_H
#define KERNELS_RECURRENT_TYPES_H

#include <stddef.h>

/** Tokens whose changes of a state are computed together, as products of matrices. */
enum { KERN_CHUNK = 32 };
/** Chains of a sum over channels, where tokens are taken one by one. */
enum { KERN_STEP_CHAINS = 4 };
/** The most tokens that a convolution sees. */
enum { KERN_CONVOLVE_MAX = 16 };
/** In place of the number of a run or of a saved state. */
enum { KERN_NONE = -1 };

/**
 * Rows [row, row + n) of a call: successive tokens of a sequence. At most one of `parent` and
 * `from` is not KERN_NONE; a run at index 0 has neither, any other has one.
 * A saved state that a run writes (`to`) is not read or written by another run of the call; the
 * run itself may have begun with it.
 */
struct kern_run {
    size_t row, n; /* n >= 1 */
    size_t index;  /* of the first token in its sequence, what it goes on from included */
    /* The run of this call whose end this one goes on from: the last one before it that has no
     * parent itself. */
    ptrdiff_t parent;
    ptrdiff_t from; /* number of the saved state that it goes on from */
    ptrdiff_t to;   /* where to save the state at its end */
};

/** What q and k are divided by, each head's for itself. */
enum kern_unit {
    KERN_UNIT_NONE, /* 1 */
    KERN_UNIT_ADD   /* sqrt(sum of squares + eps) */
};

/** How channels of a state decay: members of struct kern_recur, and a head's `decay`. */
struct kern_decay {
    float rate, dt_min, least_log;
};

#endif

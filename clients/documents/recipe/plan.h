/** From a sweep to a recipe: sizes, the additive model, the best choice. */
#ifndef DOCUMENTS_RECIPE_PLAN_H
#define DOCUMENTS_RECIPE_PLAN_H

#include "clients/documents/recipe/knapsack.h"
#include "clients/documents/recipe/mixture.h"

/** What a choice of all groups comes to. */
struct doc_plan_figures {
    uint64_t n_bytes, n_tensor_bytes; /* of the file, of its tensors */
    double bits_per_weight;
    double kld, kld_error; /* predicted; the error is NaN where it is not known */
};

/** Zero-initialise; release with doc_plan_free. Arrays of choices are as those of the sweep. */
struct doc_plan {
    const struct doc_swept *sweep;
    struct doc_mixture mixture; /* files that are not there are NULL */
    bool measured;              /* the first file is there: sizes are those of files */
    uint32_t alignment;
    uint64_t other_bytes;        /* of the file: what does not depend on choices */
    uint64_t other_tensor_bytes; /* of tensors that are in no group */
    uint64_t n_weights;

    uint64_t *n_bytes; /* [n_choices] in a file, with padding */
    double *nats;      /* [n_choices] that a choice adds to the divergence of the first file */
    int exponent;      /* the optimiser counts in units of 2^-exponent nats */
    size_t *first;     /* [n_groups + 1] */
};

/** A limit. Exactly one of them is given. */
struct doc_target {
    const char *size; /* as it was given; NULL */
    double bpw, kld;  /* NaN */
};

/**
 * Open files, weigh the choices. Files that are not there are NULL in `mixture`: their sizes are
 * those of the sweep. Fails: as those it calls.
 */
enum status doc_plan_make(struct doc_plan *p, const struct doc_swept *sweep,
                          struct status_why *why);
void doc_plan_free(struct doc_plan *p);

/** Check that there is one target at most, and that it makes sense. Fails: STATUS_USAGE. */
enum status doc_target_check(const struct doc_target *t, struct status_why *why);
bool doc_target_given(const struct doc_target *t);

/**
 * The best choice within a limit.   chosen: [n_groups], the caller's.
 * gap: by how much a better one could be better, in bytes (kld) or nats; 0: this is the best.
 * Fails: STATUS_USAGE (no choice is within the limit; the sentence says what is), STATUS_MEMORY.
 */
enum status doc_plan_choose(const struct doc_plan *p, const struct doc_target *t, size_t *chosen,
                            double *gap, struct status_why *why);

/**
 * The choices as the optimiser takes them, what is limited as the weight. NULL: the size is.
 * out: the caller frees it.   Fails: STATUS_MEMORY.
 */
enum status doc_plan_choices(const struct doc_plan *p, const struct doc_target *t,
                             struct doc_choice **out, struct status_why *why);

struct doc_plan_figures doc_plan_figures(const struct doc_plan *p, const size_t *chosen);

/** A point of the curve: the best choice of its size. */
struct doc_plan_point {
    struct doc_plan_figures figures;
    size_t *chosen; /* [n_groups] */
};

/** The curve, plan_curve.c. Release with doc_plan_curve_free. */
struct doc_plan_curve {
    struct doc_plan_point *points;
    size_t n;
};

/**
 * At most n_wanted points (2 or more), evenly spread over the sizes, the smallest and the best
 * among them.   Fails: STATUS_MEMORY.
 */
enum status doc_plan_curve_make(struct doc_plan_curve *out, const struct doc_plan *p,
                                size_t n_wanted, struct status_why *why);
void doc_plan_curve_free(struct doc_plan_curve *curve);

/** The choice of a group, and the type that one of its tensors has with it. NULL: not known. */
const struct doc_swept_choice *doc_plan_choice(const struct doc_plan *p, const size_t *chosen,
                                               size_t group);
const char *doc_plan_type(const struct doc_plan *p, const struct doc_swept_choice *choice,
                          const char *tensor);

#endif

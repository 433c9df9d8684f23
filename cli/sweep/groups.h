/** The groups of a sweep, and what each candidate has for them. */
#ifndef CLI_SWEEP_GROUPS_H
#define CLI_SWEEP_GROUPS_H

#include "base/text/strtab.h"
#include "cli/session/models.h"
#include "cli/sweep/names.h"
#include "eval/streams.h"

/** A group's tensors from one candidate, in place of the model's. */
struct cli_sweep_choice {
    size_t group, candidate;
    size_t stage; /* where it first shows: model_swap_stage of its swaps */
    uint64_t n_bytes;
    char type[64];
    struct eval_swap *swaps; /* of tensors that differ */
    size_t n_swaps;
    const char *odd; /* a tensor of them that is no version of the base's; NULL: there is none */
};

struct cli_sweep_group {
    char *name;
    const struct gguf_tensor **tensors; /* of the model around */
    size_t n_tensors;
    struct cli_sweep_place place; /* layer SIZE_MAX, role "": the tensors have several, or none */
    uint64_t n_elements, n_bytes;
    char type[64]; /* of its tensors, "+" between several */
    size_t first_choice, n_choices;
};

/** Zero-initialise; release with cli_sweep_groups_free. */
struct cli_sweep_groups {
    struct cli_sweep_group *items; /* in the order of their first tensors */
    size_t n, capacity;
    struct base_strtab names;
    struct cli_sweep_choice *choices; /* by group, then by candidate */
    size_t n_choices, choice_capacity;
    const struct gguf_tensor **rest; /* tensors in no group, or in one without a choice */
    size_t n_rest;
    uint64_t n_weights; /* of all tensors */
};

/** The models that groups may come from. */
struct cli_sweep_candidates {
    const struct cli_model *items;
    size_t n;
    bool unmade; /* they stand in for models that are not made yet: every matrix is another */
};

/**
 * Groups of a model's tensors, and a choice wherever a candidate has all of a group's tensors and
 * at least one of them with another type or other bytes. Groups without a choice are dropped.
 * Fails: STATUS_USAGE (nothing to choose; the names' patterns), STATUS_FORMAT (a candidate's
 *        tensor that cannot take the place of the model's), STATUS_MEMORY.
 */
enum status cli_sweep_groups_make(struct cli_sweep_groups *out, const struct model *around,
                                  const struct cli_sweep_candidates *from,
                                  const struct cli_sweep_names *names, struct status_why *why);
void cli_sweep_groups_free(struct cli_sweep_groups *groups);

#endif

/**
 * Models that are made for a sweep: the base in other types, by the llama-quantize of the user.
 * They are deleted after it, or kept in a folder for further sweeps and for assay mix.
 */
#ifndef CLI_SWEEP_DONORS_H
#define CLI_SWEEP_DONORS_H

#include <limits.h>

#include "base/buffer.h"
#include "cli/options/args.h"

/** A temporary folder's name begins so. */
#define CLI_DONORS_FOLDER "assay-donors-"

/** What is made of what. */
struct cli_donors_order {
    const struct cli_list *types;
    const char *quantizer; /* the program, looked for as a shell does, and options for it, with
                              blanks between */
    const char *base;      /* the model that they are made of */
    const char *keep;      /* the folder that they stay in, which is made; NULL: they are deleted */
    int n_threads;         /* that the program is told to take; 0: it decides */
};

/** Zero-initialise; release with cli_donors_remove. */
struct cli_donors {
    char folder[PATH_MAX]; /* a temporary one; "": there is none */
    struct cli_list paths; /* of the files, one for each type */
};

/**
 * Make a file of each type, one after the other; one that an order of the same base and quantizer
 * has left in `keep` is taken as it is. What the program prints is shown where it fails.
 * Fails: STATUS_USAGE (a type that is no name, one of them twice, `keep` holds files of another
 *        order), STATUS_IO (no room, no folder, the program cannot be run or fails),
 *        STATUS_CANCELLED, STATUS_MEMORY.
 */
enum status cli_donors_make(struct cli_donors *out, const struct cli_donors_order *order,
                            struct status_why *why);

/* kept.c */

/**
 * Make the folder `keep` of an order, or see that the models in it are of the same order: of the
 * same base and quantizer, with the same files among its words.
 * Fails: STATUS_USAGE (they are not, or nothing says so), STATUS_IO, STATUS_MEMORY.
 */
enum status cli_donors_enter(const struct cli_donors_order *order, struct status_why *why);

/** Say in the folder what its models are of, before the first one is put there. Fails: STATUS_IO.
 */
enum status cli_donors_sign(const struct cli_donors_order *order, struct status_why *why);

/** Append a path that no program takes for an option. */
void cli_donors_add_path(struct base_buffer *out, const char *path);
/** Append the path of a type's file in the folder `keep`. */
void cli_donors_add_kept(struct base_buffer *out, const char *keep, const char *type);

/** About how long the quantizer takes on one processor for so many weights of each type; those that
 *  `keep` has are not made. n: out, how many are. */
double cli_donors_seconds(size_t *n, const struct cli_list *types, const char *keep,
                          double n_weights);

/** Delete what is not kept. A zero-initialised object is allowed. */
void cli_donors_remove(struct cli_donors *donors);

#endif

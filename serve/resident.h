/** The host of evaluations in a program that stays: what they borrow, and where documents go. */
#ifndef SERVE_RESIDENT_H
#define SERVE_RESIDENT_H

#include "cli/host.h"
#include "cli/session/backends.h"
#include "cli/session/models.h"

enum { SERVE_MAX_RESIDENT_MODELS = 2 };

/**
 * An evaluation opens no device and none of these models again, prints no lines, catches no
 * signals, and leaves its document here. Zero-initialise, then serve_resident_make.
 */
struct serve_resident {
    struct cli_host host;
    struct cli_backends backends;
    /* Found by their paths: of one that is open twice the first, or that whose `path` it is. */
    struct cli_model models[SERVE_MAX_RESIDENT_MODELS];
    size_t n_models;

    /* These belong to the evaluation that runs. */

    const atomic_bool *cancel;
    void (*progress)(void *user, const struct eval_progress *now);
    void *user;
    char *document; /* out: JSON text, as --json would have it; NULL: there is none. cJSON_free */
};

/** Set the functions of the host. */
void serve_resident_make(struct serve_resident *resident);

/**
 * Before an evaluation: that no tensor in use has lost pages (cli_mapping_lost), which are zeros
 * now. Fails: STATUS_CHANGED.
 */
enum status serve_resident_check(const struct serve_resident *resident, struct status_why *why);

#endif

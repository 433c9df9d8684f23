/** What stays open in a program that stays, and the host of evaluations that borrow it. */
#ifndef SERVE_RESIDENT_H
#define SERVE_RESIDENT_H

#include "cli/host.h"
#include "cli/session/backends.h"
#include "cli/session/models.h"

enum { SERVE_MAX_RESIDENT_MODELS = 2 };

/** Zero-initialise. */
struct serve_resident {
    struct cli_backends backends;
    /* Found by their paths: of one that is open twice the first, or that whose `path` it is. */
    struct cli_model models[SERVE_MAX_RESIDENT_MODELS];
    size_t n_models;
};

/**
 * One evaluation, which opens no device and none of these models again, prints no lines, catches
 * no signals, and leaves its document here.
 */
struct serve_resident_host {
    struct cli_host host; /* by serve_resident_host_make; the rest is the caller's */
    const struct serve_resident *resident;
    struct cli_backends backends; /* of the resident ones */
    const struct eval_crew *crew; /* NULL: there is none */
    const atomic_bool *cancel;
    void (*progress)(void *user, const struct eval_progress *now);
    void *user;
    char *document; /* out: JSON text, as --json would have it; NULL: there is none. cJSON_free */
};

/** Set the functions of the host. */
void serve_resident_host_make(struct serve_resident_host *host);

/**
 * Before an evaluation: that no tensor in use has lost pages (cli_mapping_lost), which are zeros
 * now. Fails: STATUS_CHANGED.
 */
enum status serve_resident_check(const struct serve_resident *resident, struct status_why *why);

#endif

/**
 * For whom an evaluation runs: the command line, the server. The driver (cli/evaluate.h) leaves to
 * its host what is not the evaluation itself: what cancels it, what is seen of a run, and where the
 * document goes. Settings name the host (cli/options/common.h); without one it is the command line.
 */
#ifndef CLI_HOST_H
#define CLI_HOST_H

#include <stdatomic.h>

#include "base/json/build.h"
#include "eval/run.h"

struct cli_evaluation;
struct cli_model;

/** A function may be NULL where its comment says so. A host's own struct begins with it. */
struct cli_host {
    /** The whole of cli_evaluate. */
    enum status (*evaluate)(struct cli_host *host, struct cli_evaluation *e,
                            struct status_why *why);
    /** A model of this path that is open already; NULL: there is none. NULL: there are none. */
    const struct cli_model *(*find_model)(const struct cli_host *host, const char *path);
    /** The flag that ends a run. NULL: signals do (cli_interrupt_catch). */
    const atomic_bool *(*cancel)(struct cli_host *host);
    /** Before each run, when the models are set: it may add workers and streams. NULL: nothing. */
    enum status (*ready)(struct cli_host *host, struct cli_evaluation *e, struct status_why *why);

    /* What is seen of a run, in this order. */

    void (*beginning)(struct cli_host *host, struct cli_evaluation *e); /* NULL: nothing */
    void (*progress)(struct cli_host *host, struct cli_evaluation *e,
                     const struct eval_progress *now);
    void (*unit)(struct cli_host *host, struct cli_evaluation *e, size_t unit); /* NULL: nothing */
    /** What is to be seen of progress is over. failed: without figures. NULL: nothing. */
    void (*computed)(struct cli_host *host, struct cli_evaluation *e, bool failed);
    /** NULL: nothing. Fails: STATUS_MEMORY, STATUS_IO. */
    enum status (*figures)(struct cli_host *host, struct cli_evaluation *e, struct status_why *why);
    /** Keep the document, where --json is not its only place. NULL: nothing. */
    enum status (*deliver)(struct cli_host *host, const struct base_json *document,
                           struct status_why *why);
    /** Members of the document's `run`. */
    void (*describe)(const struct cli_host *host, const struct cli_evaluation *e,
                     struct base_json *json, cJSON *run);
};

#endif

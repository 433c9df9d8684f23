/** What the functions of include/assay.h share. Names begin with assay_own_: no user sees them. */
#ifndef CLIENTS_LIBRARY_LIBRARY_H
#define CLIENTS_LIBRARY_LIBRARY_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/status.h"
#include "include/assay.h"
#include "model/model.h"

struct kern_backend;

struct assay_model {
    struct model *model;
    struct kern_backend *backend;
    atomic_bool cancel;       /* assay_cancel */
    assay_progress *progress; /* NULL: nobody is told */
    void *user;
};

/** The end of a call: its status, and of a failure the sentence. why: the caller's, or NULL. */
enum assay_status assay_own_end(enum status status, const struct status_why *own,
                                struct assay_why *why);

/** Refuse a pointer that is NULL where one is expected. Fails: STATUS_USAGE. */
enum status assay_own_given(const void *pointer, const char *what, struct status_why *why);

/** The caller's options, checked, or the defaults. Fails: STATUS_USAGE. */
enum status assay_own_options(struct assay_options *own, const struct assay_options *given,
                              struct status_why *why);
/** What they compute with; kern_close() it. Fails: STATUS_USAGE, as kern_cpu_open, kern_cuda_open.
 */
enum status assay_own_backend(struct kern_backend **out, const struct assay_options *options,
                              struct status_why *why);

#endif

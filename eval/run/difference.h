/** What distinguishes two JSON documents, in words. */
#ifndef EVAL_RUN_DIFFERENCE_H
#define EVAL_RUN_DIFFERENCE_H

#include <stddef.h>

#include "base/status.h"

/** The first difference; name is "" where there is none. */
struct eval_difference {
    char name[96];              /* of the member: "settings.n_ctx", "candidates[1].id" */
    char first[48], second[48]; /* its values; long texts are cut, "none" where it is missing */
};

/**
 * Compare two documents: in the order of the first one's members, then what only the second has.
 * Elements of lists are compared one by one. Numbers are compared as doubles.
 * Fails: STATUS_FORMAT (one of them is no JSON), STATUS_MEMORY.
 */
enum status eval_difference_find(struct eval_difference *out, const char *first, const char *second,
                                 struct status_why *why);

#endif

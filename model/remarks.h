/** Lines that a loader wants to be read by a person: a growing text. */
#ifndef MODEL_REMARKS_H
#define MODEL_REMARKS_H

#include "base/status.h"

#include <stddef.h>

/** Zero-initialise; release with free(text). */
struct model_remarks {
    char *text; /* lines, each with its newline; NULL while there are none */
    size_t n_bytes;
};

/** Append one line (printf format without newline). Fails: STATUS_MEMORY. */
enum status model_remark(struct model_remarks *remarks, struct status_why *why, const char *format,
                         ...) __attribute__((format(printf, 3, 4)));

#endif

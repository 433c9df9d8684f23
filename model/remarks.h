/** Lines that a loader wants to be read by a person: a growing text. */
#ifndef MODEL_REMARKS_H
#define MODEL_REMARKS_H

#include "base/buffer.h"

/** Zero-initialise; release with base_buffer_free. */
struct model_remarks {
    struct base_buffer
        lines; /* each with its newline; model_open checks at its end that there was memory */
};

/** Append one line (printf format without newline), unless it is there. */
void model_remark(struct model_remarks *remarks, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif

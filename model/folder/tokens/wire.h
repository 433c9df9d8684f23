/** Fields of a message in the wire format of Protocol Buffers. */
#ifndef MODEL_FOLDER_TOKENS_WIRE_H
#define MODEL_FOLDER_TOKENS_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text/string.h"

enum model_wire_kind {
    MODEL_WIRE_NUMBER = 0,
    MODEL_WIRE_8 = 1,
    MODEL_WIRE_BYTES = 2,
    MODEL_WIRE_4 = 5
};

/** What is left of a message. */
struct model_wire {
    const uint8_t *at, *end;
};

struct model_wire_field {
    uint64_t number;
    enum model_wire_kind kind;
    uint64_t value;           /* MODEL_WIRE_NUMBER, and the bits of MODEL_WIRE_4 and _8 */
    struct base_string bytes; /* MODEL_WIRE_BYTES: a text or a message, in the message's bytes */
};

struct model_wire model_wire_of(struct base_string message);

/** Take the next field; false: the message has ended, or is malformed: then at is before end. */
bool model_wire_next(struct model_wire *message, struct model_wire_field *field);

/** Whether a field is a text or a message, a number, or a float. */
bool model_wire_is(const struct model_wire_field *field, uint64_t number,
                   enum model_wire_kind kind);

#endif

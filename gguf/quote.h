/**
 * Bytes of a file as they may stand in a sentence: between quotes, cut to a readable
 * length, everything but printable ASCII escaped. So a hostile name can neither flood a
 * message nor steer a terminal.
 */
#ifndef GGUF_QUOTE_H
#define GGUF_QUOTE_H

#include "gguf/file.h"

/** Room for one quoted string; lives in the caller's frame. */
struct gguf_quoted {
    char text[96];
};

/** Fill `quoted` from `bytes` and return its text, e.g. 'general.name' or 'a\x1b[2J...'. */
const char *gguf_quote(struct gguf_quoted *quoted, struct gguf_string bytes);

#endif

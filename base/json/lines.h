/** Texts of JSON lines: an object on each, blank lines between them allowed. */
#ifndef BASE_JSON_LINES_H
#define BASE_JSON_LINES_H

#include <stdbool.h>

#include "base/json/parse.h"

/** A line of the text, without its newline. The parser has copied it: a reader may write there. */
struct base_json_line {
    char *from, *end;
    size_t number; /* from 1 */
};

/** Take the object of a line. Fails: as it likes; its sentence says "line %zu". */
typedef enum status base_json_line_reader(void *user, const struct base_json_line *line,
                                          const cJSON *object, struct status_why *why);

/**
 * Hand every object to `read`, in order, until one fails.
 * Fails: STATUS_FORMAT (a line that is no object, or has U+0000, at which the parser's strings
 *        end), STATUS_MEMORY, as `read`.
 */
enum status base_json_lines_read(char *bytes, size_t n_bytes, base_json_line_reader *read,
                                 void *user, struct status_why *why);

#endif

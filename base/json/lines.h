/**
 * Texts of many JSON objects: JSON lines, with an object on each and blank lines between them
 * allowed, and objects wherever they stand.
 */
#ifndef BASE_JSON_LINES_H
#define BASE_JSON_LINES_H

#include <stdbool.h>

#include "base/json/parse.h"

/**
 * The line of an object, without its newline; or just the object, which begins in this line. The
 * parser has copied it: a reader may write there.
 */
struct base_json_line {
    char *from, *end;
    size_t number;  /* from 1 */
    size_t column;  /* where it begins, in bytes from 1 */
    size_t element; /* of a list, from 1; 0: there is no list */
};

/** Take the object of a line. Fails: as it likes; its sentence says "line %zu". */
typedef enum status base_json_line_reader(void *user, const struct base_json_line *line,
                                          const cJSON *object, struct status_why *why);

/**
 * Hand every object to `read`, in order, until one fails.
 * Fails: STATUS_FORMAT (a line that is no object, has a member twice, or has U+0000, at which the
 *        parser's strings end), STATUS_MEMORY, as `read`.
 */
enum status base_json_lines_read(char *bytes, size_t n_bytes, base_json_line_reader *read,
                                 void *user, struct status_why *why);

/**
 * The same for objects that may take several lines or share one: the elements of a list, or with
 * nothing but blanks between them. A byte-order mark in front is passed over.
 * Fails: also STATUS_FORMAT (a list that does not end, or has something else in it or after it).
 */
enum status base_json_objects_read(char *bytes, size_t n_bytes, base_json_line_reader *read,
                                   void *user, struct status_why *why);

/**
 * Parse the object that such a text begins with. out: freed by the caller with cJSON_Delete; NULL:
 * the text does not begin so.
 * Fails: STATUS_MEMORY, STATUS_UNSUPPORTED, as base_json_parse.
 * Cost: of a text that begins with { only, one walk through it.
 */
enum status base_json_first_object(cJSON **out, const char *bytes, size_t n_bytes,
                                   struct status_why *why);

#endif

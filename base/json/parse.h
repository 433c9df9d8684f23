/** JSON from outside: tells a text that is not JSON from a lack of memory. */
#ifndef BASE_JSON_PARSE_H
#define BASE_JSON_PARSE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/*
 * Values in one text, those within others counted. The parser takes about 80 bytes for each,
 * however short it is: a text of "1,1,1,..." would take forty times its length.
 */
enum { BASE_JSON_MAX_VALUES = 1 << 22 };

/**
 * Parse the JSON value that n_bytes bytes begin with.
 * out: freed by the caller with cJSON_Delete; NULL unless this succeeds.
 * n_read: bytes of the value, blanks before it included; where there is none, those before the
 *         place where the parser gave up. May be NULL.
 * Fails: STATUS_MEMORY and STATUS_UNSUPPORTED (more than BASE_JSON_MAX_VALUES), with a sentence;
 *        STATUS_FORMAT, without one: what was expected instead is
 *        the caller's to say.
 */
enum status base_json_parse(cJSON **out, const char *bytes, size_t n_bytes, size_t *n_read,
                            struct status_why *why);

/**
 * Whether an object in `value`, or itself, has a member twice: readers differ in which of them
 * counts. name: receives the member's name, in `value`; NULL: there is none.
 * Fails: STATUS_MEMORY, STATUS_UNSUPPORTED, as base_strtab_add.
 */
enum status base_json_find_repeated(const char **name, const cJSON *value, struct status_why *why);

/**
 * Memory that parsing a text takes, at most, as the allocators of today hand it out: for each value
 * a node, for each string its own piece.
 */
size_t base_json_memory(const char *bytes, size_t n_bytes);

/** White space between the tokens of an object; the parser counts every control character. */
bool base_json_is_blank(char c);

/** Where a JSON text has U+0000, at which the parser's strings end: a byte, or the escape; or NULL.
 */
const char *base_json_find_nul(const char *bytes, size_t n_bytes);

/** Put U+FFFD in the place of each escape of U+0000, so that texts after it are not lost. */
void base_json_replace_nul(char *bytes, size_t n_bytes);

#endif

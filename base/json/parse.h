/** JSON from outside: tells a text that is not JSON from a lack of memory. */
#ifndef BASE_JSON_PARSE_H
#define BASE_JSON_PARSE_H

#include <cjson/cJSON.h>
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

#endif

/**
 * Values of a JSON document from outside, looked up by path and type.
 *
 * The reader keeps the first failure: its sentence says which file, which member, what was found
 * and what was expected. Later look-ups go on with neutral values, so code that reads many members
 * is a list of them, and asks once, before it uses them (base_json_status).
 *
 * A path is names of members with dots between them, "rope_scaling.factor"; "" is the value itself.
 */
#ifndef BASE_JSON_READ_H
#define BASE_JSON_READ_H

#include <cjson/cJSON.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/** Zero-initialised but for `file` it is ready; release with base_json_close. */
struct base_json_reader {
    const char *file; /* what sentences begin with; borrowed; NULL: with the member */
    const char
        *missing;     /* what to say of a member that is missing; NULL: the type it should have */
    enum status code; /* of values of a wrong type; STATUS_OK: it is STATUS_FORMAT */
    cJSON *root;
    enum status status; /* the first failure, and why */
    struct status_why why;
};

/** A value and whose it is. json NULL: there is none, or a failure. */
struct base_field {
    struct base_json_reader *reader;
    const cJSON *json;
    size_t index; /* in its list, where base_field_next found it */
};

/**
 * Parse a text that is one JSON object and nothing else; more than that its caller checks.
 * Fails: STATUS_FORMAT (something else, U+0000), STATUS_UNSUPPORTED, STATUS_MEMORY.
 */
struct base_field base_json_open(struct base_json_reader *reader, const char *bytes,
                                 size_t n_bytes);
void base_json_close(struct base_json_reader *reader);
struct base_field base_json_root(struct base_json_reader *reader);

/** The first failure so far, its sentence in `why`. */
enum status base_json_status(const struct base_json_reader *reader, struct status_why *why);
/** Keep a failure, unless one is kept. why: its sentence. Returns what is kept then. */
enum status base_json_keep(struct base_json_reader *reader, enum status status,
                           const struct status_why *why);
/** Keep a failure of a value: the sentence begins with the file's name and the value's path. */
void base_field_fail(struct base_field at, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** Keep a failure of a member, whether it is there or not. */
void base_field_fail_member(struct base_field from, const char *path, enum status status,
                            const char *format, ...) __attribute__((format(printf, 4, 5)));

/** And of one that is another value than expected: "... is 3, expected ...". */
void base_field_refuse(struct base_field from, const char *path, const char *expected);

/** A member, or nothing where it is missing: this never fails. */
struct base_field base_field_get(struct base_field from, const char *path);
/** A member, or nothing where it is missing or null: this never fails. */
struct base_field base_field_find(struct base_field from, const char *path);
/** A member that must be there. */
struct base_field base_field_need(struct base_field from, const char *path);

/**
 * Typed look-ups. The first of each kind fails where the member is missing or null; `_or` takes
 * `fallback` for it. A value of another type fails. After a failure the value is 0, false, "" or
 * none. Texts point into the document.
 */
const char *base_field_text(struct base_field from, const char *path);
const char *base_field_text_or(struct base_field from, const char *path, const char *fallback);
bool base_field_flag(struct base_field from, const char *path);
bool base_field_flag_or(struct base_field from, const char *path, bool fallback);
/** A finite number. Of the third the member must be there, and null is NaN: base/json/build.h
 * writes it for what is not finite. */
double base_field_real(struct base_field from, const char *path);
double base_field_real_or(struct base_field from, const char *path, double fallback);
double base_field_real_or_null(struct base_field from, const char *path);
/** A whole number from 0 to `most`, which is at most 2^53. */
uint64_t base_field_uint(struct base_field from, const char *path, uint64_t most);
uint64_t base_field_uint_or(struct base_field from, const char *path, uint64_t most,
                            uint64_t fallback);
/** The index of a text among words with single blanks between them; of another text: 0, and
 * STATUS_UNSUPPORTED. */
int base_field_word(struct base_field from, const char *path, const char *words);
int base_field_word_or(struct base_field from, const char *path, const char *words, int fallback);
/** A list, an object; `_or_none`: one that may be missing. */
struct base_field base_field_list(struct base_field from, const char *path);
struct base_field base_field_list_or_none(struct base_field from, const char *path);
struct base_field base_field_object(struct base_field from, const char *path);
struct base_field base_field_object_or_none(struct base_field from, const char *path);

/** Step through the elements of a list or an object: item->json is NULL before the first. */
bool base_field_next(struct base_field list, struct base_field *item);
/** How many elements a list or an object has; 0 of anything else. */
size_t base_field_count(struct base_field list);

/**
 * The member at a path, NULL: there is none. For what is read as it comes, where something that is
 * missing, or of another type, is no failure.
 */
const cJSON *base_json_member(const cJSON *from, const char *path);

/** Looks that never fail: a member's text, NULL where it is none; whether a value is a text. */
const char *base_field_string(struct base_field from, const char *path);
bool base_field_is(struct base_field at, const char *text);

/** A value as a sentence has it: 'a text', 3.5, null, a list. Room for it: the caller's. */
struct base_field_shown {
    char text[96];
};
const char *base_field_show(struct base_field_shown *shown, struct base_field at);
/** What leads to a value: "candidates[2].kld"; "" of the whole document. */
struct base_field_path {
    char text[128];
};
const char *base_field_path(struct base_field_path *path, struct base_field at);

#endif

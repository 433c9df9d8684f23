/** Recognising a file that was given where one of another kind was expected. */
#ifndef BASE_CONTENT_KIND_H
#define BASE_CONTENT_KIND_H

#include <stdbool.h>

#include "base/status.h"
#include "base/text/string.h"

/** A kind of file. */
struct base_file_kind {
    const char *name;   /* with its article: "a ZIP archive, as ..." */
    const char *remedy; /* what to do about it, a clause */
    bool is_text;       /* its bytes may be meant as a text */
};

/**
 * What a file is by its first bytes, of which 512 are enough: a stand-in for a file that was not
 * downloaded (a Git LFS pointer, a page of the web), a checkpoint in another format, an archive.
 * No text, no model and no task file that this program reads is among them, but for is_text.
 * Returns NULL: none of those that are known.
 */
const struct base_file_kind *base_file_kind(struct base_string beginning);

/**
 * Check that a file is not of those kinds. Call it where the file could not be read as what was
 * expected; its sentence takes the place of the other one. expected: "a GGUF file".   The sentence
 * begins with "is". Fails: STATUS_FORMAT (it is one of them).
 */
enum status base_file_check_kind(struct base_string beginning, const char *expected,
                                 struct status_why *why);

/** What base_file_kind finds, or a text that has a form: a result of this program, JSON, a table.
 */
const struct base_file_kind *base_file_kind_of_text(struct base_string beginning);

/** Check a beginning where no text was expected. Fails: STATUS_FORMAT (it is one of those). */
enum status base_file_check_no_text(struct base_string beginning, const char *expected,
                                    struct status_why *why);

/** Whether a file of this name exists and begins with these 8 bytes. */
bool base_file_begins(const char *path, const char magic[8]);
/** Or with these, 8 at most. */
bool base_file_begins_with(const char *path, struct base_string magic);
/** Whether it exists and begins as a JSON object does. */
bool base_file_begins_object(const char *path);
/** Whether it exists and is a result of this program. Fails: STATUS_FORMAT, with the path (it is).
 *  expected: "a model". */
enum status base_file_check_no_result(const char *path, const char *expected,
                                      struct status_why *why);

#endif

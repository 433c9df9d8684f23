/** The text of an evaluation: a whole file or standard input, in memory. */
#ifndef BASE_CONTENT_TEXT_H
#define BASE_CONTENT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/digest.h"
#include "base/status.h"

/** The limit that commands pass to base_text_read: 4 GiB, thousands of standard texts. */
#define BASE_TEXT_MAX_BYTES ((size_t)4 << 30)

/** Any bytes: invalid UTF-8 and NUL are kept. Zero-initialise; release with base_text_free. */
struct base_text {
    char *data; /* what is evaluated: the file without one final newline */
    size_t n_bytes;
    size_t file_bytes;          /* of the file as it was read */
    char sha256[BASE_HEX];      /* of the file as it was read */
    bool newline_dropped;       /* the file ended with a newline */
    const char *converted_from; /* "UTF-16LE", "UTF-16BE"; NULL: the bytes are the file's */
};

/**
 * Read a file, or standard input for "-", until its end; then drop one final newline, as
 * llama-perplexity does with -f.
 * Never reads more than max_bytes + 1 bytes, so that endless devices end; and no more than 64 KiB
 * where these are all 0.
 * Fails: STATUS_IO, STATUS_FORMAT (no text, zeros, or more than max_bytes), STATUS_MEMORY.
 */
enum status base_text_read(struct base_text *out, const char *path, size_t max_bytes,
                           struct status_why *why);

/** As base_text_read, but every byte is kept: llama-perplexity's -bf. */
enum status base_text_read_whole(struct base_text *out, const char *path, size_t max_bytes,
                                 struct status_why *why);

/** As base_text_read_whole, but UTF-16 becomes UTF-8: `tokenize`, which takes any other bytes. */
enum status base_text_read_any(struct base_text *out, const char *path, size_t max_bytes,
                               struct status_why *why);

/**
 * As base_text_read, but UTF-16 becomes UTF-8, and what does not seem to be a text of bytes is
 * refused. Its first 64 KiB say which it is: a byte-order mark, NULs (in every other place:
 * UTF-16), or mostly control characters. remedy: ends the sentence "...; convert it to UTF-8".
 */
enum status base_text_read_utf8(struct base_text *out, const char *path, size_t max_bytes,
                                const char *remedy, struct status_why *why);

/**
 * As base_text_read_utf8, but the text may be empty. remedy NULL: as base_text_read but for that.
 */
enum status base_text_read_document(struct base_text *out, const char *path, size_t max_bytes,
                                    const char *remedy, struct status_why *why);

/**
 * Check bytes that have to be a text of a certain form. The sentence says which encoding they have
 * ("is UTF-16LE, expected UTF-8"), or the first line with a NUL.   Fails: STATUS_FORMAT.
 */
enum status base_text_check(const char *bytes, size_t n_bytes, struct status_why *why);

/** Whether a text begins with UTF-8's byte-order mark, which is evaluated as a character. */
bool base_text_has_mark(const struct base_text *text);
/**
 * Line ends that are CR and LF: the CR is evaluated as a character. The last one may have
 * lost its LF.
 */
size_t base_count_crlf(const char *bytes, size_t n_bytes);

/** A text given as it is, copied. Fails: STATUS_FORMAT (empty), STATUS_MEMORY. */
enum status base_text_copy(struct base_text *out, const char *bytes, size_t n_bytes,
                           struct status_why *why);

/**
 * Replace escapes in place, as llama-perplexity does with -e: \n \r \t \' \" \\ and \x with two
 * hexadecimal digits. Other backslashes stay. The hash remains that of the file.
 */
void base_text_unescape(struct base_text *text);

/** NULL is not allowed; a zero-initialised or failed object is. */
void base_text_free(struct base_text *text);

#endif

/**
 * Recording a base file: the sink for the rows of a model, for both formats. Each row has its
 * offset from the beginning, so windows may come in any order, and a recording that was begun can
 * be continued at any window (base/file/part_file.h keeps it under PATH.part until it is whole).
 *
 * eval/reference/logits_writer.h and compact_writer.h open a writer; the rest is the same for both.
 */
#ifndef EVAL_REFERENCE_WRITER_H
#define EVAL_REFERENCE_WRITER_H

#include "base/digest.h"
#include "base/file/part_file.h"
#include "eval/scorer/reference_rows.h"

struct eval_writer;

/** The sink: rows of a window in order, windows in any. Cheap: the disk is not waited for. */
struct eval_row_sink eval_writer_sink(struct eval_writer *writer);
/** Whether PATH was there already, with `resume`: see base/file/part_file.h. */
bool eval_writer_is_whole(const struct eval_writer *writer);
/** Give the file its name; all of its windows must have been written. As base_part_commit. */
enum status eval_writer_commit(struct eval_writer *writer, struct status_why *why);
/** Without a commit. keep: as base_part_close. NULL: nothing. */
void eval_writer_close(struct eval_writer *writer, bool keep);

/* For the formats. */

enum { EVAL_WRITER_MOST_COVERED = 32 };

/** What a format does in its own way; each may be NULL. */
struct eval_writer_format {
    enum eval_row_kind kind;
    /** Window w begins, perhaps again: prepare what its check has in front of the sum. */
    void (*begin)(struct eval_writer *writer, size_t w);
    /** Store n_rows rows of window w, at most max_encoded. Returns the bytes as they are stored. */
    const void *(*encode)(struct eval_writer *writer, size_t w, const void *rows, size_t n_rows);
    size_t max_encoded;
    /** Refuse rows, from row `first` of the file on, that no reader would take. */
    enum status (*check)(const struct eval_writer *writer, size_t first, const void *rows,
                         size_t n_rows, struct status_why *why);
    /** Release what the format has in the object. */
    void (*release)(struct eval_writer *writer);
};

/**
 * The first member of a format's object, made with calloc. The format fills in what describes the
 * file. The check of a window is n_covered bytes, then the SHA-256 of its stored rows and of those.
 */
struct eval_writer {
    const struct eval_writer_format *format;
    size_t n_windows, n_scored; /* rows of a window */
    uint64_t *first_rows;       /* of windows that differ: [n_windows + 1], owned; else NULL */
    uint64_t rows_at;           /* offset of the first row */
    size_t row_bytes;           /* as stored */
    size_t given_bytes;         /* of a row as the sink gets it */
    bool has_checks;            /* hash what is written: a journal needs it */
    size_t n_covered;           /* 0: the checks are not in the file */
    uint64_t checks_at;         /* offset of the first check */

    struct base_part *part;
    uint8_t *checks;            /* [n_windows, n_covered + BASE_SHA256_BYTES] */
    struct base_digest *digest; /* of the window at work; NULL: none is */
    size_t n_digested;          /* its rows */
};

/** How a file begins: all of it, or what tells one recording from another. */
struct eval_writer_head {
    const void *bytes;
    size_t n_bytes;
    const char *what; /* of another recording differs: "tokens or vocabulary" */
};

/**
 * Open PATH.part; write the head, unless the part has it. Checks are zero until written or
 * restored. Fails: as base_part_open; STATUS_FORMAT (the part has another head), STATUS_MEMORY.
 */
enum status eval_writer_begin(struct eval_writer *writer, const char *path,
                              const struct base_part_options *options,
                              const struct eval_writer_head *head, struct status_why *why);
/** After a failed opening: what the part held is another recording's; what was begun is removed. */
void eval_writer_abandon(struct eval_writer *writer);
/** The check of window w. */
uint8_t *eval_writer_check(const struct eval_writer *writer, size_t w);

#endif

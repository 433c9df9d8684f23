/**
 * Recording a compact base: the sink for the hidden rows of a model. Each row and each window's
 * check has its place from the beginning, so a recording that was begun can be gone on with at
 * any window (base/file/part_file.h keeps it under PATH.part until it is whole).
 */
#ifndef EVAL_REFERENCE_COMPACT_WRITER_H
#define EVAL_REFERENCE_COMPACT_WRITER_H

#include "base/file/part_file.h"
#include "eval/input/window.h"
#include "eval/reference/compact_layout.h"
#include "eval/scorer/base_rows.h"
#include "model/model.h"

struct eval_compact_writer;

/** What a recording is begun with; everything is borrowed for the call. */
struct eval_compact_recording {
    const char *path;
    const struct model *model;
    const char *model_id;         /* by eval_model_id */
    const struct eval_plan *plan; /* of the default protocol */
    const struct eval_stream *stream;
    enum eval_compact_kind kind; /* of the rows */
    const char *head_path;       /* where the head is to be found at use; NULL: it is copied */
    const char *description;     /* JSON for people and results */
    bool replace, resume;        /* as of struct base_part_options */
};

/**
 * Begin PATH.part: everything but the rows and their checks is written at once. With `resume`,
 * the part that is there must have been begun with the same.
 * Fails: as base_part_open; STATUS_FORMAT (the part is of another recording).
 */
enum status eval_compact_writer_open(struct eval_compact_writer **out,
                                     const struct eval_compact_recording *recording,
                                     struct status_why *why);

/** Whether PATH was there already, with `resume`: see base/file/part_file.h. */
bool eval_compact_writer_is_whole(const struct eval_compact_writer *writer);

/** Bytes that the file will have. */
uint64_t eval_compact_writer_n_bytes(const struct eval_compact_writer *writer);

/** What storing lost, over all windows that were written or kept. */
struct eval_compact_error eval_compact_writer_error(const struct eval_compact_writer *writer);

/** The id that eval_compact_id gives for the file once it is whole. Fails: STATUS_MEMORY. */
enum status eval_compact_writer_id(char hex[BASE_HEX], const struct eval_compact_writer *writer,
                                   struct status_why *why);

/** The sink: rows of a window in order, windows in any. Cheap: the disk is not waited for. */
struct eval_row_sink eval_compact_writer_sink(struct eval_compact_writer *writer);

/** Give the file its name; all of its windows must have been written. As base_part_commit. */
enum status eval_compact_writer_commit(struct eval_compact_writer *writer, struct status_why *why);
/** Without a commit. keep: as base_part_close. NULL: nothing. */
void eval_compact_writer_close(struct eval_compact_writer *writer, bool keep);

#endif

/** Recording a compact base. */
#ifndef EVAL_REFERENCE_COMPACT_WRITER_H
#define EVAL_REFERENCE_COMPACT_WRITER_H

#include "eval/input/documents.h"
#include "eval/reference/compact_layout.h"
#include "eval/reference/writer.h"
#include "model/model.h"

/** What a recording is begun with; everything is borrowed for the call. */
struct eval_compact_recording {
    const char *path;
    const struct model *model;
    const char *model_id;         /* by gguf_model_id */
    const struct eval_plan *plan; /* of the default protocol, or of documents */
    const struct eval_stream *stream;
    const struct eval_documents *documents; /* those of the plan; NULL: it is one text */
    enum eval_compact_kind kind;            /* of the rows */
    const char *head_path;        /* where the head is to be found at use; NULL: it is copied */
    const char *description;      /* JSON for people and results */
    bool only_new, force, resume; /* as of struct base_part_options */
};

/**
 * Begin PATH.part: everything but the rows and their checks is written at once. With `resume`,
 * the part that is there must have been begun with the same.
 * Fails: as base_part_open; STATUS_FORMAT (the part is of another recording).
 */
enum status eval_compact_writer_open(struct eval_writer **out,
                                     const struct eval_compact_recording *recording,
                                     struct status_why *why);

/** Bytes of the file that such a recording makes, before it is begun. Fails: STATUS_FORMAT. */
enum status eval_compact_recording_bytes(uint64_t *out,
                                         const struct eval_compact_recording *recording,
                                         struct status_why *why);

/** Bytes that the file will have. */
uint64_t eval_compact_writer_n_bytes(const struct eval_writer *writer);

/** What storing lost, over all windows that were written or restored. */
struct eval_compact_error eval_compact_writer_error(const struct eval_writer *writer);

/** The id that eval_compact_id gives for the file once it is whole. Fails: STATUS_MEMORY. */
enum status eval_compact_writer_id(char hex[BASE_HEX], const struct eval_writer *writer,
                                   struct status_why *why);

#endif

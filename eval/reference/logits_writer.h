/**
 * Recording a base-logits file: the sink for the rows of a model. Chunks may come in any order;
 * each record has its place from the beginning, so that a file that was begun can be gone on with
 * at any chunk (base/file/part_file.h keeps it under PATH.part until it is whole).
 */
#ifndef EVAL_REFERENCE_LOGITS_WRITER_H
#define EVAL_REFERENCE_LOGITS_WRITER_H

#include "base/file/part_file.h"
#include "eval/input/window.h"
#include "eval/reference/logits_file.h"
#include "eval/scorer/base_rows.h"

struct eval_logits_writer;

/** What a recording is begun with; everything is borrowed for the call. */
struct eval_logits_recording {
    const char *path;
    const struct eval_plan *plan; /* of the default protocol */
    const struct eval_stream *stream;
    size_t n_vocab;       /* logits of a row */
    bool replace, resume; /* as of struct base_part_options */
    bool journal;         /* the sink can serve a journal, for which it hashes what it writes */
};

/**
 * Begin PATH.part: magic, counts and tokens are written at once. With `resume`, the part that
 * there is must begin with the same; records that it holds stay until they are written again.
 * Fails: as base_part_open; STATUS_FORMAT (the part is of another recording), STATUS_USAGE (more
 *        than the format's 31-bit counts can say).
 */
enum status eval_logits_writer_open(struct eval_logits_writer **out,
                                    const struct eval_logits_recording *recording,
                                    struct status_why *why);
/** The sink: rows of the plan's windows to their places. Cheap: the disk is not waited for. */
struct eval_row_sink eval_logits_writer_sink(struct eval_logits_writer *writer);
/** Whether PATH was there already, with `resume`: see base/file/part_file.h. */
bool eval_logits_writer_is_whole(const struct eval_logits_writer *writer);
/** Chunks that the part held from the beginning on, as far as its size tells: 0 if it is new. */
size_t eval_logits_writer_n_kept(const struct eval_logits_writer *writer);
/** Give the file its name; all of its chunks must have been written. As base_part_commit. */
enum status eval_logits_writer_commit(struct eval_logits_writer *writer, struct status_why *why);
/** Without a commit. keep: as base_part_close. NULL: nothing. */
void eval_logits_writer_close(struct eval_logits_writer *writer, bool keep);

#endif

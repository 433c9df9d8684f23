/** Recording a base-logits file. */
#ifndef EVAL_REFERENCE_LOGITS_WRITER_H
#define EVAL_REFERENCE_LOGITS_WRITER_H

#include "eval/input/window.h"
#include "eval/reference/logits_file.h"
#include "eval/reference/writer.h"

/** What a recording is begun with; everything is borrowed for the call. */
struct eval_logits_recording {
    const char *path;
    const struct eval_plan *plan; /* of the default protocol */
    const struct eval_stream *stream;
    size_t n_vocab;               /* logits of a row */
    bool only_new, force, resume; /* as of struct base_part_options */
    bool journal; /* the sink can serve a journal, for which it hashes what it writes */
};

/**
 * Begin PATH.part: magic, counts and tokens are written at once. With `resume`, the part that
 * is there must begin with the same; rows that it holds stay until they are written again.
 * Fails: as base_part_open; STATUS_FORMAT (the part is of another recording), STATUS_USAGE (more
 *        than the format's 31-bit counts can say).
 */
enum status eval_logits_writer_open(struct eval_writer **out,
                                    const struct eval_logits_recording *recording,
                                    struct status_why *why);

#endif

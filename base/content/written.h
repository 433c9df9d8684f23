/**
 * What a file that is written may replace: nothing, or a file of the same kind, which its content
 * tells. Names and endings do not count.
 */
#ifndef BASE_CONTENT_WRITTEN_H
#define BASE_CONTENT_WRITTEN_H

#include "base/status.h"

/*
 * Kinds of files that this program writes. A kind is its name, with an article. That of a JSON
 * document is its "schema", which begins with BASE_DOCUMENT.
 */
#define BASE_DOCUMENT   "assay-"
#define BASE_JOURNAL    "a journal of assay"
#define BASE_SUMS       "sums beside a journal of assay imatrix"
#define BASE_ANSWERS    "a server's answers that assay kept"
#define BASE_COMPACT    "a recording of assay record"
#define BASE_LOGITS     "a base-logits file"
#define BASE_MATRIX     "an importance matrix"
#define BASE_MATRIX_DAT "an importance matrix in the older format"
#define BASE_MODEL      "a GGUF model" /* read, never written */
#define BASE_MIXTURE    "a GGUF model that assay mix wrote"
#define BASE_NPY        "a NumPy array"
#define BASE_NPZ        "a file of NumPy arrays"
#define BASE_TOKENS     "a table of tokens"
#define BASE_TASKS      "a table of choice tasks"
#define BASE_SWEPT      "a table of a sweep"
#define BASE_SCORES     "scores of assay score"
#define BASE_PAGE       "a page of assay report"
#define BASE_CARD       "a card of assay card"
#define BASE_CHART      "a chart of assay"
#define BASE_TYPES      "a list of types for llama-quantize"
#define BASE_SUITE      "a list of types for GGUF-Tool-Suite"
#define BASE_WATCHED    "a status of --watch"
#define BASE_COMMAND    "a command of --watch" /* removed, never written */

/* What some of them begin with: 8 bytes. */
#define BASE_JOURNAL_MAGIC "ASSAYJNL"
#define BASE_SUMS_MAGIC    "ASSAYSUM"
#define BASE_COMPACT_MAGIC "assaybas"
#define BASE_LOGITS_MAGIC  "_logits_"

/** A key of mixtures, in front of all others. */
#define BASE_MIXTURE_KEY "assay.mix.recipe"

enum { BASE_WRITTEN_NAME = 64 };

/**
 * What the regular file at a path is: one of the kinds above, a kind that is only read, or
 * something else, all with an article.
 * out: for a name that is no constant. Returns NULL where there is nothing to lose: no file, an
 * empty one, a device, a pipe, a folder.
 */
const char *base_written_name(char out[BASE_WRITTEN_NAME], const char *path);

/**
 * Check that a file of this kind may be written at the path. kind NULL: it may replace anything.
 * Fails: STATUS_USAGE (a file of another kind is there; the sentence says what it is).
 */
enum status base_written_check(const char *path, const char *kind, struct status_why *why);

#endif

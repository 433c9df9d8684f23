/** Tensors that another program computed: what its log prints of them, or arrays. */
#ifndef EVAL_TRACE_FILE_H
#define EVAL_TRACE_FILE_H

#include <stdbool.h>

#include "base/text/string.h"
#include "eval/input/text.h"
#include "eval/trace/names.h"

enum eval_number {
    EVAL_NUMBER_F64,
    EVAL_NUMBER_F32,
    EVAL_NUMBER_F16,
    EVAL_NUMBER_I32,
    EVAL_NUMBER_I64
};

/** A tensor as the file has it. ne as llama.cpp counts: the first axis is the fastest. */
struct eval_record {
    char name[EVAL_NAME_BYTES]; /* without its layer */
    int layer;                  /* -1: none */
    char op[32];                /* "": not said */
    uint64_t ne[4];
    /* Whole tensors: all values, in the file's bytes. Printed ones: what was printed. */
    bool whole;
    enum eval_number type; /* of the bytes */
    size_t at;             /* whole: byte of the file; else index among the numbers */
    size_t n_values;
    bool has_sum;
    double sum;
};

/** Zero-initialise; release with eval_traced_free. */
struct eval_traced {
    struct eval_text text; /* the file's bytes */
    struct eval_record *records;
    size_t n, capacity;
    double *numbers; /* that were printed */
    size_t n_numbers, numbers_capacity;
    int32_t *tokens; /* that the log names; NULL: none */
    size_t n_tokens, tokens_capacity;
};

/**
 * Read a file: .npz or .npy by its first bytes, else a log.
 * Fails: STATUS_IO, STATUS_MEMORY, STATUS_FORMAT, STATUS_UNSUPPORTED, each with the file's name.
 */
enum status eval_traced_read(struct eval_traced *out, const char *path, struct status_why *why);
void eval_traced_free(struct eval_traced *file);

/** The name as the file has it, with its layer. Returns `out`. */
const char *eval_record_name(char out[EVAL_NAME_BYTES + 16], const struct eval_record *record);

/** Value i of a record, and its index among all of the tensor, the first axis the fastest. */
double eval_record_value(const struct eval_traced *file, const struct eval_record *record,
                         size_t i);
uint64_t eval_record_index(const struct eval_record *record, size_t i);
/** Rows of logits that the file has, at most n_tokens; 1 where it has none. */
size_t eval_traced_logits(const struct eval_traced *file, size_t n_tokens);
/** How many values all axes make. */
uint64_t eval_record_elements(const struct eval_record *record);

/** Half a unit of the last decimal that a log prints of values. */
#define EVAL_PRINTED_HALF 0.5e-4
/** Values printed at each end of an axis that is longer than two times as many. */
enum { EVAL_PRINTED_ENDS = 3 };

/* The parts; text: file->text. For eval_traced_read, and for tests. */

/** The log of llama-eval-callback, or of assay trace. The sentence names a line. */
enum status eval_traced_log(struct eval_traced *file, struct status_why *why);
/** An .npz, or an .npy of this name. */
enum status eval_traced_arrays(struct eval_traced *file, struct base_string name,
                               struct status_why *why);
/**
 * Add a record by its full name: "Qcur-0", "blk.0.attn_q.weight"; *out is it, valid until the next.
 * Fails: STATUS_MEMORY.
 */
enum status eval_traced_add(struct eval_traced *file, struct base_string name,
                            struct base_string op, struct eval_record **out,
                            struct status_why *why);

#endif

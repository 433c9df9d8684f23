/** Tensors that another program computed: what its log prints of them, or arrays. */
#ifndef TRACE_FILE_H
#define TRACE_FILE_H

#include <stdbool.h>

#include "base/content/text.h"
#include "base/text/string.h"
#include "clients/trace/names.h"

enum trace_number {
    TRACE_NUMBER_F64,
    TRACE_NUMBER_F32,
    TRACE_NUMBER_F16,
    TRACE_NUMBER_I32,
    TRACE_NUMBER_I64
};

/** A tensor as the file has it. ne as llama.cpp counts: the first axis is the fastest. */
struct trace_record {
    char name[TRACE_NAME_BYTES]; /* without its layer */
    int layer;                   /* -1: none */
    char op[32];                 /* "": not said */
    uint64_t ne[4];
    /* Whole tensors: all values, in the file's bytes. Printed ones: what was printed. */
    bool whole;
    enum trace_number type; /* of the bytes */
    size_t at;              /* whole: byte of the file; else index among the numbers */
    size_t n_values;
    bool has_sum;
    double sum;
};

/** Zero-initialise; release with trace_file_free. */
struct trace_file {
    struct base_text text; /* the file's bytes */
    struct trace_record *records;
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
enum status trace_file_read(struct trace_file *out, const char *path, struct status_why *why);
void trace_file_free(struct trace_file *file);

/** The name as the file has it, with its layer. Returns `out`. */
const char *trace_record_name(char out[TRACE_NAME_BYTES + 16], const struct trace_record *record);

/** Value i of a record, and its index among all of the tensor, the first axis the fastest. */
double trace_record_value(const struct trace_file *file, const struct trace_record *record,
                          size_t i);
uint64_t trace_record_index(const struct trace_record *record, size_t i);
/** Rows of logits that the file has, at most n_tokens; 1 where it has none. */
size_t trace_file_logits(const struct trace_file *file, size_t n_tokens);
/** How many values all axes make. */
uint64_t trace_record_elements(const struct trace_record *record);

/** Half a unit of the last decimal that a log prints of values. */
#define TRACE_PRINTED_HALF 0.5e-4
/** Values printed at each end of an axis that is longer than two times as many. */
enum { TRACE_PRINTED_ENDS = 3 };

/* The parts; text: file->text. For trace_file_read, and for tests. */

/** The log of llama-eval-callback, or of assay trace. The sentence names a line. */
enum status trace_file_log(struct trace_file *file, struct status_why *why);
/** An .npz, or an .npy of this name. */
enum status trace_file_arrays(struct trace_file *file, struct base_string name,
                              struct status_why *why);
/**
 * Add a record by its full name: "Qcur-0", "blk.0.attn_q.weight"; *out is it, valid until the next.
 * Fails: STATUS_MEMORY.
 */
enum status trace_file_add(struct trace_file *file, struct base_string name, struct base_string op,
                           struct trace_record **out, struct status_why *why);

#endif

/**
 * Whether a GGUF file is what a conversion of a published folder should be: tensor by tensor, key
 * by key, and what the entries of the tokenizer say. The folder is open as a GGUF file, too, so any
 * GGUF file of the same model can take its place.
 */
#ifndef CONVERSION_CONVERSION_H
#define CONVERSION_CONVERSION_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/pool.h"
#include "gguf/gguf.h"

/** How values of a type are compared with those that they were made of. */
enum conv_rule {
    CONV_EXACT, /* the nearest number of the type, halves to even */
    CONV_NEAR,  /* within a few units in the last place: what is computed, not stored */
    CONV_BLOCK, /* Q8_0: within half a step of the block, and what a half makes of the step */
    CONV_STEP   /* other blocks: the error of rows and matrices beside the type's step */
};

/** What the values of a tensor, a matrix or some rows come to. */
struct conv_sums {
    uint64_t n, n_wrong;     /* values, and those beyond the rule's bound for one value */
    uint64_t n_rows_wrong;   /* rows with such values, or beyond the rule's bound for a row */
    uint64_t first_row;      /* the first of them; UINT64_MAX: there is none */
    uint64_t n_nonfinite;    /* values that are no finite numbers where the folder's are */
    uint64_t n_made_finite;  /* values that are finite where the folder's are not */
    double xx, yy, xy, ee;   /* of the folder's x, the file's y, e = y - x: sums of products */
    double steps;            /* sum over blocks of n step^2 / 12, of x */
    double floor;            /* the same of what a scale in half precision cannot say */
    double largest;          /* |e| */
    double largest_expected; /* |x| */
};
/** Relative RMS error: sqrt(ee / xx). */
double conv_error(const struct conv_sums *s);
/** xy / sqrt(xx yy); 1 where both are zero. */
double conv_correlation(const struct conv_sums *s);

enum conv_outcome {
    CONV_DIFFERS,
    CONV_MISSING,     /* in the file */
    CONV_SUPERFLUOUS, /* in the file */
    CONV_SHAPE
};

/** A mistake that gives just these values. */
enum conv_look {
    CONV_NOTHING_KNOWN,
    CONV_NOT_TURNED,    /* rows of heads are as published, and should be permuted */
    CONV_TURNED,        /* they are permuted once more than they should be */
    CONV_ONE_MISSING,   /* 1 was not added */
    CONV_ONE_ADDED,     /* 1 was added once more than it should be */
    CONV_ROUNDED_TWICE, /* through another type before */
    CONV_SCALED,
    CONV_TRANSPOSED,
    CONV_OTHER_TENSOR,
    CONV_OTHER_EXPERTS, /* matrices of the same tensor */
    CONV_ZERO,
    CONV_OVERFLOW, /* right, but beyond the type's range */
    CONV_N_LOOKS
};

/** A tensor that is not as it should be. */
struct conv_tensor {
    enum conv_outcome outcome;
    const struct gguf_tensor *found, *expected; /* of the file, of the folder; NULL: missing */
    const char *name;
    enum conv_rule rule;
    struct conv_sums sums; /* of CONV_DIFFERS */
    enum conv_look look;
    const struct gguf_tensor *other; /* of the folder: CONV_OTHER_TENSOR */
    enum gguf_type through;          /* CONV_ROUNDED_TWICE */
    double factor;                   /* CONV_SCALED */
    size_t n_matrices_wrong;         /* of a stack; 0 elsewhere */
    size_t matrix, other_matrix;     /* CONV_OTHER_EXPERTS: the first of them, and whose it is */
    bool exchanged;                  /* all of them, in pairs */
};

enum conv_kind {
    CONV_HPARAM,
    CONV_TOKEN,  /* what makes and names tokens */
    CONV_PROMPT, /* what the chat templates make of a conversation */
    CONV_N_KINDS
};

enum { CONV_KEY_BYTES = 96, CONV_VALUE_BYTES = 160 };

/** Something else that differs. Texts are printable. */
struct conv_key {
    enum conv_kind kind;
    char key[CONV_KEY_BYTES];
    char expected[CONV_VALUE_BYTES], found[CONV_VALUE_BYTES];
};

enum { CONV_NOTES = 8, CONV_NOTE_BYTES = 256 };

struct conv_result {
    struct conv_tensor *tensors; /* [n_tensors]: those that differ, in the file's order */
    size_t n_tensors, tensor_capacity;
    struct conv_key *keys; /* [n_keys]: what else differs */
    size_t n_keys, key_capacity;
    size_t n_compared, n_exact; /* pairs of tensors, and those with an exact rule */
    size_t n_matrices;          /* those of several rows */
    size_t n_unrelated;         /* of these, without any correlation and known mistake */
    size_t n_quantised;         /* of these, that the folder has quantised, */
    size_t n_lossless;          /* and those of them that hold all its values */
    size_t n_beyond;            /* blocks after the layers, which the folder's view has not */
    size_t n_hparams, n_tokens; /* that were compared */
    size_t n_prompts, n_prompts_differ; /* conversations that one of both or both rendered */
    size_t n_prompts_refused;           /* those that both templates refuse */
    size_t n_prompts_unknown; /* those that one has, of which it is not known what Jinja makes */
    char prompts_why[CONV_VALUE_BYTES]; /* the first reason of one of the latter; else of these */
    char notes[CONV_NOTES][CONV_NOTE_BYTES]; /* [n_notes]: no differences */
    size_t n_notes;
    struct status_kept kept; /* what comparing keys failed with */
};

struct conv_options {
    struct gguf_file *file, *folder;
    const struct gguf_file *tokens; /* with the folder's keys tokenizer.*; NULL: not compared */
    unsigned n_threads;             /* 0: as many as processors */
    const atomic_bool *cancel;      /* NULL: nothing cancels */
    void (*progress)(void *user, double fraction); /* NULL: nobody is told */
    void *user;
};

/**
 * Compare everything. out: zero-initialised; release with conv_result_free, also after a failure.
 * The same for any number of threads.
 * Fails: STATUS_CANCELLED, STATUS_MEMORY; what the folder's hyper-parameters fail with.
 */
enum status conv_compare(struct conv_result *out, const struct conv_options *options,
                         struct status_why *why);
/**
 * Compare the tokenizers and the prompts alone: tensors and hyper-parameters may be another
 * model's. The result, and what it fails with, are as conv_compare has them.
 */
enum status conv_compare_tokenizers(struct conv_result *out, const struct conv_options *options,
                                    struct status_why *why);
void conv_result_free(struct conv_result *result);

/** Whether anything differs. */
bool conv_result_differs(const struct conv_result *result);
/** Whether most matrices have nothing in common with the folder's. */
bool conv_result_unrelated(const struct conv_result *result);

/** A tensor, and another of the same shape that it should be a version of. */
struct conv_version {
    const struct gguf_file *file, *of_file;
    const struct gguf_tensor *tensor, *of;
    bool is;
};
/**
 * Fill `is`: by the limits that matrices of types with blocks keep, where one side has blocks and
 * the other one has not; else by correlation and slope alone. Tables of whole numbers pass.
 * Fails: STATUS_CANCELLED, STATUS_MEMORY.
 */
enum status conv_check_versions(struct conv_version *versions, size_t n, unsigned n_threads,
                                const atomic_bool *cancel, struct status_why *why);

enum { CONV_SENTENCE_BYTES = 1024 };
/** The verdict in a sentence; file, folder: what they are called. */
const char *conv_sentence(char out[CONV_SENTENCE_BYTES], const struct conv_result *result,
                          const char *file, const char *folder);
/** What a tensor looks like, in words: "rows of heads are not permuted"; "" where nothing fits. */
const char *conv_describe(char out[CONV_VALUE_BYTES], const struct conv_tensor *tensor);
/** One word each, for documents: "differs", "rounded_twice". */
const char *conv_outcome_name(enum conv_outcome outcome);
const char *conv_look_name(enum conv_look look);
const char *conv_rule_name(enum conv_rule rule);
const char *conv_kind_name(enum conv_kind kind);

#endif

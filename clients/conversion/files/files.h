/** Two GGUF files, key by key and tensor by tensor: what differs, how far, and what that means. */
#ifndef CONVERSION_FILES_FILES_H
#define CONVERSION_FILES_FILES_H

#include "clients/conversion/conversion.h"

enum conv_pairing {
    CONV_SAME,        /* type, shape and every byte */
    CONV_OTHER_BYTES, /* of one type and shape */
    CONV_OTHER_TYPE,
    CONV_OTHER_SHAPE,
    CONV_ONLY_A,
    CONV_ONLY_B,
    CONV_N_PAIRINGS
};
/** One word, for documents: "values". */
const char *conv_pairing_name(enum conv_pairing pairing);

/** A tensor of two files. */
struct conv_both {
    enum conv_pairing pairing;
    const struct gguf_tensor *a, *b;    /* NULL: that file has none */
    uint64_t n_blocks, n_blocks_differ; /* of one type and shape; of types that store rows
                                         * together, blocks of a bundle */
    uint64_t n_bytes, n_bytes_differ;   /* the same in bytes */
    bool judged;                        /* sums are of values: the shape is one, and both types
                                         * can be decoded */
    bool version;                       /* b is as near to a as versions of one matrix are */
    uint64_t n_finite_once;             /* values that are finite in one of the files only */
    uint64_t n_rows_far, first_row_far; /* rows beyond the bound for one row, and the first of them,
                                         * which alone make no matrix of blocks another one */
    struct conv_sums sums;              /* of b, a being what is expected */
    bool has_base;                      /* the base has it with this shape */
    struct conv_sums base[2];           /* of a and of b, the base being expected */
};

/** A key that one file lacks, or whose value differs. */
struct conv_both_key {
    const struct gguf_kv *a, *b; /* NULL: that file has none */
    bool read;                   /* a reader computes with it: not general.*, quantize.*, ... */
};

/** What two files are to each other. */
enum conv_kin {
    CONV_KIN_SAME,     /* all tensors and keys */
    CONV_KIN_METADATA, /* all but keys that nothing is computed from */
    CONV_KIN_KEYS,     /* all tensors, and keys that are read differ */
    CONV_KIN_COMPILER, /* types and nearly all blocks */
    CONV_KIN_MATRIX,   /* types; values are as near as two quantisations of one matrix */
    CONV_KIN_RECIPE,   /* values are as near, types are others */
    CONV_KIN_WEIGHTS,  /* names and shapes; values are further apart than their types explain */
    CONV_KIN_NONE,     /* shapes, names, or values that have nothing in common */
    CONV_N_KINS
};
/** One word, for documents: "metadata". */
const char *conv_kin_name(enum conv_kin kin);

/** Zero-initialise; release with conv_files_free, also after a failure. */
struct conv_files {
    struct conv_both *tensors; /* [n_tensors]: those of A in its order, then those of B alone */
    size_t n_tensors, n[CONV_N_PAIRINGS];
    struct conv_both_key *keys; /* [n_keys]: those that differ, likewise */
    size_t n_keys, n_keys_read;
    uint64_t n_bytes, n_bytes_differ;   /* of tensors of one type and shape */
    uint64_t n_blocks, n_blocks_differ; /* the same in blocks */
    uint64_t n_bytes_of_differing;      /* of these, of tensors that are not the same */
    size_t n_far;                   /* tensors of one shape that are no versions of each other */
    size_t n_matrices, n_unrelated; /* matrices of one shape; those without any correlation */
    double error;         /* of B from A over all values that differ, relative; 0: none do */
    double base_error[2]; /* of A and B from the base, over the same; NaN: there is none */
    enum conv_kin kin;
};

struct conv_files_options {
    const struct gguf_file *a, *b, *base; /* base NULL: there is none */
    unsigned n_threads;                   /* 0: as many as processors */
    const atomic_bool *cancel;            /* NULL: nothing cancels */
    void (*progress)(void *user, double fraction);
    void *user;
};

/** Compare. The same for any number of threads. Fails: STATUS_CANCELLED, STATUS_MEMORY. */
enum status conv_files_compare(struct conv_files *out, const struct conv_files_options *options,
                               struct status_why *why);
void conv_files_free(struct conv_files *files);

/** The verdict in a sentence; a, b: what the files are called. */
const char *conv_files_sentence(char out[CONV_SENTENCE_BYTES], const struct conv_files *files,
                                const char *a, const char *b);

#endif

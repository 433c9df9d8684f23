/** What assay info tells of a file, gathered once and printed as text or as JSON. */
#ifndef CLI_INSPECT_INFO_H
#define CLI_INSPECT_INFO_H

#include "eval/identity.h"
#include "gguf/gguf.h"
#include "model/forward/forward.h"

/** All tensors of one type together. */
struct cli_type_total {
    const struct gguf_type_info *type;
    uint32_t type_id; /* of the first of them; types that nobody knows are counted together */
    bool several_ids;
    uint64_t n_tensors, n_elements, n_bytes;
    uint64_t n_unsized; /* tensors whose bytes are not known */
};

/** A hyper-parameter: as the file says, or what its absence means. */
struct cli_hparam {
    const char *label;        /* for people */
    const char *name;         /* in JSON */
    const struct gguf_kv *kv; /* NULL: absent */
    int64_t derived;          /* where kv is NULL: what follows from others; 0: nothing */
};

struct cli_info {
    const struct gguf_file *file;
    char model_id[BASE_HEX];
    uint64_t file_bytes; /* of all parts */
    struct cli_type_total total;
    struct cli_type_total types[GGUF_MAX_LISTED]; /* the first n_types, in order of first use */
    size_t n_types;
    struct cli_hparam *hparams; /* [n_hparams], those that are known */
    size_t n_hparams;
    struct gguf_quantisation quantisation;
    struct status_why unsupported; /* why the file cannot be evaluated; empty: types do not tell */
    struct model_hparams model;    /* of a known architecture */
    bool has_cache;                /* it is one, so `model` says what a cache keeps */
    size_t n_context;              /* tokens of a cache that is asked for; 0: of none */
};

/** Read all but n_context; *out has that, and else zeros. Fails: STATUS_MEMORY, STATUS_IO. */
enum status cli_info_gather(struct cli_info *out, struct gguf_file *file, struct status_why *why);
void cli_info_free(struct cli_info *info);

/** 8 * bytes / weights; 0 for no weights, NaN where bytes are not known. */
double cli_bits_per_weight(const struct cli_type_total *total);
/** A tensor alone. */
struct cli_type_total cli_total_of(const struct gguf_tensor *tensor);

/** Bytes of a cache for so many tokens whose keys and values have 16 bits. */
double cli_info_cache_bytes(const struct cli_info *info, size_t n_tokens);

/** Print to standard output. tensors: also one line per tensor. */
void cli_info_print(const struct cli_info *info, bool tensors);

/**
 * Write as JSON. tensors: also one object per tensor.
 * Fails: STATUS_MEMORY, STATUS_IO.
 */
enum status cli_info_write_json(const struct cli_info *info, bool tensors, struct status_why *why);

#endif

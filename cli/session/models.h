/** Models as the options open them. */
#ifndef CLI_SESSION_MODELS_H
#define CLI_SESSION_MODELS_H

#include "base/text/labels.h"
#include "cli/options/common.h"
#include "cli/session/shards.h"
#include "eval/identity.h"

enum { CLI_CALLED_BYTES = BASE_LABEL_BYTES + DOC_KV_LABEL };

/** An open model and what results name it by. Zero-initialise; release with cli_model_close(). */
struct cli_model {
    const char *path;  /* as it was given; borrowed */
    const char *label; /* of --label; borrowed; NULL: it has none */
    struct model *model;
    char id[BASE_HEX];
    char sha256[BASE_HEX];          /* where it was asked for, else "" */
    struct cli_shards *shards;      /* its files, where tensors may be replaced; else NULL */
    const struct cli_swaps *swaps;  /* tensors of other files in it; NULL: none */
    struct model_kv_scales *scales; /* of types that calibrate themselves; NULL: none yet */
    bool lent;                      /* the model is the host's, and stays open */
    char
        kv[DOC_KV_LABEL]; /* what keys, values and inputs of products are rounded to, how many
                           * experts a token goes through where that was chosen: follows its name */
    char called[CLI_CALLED_BYTES]; /* in lines: see cli_models_label; else "" */
};

/**
 * Open a model, or take the one that the host has of this path; remarks of one that is opened go
 * to standard error.
 * llama_compat: as llama.cpp reads it. The settings have one pair of cache types at most.
 */
enum status cli_model_open(struct cli_model *out, const char *path,
                           const struct cli_evaluate_settings *settings, bool llama_compat,
                           struct status_why *why);
/**
 * A base that is a published folder has the tokens of the first GGUF file that it is compared
 * with, unless a person says otherwise; a note says so.   load->tokenizer is then one of models'.
 */
void cli_tokens_take(struct cli_model_settings *load, const char *base,
                     const struct cli_list *models);
/** One that is open once more. m must be closed later, and its tensors not be replaced. */
enum status cli_model_share(struct cli_model *out, const struct cli_model *m,
                            struct status_why *why);
/**
 * Round its keys and values to the i-th pair of the settings' types, and name what its inputs of
 * products are rounded to. A lent one has been.
 */
enum status cli_model_round(struct cli_model *model, const struct cli_evaluate_settings *settings,
                            size_t i, struct status_why *why);
void cli_model_close(struct cli_model *model);
/**
 * Give open models the names that lines and tables have: the label, or what its path makes beside
 * the others' (base/text/labels.h); with what keys and values are rounded to.
 * base: the path of a model that has a row beside them; NULL: there is none.
 * Fails: STATUS_MEMORY.
 */
enum status cli_models_label(struct cli_model *models, size_t n, const char *base,
                             struct status_why *why);

/** What a model's tensors add up to, with those that took another's place. */
struct cli_model_size {
    uint64_t n_weights, n_bytes;
    double bits_per_weight;
};
struct cli_model_size cli_model_size(const struct cli_model *model);

#endif

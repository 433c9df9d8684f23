/** What an evaluation is set up from: backend, models and a text, as the options say. */
#ifndef CLI_SESSION_SETUP_H
#define CLI_SESSION_SETUP_H

#include "base/file/atomic_file.h"
#include "cli/options/common.h"
#include "cli/session/device.h"
#include "eval/input/text.h"
#include "eval/input/window.h"
#include "eval/reference/identity.h"
#include "eval/run/memory.h"
#include "kernels/cpu/cpu.h"
#include "model/model.h"

/** An open model and what results name it by. Zero-initialise; release with cli_model_close(). */
struct cli_model {
    const char *path; /* as it was given; borrowed */
    struct model *model;
    char id[BASE_HEX];
    char sha256[BASE_HEX]; /* where it was asked for, else "" */
};

/** What the tables of options cannot say: one text, and no more. Fail: STATUS_USAGE. */
enum status cli_text_check(const struct cli_text_settings *settings, struct status_why *why);
enum status cli_model_check(const struct cli_model_settings *settings, struct status_why *why);

/** What computes. Zero-initialise. */
struct cli_backends {
    struct kern_backend *items[CLI_MAX_DEVICES];
    size_t n;
};

/**
 * A backend for each of the devices that are asked for; release with cli_backends_close, also after
 * a failure. What was asked for in vain is said on standard error.
 * Fails: STATUS_USAGE (also several devices that would not give the same bits), STATUS_MEMORY,
 * STATUS_DEVICE.
 */
enum status cli_backends_open(struct cli_backends *out, const struct cli_machine_settings *settings,
                              struct status_why *why);
void cli_backends_close(struct cli_backends *backends);

/**
 * Open a model; its remarks go to standard error.
 * llama_compat: as llama.cpp reads it.   hash: also compute the SHA-256 of all of its bytes.
 */
enum status cli_model_open(struct cli_model *out, const char *path,
                           const struct cli_model_settings *settings, bool llama_compat, bool hash,
                           struct status_why *why);
void cli_model_close(struct cli_model *model);

/** What the tensors of a model's file add up to. */
struct cli_model_size {
    uint64_t n_weights, n_bytes;
    double bits_per_weight;
};
struct cli_model_size cli_model_size(const struct cli_model *model);

/** Read the text of -f, -bf or -p, one of which is given. Fails: as eval_text_read. */
enum status cli_text_open(struct eval_text *out, const struct cli_text_settings *settings,
                          struct status_why *why);

/** The default protocol's windows as the options choose them; n_ctx 0: -c was not given. */
struct eval_plan_options cli_plan_options(const struct cli_window_settings *settings,
                                          const struct model_tokenizer *tokenizer);

/** Print the line that says how much memory a run will take at most. */
void cli_print_memory(const struct eval_memory *memory, size_t n_models);

/** Print each line of `lines` as a note on standard error. */
void cli_print_remarks(const char *lines);

/**
 * Create *out where a path is given (NULL: no file is wanted). Where that is standard output, what
 * is printed from now on goes to standard error. Fails: as base_file_create.
 */
enum status cli_output_create(struct base_file **out, const char *path, struct status_why *why);

/**
 * Commit a file where `filled`, the outcome of writing into it, is STATUS_OK, else abandon it.
 * *file is NULL afterwards. Returns the first failure.
 */
enum status cli_output_commit(struct base_file **file, enum status filled, struct status_why *why);

#endif

/** A run of assay kld from end to end: what the parts of the command share. */
#ifndef CLI_KLD_KLD_EVALUATOR_H
#define CLI_KLD_KLD_EVALUATOR_H

#include "cli/evaluate.h"
#include "cli/input/windows.h"
#include "cli/output/metrics.h"
#include "cli/output/passage.h"
#include "cli/reference/base.h"
#include "cli/server/connection.h"
#include "eval/metrics.h"

struct cli_kld_settings {
    const char *base;
    const char *base_url; /* a server; NULL: `base` is given */
    struct cli_connection_settings connection;
    struct cli_list models; /* the candidates */
    struct cli_list labels; /* of them; or none */
    struct cli_text_settings text;
    /* evaluation */
    struct cli_window_settings windows; /* n_ctx -1: what is usual, or what the base has */
    bool js, llama_compat;
    /* As llama-perplexity takes the windows of a file: all, and the file's where -c is larger. */
    bool as_peer;
    int64_t unused_chunks; /* the --chunks that is therefore not used; -1: not given */
    /* output */
    struct base_buffer *rows; /* for the table of several contexts; NULL: none is wanted */
    bool new_type; /* the table that is asked of a new quantisation type, and nothing else */
    bool full;     /* several models have the lines of a single one, too */
    bool markdown; /* the table, in Markdown, and no lines */
    const char *per_token_file;
    struct cli_divergence_settings divergence;
    struct cli_evaluate_settings evaluate;
};

/* A candidate while the run goes on. */
struct cli_kld_seen {
    double kld; /* sum over the tokens of reported windows */
    size_t n_tokens;
};

enum { CLI_KLD_FIGURES = 4096 };

struct cli_kld {
    struct cli_evaluation e;
    const struct cli_kld_settings *settings;
    size_t n_candidates;
    struct cli_base base;
    struct cli_model *candidates;    /* [n_candidates] */
    struct cli_kld_seen *seen;       /* [n_candidates] */
    char figures[CLI_KLD_FIGURES];   /* for the line of progress: each candidate's divergence */
    const struct model **models;     /* [n_candidates] of the candidates */
    struct eval_kld_result *results; /* [n_candidates] */
    struct eval_groups *groups;      /* [n_candidates] of documents */
    size_t n_common;                 /* tokens that base and candidates have in common */
    bool is_cut;                     /* one of them has more, which are not compared */
    struct cli_windows windows;
    struct eval_kld_tally tally; /* of the windows that were reported; one candidate only */
};

/** As if no option had been given. settings: a struct cli_kld_settings. */
void cli_kld_defaults(void *settings);

/** The whole of assay kld with these settings, and of assay perplexity --kl-divergence. */
enum status cli_kld_run(const struct cli_kld_settings *settings, struct status_why *why);

/* What another command on the same models is made of: its own evaluator over a struct cli_kld. */

extern const struct cli_evaluator cli_kld_evaluator;
/* Functions of it that others have, too. */
enum status cli_kld_verdict(const void *self, struct status_why *why);
void cli_kld_close(void *self);
enum status cli_kld_outlook(const void *self, struct cli_outlook *out, struct status_why *why);
/** Open the base and settings->models, checked against each other. */
enum status cli_kld_open_models(struct cli_kld *k, struct status_why *why);
/**
 * The windows, for the first n_candidates of the candidates, and what the run takes. Any of them
 * may have been closed before, and their order changed (of both lists).
 */
enum status cli_kld_make_units(struct cli_kld *k, struct status_why *why);

/** Note where base and candidate hold different biases, norms, heads and the like. (optional.c) */
void cli_kld_remark_optional(struct cli_kld *k);

/* vocabulary.c: a vocabulary that is padded or enlarged beside the other. */

/** Whether candidate i can be compared with the base, and with those before it; a note says where
 * only common tokens are. Fails: STATUS_FORMAT, STATUS_USAGE (--strict), STATUS_MEMORY. */
enum status cli_kld_check_vocabulary(struct cli_kld *k, size_t i, struct status_why *why);
/** Refuse a text with a token that not all of them have. Fails: STATUS_FORMAT. */
enum status cli_kld_check_ids(const struct cli_kld *k, struct status_why *why);
/** Whether candidate i or the base has tokens that the other lacks. */
bool cli_kld_has_others(const struct cli_kld *k, size_t i);
/** The object `vocabulary` of a candidate, and its lines; nothing where neither has others. */
void cli_kld_add_vocabulary(struct base_json *json, cJSON *parent, const struct cli_kld *k,
                            size_t i);
void cli_kld_print_vocabulary(const struct cli_kld *k, size_t i);

/**
 * The model whose vocabulary names the tokens: the base, or, of a file of rows, the first; where a
 * candidate has more tokens, that one, so that a text with such a token shows it.
 */
const struct model *cli_kld_reader(const struct cli_kld *k);

/** One of the worst tokens of a result. */
struct cli_passage cli_kld_passage(const struct cli_kld *k, const struct eval_scored_token *place);

/** The tables of candidate i and the base. */
struct eval_kld_tables cli_kld_tables(const struct cli_kld *k, size_t i);

/**
 * About how far the rounding of products may have moved the mean divergence of candidate i, in
 * nats; NaN: that is not known.
 */
double cli_kld_rounding(const struct cli_kld *k, size_t i);

/** The figures of candidate i. */
struct cli_metrics cli_kld_metrics(const struct cli_kld *k, size_t i);

/** Whether candidates have blocks of lines, as llama-perplexity prints them. */
bool cli_kld_in_blocks(const struct cli_kld *k);
/** Whether the worst tokens and the curves are printed: of a table they are in its --json alone. */
bool cli_kld_has_lists(const struct cli_kld *k);

/**
 * Print the table of the result, as the settings have it: fitted to the terminal, what assay table
 * prints of the document, or that of --new-type (kld_json.c).
 * Fails: STATUS_MEMORY.
 */
enum status cli_kld_print_table(const struct cli_kld *k, struct status_why *why);

extern const struct cli_lines cli_kld_lines;     /* kld_text.c */
extern const struct cli_members cli_kld_members; /* kld_json.c */

#endif

/**
 * Choice tasks: several endings of one beginning, scored by how likely the model finds them. Each
 * choice is a token sequence. docs/tasks.md says which tokens count for which score.
 */
#ifndef EVAL_UNITS_CHOICE_H
#define EVAL_UNITS_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/moments.h"
#include "eval/tasks/dataset.h"
#include "eval/units/sequences.h"
#include "model/tokenizer/tokenizer.h"

/** One choice of a task: its whole sequence, with BOS if the vocabulary asks for it. */
struct eval_choice {
    struct model_tokens tokens;
    size_t first, end;   /* tokens whose mean log-probability is llama-perplexity's score */
    size_t continuation; /* tokens from here to the last are the harness's continuation */
    size_t n_chars;      /* characters that the harness divides by */
    double *log_probs;   /* [tokens.n] of each token after those before it; 0 until evaluated,
                            and for tokens before the task's first_scored */
};

struct eval_choice_task {
    size_t index; /* in the file, from 0 */
    size_t line;  /* in the file, from 1; 0: none */
    struct eval_choice *choices;
    size_t n_choices, answer;
    size_t n_right;      /* EVAL_MC2: so many of the first choices are right; else 0 */
    size_t n_common;     /* tokens that all sequences begin with; each has at least one more */
    size_t first_scored; /* tokens from here on have log-probabilities; at least 1 */
    bool misread;        /* see eval_compat_misreads */
    bool done;
};

/** Tasks as units of a run. Zero-initialise; release with eval_choices_free. */
struct eval_choices {
    struct eval_sequences sequences; /* a group for each task; an entry of the journal is the
                                        log_probs of each choice */
    struct eval_choice_task *tasks;
    size_t n;
    size_t n_tokens_max;                      /* of the longest sequence */
    size_t first;                             /* the task of item 0 of a run */
    struct eval_choice_extension *extensions; /* of each item, see choice_units.c */
};

struct eval_choices_options {
    enum eval_choice_kind kind;
    size_t n_tasks; /* draw as many; 0 or more than there are: all */
    bool llama_compat, parse_special;
};

/**
 * Draw tasks and turn them into sequences, in the order in which they are reported.
 * Fails: as eval_draw and model_tokenize; STATUS_FORMAT (a choice with nothing to score: no
 *        token before its only one; the sentence names task and line).
 */
enum status eval_choices_make(struct eval_choices *out, const struct eval_dataset *dataset,
                              const struct eval_choices_options *options,
                              const struct model_tokenizer *tokenizer, struct status_why *why);
void eval_choices_free(struct eval_choices *choices);

/* choice_units.c: for eval_choices_make and eval_choices_free. */

void eval_choice_units_open(struct eval_choices *choices);
void eval_choice_units_close(struct eval_choices *choices);

/** The scores of one choice; natural logarithms. */
struct eval_choice_score {
    double mean;     /* llama-perplexity's: mean log-probability of tokens first .. end */
    double sum;      /* the harness's acc: sum over the continuation */
    double per_char; /* the harness's acc_norm: sum / n_chars */
};
struct eval_choice_score eval_choice_score(const struct eval_choice *choice);

#define EVAL_NO_CHOICE SIZE_MAX

/**
 * What a task's scores choose: the index of the best choice by each, the first of equals. Scores
 * that are not all finite choose none: EVAL_NO_CHOICE, which no answer is.
 */
struct eval_choice_winners {
    size_t mean, sum, per_char;
    bool finite; /* all scores are */
};
/** last_wins: the last of equals wins, for the mean alone. */
struct eval_choice_winners eval_choice_winners(const struct eval_choice_task *task, bool last_wins);

/**
 * EVAL_MC2: the share that the right choices have of the probability of all: sums of exp(sum) over
 * each, as TruthfulQA defines it. NaN: a score is not finite.
 */
double eval_choice_mass(const struct eval_choice_task *task);

/** A running count: add finished tasks in order. Zero-initialise. */
struct eval_choice_tally {
    size_t n, n_choices;
    size_t n_right, n_right_sum, n_right_per_char;
    double chance; /* sum of 1 / choices of a task; of EVAL_MC2, of the share that is right */
    struct base_moments mass; /* EVAL_MC2: see eval_choice_mass; of tasks with finite scores */
    size_t n_nonfinite;
    size_t first_nonfinite; /* index of the task in the file */
};
struct eval_choice_winners eval_choice_tally_add(struct eval_choice_tally *tally,
                                                 const struct eval_choice_task *task,
                                                 bool last_wins);

/** Standard error of a share f of n: sqrt(f (1 - f) / (n - 1)); 0 for n < 2. */
double eval_share_error(double f, size_t n);
/** The 95 % interval of a share f of n after Wilson (1927). */
void eval_share_interval(double f, size_t n, double *low, double *high);

#endif

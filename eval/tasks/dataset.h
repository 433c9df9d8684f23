/**
 * Files of choice tasks: HellaSwag, Winogrande and multiple choice in llama-perplexity's formats
 * and as they are published. Files are hostile: each size and label is checked; an error names the
 * line, or the task where a file has no lines. Strings point into the bytes, which must outlive
 * them.
 */
#ifndef EVAL_TASKS_DATASET_H
#define EVAL_TASKS_DATASET_H

#include <stdbool.h>
#include <stddef.h>

#include "gguf/file.h"

enum eval_choice_kind { EVAL_HELLASWAG, EVAL_WINOGRANDE, EVAL_MULTIPLE_CHOICE, EVAL_MC2 };

/** One task. */
struct eval_question {
    size_t line;              /* where it begins, from 1; 0 where the file has no lines */
    struct base_string text;  /* the context, the question, or the sentence before its blank */
    struct base_string after; /* Winogrande: the sentence after its blank; else empty */
    size_t first_choice, n_choices; /* in the data set's choices; n_choices is 2 or more */
    size_t answer;                  /* index of the right choice, from 0 */
    size_t n_right;                 /* EVAL_MC2: the first of them are right; else 0 */
};

/** Zero-initialise; release with eval_dataset_free. */
struct eval_dataset {
    struct eval_question *questions; /* in the order of the file */
    size_t n_questions, questions_capacity;
    struct base_string *choices;
    size_t n_choices, choices_capacity;
};

/**
 * HellaSwag: six lines a task: context, index of the right ending (0 to 3), four endings. Carriage
 * returns before newlines, and empty lines at the end, do not count.
 * Fails: STATUS_FORMAT (lines not a multiple of six, an index out of range, an empty line),
 *        STATUS_MEMORY.
 */
enum status eval_dataset_hellaswag(struct eval_dataset *out, const char *bytes, size_t n_bytes,
                                   struct status_why *why);

/**
 * Winogrande: CSV (RFC 4180) with index, sentence, choice 1, choice 2, answer 1 or 2. The first `_`
 * of the sentence is the blank. Empty lines are skipped, and a first row that names its last field
 * "answer"; the last row needs no newline.
 * bytes: fields are unquoted in place.   llama_compat: see eval_compat_winogrande_next.
 * Fails: STATUS_FORMAT (not five fields, a quote that does not end, no blank, an answer that is
 *        neither 1 nor 2), STATUS_MEMORY.
 */
enum status eval_dataset_winogrande(struct eval_dataset *out, char *bytes, size_t n_bytes,
                                    bool llama_compat, struct status_why *why);

/**
 * Multiple choice: llama-perplexity's binary file. u32 n; u32 position of each task from the
 * file's beginning; a task: string question, mc1, mc2; string: u32 length, bytes; mc: u32 count,
 * strings, i32 labels[count]. mc1 has one right answer and is the one kept.
 * Fails: STATUS_FORMAT (anything that leaves the file, tasks that overlap, fewer than two
 *        answers, an empty answer, not exactly one label of 1), STATUS_MEMORY.
 */
enum status eval_dataset_multiple_choice(struct eval_dataset *out, const char *bytes,
                                         size_t n_bytes, struct status_why *why);

/**
 * Multiple choice: MMLU's CSV, question, four choices, a letter from A to D, with or without a
 * head. bytes: fields are unquoted in place. Fails: STATUS_FORMAT (not six fields, an empty one,
 * another letter), STATUS_MEMORY.
 */
enum status eval_dataset_mmlu(struct eval_dataset *out, char *bytes, size_t n_bytes,
                              struct status_why *why);

/** Whether a file has JSON: it begins with an object, alone or in a list, or one that is too long
 * to find out. */
bool eval_dataset_is_json(const char *bytes, size_t n_bytes);

/** How a file is read. */
struct eval_dataset_options {
    enum eval_choice_kind kind;
    bool llama_compat;         /* see eval_compat_winogrande_next */
    struct base_string labels; /* a line for each task, with its right choice; .data NULL: none */
};

/**
 * Tasks as JSON objects, in lines or in a list; other members are passed over. docs/tasks.md has
 * the members of each form. An answer may be a string.
 * bytes: strings are unescaped in place.
 * Fails: STATUS_FORMAT (no object, a member that is missing or empty, an answer that is none;
 * labels for tasks that have their own, or not as many as tasks), STATUS_MEMORY.
 */
enum status eval_dataset_json(struct eval_dataset *out, const struct eval_dataset_options *options,
                              char *bytes, size_t n_bytes, struct status_why *why);

/** Any of these, by what the bytes are. Fails: as they do; STATUS_USAGE (labels without JSON). */
enum status eval_dataset_read(struct eval_dataset *out, const struct eval_dataset_options *options,
                              char *bytes, size_t n_bytes, struct status_why *why);

/**
 * Whether a text begins with tasks of a kind whose files are texts: HellaSwag, Winogrande or
 * multiple choice. kind: out. What cannot be read, for whatever reason, is none. Fails:
 * STATUS_MEMORY (for a copy of the beginning).
 */
enum status eval_dataset_recognise(enum eval_choice_kind *kind, bool *is, const char *bytes,
                                   size_t n_bytes, struct status_why *why);

/** Append a question without choices, or a choice of the last question. For the loaders. */
enum status eval_dataset_add(struct eval_dataset *dataset, const struct eval_question *question,
                             struct status_why *why);
enum status eval_dataset_add_choice(struct eval_dataset *dataset, struct base_string choice,
                                    struct status_why *why);

/** Text and `after` from a sentence with a blank `_`. Fails: STATUS_FORMAT, with question->line. */
enum status eval_question_split(struct eval_question *question, struct base_string sentence,
                                struct status_why *why);
/**
 * The end of a loader that returns `status`: no tasks are a failure, and a failed data set is
 * freed. lines: what the text has none of then.
 */
enum status eval_dataset_end(struct eval_dataset *dataset, enum status status, const char *lines,
                             struct status_why *why);

/** NULL is not allowed; a zero-initialised or failed object is. */
void eval_dataset_free(struct eval_dataset *dataset);

#endif

#include "eval/units/choice.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/buffer.h"
#include "eval/input/draw.h"
#include "eval/llama_compat.h"
#include "eval/units/texts.h"

/* Winogrande: where both choices leave more tokens than this, the choice itself is not scored. */
enum { MIN_TRAILING = 3 };

/** The making of a task. */
struct maker {
    const struct eval_dataset *dataset;
    const struct eval_choices_options *options;
    struct eval_tokenizing how;
    int32_t front; /* BOS where the vocabulary asks for it, else -1 */
    struct base_buffer joined;
};

/** Characters, at least 1: bytes that do not continue one, without blanks at both ends. */
static size_t count_chars(struct base_string s)
{
    size_t n = 0;
    while (s.n_bytes && memchr(" \t\r\n", s.data[s.n_bytes - 1], 4))
        s.n_bytes--;
    while (s.n_bytes && memchr(" \t\r\n", *s.data, 4))
        s.data++, s.n_bytes--;
    for (size_t i = 0; i < s.n_bytes; i++)
        n += ((unsigned char)s.data[i] & 0xC0) != 0x80;
    return n ? n : 1;
}

/**
 * Fill in a choice: its sequence; `first` for now is the number of its tokens that are those of
 * the text up to where the continuation begins.
 */
static enum status make_choice(struct maker *m, const struct eval_question *q,
                               struct base_string text, struct eval_choice *c,
                               struct status_why *why)
{
    bool winogrande = m->options->kind == EVAL_WINOGRANDE;
    const struct base_string texts[] = {q->text, {" ", !winogrande}, text, q->after};
    enum status status = eval_join(&m->joined, texts, sizeof texts / sizeof *texts, why);
    if (status)
        return status;
    struct base_string whole = {m->joined.data, m->joined.n};
    struct base_string begin = {whole.data, q->text.n_bytes + (winogrande ? text.n_bytes : 0)};
    struct model_tokens before = {0};
    status = eval_tokenize(&m->how, m->front, whole, &c->tokens, why);
    if (!status)
        status = eval_tokenize(&m->how, m->front, begin, &before, why);
    if (!status) {
        c->first = m->options->llama_compat ? eval_compat_first_scored(before.n, c->tokens.n)
                                            : model_tokens_common(&before, &c->tokens);
        c->continuation = base_max(1, base_min(before.n, c->tokens.n));
        c->n_chars = count_chars(winogrande ? q->after : text);
        status = base_array_new(c->log_probs, c->tokens.n, "scores of a task", why);
    }
    free(before.ids);
    return status;
}

/** Which tokens of each sequence count. */
static void lay_scores(const struct maker *m, struct eval_choice_task *t)
{
    bool winogrande = m->options->kind == EVAL_WINOGRANDE, after_choice = winogrande;
    for (size_t i = 0; i < t->n_choices; i++) {
        const struct eval_choice *c = &t->choices[i];
        if (c->tokens.n - t->n_common <= MIN_TRAILING || c->first >= c->tokens.n)
            after_choice = false;
    }
    t->first_scored = t->n_common;
    for (size_t i = 0; i < t->n_choices; i++) {
        struct eval_choice *c = &t->choices[i];
        c->first = base_max(1, after_choice ? c->first : t->n_common);
        c->end = c->tokens.n;
        if (winogrande && c->end - c->first > 1)
            c->end--;
        t->first_scored = base_min(t->first_scored, base_min(c->first, c->continuation));
    }
    t->first_scored = base_max(1, t->first_scored);
    t->misread =
        m->options->llama_compat && winogrande && eval_compat_misreads(after_choice, t->n_common);
}

static enum status make_task(struct maker *m, size_t index, struct eval_choice_task *t,
                             struct status_why *why)
{
    const struct eval_question *q = &m->dataset->questions[index];
    *t = (struct eval_choice_task){
        .index = index, .line = q->line, .answer = q->answer, .n_right = q->n_right};
    if (base_array_new(t->choices, q->n_choices, "choices", why))
        return STATUS_MEMORY;
    t->n_choices = q->n_choices;
    enum status status = STATUS_OK;
    t->n_common = SIZE_MAX;
    for (size_t i = 0; i < t->n_choices && !status; i++) {
        struct eval_choice *c = &t->choices[i];
        status = make_choice(m, q, m->dataset->choices[q->first_choice + i], c, why);
        if (!status && c->tokens.n < 2)
            status = status_fail(why, STATUS_FORMAT,
                                 "task %zu (line %zu): choice %zu has %zu token%s, which leaves "
                                 "none to predict; expected 2 or more",
                                 index, q->line, i, c->tokens.n, status_plural(c->tokens.n));
        if (!status)
            t->n_common = base_min(
                t->n_common,
                base_min(model_tokens_common(&t->choices[0].tokens, &c->tokens), c->tokens.n - 1));
    }
    if (!status)
        lay_scores(m, t);
    return status;
}

enum status eval_choices_make(struct eval_choices *out, const struct eval_dataset *dataset,
                              const struct eval_choices_options *options,
                              const struct model_tokenizer *tokenizer, struct status_why *why)
{
    *out = (struct eval_choices){0};
    bool all = options->n_tasks == 0 || options->n_tasks >= dataset->n_questions;
    size_t n = all ? dataset->n_questions : options->n_tasks;
    struct maker m = {.dataset = dataset,
                      .options = options,
                      .how = {tokenizer, options->parse_special},
                      .front = model_adds_bos(tokenizer) ? model_token_bos(tokenizer) : -1};
    size_t *drawn = NULL;
    enum status status = STATUS_OK;
    if (options->kind == EVAL_HELLASWAG || !all)
        status =
            eval_draw(&drawn, dataset->n_questions, n,
                      options->kind == EVAL_HELLASWAG ? EVAL_DRAW_UNIFORM : EVAL_DRAW_SCALED, why);
    if (!status)
        status = base_array_new(out->tasks, n + 1, "tasks", why);
    for (; out->n < n && !status; out->n++) {
        struct eval_choice_task *t = &out->tasks[out->n];
        status = make_task(&m, drawn ? drawn[out->n] : out->n, t, why);
        for (size_t i = 0; i < t->n_choices && !status; i++)
            out->n_tokens_max = base_max(out->n_tokens_max, t->choices[i].tokens.n);
    }
    free(drawn);
    base_buffer_free(&m.joined);
    if (status)
        eval_choices_free(out);
    else
        eval_choice_units_open(out);
    return status;
}

void eval_choices_free(struct eval_choices *choices)
{
    eval_choice_units_close(choices);
    for (size_t k = 0; k < choices->n; k++) {
        struct eval_choice_task *t = &choices->tasks[k];
        for (size_t i = 0; i < t->n_choices; i++) {
            free(t->choices[i].tokens.ids);
            free(t->choices[i].log_probs);
        }
        free(t->choices);
    }
    free(choices->tasks);
    *choices = (struct eval_choices){0};
}

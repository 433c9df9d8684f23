#include "eval/run/resume.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/** Numbers that the tables have of a window; they hold them, so the sum does not overflow. */
static size_t n_cells(const struct eval_resume *r)
{
    size_t n = 0;
    for (size_t h = 0; h < r->n_tables; h++)
        n += r->tables[h].n_columns * r->tables[h].n_scored;
    return n;
}

/** Numbers of a window's record. */
static size_t n_values(const struct eval_resume *r)
{
    return n_cells(r) + (r->sink ? r->sink->n_state : 0);
}

static double *allocate(size_t n, struct status_why *why)
{
    double *values = malloc((n ? n : 1) * sizeof *values);
    if (!values)
        status_fail(why, STATUS_MEMORY, "no memory for a record of %zu numbers", n);
    return values;
}

/** Copy between window w of the tables and the values of its record. */
static void copy(const struct eval_resume *r, size_t w, double *values, bool into_tables)
{
    for (size_t h = 0; h < r->n_tables; h++) {
        size_t n = r->tables[h].n_scored;
        for (size_t c = 0; c < r->tables[h].n_columns; c++, values += n) {
            double *row = eval_table_row(&r->tables[h], (enum eval_column)c, w);
            if (into_tables)
                memcpy(row, values, n * sizeof *row);
            else
                memcpy(values, row, n * sizeof *row);
        }
    }
}

/** Read window w from the journal. found: it is there, and the sink has its part of it. */
static enum status take_window(const struct eval_resume *r, size_t w, double *values, bool *found,
                               struct status_why *why)
{
    enum status status = eval_journal_read(r->journal, values, n_values(r), found, why);
    if (status != STATUS_OK || !*found)
        return status;
    if (r->sink)
        status = r->sink->restore(r->sink->user, w, values + n_cells(r), found, why);
    if (status != STATUS_OK || !*found) {
        eval_journal_unread(r->journal);
        return status;
    }
    copy(r, w, values, true);
    for (size_t h = 0; h < r->n_tables; h++)
        r->tables[h].done[w] = true;
    return STATUS_OK;
}

enum status eval_resume_windows(const struct eval_resume *r, struct status_why *why)
{
    double *values = allocate(n_values(r), why);
    enum status status = values ? STATUS_OK : STATUS_MEMORY;
    bool found = true;
    for (size_t w = 0; w < r->tables[0].n_windows && found && status == STATUS_OK; w++)
        status = take_window(r, w, values, &found, why);
    free(values);
    return status;
}

static enum status keep_window(const struct eval_resume *r, size_t w, double *values,
                               struct status_why *why)
{
    assert(eval_journal_n(r->journal) == w);
    copy(r, w, values, false);
    enum status status = STATUS_OK;
    if (r->sink)
        status = r->sink->save(r->sink->user, w, values + n_cells(r), why);
    return status == STATUS_OK ? eval_journal_append(r->journal, values, n_values(r), why) : status;
}

enum status eval_resume_keep(const struct eval_resume *r, size_t first, size_t n_windows,
                             struct status_why *why)
{
    double *values = allocate(n_values(r), why);
    enum status status = values ? STATUS_OK : STATUS_MEMORY;
    if (status == STATUS_OK && r->sink && r->sink->sync)
        status = r->sink->sync(r->sink->user, why);
    for (size_t w = first; w < first + n_windows && status == STATUS_OK; w++)
        status = keep_window(r, w, values, why);
    free(values);
    return status;
}

static size_t n_task_values(const struct eval_choice_task *task)
{
    size_t n = 0;
    for (size_t i = 0; i < task->n_choices; i++)
        n += task->choices[i].tokens.n;
    return n;
}

static enum status resume_task(struct eval_journal *journal, struct eval_choice_task *task,
                               struct status_why *why)
{
    size_t n = n_task_values(task);
    double *values = allocate(n, why);
    if (!values)
        return STATUS_MEMORY;
    enum status status = eval_journal_read(journal, values, n, &task->done, why);
    const double *from = values;
    for (size_t i = 0; i < task->n_choices && task->done; i++) {
        struct eval_choice *choice = &task->choices[i];
        memcpy(choice->log_probs, from, choice->tokens.n * sizeof *from);
        from += choice->tokens.n;
    }
    free(values);
    return status;
}

enum status eval_resume_tasks(struct eval_journal *journal, struct eval_choices *choices,
                              struct status_why *why)
{
    enum status status = STATUS_OK;
    bool found = true;
    for (size_t k = 0; k < choices->n && found && status == STATUS_OK; k++) {
        status = resume_task(journal, &choices->tasks[k], why);
        found = choices->tasks[k].done;
    }
    return status;
}

enum status eval_resume_keep_task(struct eval_journal *journal, const struct eval_choice_task *task,
                                  struct status_why *why)
{
    size_t n = n_task_values(task);
    double *values = allocate(n, why), *to = values;
    if (!values)
        return STATUS_MEMORY;
    for (size_t i = 0; i < task->n_choices; i++) {
        const struct eval_choice *choice = &task->choices[i];
        memcpy(to, choice->log_probs, choice->tokens.n * sizeof *to);
        to += choice->tokens.n;
    }
    enum status status = eval_journal_append(journal, values, n, why);
    free(values);
    return status;
}

static enum status resume_request(struct eval_journal *journal, struct eval_request_score *score,
                                  bool *found, struct status_why *why)
{
    size_t n = score->n_scored;
    double *values = allocate(n + 1, why);
    if (!values)
        return STATUS_MEMORY;
    enum status status = eval_journal_read(journal, values, n + 1, found, why);
    if (*found) {
        memcpy(score->log_probs, values, n * sizeof *values);
        score->greedy = values[n] == 1;
    }
    free(values);
    return status;
}

enum status eval_resume_requests(struct eval_journal *journal, struct eval_request_scores *scores,
                                 struct status_why *why)
{
    enum status status = STATUS_OK;
    bool found = true;
    for (size_t k = 0; k < scores->n && found && status == STATUS_OK; k++) {
        found = false;
        status = resume_request(journal, &scores->items[k], &found, why);
    }
    eval_request_scores_skip(scores, (size_t)eval_journal_n(journal));
    return status;
}

enum status eval_resume_keep_requests(struct eval_journal *journal,
                                      const struct eval_request_scores *scores,
                                      struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t k = (size_t)eval_journal_n(journal);
         k < scores->n && scores->items[k].n_left == 0 && status == STATUS_OK; k++) {
        const struct eval_request_score *score = &scores->items[k];
        double *values = allocate(score->n_scored + 1, why);
        if (!values)
            return STATUS_MEMORY;
        memcpy(values, score->log_probs, score->n_scored * sizeof *values);
        values[score->n_scored] = score->greedy;
        status = eval_journal_append(journal, values, score->n_scored + 1, why);
        free(values);
    }
    return status;
}

enum status eval_resume_end(struct eval_journal *journal, enum status run_status,
                            struct status_why *why)
{
    if (!journal)
        return run_status;
    enum status status = eval_journal_sync(journal, run_status == STATUS_OK ? why : NULL);
    return run_status == STATUS_OK ? status : run_status;
}

#include "clients/documents/report/words/ranking.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Whether both are results of one model, which was evaluated alike: on tasks, on the same ones. */
static bool is_again(const struct doc_ranking *f, const struct doc_scoreboard_run *a,
                     const struct doc_scoreboard_run *b)
{
    struct base_field x = doc_root(doc_of(a->from)), y = doc_root(doc_of(b->from));
    if (!doc_same_model(a, b))
        return false;
    return !(f->board->of_tasks ? doc_equal(x, y, "kind text.sha256 result", NULL, NULL)
                                : doc_computed_alike(x, y, NULL));
}

/* Whether a result is in the ranking already, by at least as many windows. */
static bool is_told(struct doc_ranking *f, const struct doc_scoreboard_run *run)
{
    for (size_t i = 0; i < f->n; i++) {
        if (!is_again(f, f->runs[i], run))
            continue;
        if (f->runs[i]->n_windows >= run->n_windows)
            return true;
        f->n--;
        memmove(f->runs + i, f->runs + i + 1, (f->n - i) * sizeof *f->runs);
        memmove(f->values + i, f->values + i + 1, (f->n - i) * sizeof *f->values);
    }
    return false;
}

static void add(struct doc_ranking *f, const struct doc_scoreboard_run *run, double value)
{
    if (!isfinite(value) || is_told(f, run))
        return;
    if (f->n == DOC_MOST_JUDGED) {
        f->n_left_out++;
        return;
    }
    size_t at = f->n++;
    for (; at > 0 && f->values[at - 1] > value; at--) {
        f->values[at] = f->values[at - 1];
        f->runs[at] = f->runs[at - 1];
    }
    f->values[at] = value;
    f->runs[at] = run;
}

/* Whether the paired test finds a difference from the best one. */
static void test_one(struct doc_ranking *f, size_t i, struct doc_compare *c)
{
    struct status_why why = {""};
    enum status status = doc_report_compare(c, f->report, f->runs[0], f->runs[i], &why);
    f->report->no_memory |= status == STATUS_MEMORY;
    f->found[i] = DOC_UNTESTED;
    if (status) {
        f->why = *f->why.text ? f->why : why;
    } else if (f->board->of_tasks) {
        f->found[i] = c->tests[0].exact_p < 0.05 ? DOC_WORSE : DOC_EQUAL;
    } else {
        const char *key = f->metric == DOC_METRIC_KLD ? "kld" : "nll";
        for (size_t k = 0; k < c->n_figures; k++)
            if (strcmp(c->figures[k].key, key) == 0)
                f->found[i] = c->values[k].low > 0 ? DOC_WORSE : DOC_EQUAL;
    }
}

static void test_all(struct doc_ranking *f)
{
    struct doc_compare *c = malloc(sizeof *c);
    f->report->no_memory |= !c;
    for (size_t i = 1; c && i < f->n; i++)
        test_one(f, i, c);
    free(c);
}

size_t doc_ranking_count(const struct doc_ranking *f, enum doc_found found)
{
    size_t n = 0;
    for (size_t i = 1; i < f->n; i++)
        n += f->found[i] == found;
    return n;
}

const struct doc_scoreboard_run *doc_ranking_instead_of(const struct doc_ranking *f, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (!doc_same_model(f->runs[k], f->runs[i]) &&
            doc_run_beats(f->runs[k], f->values[k], f->runs[i], f->values[i]))
            return f->runs[k];
    return NULL;
}

bool doc_rank_texts(struct doc_ranking *f, const struct doc_scoreboard_run *head, size_t metric)
{
    f->metric = metric;
    for (size_t i = 0; i < f->board->n; i++) {
        const struct doc_scoreboard_run *run = &f->board->runs[i];
        if (!run->values[metric].known || !doc_runs_comparable(head, run, metric))
            continue;
        if (metric == DOC_METRIC_PPL && doc_run_diverges(run))
            return false; /* judged by its divergence */
        if (metric == DOC_METRIC_PPL || run->number != SIZE_MAX)
            add(f, run, run->values[metric].value);
    }
    test_all(f);
    return f->n > 0;
}

size_t doc_rank_tasks(struct doc_ranking *f, size_t first)
{
    const struct doc_scoreboard *board = f->board;
    size_t n = 0;
    for (; first + n < board->n && !strcmp(board->runs[first + n].task, board->runs[first].task);
         n++)
        add(f, &board->runs[first + n],
            -100 * base_field_real_or_null(board->runs[first + n].from, "result.score.share"));
    test_all(f);
    return n;
}

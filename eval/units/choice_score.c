/* From the log-probabilities of tokens to scores, choices and shares. */
#include <math.h>

#include "eval/units/choice.h"

struct eval_choice_score eval_choice_score(const struct eval_choice *c)
{
    struct eval_choice_score s = {0};
    for (size_t i = c->first; i < c->end; i++)
        s.mean += c->log_probs[i];
    s.mean /= (double)(c->end - c->first);
    for (size_t i = c->continuation; i < c->tokens.n; i++)
        s.sum += c->log_probs[i];
    s.per_char = s.sum / (double)c->n_chars;
    return s;
}

/** Choice i wins over the best before it; `ties`: also as an equal. */
static void compete(size_t *winner, double *best, double score, size_t i, bool ties)
{
    if (i == 0 || score > *best || (ties && score == *best)) {
        *winner = i;
        *best = score;
    }
}

struct eval_choice_winners eval_choice_winners(const struct eval_choice_task *task, bool last_wins)
{
    struct eval_choice_winners w = {.finite = true};
    struct eval_choice_score best = {0};
    for (size_t i = 0; i < task->n_choices; i++) {
        struct eval_choice_score s = eval_choice_score(&task->choices[i]);
        w.finite = w.finite && isfinite(s.mean) && isfinite(s.sum);
        compete(&w.mean, &best.mean, s.mean, i, last_wins);
        compete(&w.sum, &best.sum, s.sum, i, false);
        compete(&w.per_char, &best.per_char, s.per_char, i, false);
    }
    if (!w.finite)
        w.mean = w.sum = w.per_char = EVAL_NO_CHOICE;
    return w;
}

double eval_choice_mass(const struct eval_choice_task *task)
{
    double largest = -(double)INFINITY, right = 0, all = 0;
    for (size_t i = 0; i < task->n_choices; i++)
        largest = fmax(largest, eval_choice_score(&task->choices[i]).sum);
    for (size_t i = 0; i < task->n_choices; i++) {
        double p = exp(eval_choice_score(&task->choices[i]).sum - largest);
        right += i < task->n_right ? p : 0;
        all += p;
    }
    return right / all;
}

/** Whether a winner is a right choice. */
static bool is_right(const struct eval_choice_task *task, size_t winner)
{
    return task->n_right ? winner < task->n_right : winner == task->answer;
}

struct eval_choice_winners eval_choice_tally_add(struct eval_choice_tally *tally,
                                                 const struct eval_choice_task *task,
                                                 bool last_wins)
{
    struct eval_choice_winners w = eval_choice_winners(task, last_wins);
    if (!w.finite && tally->n_nonfinite++ == 0)
        tally->first_nonfinite = task->index;
    tally->n++;
    tally->n_choices += task->n_choices;
    tally->chance += (double)(task->n_right ? task->n_right : 1) / (double)task->n_choices;
    tally->n_right += is_right(task, w.mean);
    tally->n_right_sum += is_right(task, w.sum);
    tally->n_right_per_char += is_right(task, w.per_char);
    if (task->n_right && w.finite)
        base_moments_add(&tally->mass, eval_choice_mass(task));
    return w;
}

double eval_share_error(double f, size_t n)
{
    return n > 1 ? sqrt(f * (1 - f) / (double)(n - 1)) : 0;
}

void eval_share_interval(double f, size_t n, double *low, double *high)
{
    const double z = 1.95996398454;
    double z2 = z * z, m = (double)n;
    double middle = f + z2 / (2 * m);
    double half = z * sqrt(f * (1 - f) / m + z2 / (4 * m * m));
    *low = fmax(0, (middle - half) / (1 + z2 / m));
    *high = fmin(1, (middle + half) / (1 + z2 / m));
}

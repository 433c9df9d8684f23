#include "probe/verdict.h"

#include <math.h>
#include <stdio.h>

/*
 * Means of squares over dozens of positions scatter by some ten per cent; a single position may be
 * off by several times the mean. docs/server-check.md has how often correct servers came near.
 */
static const double most_mean = PROBE_MOST_MEAN, most_single = 6, most_fine_single = 8;
/** What one other expert in a stretch of positions may make. */
static const double excused_rms = 0.5;
/** Two tokens that are nearer than this may well change places. */
static const double clear_flip = 0.1;

const char *probe_path_name(enum probe_path path)
{
    static const char *const names[PROBE_N_PATHS] = {"fresh", "cached", "together", "written",
                                                     "recorded"};
    return names[path];
}

const char *probe_outcome_name(enum probe_outcome outcome)
{
    static const char *const names[] = {"agrees", "agrees coarsely", "differs", "no result"};
    return names[outcome];
}

const char *probe_finding_name(enum probe_finding finding)
{
    static const char *const names[PROBE_N_FINDINGS] = {
#define PROBE_FINDING(name, word) word,
        PROBE_FINDINGS(PROBE_FINDING)
#undef PROBE_FINDING
    };
    return names[finding];
}

/** What is left of the RMS without the error of numbers with few digits. */
static double without_steps(const struct probe_judged *item)
{
    double step = probe_step(item->log_q, item->n), rms = item->figures.rms;
    return sqrt(fmax(rms * rms - step * step / 3, 0)); /* all errors up to it are as likely */
}

/** Set figures, and the means over what is compared: what is not excused, or else everything. */
static void measure(struct probe_verdict *v, struct probe_judged *items, size_t n)
{
    double squares = 0, fine = 0, coarse = 0, bound = 0;
    v->n_excused = 0;
    for (size_t i = 0; i < n; i++) {
        items[i].figures = probe_figures_of(items[i].log_q, items[i].log_p, items[i].n);
        items[i].figures.rms = without_steps(&items[i]);
        v->n_excused += items[i].excused;
        v->n_flips += items[i].figures.flip > 0;
        v->n_clear_flips += items[i].figures.flip > clear_flip;
    }
    bool all = v->n_excused * 2 > n;
    size_t used = 0;
    for (size_t i = 0; i < n; i++)
        if (all || !items[i].excused) {
            squares += items[i].figures.rms * items[i].figures.rms;
            fine += items[i].fine * items[i].fine;
            coarse += items[i].coarse * items[i].coarse;
            bound += items[i].figures.bound;
            used++;
        }
    double count = used ? (double)used : 1;
    v->rms = sqrt(squares / count);
    v->fine = sqrt(fine / count);
    v->coarse = sqrt(coarse / count);
    v->bound = bound / count;
}

/** After near ties some lists are honestly far off: they count where more than one in eight is. */
static void excuse_few(struct probe_verdict *v, struct probe_judged *items, size_t n)
{
    size_t n_far = 0;
    for (size_t i = 0; i < n; i++)
        n_far += items[i].excused && items[i].bad;
    if (n_far * 8 > v->n_excused)
        return;
    v->n_bad -= n_far;
    for (size_t i = 0; i < n; i++)
        items[i].bad = items[i].bad && !items[i].excused;
}

static void find_bad(struct probe_verdict *v, struct probe_judged *items, size_t n)
{
    v->n_bad = 0;
    for (size_t i = 0; i < n; i++) {
        double limit = most_single * fmax(items[i].coarse, v->coarse);
        items[i].limit = items[i].excused ? fmax(limit, excused_rms) : limit;
        items[i].bad = !(items[i].figures.rms <= items[i].limit);
        v->n_bad += items[i].bad;
    }
    excuse_few(v, items, n);
}

static bool is_fine(const struct probe_verdict *v, const struct probe_judged *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!items[i].excused &&
            !(items[i].figures.rms <= most_fine_single * fmax(items[i].fine, v->fine)))
            return false;
    return v->rms <= most_mean * v->fine;
}

static void say_agreement(struct probe_verdict *v, const struct probe_judged *items, size_t n)
{
    v->finding = PROBE_NOTHING;
    v->outcome = is_fine(v, items, n) ? PROBE_AGREES : PROBE_COARSELY;
    if (v->outcome == PROBE_AGREES)
        snprintf(v->sentence, sizeof v->sentence,
                 "The server computes what the file says: its log-probabilities are off by %.1e, "
                 "and a correct program of its kind by %.1e.",
                 v->rms, v->fine);
    else
        snprintf(v->sentence, sizeof v->sentence,
                 "The server computes what the file says, coarsely: its log-probabilities are off "
                 "by %.1e, as arithmetic of 8 bits or bfloat16 makes them (%.1e), and more than "
                 "expected of its kind (%.1e).",
                 v->rms, v->coarse, v->fine);
}

void probe_judge(struct probe_verdict *out, struct probe_judged *items, size_t n, size_t n_spoilt,
                 const struct probe_alternative *alternatives, size_t n_alternatives)
{
    *out = (struct probe_verdict){
        .n = n, .slope = (double)NAN, .temperature = (double)NAN, .outcome = PROBE_NO_RESULT};
    if (n < PROBE_LEAST_LISTS || n_spoilt * 4 > n + n_spoilt) {
        snprintf(out->sentence, sizeof out->sentence,
                 "No result: %zu lists of log-probabilities could be used, and %zu could not; at "
                 "least %d are needed, and at least three quarters of all.",
                 n, n_spoilt, PROBE_LEAST_LISTS);
        return;
    }
    measure(out, items, n);
    find_bad(out, items, n);
    out->outcome = PROBE_DIFFERS;
    bool large = out->n_bad > 0 || !(out->rms <= most_mean * out->coarse);
    if (probe_judge_sums(out, items, n) ||
        probe_judge_alternatives(out, items, n, alternatives, large ? n_alternatives : 0) ||
        probe_judge_temperature(out, items, n))
        return;
    /* A file that is named may be told from the model's even where arithmetic would hide it. */
    for (size_t i = 0; !large && i < n_alternatives; i++)
        if (alternatives[i].finding == PROBE_OTHER_FILE &&
            probe_judge_alternatives(out, items, n, &alternatives[i], 1))
            return;
    if (large)
        probe_judge_groups(out, items, n);
    else
        say_agreement(out, items, n);
}

#include "clients/probe/verdict.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A single position may be off by several times the mean. */
static const double most_mean = PROBE_MOST_MEAN, most_single = 6, most_fine_single = 8;
/* Below this share of the yardstick it does not matter in which directions a server is off. */
static const double next_to_nothing = 0.25;

#define MEASURED_ON " (llama-server of October 2026 on a CPU; SmolLM2 135M, Gemma 3 270M)"
/**
 * Limits of the flat size: how many times the yardsticks right servers are off, and how much that
 * scatters where there are 40 lists of 100 tokens; and how much the correlation does, below what is
 * expected, and below that and what the size is above its yardstick.
 */
static const struct {
    double most, scatter, most_coarse, correlation_scatter, apart_scatter;
    const char *error_rates;
} limits[] = {
    [PROBE_NOT_KNOWN] = {3, 0, 3, (double)NAN, (double)NAN,
                         "not measured for this kind of server and file"},
    [PROBE_KNOWN_QUANTISED] = {1, 0.2, 2, 0.1, 0.2,
                               "with 24 lists of 100 tokens, of 57 runs with the right file all "
                               "agreed (0 to 6 % would not), and of 78 with another file, layer or "
                               "temperature none did (0 to 5 %)" MEASURED_ON
                               ". 1 % in one tensor is within the noise, and not told"},
    [PROBE_KNOWN_HALF] = {1, 0.2, 2, (double)NAN, (double)NAN,
                          "with 24 lists of 100 tokens, of 16 runs with the right file none "
                          "differed (0 to 21 %; two with an 8-bit cache agreed coarsely), and of "
                          "19 with another file, layer, tensor or temperature none agreed (0 to 18 "
                          "%)" MEASURED_ON},
    [PROBE_KNOWN_IK] = {1, 0.2, 2, 0.1, 0.2,
                        "with 24 lists of 100 tokens, of 9 runs with the right file none differed "
                        "but for the tail of its lists, and 5 (all but those of Q8_0) had another "
                        "arithmetic or another file; of 14 with another file or layer 1 computed "
                        "what the file says (Gemma's Q4_K_M for its Q8_0; the server's own words "
                        "tell it), 5 had another arithmetic or another file, 8 differed "
                        "(ik_llama.cpp's server of August 2026 on a CPU; SmolLM2 135M, Gemma 3 "
                        "270M)"},
};
/** A quantised cache under 16-bit weights makes at least this share of its yardstick. */
static const double least_of_a_cache = 0.25;
/** Rates of longer lists hold for these no more. */
static const double short_list = 50;
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

/** What is left of a size, given by its square, without the error of numbers with few digits. */
static double without_steps(const struct probe_judged *item, double squares)
{
    double step = probe_step(item->log_q, item->n);
    return sqrt(fmax(squares - step * step / 3, 0)); /* all errors up to it are as likely */
}

const char *probe_error_rates(const struct probe_verdict *v)
{
    bool is_short = v->n_tokens_each < short_list;
    if (v->known == PROBE_KNOWN_IK && (v->small_cache || is_short))
        return "not measured for this kind of server with such a cache or such lists";
    if (v->small_cache && v->known != PROBE_NOT_KNOWN)
        return "over a cache of 4 bits, with 24 lists of 100 tokens, of 6 runs with the right file "
               "all agreed, and of 8 with another one 5 did, too: what such a cache makes hides "
               "it" MEASURED_ON;
    if (v->known == PROBE_KNOWN_QUANTISED && is_short)
        return "with lists of 20 tokens, 24 of them, of 5 runs with the right file all agreed, and "
               "of 15 with another one 4 did, too; with lists of 5 tokens 8 did" MEASURED_ON
               ". Longer lists tell more";
    return limits[v->known].error_rates;
}

/** Rounding flattens a list, too: the simulation says by how much. */
static double slope_of(const struct probe_judged *item)
{
    if (!item->simulated)
        return item->figures.slope;
    return item->figures.slope - probe_figures_of(item->simulated, item->log_p, item->n).slope + 1;
}

static uint64_t stretch_of(const struct probe_judged *item)
{
    return (uint64_t)item->window << 40 | probe_stretch(item->position);
}

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/** How many of the sorted values are less. */
static size_t first_at(const uint64_t *values, size_t n, uint64_t value)
{
    size_t from = 0, to = n;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (values[middle] < value)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/** Set weights. Without memory every list counts. Returns how many stretches there are. */
static double weigh(struct probe_judged *items, size_t n, bool all)
{
    uint64_t *stretches = malloc((n + 1) * sizeof *stretches);
    size_t used = 0, count = 0;
    for (size_t i = 0; i < n; i++) {
        items[i].weight = all || !items[i].excused;
        if (stretches && items[i].weight > 0)
            stretches[used++] = stretch_of(&items[i]);
        count += items[i].weight > 0;
    }
    if (!stretches)
        return (double)count;
    qsort(stretches, used, sizeof *stretches, by_value);
    count = 0;
    for (size_t i = 0; i < used; i++)
        count += i == 0 || stretches[i] != stretches[i - 1];
    for (size_t i = 0; i < n; i++) {
        uint64_t mine = stretch_of(&items[i]);
        size_t from = first_at(stretches, used, mine), to = first_at(stretches, used, mine + 1);
        if (items[i].weight > 0)
            items[i].weight = 1 / (double)(to - from);
    }
    free(stretches);
    return (double)count;
}

/** With less a server is not the simulated engine, whatever its size. */
static double least_correlation_of_any(const struct probe_verdict *v)
{
    return v->correlation_fine - limits[v->known].correlation_scatter * v->scatter;
}

/** Flat sizes and the correlation of what is compared, and their limits with so many lists. */
static void measure_flat(struct probe_verdict *v, struct probe_judged *items, size_t n, bool all)
{
    double off = 0, fine = 0, coarse = 0, tokens = 0, correlations = 0, correlated = 0;
    double expected = 0;
    double count = fmax(weigh(items, n, all), 1);
    for (size_t i = 0; i < n; i++) {
        struct probe_judged *j = &items[i];
        j->flat = without_steps(j, probe_flat(j->log_q, j->log_q, j->log_p, j->n));
        j->correlation = probe_correlation(j->log_q, j->simulated, j->log_p, j->n);
        if (j->weight == 0)
            continue;
        tokens += j->weight * (double)j->n;
        off += j->weight * j->flat * j->flat;
        fine += j->weight * j->flat_fine * j->flat_fine;
        coarse += j->weight * j->flat_coarse * j->flat_coarse;
        if (isnan(j->correlation) || isnan(j->correlation_fine))
            continue;
        correlations += j->weight * j->correlation;
        expected += j->weight * j->correlation_fine;
        correlated += j->weight;
    }
    v->n_stretches = (size_t)count;
    v->n_tokens_each = tokens / count;
    v->flat = sqrt(off / count);
    v->flat_fine = sqrt(fine / count);
    v->flat_coarse = sqrt(coarse / count);
    v->correlation = correlated > 0 ? correlations / correlated : (double)NAN;
    v->correlation_fine = correlated > 0 ? expected / correlated : (double)NAN;
    /* Measured with 5 to 100 tokens and 20 to 400 lists. */
    v->scatter = fmax(sqrt(40 / count) * pow(100 * count / fmax(tokens, 1), 0.25), 1);
    v->most = limits[v->known].most + limits[v->known].scatter * v->scatter;
    v->least_correlation =
        fmax(least_correlation_of_any(v), v->correlation_fine + v->flat / v->flat_fine - 1 -
                                              limits[v->known].apart_scatter * v->scatter);
}

/** Set figures, and the means over what is compared: what is not excused, or else everything. */
static void measure(struct probe_verdict *v, struct probe_judged *items, size_t n)
{
    double squares = 0, fine = 0, coarse = 0, bound = 0;
    v->n_excused = 0;
    for (size_t i = 0; i < n; i++) {
        items[i].figures = probe_figures_of(items[i].log_q, items[i].log_p, items[i].n);
        double rms = items[i].figures.rms;
        items[i].figures.rms = without_steps(&items[i], rms * rms);
        items[i].slope = slope_of(&items[i]);
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
    measure_flat(v, items, n, all);
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

/** Off in other directions than the simulated engine, and by enough for that to matter. */
static bool is_unlike(const struct probe_verdict *v, double least_correlation)
{
    return v->correlation < least_correlation && v->flat > next_to_nothing * v->flat_fine;
}

static bool is_fine(const struct probe_verdict *v, const struct probe_judged *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!items[i].excused &&
            !(items[i].figures.rms <= most_fine_single * fmax(items[i].fine, v->fine)))
            return false;
    return v->flat <= v->most * v->flat_fine;
}

/** More than the coarsest arithmetic makes, or more than the kind's in other directions. */
static bool is_large_flat(const struct probe_verdict *v)
{
    bool own = isnan(v->flat_coarse);
    return !own &&
           (!(v->flat <= limits[v->known].most_coarse * v->flat_coarse) ||
            (!(v->flat <= v->most * v->flat_fine) && is_unlike(v, least_correlation_of_any(v))));
}

static bool is_large(const struct probe_verdict *v)
{
    return v->n_bad > 0 || !(v->rms <= most_mean * v->coarse) || is_large_flat(v);
}

/** Sums of lists that are off hide nothing of the flat size: it tells of the file. */
static void say_rest(struct probe_verdict *v)
{
    size_t n = strlen(v->sentence);
    double times = v->flat_fine > 0 ? v->flat / v->flat_fine : 0;
    bool small = v->flat <= v->most * v->flat_fine && !is_unlike(v, v->least_correlation);
    snprintf(v->sentence + n, sizeof v->sentence - n,
             " Without the lists' sums it %s: off by %.2f times what a correct program of its kind "
             "is (at most %.2f).",
             is_large_flat(v) ? "does not compute what the file says either"
             : small          ? "computes what the file says"
                              : "has another arithmetic, or serves another file",
             times, v->most);
}

/** More than 16-bit weights make, and less than the coarse arithmetic that there is of them. */
static bool is_between(const struct probe_verdict *v)
{
    return v->known == PROBE_KNOWN_HALF && v->flat > v->most * v->flat_fine &&
           v->flat < least_of_a_cache * v->flat_coarse;
}

static void say_agreement(struct probe_verdict *v, const struct probe_judged *items, size_t n)
{
    double times = v->flat_fine > 0 ? v->flat / v->flat_fine : 0;
    double coarse = isnan(v->flat_coarse) ? v->coarse : v->flat_coarse;
    bool small = is_fine(v, items, n), unlike = is_unlike(v, v->least_correlation);
    char directions[96] = "";
    if (!isnan(v->correlation) && !(times < next_to_nothing))
        snprintf(directions, sizeof directions,
                 ", and the correlation with its rounding is %.2f (at least %.2f)", v->correlation,
                 v->least_correlation);
    else if (is_between(v))
        snprintf(directions, sizeof directions, ", and a quantised cache makes %.1e", coarse);
    v->outcome = small && !unlike ? PROBE_AGREES : PROBE_COARSELY;
    v->finding = unlike || is_between(v) ? PROBE_OTHER_ARITHMETIC : PROBE_NOTHING;
    if (v->outcome == PROBE_AGREES)
        snprintf(v->sentence, sizeof v->sentence,
                 "The server computes what the file says: its log-probabilities are off by %.1e, "
                 "%.2f times what a correct program of its kind is (at most %.2f)%s.",
                 v->flat, times, v->most, directions);
    else if (v->finding == PROBE_OTHER_ARITHMETIC)
        snprintf(v->sentence, sizeof v->sentence,
                 "The server has another arithmetic, or serves another file: its log-probabilities "
                 "are off by %.1e, %.2f times what a correct program of its kind is (at most "
                 "%.2f)%s. Is it another quantisation of it (--or FILE compares with one)?",
                 v->flat, times, v->most, directions);
    else
        snprintf(v->sentence, sizeof v->sentence,
                 "The server computes what the file says, coarsely: its log-probabilities are off "
                 "by %.1e, as a quantised cache or values of few bits make them (%.1e), and %.2f "
                 "times what is expected of its kind (%.1e)%s.",
                 v->flat, coarse, times, v->flat_fine, directions);
}

void probe_judge(struct probe_verdict *out, const struct probe_evidence *e)
{
    struct probe_judged *items = e->items;
    size_t n = e->n;
    *out = (struct probe_verdict){.n = n,
                                  .slope = (double)NAN,
                                  .slope_error = (double)NAN,
                                  .temperature = (double)NAN,
                                  .known = e->known,
                                  .small_cache = e->small_cache,
                                  .outcome = PROBE_NO_RESULT};
    if (n < PROBE_LEAST_LISTS || e->n_spoilt * 4 > n + e->n_spoilt) {
        snprintf(out->sentence, sizeof out->sentence,
                 "No result: %zu lists of log-probabilities could be used, and %zu could not; at "
                 "least %d are needed, and at least three quarters of all.",
                 n, e->n_spoilt, PROBE_LEAST_LISTS);
        return;
    }
    measure(out, items, n);
    find_bad(out, items, n);
    out->outcome = PROBE_DIFFERS;
    bool large = is_large(out);
    if (probe_judge_sums(out, items, n)) {
        if (out->finding == PROBE_TAIL_TWICE &&
            !probe_judge_alternatives(out, items, n, e->alternatives, e->n_alternatives))
            say_rest(out);
        return;
    }
    if (probe_judge_alternatives(out, items, n, e->alternatives, large ? e->n_alternatives : 0) ||
        probe_judge_temperature(out, items, n))
        return;
    /* A file that is named may be told from the model's even where arithmetic would hide it. */
    for (size_t i = 0; !large && i < e->n_alternatives; i++)
        if (e->alternatives[i].finding == PROBE_OTHER_FILE &&
            probe_judge_alternatives(out, items, n, &e->alternatives[i], 1))
            return;
    if (large)
        probe_judge_groups(out, items, n);
    else
        say_agreement(out, items, n);
}

#include "clients/probe/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "clients/probe/pass.h"

enum { MOST_CHANGES = 5 }; /* that explain lists, beside other files */

/** What is evaluated at work. */
struct work {
    const struct probe_material *m;
    struct probe_comparison *out;
    struct probe_ties *ties; /* [n_windows] */
    double *rounded;         /* of all entries: of a pass */
    double *simulated;       /* of all entries: of the simulated engine */
    enum probe_known known;
    struct probe_alternative *alternatives;
    double **alternative_values;
    size_t n_alternatives, n_steps, steps_done;
};

static void on_progress(void *user, size_t done, size_t total)
{
    const struct work *w = user;
    double at = (double)w->steps_done + (total ? (double)done / (double)total : 0);
    if (w->m->progress)
        w->m->progress(w->m->user, w->n_steps ? fmin(at / (double)w->n_steps, 1) : 0);
}

static void on_window(void *user)
{
    struct work *w = user;
    w->steps_done++;
}

/** A pass as the windows are, exact. */
static struct probe_pass pass_of(struct work *w, const struct model *model)
{
    return (struct probe_pass){.model = model,
                               .backend = w->m->backend,
                               .windows = w->m->windows,
                               .lists = w->m->lists,
                               .progress = on_progress,
                               .window_done = on_window,
                               .user = w};
}

/** What passes of a kind are off: the mean over passes, list by list. */
static enum status measure(struct work *w, enum probe_rounding rounding, bool coarse,
                           struct status_why *why)
{
    const struct probe_lists *l = w->m->lists;
    enum status status = STATUS_OK;
    double n = (double)w->m->n_passes;
    for (size_t pass = 0; pass < w->m->n_passes && !status; pass++) {
        struct probe_pass p = pass_of(w, w->m->model);
        p.rounding = rounding;
        p.seed = 1 + 64 * pass + (coarse ? 4096 : 0);
        p.ties = w->ties;
        status = probe_pass_run(&p, w->rounded, NULL, why);
        for (size_t i = 0; i < l->n && !status; i++) {
            const struct probe_sample *s = &l->items[i];
            struct probe_judged *j = &w->out->judged[i];
            const double *off = w->rounded + s->first, *exact = w->out->log_p + s->first;
            double rms = probe_residual(off, exact, s->n, 1, 0);
            *(coarse ? &j->coarse : &j->fine) += rms * rms / n;
            *(coarse ? &j->flat_coarse : &j->flat_fine) += probe_flat(off, off, exact, s->n) / n;
            if (!coarse)
                j->correlation_fine += probe_correlation(off, j->simulated, exact, s->n) / n;
        }
    }
    for (size_t i = 0; i < l->n; i++) {
        struct probe_judged *j = &w->out->judged[i];
        double *squares[] = {coarse ? &j->coarse : &j->fine,
                             coarse ? &j->flat_coarse : &j->flat_fine};
        for (size_t k = 0; k < 2; k++)
            *squares[k] = sqrt(fmax(*squares[k], 0));
    }
    return status;
}

/** Whether right servers of this kind were measured with such files. */
static enum probe_known known_of(const struct probe_material *m)
{
    const struct gguf_file *file = model_file(m->model);
    bool half = false, brain = false, ik = m->arithmetic == PROBE_LIKE_IK;
    if (!ik && m->arithmetic != PROBE_LIKE_LLAMA)
        return PROBE_NOT_KNOWN;
    for (size_t i = 0; i < gguf_n_tensors(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        if (t->type->block_elems > 1)
            return ik ? PROBE_KNOWN_IK : PROBE_KNOWN_QUANTISED;
        half = half || t->type_id == GGUF_TYPE_F16;
        brain = brain || t->type_id == GGUF_TYPE_BF16;
    }
    return half && !brain && !ik ? PROBE_KNOWN_HALF : PROBE_NOT_KNOWN;
}

static bool is_simulated(enum probe_known known)
{
    return known == PROBE_KNOWN_QUANTISED || known == PROBE_KNOWN_IK;
}

/** Whether a cache holds 4 bits, as those over which rates were measured. */
static bool is_small(struct model_kv_type type)
{
    return type.type == GGUF_TYPE_Q4_0 || type.type == GGUF_TYPE_Q4_1 ||
           type.type == GGUF_TYPE_IQ4_NL;
}

/** What the simulated engine says; without one for these products there is nothing of it. */
static enum status simulate(struct work *w, struct status_why *why)
{
    const struct probe_lists *l = w->m->lists;
    struct probe_pass p = pass_of(w, w->m->model);
    p.rounding = PROBE_SIMULATED;
    p.ties = w->ties;
    enum status status = probe_pass_run(&p, w->simulated, NULL, why);
    for (size_t i = 0; i < l->n && !status; i++)
        w->out->judged[i].simulated = w->simulated + l->items[i].first;
    return status == STATUS_UNSUPPORTED ? STATUS_OK : status;
}

static enum status add_alternative(struct work *w, enum probe_finding change,
                                   const struct probe_other *other, struct status_why *why)
{
    struct probe_alternative *a = &w->alternatives[w->n_alternatives];
    double **values = &w->alternative_values[w->n_alternatives];
    struct probe_pass p = pass_of(w, other ? other->model : w->m->model);
    p.change = other ? PROBE_NOTHING : change;
    if (base_array_new(*values, w->m->lists->n_entries + 1, "values", why))
        return STATUS_MEMORY;
    *a = (struct probe_alternative){change, other ? other->path : NULL, *values};
    w->n_alternatives++;
    return probe_pass_run(&p, *values, NULL, why);
}

static bool has_prompt_lists(const struct probe_lists *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (probe_is_of_prompt(l->items[i].length, l->items[i].position))
            return true;
    return false;
}

/** The files that are named; and where the lists depart, what else may have happened to them. */
static enum status find_alternatives(struct work *w, struct status_why *why)
{
    const struct model_tokenizer *t = model_tokenizer(w->m->model);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < w->m->n_others && !status; i++)
        status = add_alternative(w, PROBE_OTHER_FILE, &w->m->others[i], why);
    if (w->out->verdict.outcome != PROBE_DIFFERS)
        return status;
    w->n_steps += (3 + (has_prompt_lists(w->m->lists) ? 2 : 0)) * w->m->n_windows;
    if (!status && w->m->windows[0].has_bos)
        status = add_alternative(w, PROBE_NO_BOS, NULL, why);
    if (!status && model_token_bos(t) >= 0)
        status = add_alternative(w, PROBE_TWO_BOS, NULL, why);
    if (!status)
        status = add_alternative(w, PROBE_TOKEN_LESS, NULL, why);
    if (!has_prompt_lists(w->m->lists))
        return status;
    if (!status)
        status = add_alternative(w, PROBE_LISTS_AHEAD, NULL, why);
    return status ? status : add_alternative(w, PROBE_LISTS_BEHIND, NULL, why);
}

/** The yardsticks, and which lists follow a near tie. */
static enum status prepare(struct work *w, struct status_why *why)
{
    const struct probe_lists *l = w->m->lists;
    struct probe_pass exact = pass_of(w, w->m->model);
    bool gpu = w->m->arithmetic == PROBE_LIKE_GPU;
    for (size_t i = 0; i < l->n; i++) {
        const struct probe_sample *s = &l->items[i];
        w->out->judged[i] = (struct probe_judged){.window = s->window,
                                                  .length = s->length,
                                                  .position = s->position,
                                                  .path = s->path,
                                                  .repeated = s->repeated,
                                                  .log_q = l->log_q + s->first,
                                                  .log_p = w->out->log_p + s->first,
                                                  .n = s->n,
                                                  .first = s->first};
    }
    exact.ties = w->ties;
    enum status status = probe_pass_run(&exact, w->out->log_p, w->out->unlisted, why);
    if (!status && is_simulated(w->known))
        status = simulate(w, why);
    if (!status)
        status = measure(w, gpu ? PROBE_BFLOAT16 : PROBE_AS_LLAMA, false, why);
    if (!status && isnan(w->m->most_rms))
        status = measure(w, gpu ? PROBE_COARSE : PROBE_SMALL_CACHE, true, why);
    for (size_t i = 0; i < l->n && !status; i++) {
        struct probe_judged *j = &w->out->judged[i];
        if (!isnan(w->m->most_rms)) {
            j->coarse = w->m->most_rms / PROBE_MOST_MEAN;
            j->flat_coarse = (double)NAN;
        }
        j->excused =
            w->ties[j->window].n_tokens > 0 && j->position > probe_ties_first(&w->ties[j->window]);
    }
    return status;
}

/** The token of the prompt that a list is about; -1: the list is about none of them. */
static int32_t next_token(const struct work *w, const struct probe_sample *s)
{
    const struct model_tokens *tokens = &w->m->windows[s->window].tokens;
    return s->position < tokens->n ? tokens->ids[s->position] : -1;
}

/**
 * Tokens that are not listed although they are clearly likelier than some that are. The prompt's
 * own token does not count, which servers list beside the likeliest, and what is as likely as an
 * entry that names no token may be that one.
 */
static void count_forgotten(const struct work *w)
{
    const struct probe_lists *l = w->m->lists;
    for (size_t i = 0; i < l->n; i++) {
        const struct probe_judged *j = &w->out->judged[i];
        int32_t own = next_token(w, &l->items[i]);
        double least = (double)INFINITY;
        for (size_t k = 0; k < j->n; k++)
            if (l->ids[j->first + k] != own)
                least = fmin(least, j->log_q[k]);
        w->out->n_forgotten +=
            w->out->unlisted[i].most >
            fmax(least, l->items[i].dropped) + 6 * fmax(j->coarse, w->out->verdict.coarse);
    }
}

/** The token that comes next, where a list has it. */
static void compare_next(const struct work *w)
{
    const struct probe_lists *l = w->m->lists;
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        const struct probe_sample *s = &l->items[i];
        int32_t next = next_token(w, s);
        for (size_t k = s->first; k < s->first + s->n; k++)
            if (l->ids[k] == next) {
                sum += w->out->log_p[k] - l->log_q[k];
                n++;
            }
    }
    w->out->n_next = n;
    w->out->nll_difference = n ? sum / (double)n : (double)NAN;
}

static enum status judge(struct work *w, struct status_why *why)
{
    const struct probe_lists *l = w->m->lists;
    struct probe_comparison *out = w->out;
    const struct model_kv_types *cache = &model_hparams(w->m->model)->kv;
    struct probe_evidence e = {.items = out->judged,
                               .n = l->n,
                               .n_spoilt = l->n_spoilt,
                               .known = w->known,
                               .small_cache = is_small(cache->k) || is_small(cache->v)};
    probe_judge(&out->verdict, &e);
    if (out->verdict.outcome == PROBE_NO_RESULT)
        return STATUS_OK;
    enum status status = find_alternatives(w, why);
    if (status)
        return status;
    e.alternatives = w->alternatives;
    e.n_alternatives = w->n_alternatives;
    probe_judge(&out->verdict, &e);
    for (size_t i = 0; i < w->m->n_others; i++) {
        double squares = 0;
        for (size_t k = 0; k < l->n; k++) {
            const struct probe_judged *j = &out->judged[k];
            const double *other = w->alternatives[i].log_p + j->first;
            double rms = probe_residual(j->log_q, other, j->n, 1, 0);
            probe_way_add(&out->ways[i], j->log_q, j->log_p, other, j->n, j->weight);
            squares += rms * rms / (double)l->n;
        }
        out->other_rms[i] = sqrt(squares);
    }
    count_forgotten(w);
    compare_next(w);
    return STATUS_OK;
}

static enum status make_work(struct work *w, struct status_why *why)
{
    const struct probe_lists *l = w->m->lists;
    size_t n_alternatives = w->m->n_others + MOST_CHANGES;
    if (base_array_new(w->out->judged, l->n, "lists", why) ||
        base_array_new(w->out->log_p, l->n_entries, "values", why) ||
        base_array_new(w->out->unlisted, l->n, "lists", why) ||
        base_array_new(w->out->other_rms, w->m->n_others, "files", why) ||
        base_array_new(w->out->ways, w->m->n_others, "files", why) ||
        base_array_new(w->simulated, l->n_entries, "values", why) ||
        base_array_new(w->ties, w->m->n_windows, "windows", why) ||
        base_array_new(w->rounded, l->n_entries, "values", why) ||
        base_array_new(w->alternatives, n_alternatives, "explanations", why) ||
        base_array_new(w->alternative_values, n_alternatives, "explanations", why))
        return STATUS_MEMORY;
    w->known = known_of(w->m);
    w->n_steps =
        w->m->n_windows * (1 + 2 * w->m->n_passes + w->m->n_others + is_simulated(w->known));
    return STATUS_OK;
}

static enum status compare(struct probe_comparison *out, const struct probe_material *material,
                           struct status_why *why)
{
    struct work w = {.m = material, .out = out};
    *out = (struct probe_comparison){.nll_difference = (double)NAN};
    enum status status = make_work(&w, why);
    if (!status && material->lists->n)
        status = prepare(&w, why);
    if (!status)
        status = judge(&w, why);
    for (size_t i = 0; w.ties && i < material->n_windows; i++)
        probe_ties_free(&w.ties[i]);
    for (size_t i = 0; w.alternative_values && i < w.n_alternatives; i++)
        free(w.alternative_values[i]);
    free(w.alternative_values);
    free(w.alternatives);
    free(w.ties);
    for (size_t i = 0; out->judged && i < material->lists->n; i++)
        out->judged[i].simulated = NULL; /* it ends here */
    free(w.rounded);
    free(w.simulated);
    return status;
}

/** The lists at the positions that they predict; one before the first has none. */
static enum status align(struct probe_lists *out, const struct probe_lists *l, bool ahead,
                         struct status_why *why)
{
    *out = *l;
    if (base_array_new(out->items, l->n + 1, "lists", why))
        return STATUS_MEMORY;
    out->n = 0;
    for (size_t i = 0; i < l->n; i++) {
        struct probe_sample s = l->items[i];
        if (probe_is_of_prompt(s.length, s.position))
            s.position = ahead ? s.position + 1 : s.position - 1;
        if (s.position > 0)
            out->items[out->n++] = s;
    }
    return STATUS_OK;
}

/** A shift of the lists hides the file: judge them without it, and say that, too. */
static enum status compare_aligned(struct probe_verdict *v, const struct probe_material *material,
                                   struct status_why *why)
{
    struct probe_lists aligned;
    struct probe_material m = *material;
    struct probe_comparison c = {.n_next = 0};
    enum status status = align(&aligned, m.lists, v->finding == PROBE_LISTS_AHEAD, why);
    m.lists = &aligned;
    if (!status)
        status = compare(&c, &m, why);
    if (!status) {
        size_t n = strlen(v->sentence);
        snprintf(v->sentence + n, sizeof v->sentence - n, " Without that shift: %s",
                 c.verdict.sentence);
        if (c.verdict.finding == PROBE_OTHER_FILE) {
            v->finding = PROBE_OTHER_FILE;
            v->file = c.verdict.file;
        }
    }
    probe_comparison_free(&c);
    free(aligned.items);
    return status;
}

enum status probe_compare(struct probe_comparison *out, const struct probe_material *material,
                          struct status_why *why)
{
    enum status status = compare(out, material, why);
    enum probe_finding found = out->verdict.finding;
    if (!status && (found == PROBE_LISTS_AHEAD || found == PROBE_LISTS_BEHIND))
        status = compare_aligned(&out->verdict, material, why);
    return status;
}

void probe_comparison_free(struct probe_comparison *c)
{
    free(c->judged);
    free(c->log_p);
    free(c->unlisted);
    free(c->other_rms);
    free(c->ways);
    *c = (struct probe_comparison){.judged = NULL};
}

/* What is printed, and the document. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/printable.h"
#include "cli/check/server/server.h"
#include "cli/output/json_parts.h"
#include "cli/process/run.h"
#include "cli/process/version.h"

enum { N_WORST = 5 };

/** A line for each length and path: how many lists, what they are off and by how much they may. */
static void print_lengths(const struct cli_server_check *c)
{
    const struct probe_judged *j = c->comparison.judged;
    size_t n = c->comparison.verdict.n;
    puts("\ntext\tprompt\tpath\tlists\tdepart\toff\texpected\tcoarse");
    for (size_t i = 0; i < n;) {
        double off = 0, fine = 0, coarse = 0;
        size_t first = i, bad = 0;
        for (; i < n && j[i].path == j[first].path && j[i].window == j[first].window &&
               (j[i].length == j[first].length || j[i].path == PROBE_WRITTEN);
             i++) {
            off += j[i].figures.rms * j[i].figures.rms;
            fine += j[i].fine * j[i].fine;
            coarse += j[i].coarse * j[i].coarse;
            bad += j[i].bad;
        }
        double count = (double)(i - first);
        printf("%zu\t%zu\t%s\t%zu\t%zu\t%.1e\t%.1e\t%.1e\n", j[first].window, j[first].length,
               probe_path_name(j[first].path), i - first, bad, sqrt(off / count),
               sqrt(fine / count), sqrt(coarse / count));
    }
}

/** The lists that are off most, each with the server's likeliest token. */
static void print_worst(const struct cli_server_check *c)
{
    const struct probe_judged *j = c->comparison.judged;
    double above = (double)INFINITY;
    puts("\nThe worst: prompt\tposition\tpath\toff\tp exact\tp of the server");
    for (size_t k = 0; k < N_WORST; k++) {
        const struct probe_judged *worst = NULL;
        for (size_t i = 0; i < c->comparison.verdict.n; i++)
            if (j[i].figures.rms < above && (!worst || j[i].figures.rms > worst->figures.rms))
                worst = &j[i];
        if (!worst)
            break;
        above = worst->figures.rms;
        size_t top = 0;
        for (size_t i = 1; i < worst->n; i++)
            if (worst->log_p[i] > worst->log_p[top])
                top = i;
        printf("%zu\t%zu\t%s\t%.1e\t%.6f\t%.6f\n", worst->length, worst->position,
               probe_path_name(worst->path), above, exp(worst->log_p[top]), exp(worst->log_q[top]));
    }
}

/** Values that differ from answer to answer: how much, and what that is of the whole. */
static void print_noise(const struct probe_repeats *r, double rms)
{
    double noise = probe_repeats_rms(r);
    size_t n = r->computed.n + r->unknown.n, n_same = r->computed.n_same + r->unknown.n_same;
    printf("%zu of %zu lists have other values", n - n_same, n);
    if (r->n_disjoint)
        printf(", %zu of them no token in common", r->n_disjoint);
    if (noise > 0)
        printf(", %.1e apart RMS, %.1e at most", noise, r->largest);
    printf(": the server is not deterministic");
    if (noise > 0 && !isnan(rms))
        printf("; it is off by %.1f times that", rms / noise);
    puts(".");
}

/** What several answers to one prompt say of the server. */
static void print_repeats(const struct cli_server_check *c)
{
    const struct probe_repeats *r = &c->questions.repeats;
    size_t n = r->computed.n + r->unknown.n;
    printf("\nAsked %zu times: ", c->questions.n_times);
    switch (probe_repeated_of(r)) {
    case PROBE_REPEATED_NOTHING:
        puts("no answer can be compared with the first.");
        break;
    case PROBE_REPEATED_NOISE:
        print_noise(r, c->comparison.verdict.rms);
        break;
    case PROBE_REPEATED_EXACT:
        printf("all %zu lists have the same bits, and the server says that it computed %zu of them "
               "anew: it repeats itself exactly.\n",
               n, r->computed.n);
        break;
    case PROBE_REPEATED_PERHAPS:
        printf("all %zu lists have the same bits; they may be cached: the server does not say how "
               "much of a prompt was.\n",
               n);
        break;
    case PROBE_REPEATED_FROM_CACHE:
        puts("the server says that it had most prompts in its cache: its noise is not known; start "
             "it without a cache of prompts.");
        break;
    }
    if (r->cached.n)
        printf("Lists that it says rest on its cache: %zu, of which %zu have the same bits.\n",
               r->cached.n, r->cached.n_same);
}

/** Not where there were too few lists. */
static bool is_measured(const struct probe_verdict *v)
{
    return v->n_stretches > 0;
}

void cli_server_print(const struct cli_server_check *c)
{
    char name[sizeof c->comparison.verdict.sentence];
    const struct probe_verdict *v = &c->comparison.verdict;
    const struct probe_lists *l = cli_server_lists(c);
    base_printable_text(name, sizeof name, v->sentence);
    printf("%s\n\n", name);
    printf("Verdict: %s", probe_outcome_name(v->outcome));
    if (v->finding != PROBE_NOTHING)
        printf(" (%s)", probe_finding_name(v->finding));
    base_printable_text(name, sizeof name, c->connection.described);
    printf("\nServer: %s\n", name);
    cli_server_print_said(c);
    printf("Lists: %zu compared, %zu depart, %zu after a near tie of experts, %zu not usable\n",
           v->n, v->n_bad, v->n_excused, l->n_spoilt);
    if (is_measured(v)) {
        printf("Log-probabilities, flat: off by %.2e RMS, %.2f times what is expected (%.2e; "
               "coarse %.2e)",
               v->flat, v->flat_fine > 0 ? v->flat / v->flat_fine : 0, v->flat_fine,
               v->flat_coarse);
        if (!isnan(v->correlation))
            printf(", correlation %.2f where %.2f is expected", v->correlation,
                   v->correlation_fine);
        printf("\nWeighted by p: off by %.2e RMS; expected %.2e, coarse %.2e\n", v->rms, v->fine,
               v->coarse);
        printf("KL divergence, from below: %.2e nats\n", v->bound);
        printf("Likeliest token: another one in %zu lists, in %zu of them by more than 0.1 nats\n",
               v->n_flips, v->n_clear_flips);
        if (c->comparison.n_next)
            printf("NLL of the next token: %+.2e in the mean of %zu\n",
                   c->comparison.nll_difference, c->comparison.n_next);
        for (size_t i = 0; i < c->material.n_others; i++)
            printf("From %s: off by %.2e RMS, %.2f +- %.2f of the way there\n",
                   base_printable_text(name, sizeof name, c->material.others[i].path),
                   c->comparison.other_rms[i], probe_way_share(&c->comparison.ways[i]),
                   probe_way_error(&c->comparison.ways[i]));
        printf("Error rates of verdicts (here there are %zu lists that are no neighbours, of %.0f "
               "tokens each): %s.\n",
               v->n_stretches, v->n_tokens_each, probe_error_rates(v));
        print_lengths(c);
        if (v->outcome == PROBE_DIFFERS)
            print_worst(c);
    }
    if (c->questions.n_times > 1)
        print_repeats(c);
    else if (c->questions.is_noisy) {
        puts("");
        cli_connection_print_noise(&c->questions);
    }
    if (c->comparison.n_forgotten)
        printf("\n%zu lists lack a token that is clearly likelier than some that they have.\n",
               c->comparison.n_forgotten);
    cli_flush();
}

static void add_pairs(struct base_json *json, cJSON *parent, const char *key,
                      const struct probe_pairs *pairs)
{
    cJSON *o = base_json_object(json, parent, key);
    base_json_uint(json, o, "n", pairs->n);
    base_json_uint(json, o, "n_same", pairs->n_same);
}

static void add_repeats(struct base_json *json, cJSON *parent, const struct cli_server_check *c)
{
    const struct probe_repeats *r = &c->questions.repeats;
    if (c->questions.n_times < 2)
        return;
    cJSON *o = base_json_object(json, parent, "repeats");
    base_json_uint(json, o, "n_times", c->questions.n_times);
    base_json_uint(json, o, "n_answers", r->n_answers);
    base_json_text(json, o, "what", probe_repeated_name(probe_repeated_of(r)));
    base_json_real(json, o, "rms", probe_repeats_rms(r));
    base_json_real(json, o, "max", r->largest);
    base_json_uint(json, o, "n_disjoint", r->n_disjoint);
    add_pairs(json, o, "computed", &r->computed);
    add_pairs(json, o, "unknown", &r->unknown);
    add_pairs(json, o, "cached", &r->cached);
}

static void add_verdict(struct base_json *json, const struct cli_server_check *c)
{
    const struct probe_verdict *v = &c->comparison.verdict;
    cJSON *o = base_json_object(json, json->root, "result");
    bool known = is_measured(v);
    base_json_text(json, o, "verdict", probe_outcome_name(v->outcome));
    base_json_text(json, o, "named", probe_finding_name(v->finding));
    base_json_text(json, o, "sentence", v->sentence);
    base_json_uint(json, o, "from", v->from);
    base_json_text(json, o, "file", v->file);
    base_json_real(json, o, "temperature", v->temperature);
    base_json_uint(json, o, "n_lists", v->n);
    base_json_uint(json, o, "n_departing", v->n_bad);
    base_json_uint(json, o, "n_after_ties", v->n_excused);
    base_json_uint(json, o, "n_unusable", cli_server_lists(c)->n_spoilt);
    base_json_text(json, o, "unusable", cli_server_lists(c)->spoilt);
    base_json_uint(json, o, "n_lacking", c->comparison.n_forgotten);
    base_json_real(json, o, "rms", v->rms);
    base_json_real(json, o, "rms_expected", v->fine);
    base_json_real(json, o, "rms_coarse", v->coarse);
    base_json_uint(json, o, "n_stretches", v->n_stretches);
    base_json_real(json, o, "flat", v->flat);
    base_json_real(json, o, "flat_expected", v->flat_fine);
    base_json_real(json, o, "flat_coarse", v->flat_coarse);
    base_json_real(json, o, "most_times_flat", known ? v->most : (double)NAN);
    base_json_real(json, o, "correlation", v->correlation);
    base_json_real(json, o, "correlation_expected", v->correlation_fine);
    base_json_real(json, o, "least_correlation", v->least_correlation);
    base_json_text(json, o, "error_rates", known ? probe_error_rates(v) : NULL);
    base_json_real(json, o, "kld_bound", v->bound);
    base_json_uint(json, o, "n_flips", v->n_flips);
    base_json_uint(json, o, "n_clear_flips", v->n_clear_flips);
    base_json_uint(json, o, "n_next", c->comparison.n_next);
    base_json_real(json, o, "nll_difference", c->comparison.nll_difference);
    base_json_real(json, o, "slope", v->slope);
    base_json_real(json, o, "slope_error", v->slope_error);
    base_json_real(json, o, "noise", c->records ? (double)NAN : c->questions.noise);
    add_repeats(json, o, c);
    cJSON *others = base_json_list(json, o, "others");
    for (size_t i = 0; i < c->material.n_others; i++) {
        cJSON *other = base_json_object(json, others, NULL);
        const struct probe_way *way = &c->comparison.ways[i];
        base_json_text(json, other, "file", c->material.others[i].path);
        base_json_real(json, other, "rms", known ? c->comparison.other_rms[i] : (double)NAN);
        base_json_real(json, other, "share", probe_way_share(way));
        base_json_real(json, other, "share_error", probe_way_error(way));
    }
}

static void add_lists(struct base_json *json, const struct cli_server_check *c)
{
    cJSON *lists = base_json_list(json, json->root, "lists");
    for (size_t i = 0; c->comparison.judged && i < c->comparison.verdict.n; i++) {
        const struct probe_judged *j = &c->comparison.judged[i];
        cJSON *o = base_json_object(json, lists, NULL);
        base_json_uint(json, o, "text", j->window);
        base_json_uint(json, o, "n_prompt", j->length);
        base_json_uint(json, o, "position", j->position);
        base_json_text(json, o, "path", probe_path_name(j->path));
        base_json_uint(json, o, "n", j->n);
        base_json_real(json, o, "rms", j->figures.rms);
        base_json_real(json, o, "rms_expected", j->fine);
        base_json_real(json, o, "rms_coarse", j->coarse);
        base_json_real(json, o, "flat", j->flat);
        base_json_real(json, o, "flat_expected", j->flat_fine);
        base_json_real(json, o, "correlation", j->correlation);
        base_json_real(json, o, "correlation_expected", j->correlation_fine);
        base_json_real(json, o, "largest", j->figures.largest);
        base_json_real(json, o, "kld_bound", j->figures.bound);
        base_json_real(json, o, "slope", j->figures.slope);
        base_json_real(json, o, "mass", j->figures.q_mass);
        base_json_real(json, o, "mass_exact", j->figures.p_mass);
        base_json_flag(json, o, "after_tie", j->excused);
        base_json_flag(json, o, "departs", j->bad);
    }
}

enum status cli_server_write(const struct cli_server_check *c, struct base_file *file,
                             struct status_why *why)
{
    struct base_json json;
    struct cli_versions versions;
    cli_versions_read(&versions);
    doc_json_begin(&json, DOC_SERVER_SCHEMA);
    add_verdict(&json, c);
    cli_connection_add_json(&json, &c->connection, !c->records);
    cli_server_add_said(&json, c);
    cli_json_add_model(&json, json.root, "model", &c->model, true);
    cJSON *settings = base_json_object(&json, json.root, "settings");
    base_json_text(&json, settings, "text_sha256", c->text.sha256);
    base_json_int(&json, settings, "concurrency", c->settings->connection.concurrency);
    base_json_int(&json, settings, "requests", c->settings->connection.n_requests);
    base_json_int(&json, settings, "passes", c->settings->n_passes);
    base_json_real(&json, settings, "max_rms", c->settings->max_rms);
    base_json_real(&json, settings, "max_kld", c->settings->max_kld);
    base_json_flag(&json, settings, "strict", c->settings->strict);
    add_lists(&json, c);
    cJSON *run = base_json_object(&json, json.root, "run");
    base_json_text(&json, run, "assay", versions.assay);
    base_json_text(&json, run, "commit", versions.commit);
    return doc_json_end(&json, file, why);
}

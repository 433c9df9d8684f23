/* What assay check --again says: the runs in a sentence, figures, the object `noise`. */
#include <math.h>
#include <stdio.h>

#include "base/text/printable.h"
#include "cli/check/check_evaluator.h"
#include "cli/output/json_parts.h"

/* The quantiles, from the highest on. */
static const struct {
    const char *label, *member;
} levels[EVAL_NOISE_LEVELS] = {{"Median          ", "median"},
                               {"90.0%           ", "p90"},
                               {"95.0%           ", "p95"},
                               {"99.0%           ", "p99"},
                               {"99.9%           ", "p99_9"}};

enum { P99 = 3 };

static size_t n_same(const struct cli_check *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->settings->again.n; i++)
        n += c->noise.runs[i].same_bits;
    return n;
}

/* Which part of what is beyond the file is one run's noise; NaN: nothing is. */
static double share_of(const struct cli_check *c)
{
    return c->result.beyond > 0 ? fmin(c->noise.part / c->result.beyond, 1) : (double)NAN;
}

const char *cli_again_sentence(char out[CLI_AGAINST_BYTES], const struct cli_check *c)
{
    const struct cli_check_noise *noise = &c->noise;
    const struct eval_noise *f = &noise->figures;
    size_t n = c->settings->again.n, same = n_same(c), n_windows = c->result.kld.n_windows;
    char recorded[256], other[256], copies[96] = "";
    base_printable_text(recorded, sizeof recorded, c->recorded.path);
    const char *path = noise->unlike ? noise->unlike->recorded.path : c->settings->again.items[0];
    base_printable_text(other, sizeof other, path);
    if (same)
        snprintf(copies, sizeof copies, "; %zu of %zu recordings %s the bits of the first", same, n,
                 same == 1 ? "has" : "have");
    if (n_windows == 0)
        snprintf(out, CLI_AGAINST_BYTES, "no window is finished");
    else if (same == n)
        snprintf(out, CLI_AGAINST_BYTES,
                 "no noise is seen: %s has the bits of %s in %zu window%s: the program repeats "
                 "itself exactly, or it is the same file; another -ub, -t or -ngl may show some",
                 n == 1 ? other : "each further recording", recorded, n_windows,
                 status_plural(n_windows));
    else if (noise->unlike)
        snprintf(out, CLI_AGAINST_BYTES,
                 "%s and %s are no two runs of one program on one model: they are %.2e nats apart, "
                 "and %.2e and %.2e from exact beyond their files; nothing is judged by it",
                 recorded, other, noise->unlike->apart, c->result.beyond, noise->unlike->beyond);
    else
        snprintf(out, CLI_AGAINST_BYTES,
                 "runs of the program are %.2e nats apart (95 %% interval %.2e to %.2e; one token "
                 "in a hundred by more than %.2e): %.2e of the %.2e nats beyond the file, %.0f %%, "
                 "are noise%s",
                 f->mean.value, base_unsigned_nan(f->mean.low), base_unsigned_nan(f->mean.high),
                 f->quantiles[P99].value, noise->part, c->result.beyond,
                 100 * base_unsigned_nan(share_of(c)), copies);
    return out;
}

static void print_interval(const char *label, struct eval_interval x)
{
    printf("%s: %11.4e, 95 %% interval %.4e to %.4e\n", label, base_unsigned_nan(x.value),
           base_unsigned_nan(x.low), base_unsigned_nan(x.high));
}

void cli_again_print(const struct cli_check *c)
{
    const struct eval_noise *f = &c->noise.figures;
    char path[BASE_PATH_BYTES];
    if (c->settings->again.n == 0)
        return;
    puts("\n====== Noise: KL(recorded || again), nats ======");
    print_interval("Mean            ", f->mean);
    printf("Maximum         : %11.4e\n", f->max);
    for (size_t i = EVAL_NOISE_LEVELS; i-- > 0;)
        print_interval(levels[i].label, f->quantiles[i]);
    puts("apart\tbeyond the file\tless than the first's\tfile");
    for (size_t i = 0; i < c->settings->again.n; i++) {
        const struct cli_check_run *run = &c->noise.runs[i];
        printf("%.4e\t%.4e\t%+.4e\t%s%s\n", run->apart, run->beyond, run->difference,
               base_printable_text(path, sizeof path, run->recorded.path),
               run->same_bits ? " (the same bits)" : "");
    }
}

static void add_interval(struct base_json *json, cJSON *o, const char *member,
                         struct eval_interval x)
{
    char low[32], high[32];
    snprintf(low, sizeof low, "%s_low", member);
    snprintf(high, sizeof high, "%s_high", member);
    base_json_real(json, o, member, x.value);
    base_json_real(json, o, low, x.low);
    base_json_real(json, o, high, x.high);
}

void cli_again_add_json(struct base_json *json, const struct cli_check *c)
{
    char sentence[CLI_AGAINST_BYTES];
    const struct cli_check_noise *noise = &c->noise;
    if (c->settings->again.n == 0)
        return;
    cJSON *o = base_json_object(json, json->root, "noise");
    base_json_text(json, o, "answer", cli_again_sentence(sentence, c));
    base_json_flag(json, o, "same_bits", n_same(c) == c->settings->again.n);
    base_json_flag(json, o, "judges", noise->judges);
    cJSON *kld = base_json_object(json, o, "kld");
    add_interval(json, kld, "mean", noise->figures.mean);
    for (size_t i = 0; i < EVAL_NOISE_LEVELS; i++)
        add_interval(json, kld, levels[i].member, noise->figures.quantiles[i]);
    base_json_real(json, kld, "max", noise->figures.max);
    base_json_uint(json, o, "n_blocks", noise->figures.n_blocks);
    base_json_real(json, o, "part", noise->part);
    base_json_real(json, o, "share", share_of(c));
    base_json_real(json, o, "difference", noise->difference);
    cJSON *runs = base_json_list(json, o, "runs");
    for (size_t i = 0; i < c->settings->again.n; i++) {
        const struct cli_check_run *run = &noise->runs[i];
        cJSON *item = base_json_object(json, runs, NULL);
        base_json_flag(json, item, "same_bits", run->same_bits);
        base_json_real(json, item, "kld", run->apart);
        base_json_real(json, item, "beyond", run->beyond);
        base_json_real(json, item, "difference", run->difference);
        cli_base_add_json(json, item, &run->recorded, true);
    }
}

/* What the race says of each file, in words. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/printable.h"
#include "cli/best/best.h"

const char *const cli_best_standings[] = {
    [CLI_BEST_ANSWER] = "answer",       [CLI_BEST_NO_GAIN] = "no gain",
    [CLI_BEST_WORSE] = "worse",         [CLI_BEST_OPEN] = "open",
    [CLI_BEST_NONFINITE] = "nonfinite", [CLI_BEST_TOO_LARGE] = "too large",
    [CLI_BEST_TOO_SLOW] = "too slow"};

size_t cli_best_answer(const struct cli_best *b, bool *clear)
{
    size_t n = b->rules.n;
    size_t i = b->race.n_seen || n == 1 ? eval_race_answer(&b->race, clear) : n;
    *clear = *clear && i < n && b->race.over;
    return i < n ? i : SIZE_MAX;
}

double cli_best_share(const struct cli_best *b)
{
    double n = 0, all = (double)b->rules.n * (double)b->rules.n_windows;
    for (size_t i = 0; i < b->rules.n; i++)
        n += (double)b->race.means[i].n;
    return n / all;
}

static void measure(const struct cli_best *b, struct cli_best_place *p, size_t i, size_t beside)
{
    const struct eval_race_pair *pair = &b->race.pairs[i * b->rules.n + beside];
    p->beside = beside;
    p->difference = pair->difference.mean;
    p->low = pair->low;
    p->high = pair->high;
}

/** A candidate that is not the answer: what it is beside it. */
static void place_beside(const struct cli_best *b, struct cli_best_place *p, size_t i,
                         size_t answer)
{
    const struct eval_race *r = &b->race;
    size_t better = eval_race_better(r, i);
    bool known;
    measure(b, p, i, answer);
    enum eval_race_relation relation = eval_race_relation(r, i, answer, &known);
    if (known && relation == EVAL_RACE_WORSE) {
        p->standing = CLI_BEST_WORSE;
        p->clear = true;
    } else if (better < r->rules.n) { /* of another, which was the first to be clear */
        p->standing = CLI_BEST_WORSE;
        p->clear = true;
        measure(b, p, i, better);
    } else if (i > answer) {
        relation = eval_race_relation(r, answer, i, &p->clear);
        p->standing = relation == EVAL_RACE_AS_GOOD ? CLI_BEST_NO_GAIN : CLI_BEST_OPEN;
    } else {
        p->standing = CLI_BEST_OPEN;
    }
}

struct cli_best_place cli_best_place(const struct cli_best *b, size_t i)
{
    const double none = (double)NAN;
    size_t candidate = b->files[i].candidate;
    bool clear;
    size_t answer = cli_best_answer(b, &clear);
    struct cli_best_place p = {CLI_BEST_OPEN, false, SIZE_MAX, none, none, none};
    if (candidate == SIZE_MAX)
        p.standing = b->files[i].too_slow ? CLI_BEST_TOO_SLOW : CLI_BEST_TOO_LARGE;
    else if (b->race.broken[candidate])
        p.standing = CLI_BEST_NONFINITE;
    else if (candidate == answer)
        p.standing = CLI_BEST_ANSWER;
    else if (answer != SIZE_MAX)
        place_beside(b, &p, candidate, answer);
    p.clear = p.standing == CLI_BEST_ANSWER ? clear : p.clear || p.standing >= CLI_BEST_NONFINITE;
    return p;
}

/** "0.001234 [0.001, 0.002]", without the sign of what is clearly lower. */
static const char *shown(char out[96], const struct cli_best_place *p)
{
    bool turned = p->high < 0;
    int n = snprintf(out, 96, "%.6f", turned ? -p->difference : p->difference);
    if (isfinite(p->low) && isfinite(p->high))
        snprintf(out + n, 96 - (size_t)n, " [%.6f, %.6f]", turned ? -p->high : p->low,
                 turned ? -p->low : p->high);
    return out;
}

enum { FILE_BYTES = 160, ANSWER_BYTES = CLI_CALLED_BYTES + FILE_BYTES + 4 };

/** The file, with its label where that is another name. */
static void name_answer(char out[ANSWER_BYTES], const struct cli_best_file *f)
{
    char name[FILE_BYTES];
    base_printable_text(name, sizeof name, base_file_name(f->path));
    if (strstr(name, f->label))
        snprintf(out, ANSWER_BYTES, "%s", name);
    else
        snprintf(out, ANSWER_BYTES, "%s (%s)", f->label, name);
}

static void say_answer(const struct cli_best *b, struct status_why *out, size_t i, bool clear)
{
    const struct cli_best_file *f = &b->files[i];
    const struct base_estimate kld = b->k.results[f->candidate].figures.kld;
    char name[ANSWER_BYTES], cache[96] = "", speed[48] = "", size[BASE_SIZE_BYTES];
    name_answer(name, f);
    if (f->speeds[DOC_GENERATION].known)
        snprintf(speed, sizeof speed, ", %.4g tokens per second", f->speeds[DOC_GENERATION].value);
    if (f->cache > 0)
        snprintf(cache, sizeof cache, " and %s of cache for %lld tokens",
                 base_size_text(size, f->cache, b->unit), (long long)b->settings->context);
    base_size_text(size, cli_best_bytes(b, f), b->unit);
    status_fail(out, STATUS_OK, "%s %s: %s%s%s, mean divergence %.6f ± %.6f%s",
                clear                                  ? "Take"
                : b->race.n_seen == b->rules.n_windows ? "Take, as far as this text tells,"
                                                       : "So far it is",
                name, size, cache, speed, kld.value, base_estimate_error(kld),
                b->rules.n == 1 ? "; no other file fits" : "");
}

/** A file that is no smaller than the answer, which is as good. */
static void say_no_gain(struct status_why *out, const char *name, const char *size,
                        const struct cli_best_place *p)
{
    char difference[96];
    const char *by = p->high < 0 ? "is lower by" : "differs by";
    status_fail(out, STATUS_OK,
                "%s is %s and gains nothing that this text shows: its divergence %s %s, within the "
                "margin%s",
                name, size, by, shown(difference, p), p->clear ? "" : " by the means alone");
}

static void say(const struct cli_best *b, struct status_why *out, size_t i, size_t answer)
{
    const struct cli_best_file *f = &b->files[i];
    struct cli_best_place p = cli_best_place(b, i);
    const char *name = f->label, *beside = "";
    char difference[96], takes[BASE_SIZE_BYTES], slow[CLI_BEST_SLOW];
    const char *size =
        f->candidate == SIZE_MAX || f->n_bytes > b->files[answer].n_bytes ? "larger" : "as large";
    bool smaller = f->candidate < b->files[answer].candidate;
    if (p.beside != SIZE_MAX)
        beside = b->k.candidates[p.beside].called;
    switch (p.standing) {
    case CLI_BEST_NO_GAIN:
        say_no_gain(out, name, size, &p);
        break;
    case CLI_BEST_WORSE:
        status_fail(out, STATUS_OK, "%s is %sworse than %s by %s", name,
                    smaller                                 ? ""
                    : f->n_bytes > b->files[answer].n_bytes ? "larger and "
                                                            : "",
                    beside, shown(difference, &p));
        break;
    case CLI_BEST_NONFINITE:
        status_fail(out, STATUS_OK, "%s has divergences that are not finite", name);
        break;
    case CLI_BEST_TOO_LARGE:
        status_fail(out, STATUS_OK, "%s does not fit: it takes %s%s", name,
                    base_size_text(takes, cli_best_bytes(b, f) + f->cache, b->unit),
                    f->cache > 0 ? " with its cache" : "");
        break;
    case CLI_BEST_TOO_SLOW:
        status_fail(out, STATUS_OK, "%s is left out: %s", name, cli_best_say_slow(slow, b, f));
        break;
    default:
        status_fail(out, STATUS_OK, "%s is as good within chance: its divergence %s %s", name,
                    p.high < 0 ? "is lower by" : "differs by", shown(difference, &p));
    }
}

void cli_best_verdict(const struct cli_best *b, struct status_why *out, size_t *n)
{
    bool clear;
    size_t answer = cli_best_answer(b, &clear), at = 0;
    *n = 0;
    if (answer == SIZE_MAX) {
        status_fail(&out[(*n)++], STATUS_OK,
                    b->race.n_seen ? "No file has finite divergences"
                                   : "There is no answer yet: no window is finished");
        return;
    }
    while (b->files[at].candidate != answer)
        at++;
    say_answer(b, &out[(*n)++], at, clear);
    for (size_t i = b->n_files; i-- > 0;)
        if (i != at)
            say(b, &out[(*n)++], i, at);
}

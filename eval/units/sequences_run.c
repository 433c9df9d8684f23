/* Groups of sequences through the model: a batch is the groups that fit, each a parent segment
 * with what its tokens have in common and children with the rest. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/clock.h"
#include "eval/units/sequences.h"

/** What a group, or a batch of groups, takes. */
struct sizes {
    size_t n_tokens, n_segments, n_rows, n_targets;
};

/** Where the score of a target goes. */
struct place {
    struct eval_sequence *sequence;
    size_t i; /* in its log_probs */
};

/** A run: the arrays of a batch, sized for the largest, and where the run stands. */
struct run {
    struct eval_sequences *sequences;
    const struct eval_sequences_run *options;
    struct eval_run_stats *stats;
    struct eval_scorer *scorer;
    struct sizes max, n; /* of any batch; of the batch at work */
    int32_t *tokens;
    struct model_segment *segments;
    uint32_t *rows;
    struct kern_target *targets;
    struct place *places; /* [targets] */
    struct kern_row_score *row_scores;
    struct kern_target_score *target_scores;
    double n_total, n_done; /* tokens of all batches, of those done */
    double started;
};

static struct eval_sequence *members(const struct run *r, const struct eval_sequence_group *g)
{
    return r->sequences->items + g->first;
}

/** The first position of the common tokens that predicts a scored one; n_common if none does. */
static size_t first_shared_row(const struct eval_sequence *s, const struct eval_sequence_group *g)
{
    size_t first = g->n_common;
    for (size_t i = 0; i < g->n; i++)
        if (s[i].first_scored - 1 < first)
            first = s[i].first_scored - 1;
    return first;
}

/** The first of a sequence's own positions that predicts a scored token. */
static size_t first_own_row(const struct eval_sequence *s, size_t n_common)
{
    return s->first_scored - 1 > n_common ? s->first_scored - 1 : n_common;
}

static struct sizes group_sizes(const struct run *r, const struct eval_sequence_group *g)
{
    const struct eval_sequence *s = members(r, g);
    struct sizes sizes = {.n_tokens = g->n_common,
                          .n_segments = g->n_common > 0,
                          .n_rows = g->n_common - first_shared_row(s, g)};
    for (size_t i = 0; i < g->n; i++) {
        size_t n_inputs = s[i].n_tokens - 1;
        sizes.n_tokens += n_inputs - g->n_common;
        sizes.n_segments += n_inputs > g->n_common;
        sizes.n_rows += n_inputs - first_own_row(&s[i], g->n_common);
        sizes.n_targets += s[i].n_tokens - s[i].first_scored;
    }
    return sizes;
}

static struct sizes sum(struct sizes a, struct sizes b)
{
    return (struct sizes){a.n_tokens + b.n_tokens, a.n_segments + b.n_segments, a.n_rows + b.n_rows,
                          a.n_targets + b.n_targets};
}

/** The end of the batch that begins with group `from`; *size: what it takes. */
static size_t batch_end(const struct run *r, size_t from, struct sizes *size)
{
    *size = group_sizes(r, &r->sequences->groups[from]);
    size_t end = from + 1;
    for (; end < r->sequences->n_groups; end++) {
        struct sizes with = sum(*size, group_sizes(r, &r->sequences->groups[end]));
        if (with.n_tokens > r->options->batch_tokens)
            break;
        *size = with;
    }
    return end;
}

static void keep_larger(size_t *max, size_t n)
{
    *max = n > *max ? n : *max;
}

static void measure(struct run *r)
{
    struct sizes s;
    for (size_t from = 0; from < r->sequences->n_groups;) {
        from = batch_end(r, from, &s);
        keep_larger(&r->max.n_tokens, s.n_tokens);
        keep_larger(&r->max.n_segments, s.n_segments);
        keep_larger(&r->max.n_rows, s.n_rows);
        keep_larger(&r->max.n_targets, s.n_targets);
        r->n_total += (double)s.n_tokens;
    }
}

/** Ids come from a vocabulary that may be longer than the matrices of a broken file. */
static enum status check_ids(const struct run *r, struct status_why *why)
{
    uint32_t n_vocab = model_hparams(r->options->model)->n_vocab;
    for (size_t k = 0; k < r->sequences->n; k++) {
        const struct eval_sequence *s = &r->sequences->items[k];
        for (size_t i = 0; i < s->n_tokens; i++)
            if (s->ids[i] < 0 || (uint32_t)s->ids[i] >= n_vocab)
                return status_fail(why, STATUS_FORMAT,
                                   "the vocabulary has token %d, the model only %u", s->ids[i],
                                   n_vocab);
    }
    return STATUS_OK;
}

static enum status allocate(struct run *r, struct status_why *why)
{
    r->tokens = malloc(r->max.n_tokens * sizeof *r->tokens);
    r->segments = malloc(r->max.n_segments * sizeof *r->segments);
    r->rows = malloc(r->max.n_rows * sizeof *r->rows);
    r->targets = malloc(r->max.n_targets * sizeof *r->targets);
    r->places = malloc(r->max.n_targets * sizeof *r->places);
    r->row_scores = malloc(r->max.n_rows * sizeof *r->row_scores);
    r->target_scores = malloc(r->max.n_targets * sizeof *r->target_scores);
    if (!r->tokens || !r->segments || !r->rows || !r->targets || !r->places || !r->row_scores ||
        !r->target_scores)
        return status_fail(why, STATUS_MEMORY, "no memory for a batch of %zu tokens",
                           r->max.n_tokens);
    return STATUS_OK;
}

static void release(struct run *r)
{
    eval_scorer_close(r->scorer);
    free(r->tokens);
    free(r->segments);
    free(r->rows);
    free(r->targets);
    free(r->places);
    free(r->row_scores);
    free(r->target_scores);
}

/** Positions [from, to) of a sequence as the next segment; the batch's token that `from` is. */
static size_t add_segment(struct run *r, const struct eval_sequence *s, size_t from, size_t to,
                          ptrdiff_t parent)
{
    size_t start = r->n.n_tokens;
    r->segments[r->n.n_segments++] = (struct model_segment){
        .start = start,
        .n_tokens = to - from,
        .first_position = (int32_t)from,
        .parent = parent,
    };
    for (size_t p = from; p < to; p++)
        r->tokens[r->n.n_tokens++] = s->ids[p];
    return start;
}

static void add_row(struct run *r, size_t token_of_batch)
{
    r->rows[r->n.n_rows++] = (uint32_t)token_of_batch;
}

/** The last row is position p of the sequence: it predicts the token behind it. */
static void add_target(struct run *r, struct eval_sequence *s, size_t p)
{
    size_t t = r->n.n_targets++;
    r->targets[t] = (struct kern_target){(uint32_t)(r->n.n_rows - 1), s->ids[p + 1]};
    r->places[t] = (struct place){s, p + 1 - s->first_scored};
}

static void add_common(struct run *r, const struct eval_sequence_group *g)
{
    struct eval_sequence *s = members(r, g);
    size_t start = add_segment(r, s, 0, g->n_common, -1);
    for (size_t p = first_shared_row(s, g); p < g->n_common; p++) {
        add_row(r, start + p);
        for (size_t i = 0; i < g->n; i++)
            if (p + 1 >= s[i].first_scored)
                add_target(r, &s[i], p);
    }
}

static void add_group(struct run *r, const struct eval_sequence_group *g)
{
    ptrdiff_t parent = -1;
    if (g->n_common) {
        parent = (ptrdiff_t)r->n.n_segments;
        add_common(r, g);
    }
    for (size_t i = 0; i < g->n; i++) {
        struct eval_sequence *s = &members(r, g)[i];
        size_t n_inputs = s->n_tokens - 1;
        if (n_inputs == g->n_common)
            continue;
        size_t start = add_segment(r, s, g->n_common, n_inputs, parent);
        for (size_t p = first_own_row(s, g->n_common); p < n_inputs; p++) {
            add_row(r, start + p - g->n_common);
            add_target(r, s, p);
        }
    }
}

/** Hand the batch's scores to its sequences. */
static void record(struct run *r, size_t from, size_t end)
{
    for (size_t g = from; g < end; g++) {
        const struct eval_sequence_group *group = &r->sequences->groups[g];
        for (size_t i = 0; i < group->n; i++)
            members(r, group)[i].greedy = true;
    }
    for (size_t t = 0; t < r->n.n_targets; t++) {
        const struct kern_target *target = &r->targets[t];
        struct eval_sequence *s = r->places[t].sequence;
        s->log_probs[r->places[t].i] = r->target_scores[t].log_prob;
        s->greedy = s->greedy && r->row_scores[target->row].argmax == target->token;
    }
}

/** Tell of the batch's groups. */
static enum status report(struct run *r, size_t from, size_t end, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t g = from; g < end && !status; g++) {
        r->stats->n_windows += r->sequences->groups[g].n;
        if (r->options->group_done)
            status = r->options->group_done(r->options->user, g, why);
    }
    return status;
}

static void on_fraction(void *user, double fraction)
{
    const struct run *r = user;
    if (!r->options->progress)
        return;
    struct eval_progress p = {
        .n_windows_done = r->stats->n_windows,
        .n_windows = r->sequences->n,
        .fraction = (r->n_done + fraction * (double)r->n.n_tokens) / r->n_total,
        .seconds = base_clock_seconds() - r->started,
    };
    p.seconds_left = p.fraction > 0 ? p.seconds * (1 - p.fraction) / p.fraction : (double)NAN;
    r->options->progress(r->options->user, &p);
}

static enum status run_batch(struct run *r, size_t from, size_t end, struct status_why *why)
{
    r->n = (struct sizes){0};
    for (size_t g = from; g < end; g++)
        add_group(r, &r->sequences->groups[g]);
    struct model_batch batch = {r->tokens, r->n.n_tokens, r->segments, r->n.n_segments};
    struct eval_items items = {
        .rows = r->rows,
        .n_rows = r->n.n_rows,
        .targets = r->targets,
        .n_targets = r->n.n_targets,
        .row_scores = r->row_scores,
        .target_scores = r->target_scores,
    };
    enum status status = eval_scorer_run(r->scorer, &batch, &items, &r->stats->times, why);
    if (status)
        return status;
    record(r, from, end);
    r->n_done += (double)r->n.n_tokens;
    r->stats->n_batches++;
    r->stats->n_inputs += r->n.n_tokens;
    return report(r, from, end, why);
}

static struct eval_scorer_options scorer_options(struct run *r)
{
    size_t longest = 0;
    for (size_t i = 0; i < r->sequences->n; i++)
        keep_larger(&longest, r->sequences->items[i].n_tokens - 1);
    return (struct eval_scorer_options){
        .max_batch = r->max.n_tokens,
        .max_rows = r->max.n_rows,
        .max_segment = longest,
        .progress = on_fraction,
        .progress_user = r,
    };
}

static enum status open_scorer(struct run *r, struct status_why *why)
{
    struct eval_scorer_options options = scorer_options(r);
    return eval_scorer_open(&r->scorer, r->options->model, r->options->backend, &options, why);
}

/** Bytes of what allocate() makes, and of the sequences' log-probabilities. */
static double score_bytes(const struct run *r)
{
    double per_row = sizeof *r->rows + sizeof *r->row_scores;
    double per_target = sizeof *r->targets + sizeof *r->places + sizeof *r->target_scores;
    double bytes = (double)r->max.n_tokens * sizeof *r->tokens +
                   (double)r->max.n_segments * sizeof *r->segments +
                   (double)r->max.n_rows * per_row + (double)r->max.n_targets * per_target;
    for (size_t i = 0; i < r->sequences->n; i++)
        bytes += (double)r->sequences->items[i].n_tokens * sizeof(double);
    return bytes;
}

struct eval_memory eval_sequences_memory(struct eval_sequences *sequences,
                                         const struct eval_sequences_run *options)
{
    struct run r = {.sequences = sequences, .options = options};
    measure(&r);
    struct eval_scorer_options scorer = scorer_options(&r);
    const struct gguf_file *file = model_file(options->model);
    struct eval_memory m = {
        .weights = eval_memory_mapped(file),
        .present = eval_memory_present(file),
        .scorer = eval_scorer_bytes(options->model, options->backend, &scorer),
        .scores = score_bytes(&r) + EVAL_MEMORY_SMALL_THINGS,
    };
    m.total = m.weights + m.present + m.scorer + m.scores;
    m.on_device = kern_describe(options->backend).own_memory;
    return m;
}

enum status eval_sequences_run(struct eval_sequences *sequences,
                               const struct eval_sequences_run *options,
                               struct eval_run_stats *stats, struct status_why *why)
{
    struct run r = {.sequences = sequences, .options = options, .stats = stats};
    r.started = base_clock_seconds();
    *stats = (struct eval_run_stats){0};
    if (sequences->n == 0)
        return STATUS_OK;
    measure(&r);
    stats->max_batch_tokens = r.max.n_tokens;
    enum status status = check_ids(&r, why);
    if (!status)
        status = allocate(&r, why);
    if (!status)
        status = open_scorer(&r, why);
    double now = base_clock_seconds();
    stats->seconds_to_open = now - r.started;
    r.started = now;
    struct sizes size;
    for (size_t from = 0, end; from < sequences->n_groups && !status; from = end) {
        end = batch_end(&r, from, &size);
        status = run_batch(&r, from, end, why);
    }
    release(&r);
    stats->seconds = base_clock_seconds() - r.started;
    return status;
}

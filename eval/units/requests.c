#include "eval/units/requests.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/buffer.h"
#include "eval/units/texts.h"

/** The making of sequences. */
struct maker {
    struct eval_request_scores *out;
    const struct eval_request_options *options;
    struct eval_tokenizing how;
    size_t line; /* of the request at work */
    /* The last context and its tokens: requests of one context tend to follow each other. */
    struct base_string context;
    struct model_tokens context_tokens;
    struct model_tokens whole;
    struct base_buffer joined; /* a context and its continuation */
};

/** The context's tokens into m->context_tokens, unless they are there already. */
static enum status tokenize_context(struct maker *m, struct base_string context, int32_t front,
                                    struct status_why *why)
{
    if (m->context_tokens.n && context.n_bytes == m->context.n_bytes &&
        memcmp(context.data, m->context.data, context.n_bytes) == 0)
        return STATUS_OK;
    m->context = context;
    return eval_tokenize(&m->how, front, context, &m->context_tokens, why);
}

/** Give the request m->whole as its tokens, and room for the scores of the last n_scored. */
static enum status keep(const struct maker *m, struct eval_request_score *s, size_t n_scored,
                        struct status_why *why)
{
    assert(m->whole.n > 0 && m->whole.ids);
    s->n_scored = n_scored;
    if (base_array_new(s->ids, m->whole.n, "tokens", why) ||
        base_array_new(s->log_probs, n_scored + 1, "scores", why))
        return STATUS_MEMORY;
    memcpy(s->ids, m->whole.ids, m->whole.n * sizeof *s->ids);
    return STATUS_OK;
}

static enum status add_sequence(struct maker *m, struct eval_request_score *s,
                                const struct eval_sequence *sequence, struct status_why *why)
{
    struct eval_request_scores *out = m->out;
    struct eval_sequences *all = &out->sequences;
    if (base_array_reserve(all->items, all->capacity, all->n + 1, "windows", why))
        return STATUS_MEMORY;
    all->items[all->n++] = *sequence;
    out->longest = base_max(out->longest, sequence->n_tokens - 1);
    s->n_left++;
    return STATUS_OK;
}

/** A text without a context: all of its tokens are scored, after BOS or EOS. */
static enum status tokenize_alone(struct maker *m, struct base_string text, struct status_why *why)
{
    int32_t front = model_token_bos(m->how.tokenizer);
    if (front < 0)
        front = model_token_eos(m->how.tokenizer);
    if (front < 0)
        return status_fail(why, STATUS_FORMAT,
                           "line %zu: without a context, BOS or EOS stands in front, and the "
                           "vocabulary has neither",
                           m->line);
    return eval_tokenize(&m->how, front, text, &m->whole, why);
}

/** A whole text: every token is scored, in windows of n_ctx. */
static enum status add_text(struct maker *m, const struct eval_request *r,
                            struct eval_request_score *s, size_t owner, struct status_why *why)
{
    enum status status = tokenize_alone(m, r->text, why);
    if (!status)
        status = keep(m, s, m->whole.n - 1, why);
    size_t n_ctx = m->options->n_ctx;
    for (size_t done = 0, end; done < s->n_scored && !status; done = end) {
        end = s->n_scored - done < n_ctx ? s->n_scored : done + n_ctx;
        size_t begin = end > n_ctx ? end - n_ctx : 0;
        struct eval_sequence window = {
            .ids = s->ids + begin,
            .n_tokens = end + 1 - begin,
            .first_scored = done + 1 - begin,
            .owner = owner,
            .log_probs = s->log_probs + done,
        };
        status = add_sequence(m, s, &window, why);
    }
    return status;
}

/**
 * The tokens of a pair into m->whole: those of the context alone, then what tokens the two
 * together have more. Where they have no more, because the continuation changes how the end of
 * its context is cut, the tokens of the two together, scored from where they part.
 */
static enum status tokenize_pair(struct maker *m, const struct eval_request *r,
                                 size_t *first_scored, struct status_why *why)
{
    const struct base_string texts[] = {r->context, r->text};
    struct base_string context = r->context;
    context.n_bytes -= eval_trailing_blanks(context);
    enum status status = eval_join(&m->joined, texts, 2, why);
    if (status)
        return status;
    struct base_string joined = {m->joined.data, m->joined.n};
    *first_scored = 1;
    if (context.n_bytes == 0)
        return tokenize_alone(m, joined, why);
    int32_t front = m->options->bos ? model_token_bos(m->how.tokenizer) : -1;
    status = tokenize_context(m, context, front, why);
    if (!status)
        status = eval_tokenize(&m->how, front, joined, &m->whole, why);
    if (status)
        return status;
    const struct model_tokens *alone = &m->context_tokens;
    *first_scored = alone->n;
    if (alone->n < m->whole.n)
        memcpy(m->whole.ids, alone->ids, alone->n * sizeof *alone->ids);
    else
        *first_scored = model_tokens_common(alone, &m->whole);
    if (*first_scored)
        return STATUS_OK;
    *first_scored = 1;
    return tokenize_alone(m, joined, why);
}

/** A pair: the tokens after the context are scored, as far back as n_ctx reaches. */
static enum status add_pair(struct maker *m, const struct eval_request *r,
                            struct eval_request_score *s, size_t owner, struct status_why *why)
{
    size_t first_scored = 0, n_ctx = m->options->n_ctx;
    enum status status = tokenize_pair(m, r, &first_scored, why);
    if (status)
        return status;
    size_t n = m->whole.n, n_scored = n - first_scored;
    if (n_scored == 0)
        return status_fail(why, STATUS_FORMAT, "line %zu: the continuation has no tokens", m->line);
    if (n_scored > n_ctx)
        return status_fail(why, STATUS_USAGE,
                           "line %zu: the continuation has %zu tokens, more than -c %zu; give a "
                           "larger -c, or the whole as \"text\"",
                           m->line, n_scored, n_ctx);
    s->n_truncated = n > n_ctx + 1 ? n - n_ctx - 1 : 0;
    status = keep(m, s, n_scored, why);
    if (status)
        return status;
    struct eval_sequence sequence = {
        .ids = s->ids + s->n_truncated,
        .n_tokens = n - s->n_truncated,
        .first_scored = first_scored - s->n_truncated,
        .owner = owner,
        .log_probs = s->log_probs,
    };
    return add_sequence(m, s, &sequence, why);
}

enum status eval_request_scores_make(struct eval_request_scores *out,
                                     const struct eval_requests *requests,
                                     const struct eval_request_options *options,
                                     const struct model_tokenizer *tokenizer,
                                     struct status_why *why)
{
    *out = (struct eval_request_scores){0};
    struct maker m = {.out = out, .options = options, .how = {tokenizer, options->parse_special}};
    enum status status = STATUS_OK;
    if (base_array_new(out->items, requests->n + 1, "requests", why))
        return STATUS_MEMORY;
    while (out->n < requests->n && !status) {
        const struct eval_request *r = &requests->items[out->n];
        struct eval_request_score *s = &out->items[out->n];
        s->greedy = true;
        m.line = r->line;
        status = r->rolling ? add_text(&m, r, s, out->n, why) : add_pair(&m, r, s, out->n, why);
        out->n_scored += s->n_scored;
        out->n_truncated += s->n_truncated > 0;
        out->n++;
    }
    free(m.context_tokens.ids);
    free(m.whole.ids);
    base_buffer_free(&m.joined);
    if (status)
        eval_request_scores_free(out);
    else
        eval_request_units_open(out);
    return status;
}

void eval_request_scores_free(struct eval_request_scores *scores)
{
    for (size_t i = 0; i < scores->n; i++) {
        free(scores->items[i].ids);
        free(scores->items[i].log_probs);
        free(scores->items[i].likeliest);
    }
    free(scores->items);
    free(scores->sequences.items);
    free(scores->sequences.groups);
    *scores = (struct eval_request_scores){0};
}

double eval_request_log_prob(const struct eval_request_score *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->n_scored; i++)
        sum += s->log_probs[i];
    return sum;
}

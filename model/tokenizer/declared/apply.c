/* The steps of a declared tokenizer, applied to a piece of text. */
#include <string.h>

#include "base/arithmetic.h"
#include "model/tokenizer/declared/steps.h"

void model_steps_run_free(struct model_steps_run *run)
{
    for (size_t i = 0; i < MODEL_MAX_STEPS; i++)
        base_buffer_free(&run->text[i]);
    model_regex_run_free(&run->regex);
    model_nfc_free(&run->nfc);
}

/** Matches of a piece, from left to right, as Oniguruma's library walks through them. */
struct matches {
    const struct model_steps_call *call;
    const struct model_declared_step *step;
    struct base_string text;
    size_t from, last_end;
    bool any;
    struct model_regex_match match;
};

/**
 * The next match; an empty one right after another is passed over.
 * An expression gets more steps the longer the text is, but no number that grows faster: one that
 * tries each way through it is refused instead of running for ever.
 */
static enum status next_match(struct matches *m)
{
    enum { STEPS = 1 << 20, STEPS_A_BYTE = 64 };
    struct model_steps_run *run = m->call->run;
    uint32_t limit = m->text.n_bytes > (UINT32_MAX - STEPS) / STEPS_A_BYTE
                         ? UINT32_MAX
                         : STEPS + STEPS_A_BYTE * (uint32_t)m->text.n_bytes;
    for (;;) {
        m->match.found = false;
        if (m->from > m->text.n_bytes)
            return STATUS_OK;
        enum status status = model_regex_find(m->step->code, &run->regex, m->text, m->from, limit,
                                              &m->match, run->why);
        if (status)
            status_context(run->why, "an expression of tokenizer.json");
        if (status || !m->match.found)
            return status;
        m->from = m->match.end;
        if (m->match.begin < m->match.end || !m->any || m->match.end != m->last_end)
            break;
        do /* to the next character */
            m->from++;
        while (m->from < m->text.n_bytes && (m->text.data[m->from] & 0xC0) == 0x80);
    }
    m->any = true;
    m->last_end = m->match.end;
    return STATUS_OK;
}

/** A piece that may still grow. */
struct pending {
    size_t begin, end;
    bool open, is_match;
};

struct splitting {
    struct matches m;
    size_t i_step;
    bool first;
    struct pending p;
};

static enum status flush(struct splitting *s)
{
    bool open = s->p.open;
    s->p.open = false;
    if (!open || s->p.begin == s->p.end)
        return STATUS_OK;
    struct base_string piece = {s->m.text.data + s->p.begin, s->p.end - s->p.begin};
    return model_steps_apply(s->m.call, s->i_step + 1, piece, s->first && s->p.begin == 0);
}

/** Whether a segment belongs to the piece before it, by the rule of what becomes of matches. */
static bool belongs(const struct splitting *s, bool is_match)
{
    enum model_split_behaviour behaviour = s->m.step->behaviour;
    if (!s->p.open)
        return false;
    return behaviour == MODEL_SPLIT_CONTIGUOUS             ? is_match == s->p.is_match
           : behaviour == MODEL_SPLIT_MERGED_WITH_PREVIOUS ? is_match && !s->p.is_match
           : behaviour == MODEL_SPLIT_MERGED_WITH_NEXT     ? !is_match && s->p.is_match
                                                           : false;
}

/** The next stretch of the text, a match or what lies between two. */
static enum status add_segment(struct splitting *s, size_t begin, size_t end, bool is_match)
{
    is_match ^= s->m.step->inverted;
    if (belongs(s, is_match)) {
        s->p.end = end;
        s->p.is_match = is_match;
        return STATUS_OK;
    }
    enum status status = flush(s);
    if (s->m.step->behaviour != MODEL_SPLIT_REMOVED || !is_match)
        s->p = (struct pending){begin, end, true, is_match};
    return status;
}

static enum status split(const struct model_steps_call *call, size_t i_step,
                         struct base_string piece, bool first)
{
    struct splitting s = {.m = {.call = call, .step = &call->steps->items[i_step], .text = piece},
                          .i_step = i_step,
                          .first = first};
    size_t done = 0;
    enum status status = next_match(&s.m);
    while (!status && s.m.match.found) {
        if (done < s.m.match.begin)
            status = add_segment(&s, done, s.m.match.begin, false);
        if (!status)
            status = add_segment(&s, s.m.match.begin, s.m.match.end, true);
        done = s.m.match.end;
        if (!status)
            status = next_match(&s.m);
    }
    if (!status && done < piece.n_bytes)
        status = add_segment(&s, done, piece.n_bytes, false);
    return status ? status : flush(&s);
}

/** What a step made is the piece now, unless it grew beyond what any tokenizer needs. */
static enum status take(const struct model_steps_call *call, const struct base_buffer *made,
                        struct base_string *piece)
{
    enum { GROWTH = 16, SLACK = 1 << 12 };
    const struct model_steps_run *run = call->run;
    if (made->n / GROWTH > run->n_text_bytes + SLACK)
        return status_fail(run->why, STATUS_UNSUPPORTED,
                           "tokenizer.json makes more than %zu bytes of a text of %zu bytes, "
                           "expected at most %d times as many",
                           made->n, run->n_text_bytes, (int)GROWTH);
    *piece = (struct base_string){made->data, made->n};
    return base_buffer_check(made, "a text", run->why);
}

static enum status replace(const struct model_steps_call *call, size_t i_step,
                           struct base_string *piece)
{
    struct base_buffer *out = &call->run->text[i_step];
    struct matches m = {.call = call, .step = &call->steps->items[i_step], .text = *piece};
    size_t done = 0;
    enum status status = next_match(&m);
    if (status || !m.match.found)
        return status;
    out->n = 0;
    while (!status && m.match.found && !out->failed) {
        base_buffer_add(out, piece->data + done, m.match.begin - done);
        base_buffer_add(out, m.step->text, m.step->n_text);
        done = m.match.end;
        status = next_match(&m);
    }
    base_buffer_add(out, piece->data + done, piece->n_bytes - done);
    return status ? status : take(call, out, piece);
}

static enum status put_in_front(const struct model_steps_call *call, size_t i_step,
                                struct base_string *piece, bool first)
{
    const struct model_declared_step *step = &call->steps->items[i_step];
    struct base_buffer *out = &call->run->text[i_step];
    bool begins =
        step->n_text <= piece->n_bytes && memcmp(piece->data, step->text, step->n_text) == 0;
    if (step->kind == MODEL_STEP_LEAD && (begins || (step->first_only && !first)))
        return STATUS_OK;
    out->n = 0;
    base_buffer_add(out, step->text, step->n_text);
    base_buffer_add(out, piece->data, piece->n_bytes);
    return take(call, out, piece);
}

static enum status compose(const struct model_steps_call *call, size_t i_step,
                           struct base_string *piece)
{
    struct base_buffer *out = &call->run->text[i_step];
    if (model_nfc_is_plain(*piece))
        return STATUS_OK;
    out->n = 0;
    enum status status = model_nfc_append(&call->run->nfc, out, *piece, call->run->why);
    return status ? status : take(call, out, piece);
}

enum status model_steps_apply(const struct model_steps_call *call, size_t from,
                              struct base_string piece, bool first)
{
    enum status status = STATUS_OK;
    for (size_t i = from; i < call->end && !status && piece.n_bytes > 0; i++) {
        switch (call->steps->items[i].kind) {
        case MODEL_STEP_SPLIT:
            return split(call, i, piece, first);
        case MODEL_STEP_REPLACE:
            status = replace(call, i, &piece);
            break;
        case MODEL_STEP_NFC:
            status = compose(call, i, &piece);
            break;
        case MODEL_STEP_PREPEND:
        case MODEL_STEP_LEAD:
            status = put_in_front(call, i, &piece, first);
            break;
        }
    }
    return status || piece.n_bytes == 0 ? status : call->fn(call->user, piece, first);
}

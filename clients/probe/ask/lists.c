#include "clients/probe/ask/lists.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"

void probe_lists_free(struct probe_lists *l)
{
    free(l->items);
    free(l->ids);
    free(l->log_q);
    *l = (struct probe_lists){.n = 0};
}

void probe_lists_spoil(struct probe_lists *l, const char *format, ...)
{
    if (l->n_spoilt++ > 0)
        return;
    va_list values;
    va_start(values, format);
    vsnprintf(l->spoilt, sizeof l->spoilt, format, values);
    va_end(values);
}

static enum status add_entry(struct probe_lists *l, struct probe_sample *sample, int32_t id,
                             double log_q, struct status_why *why)
{
    for (size_t i = 0; i < sample->n; i++)
        if (l->ids[sample->first + i] == id) /* two spellings of one token */
            return STATUS_OK;
    if (base_array_reserve(l->ids, l->ids_capacity, l->n_entries + 1, "entries", why) ||
        base_array_reserve(l->log_q, l->q_capacity, l->n_entries + 1, "entries", why))
        return STATUS_MEMORY;
    l->ids[l->n_entries] = id;
    l->log_q[l->n_entries++] = log_q;
    sample->n++;
    return STATUS_OK;
}

/** Keep a list; one that names a token beyond the vocabulary is not kept. */
static enum status add_place(struct probe_lists *l, const struct probe_answer *a,
                             const struct probe_place *place, struct probe_sample sample,
                             const struct probe_names *names, struct status_why *why)
{
    enum { MOST = 1024 }; /* entries that are compared */
    enum status status = STATUS_OK;
    sample.first = l->n_entries;
    sample.merged = place->merged;
    sample.dropped = -(double)INFINITY;
    for (size_t i = 0; i < place->n && !status; i++) {
        const struct probe_entry *e = &a->entries[place->first + i];
        int32_t id = e->id >= 0 ? e->id : probe_names_find(names, a->bytes + e->text, e->n_text);
        if (id < 0 || sample.n == MOST) {
            sample.dropped = fmax(sample.dropped, e->log_q);
            continue;
        }
        if ((size_t)id >= probe_names_n_vocab(names)) {
            l->n_entries = sample.first;
            probe_lists_spoil(l, "a token %d, and the vocabulary has %zu", id,
                              probe_names_n_vocab(names));
            return STATUS_OK;
        }
        status = add_entry(l, &sample, id, e->log_q, why);
    }
    l->n_unknown += !status && sample.n == 0;
    if (status || sample.n == 0)
        return status;
    status = base_array_reserve(l->items, l->capacity, l->n + 1, "lists", why);
    if (!status)
        l->items[l->n++] = sample;
    return status;
}

/** The number of tokens that the server counts, where it counts. */
static void note_count(struct probe_lists *l, const struct probe_answer *a, size_t sent)
{
    if (a->n_prompt < 0)
        return;
    int64_t more = a->n_prompt - (int64_t)sent;
    l->n_counted++;
    if (more != 0 && l->n_fewer + l->n_more + l->n_other == 0) {
        l->counted = a->n_prompt;
        l->sent = (int64_t)sent;
    }
    l->n_fewer += more == -1;
    l->n_more += more == 1;
    l->n_other += more < -1 || more > 1;
}

/** Whether the i-th of n lists is among the `most` that are kept. */
static bool is_kept(size_t i, size_t n, size_t most)
{
    size_t ends = most / 4, between = most - 2 * ends;
    if (n <= most || i < ends || i + ends >= n)
        return true;
    size_t inner = n - 2 * ends, at = i - ends;
    return at * between / inner != (at + 1) * between / inner;
}

/** Whether a text is that of the index-th token of the prompt. */
static bool is_given_for(const struct probe_answer *a, struct probe_text text,
                         const struct probe_asked *asked, size_t index,
                         const struct probe_names *names)
{
    return text.n && index < asked->length &&
           probe_names_find(names, a->bytes + text.at, text.n) == asked->ids[index];
}

/** How many lists of the prompt are given for the token that is `moved` further on in it. */
static size_t count_matches(const struct probe_answer *a, const struct probe_asked *asked,
                            const struct probe_names *names, size_t moved)
{
    size_t n = is_given_for(a, a->first, asked, moved, names);
    for (size_t i = 0; i < a->n_places; i++) {
        const struct probe_place *p = &a->places[i];
        n += !p->generated && p->index > 0 &&
             is_given_for(a, p->text, asked, p->index + moved, names);
    }
    return n;
}

/**
 * By how many tokens the prompt is longer than the server says, and its lists are further on than
 * they stand. The prompt's last token is the same where the server has put another one before the
 * first. Where BOS is left out of what is listed, the tokens' texts tell it.
 */
static ptrdiff_t shift_of(const struct probe_answer *a, const struct probe_asked *asked,
                          const struct probe_names *names)
{
    ptrdiff_t counted = a->n_prompt > 0 ? (ptrdiff_t)asked->length - (ptrdiff_t)a->n_prompt : 0;
    if (counted == 0 && count_matches(a, asked, names, 1) > count_matches(a, asked, names, 0))
        return 1;
    return counted;
}

/** The tokens before the predicted one; 0: there is no such list in a prompt. */
static size_t position_of(const struct probe_place *place, const struct probe_asked *asked,
                          ptrdiff_t shift)
{
    ptrdiff_t at = (ptrdiff_t)place->index + shift;
    bool next = at == (ptrdiff_t)asked->length && shift == 1 && !place->generated;
    if (place->generated)
        return place->index > 0 && asked->path != PROBE_WRITTEN ? 0 : asked->length + place->index;
    return at > 0 && (at < (ptrdiff_t)asked->length || next) ? (size_t)at : 0;
}

enum status probe_lists_add(struct probe_lists *l, const struct probe_answer *a,
                            const struct probe_asked *asked, const struct probe_names *names,
                            struct status_why *why)
{
    enum status status = STATUS_OK;
    size_t n_prompt = 0, at = 0;
    ptrdiff_t shift = shift_of(a, asked, names);
    note_count(l, a, asked->length);
    for (size_t i = 0; i < a->n_spoilt; i++)
        probe_lists_spoil(l, "a prompt of %zu tokens: %s", asked->length, a->spoilt);
    if (a->n_places == 0 && a->n_spoilt == 0)
        probe_lists_spoil(l, "a prompt of %zu tokens: the answer has no list of log-probabilities",
                          asked->length);
    for (size_t i = 0; i < a->n_places; i++)
        n_prompt += !a->places[i].generated;
    for (size_t i = 0; i < a->n_places && !status; i++) {
        const struct probe_place *place = &a->places[i];
        struct probe_sample sample = {.window = asked->window,
                                      .length = asked->length,
                                      .path = asked->path,
                                      .position = position_of(place, asked, shift),
                                      .miscounted = a->n_prompt >= 0 &&
                                                    a->n_prompt != (int64_t)asked->length};
        if ((!place->generated && !is_kept(at++, n_prompt, asked->most)) || sample.position == 0)
            continue;
        sample.repeated = sample.position <= asked->known;
        if (asked->path == PROBE_WRITTEN) /* each is the prompt of the next */
            sample.length = sample.position;
        status = add_place(l, a, place, sample, names, why);
    }
    return status;
}

static int by_place(const void *a, const void *b)
{
    const struct probe_sample *x = a, *y = b;
    const size_t keys[][2] = {{x->path, y->path},
                              {x->window, y->window},
                              {x->length, y->length},
                              {x->position, y->position},
                              {x->first, y->first}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

void probe_lists_order(struct probe_lists *l)
{
    if (l->n)
        qsort(l->items, l->n, sizeof *l->items, by_place);
}

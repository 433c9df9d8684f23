/* What is read of an answer: lists and their entries. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json/read.h"
#include "clients/probe/api/read.h"

void probe_answer_free(struct probe_answer *a)
{
    free(a->entries);
    free(a->places);
    free(a->bytes);
    free(a->prompt.ids);
    free(a->written.ids);
    *a = (struct probe_answer){.places = NULL};
}

struct probe_place *probe_read_place(struct probe_answer *a, bool generated, size_t index)
{
    if (!a->kept.status && a->n_places >= PROBE_MAX_PLACES)
        status_keep(&a->kept, STATUS_FORMAT, "more than %d lists of log-probabilities",
                    PROBE_MAX_PLACES);
    if (!a->kept.status)
        a->kept.status = base_array_reserve(a->places, a->places_capacity, a->n_places + 1, "lists",
                                            &a->kept.why);
    if (a->kept.status)
        return NULL;
    struct probe_place *place = &a->places[a->n_places++];
    *place = (struct probe_place){
        .generated = generated, .index = index, .token = -1, .first = a->n_entries};
    return place;
}

/** Whether a list has an id. Lists are short, or come from a server that orders them. */
static bool has_id(const struct probe_answer *a, const struct probe_place *place, int32_t id)
{
    const size_t most = 4096; /* a longer one is checked where it is used */
    for (size_t i = 0; id >= 0 && i < place->n && i < most; i++)
        if (a->entries[place->first + i].id == id)
            return true;
    return false;
}

struct probe_text probe_read_text(struct probe_answer *a, const char *text, size_t n)
{
    struct probe_text kept = {a->n_bytes, n};
    if (!a->kept.status)
        a->kept.status = base_array_reserve(a->bytes, a->bytes_capacity, a->n_bytes + n + 1,
                                            "bytes", &a->kept.why);
    if (a->kept.status || n == 0)
        return (struct probe_text){a->n_bytes, 0};
    memcpy(a->bytes + a->n_bytes, text, n);
    a->n_bytes += n;
    return kept;
}

void probe_read_entry(struct probe_answer *a, int32_t id, const char *text, size_t n_text,
                      const cJSON *log_q)
{
    const double least = -1e4; /* what servers write for minus infinity is below or at it */
    if (!a->kept.status && a->n_entries >= PROBE_MAX_ENTRIES)
        status_keep(&a->kept, STATUS_FORMAT, "more than %d log-probabilities", PROBE_MAX_ENTRIES);
    if (!a->kept.status)
        a->kept.status = base_array_reserve(a->entries, a->entries_capacity, a->n_entries + 1,
                                            "entries", &a->kept.why);
    struct probe_text kept = probe_read_text(a, text, text ? n_text : 0);
    if (a->kept.status)
        return;
    struct probe_place *place = &a->places[a->n_places - 1];
    place->repeats |= has_id(a, place, id);
    double value = log_q && cJSON_IsNumber(log_q) ? log_q->valuedouble : (double)NAN;
    a->entries[a->n_entries++] =
        (struct probe_entry){id, value <= 1 ? fmax(value, least) : (double)NAN, kept.at, kept.n};
    place->n++;
}

/** Forget the last list: it has something impossible. */
static void spoil(struct probe_answer *a, const char *what)
{
    if (a->n_spoilt++ == 0)
        snprintf(a->spoilt, sizeof a->spoilt, "%s", what);
    a->n_entries = a->places[--a->n_places].first;
}

void probe_read_end(struct probe_answer *a)
{
    if (a->kept.status)
        return;
    const struct probe_place *place = &a->places[a->n_places - 1];
    for (size_t i = 0; i < place->n; i++)
        if (isnan(a->entries[place->first + i].log_q)) {
            spoil(a, "a log-probability that is no number, or above 1");
            return;
        }
    if (place->repeats)
        spoil(a, "a list that has a token twice");
    else if (place->n == 0)
        spoil(a, "an empty list of log-probabilities");
}

void probe_read_token(struct probe_answer *a, struct model_tokens *tokens, const cJSON *id)
{
    if (!a->kept.status)
        a->kept.status = model_tokens_add(tokens, probe_read_id(id), &a->kept.why);
}

int32_t probe_read_id(const cJSON *value)
{
    return cJSON_IsNumber(value) && value->valuedouble >= 0 && value->valuedouble < 0x1p31 &&
                   value->valuedouble == floor(value->valuedouble)
               ? (int32_t)value->valuedouble
               : -1;
}

int64_t probe_read_count(const cJSON *object, const char *key)
{
    return probe_read_id(base_json_member(object, key));
}

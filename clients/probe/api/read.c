#include "clients/probe/api/read.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json/parse.h"
#include "base/json/read.h"
#include "base/text/printable.h"

void probe_answer_free(struct probe_answer *a)
{
    free(a->entries);
    free(a->places);
    free(a->bytes);
    free(a->prompt);
    free(a->written);
    *a = (struct probe_answer){.places = NULL};
}

enum status probe_read_place(struct probe_answer *a, bool generated, size_t index,
                             struct status_why *why)
{
    if (a->n_places >= PROBE_MAX_PLACES)
        return status_fail(why, STATUS_FORMAT, "more than %d lists of log-probabilities",
                           PROBE_MAX_PLACES);
    if (base_array_reserve(a->places, a->places_capacity, a->n_places + 1, "lists", why))
        return STATUS_MEMORY;
    a->places[a->n_places++] = (struct probe_place){
        .generated = generated, .index = index, .token = -1, .first = a->n_entries};
    return STATUS_OK;
}

void probe_read_spoil(struct probe_answer *a, const char *format, ...)
{
    if (a->n_spoilt++ == 0) {
        va_list values;
        va_start(values, format);
        vsnprintf(a->spoilt, sizeof a->spoilt, format, values);
        va_end(values);
    }
    if (a->n_places)
        a->n_entries = a->places[--a->n_places].first;
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

enum status probe_read_entry(struct probe_answer *a, int32_t id, const char *text, size_t n_text,
                             const cJSON *log_q, struct status_why *why)
{
    const double least = -1e4; /* what servers write for minus infinity is below or at it */
    struct probe_place *place = &a->places[a->n_places - 1];
    if (a->n_entries >= PROBE_MAX_ENTRIES)
        return status_fail(why, STATUS_FORMAT, "more than %d log-probabilities", PROBE_MAX_ENTRIES);
    if (has_id(a, place, id))
        place->repeats = true;
    if (base_array_reserve(a->entries, a->entries_capacity, a->n_entries + 1, "entries", why) ||
        base_array_reserve(a->bytes, a->bytes_capacity, a->n_bytes + n_text + 1, "bytes", why))
        return STATUS_MEMORY;
    double value = log_q && cJSON_IsNumber(log_q) ? log_q->valuedouble : (double)NAN;
    a->entries[a->n_entries++] =
        (struct probe_entry){id, fmax(value, least), a->n_bytes, text ? n_text : 0};
    if (!(value <= 1)) /* NaN, too */
        a->entries[a->n_entries - 1].log_q = (double)NAN;
    if (text)
        memcpy(a->bytes + a->n_bytes, text, n_text);
    a->n_bytes += text ? n_text : 0;
    place->n++;
    return STATUS_OK;
}

/** End a list: it is not taken with a value that is no number, an id twice, or no entries. */
static void check_place(struct probe_answer *a, size_t before)
{
    if (a->n_places <= before)
        return;
    const struct probe_place *place = &a->places[a->n_places - 1];
    for (size_t i = 0; i < place->n; i++)
        if (isnan(a->entries[place->first + i].log_q)) {
            probe_read_spoil(a, "a log-probability that is no number, or above 1");
            return;
        }
    if (place->repeats)
        probe_read_spoil(a, "a list that has a token twice");
    else if (place->n == 0)
        probe_read_spoil(a, "an empty list of log-probabilities");
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

/** Bytes of a text that is a token's: 0 where it has lost what is no whole character. */
static size_t n_kept(const char *text)
{
    return strstr(text, "\xef\xbf\xbd") ? 0 : strlen(text);
}

/** The bytes of a token: a list of numbers, or else a text. */
static enum status read_named(struct probe_answer *a, const cJSON *entry, struct status_why *why)
{
    enum { MOST = 1024 };
    const cJSON *bytes = base_json_member(entry, "bytes"), *byte;
    const cJSON *token = base_json_member(entry, "token");
    const cJSON *log_q = base_json_member(entry, "logprob");
    int32_t id = probe_read_id(base_json_member(entry, "id"));
    char text[MOST];
    size_t n = 0;
    if (id < 0 && cJSON_IsString(token) && strncmp(token->valuestring, "token_id:", 9) == 0)
        id = (int32_t)strtol(token->valuestring + 9, NULL, 10);
    if (id >= 0)
        return probe_read_entry(a, id, NULL, 0, log_q, why);
    if (cJSON_IsArray(bytes) && bytes->child) {
        cJSON_ArrayForEach(byte, bytes)
        {
            int32_t value = probe_read_id(byte);
            if (value < 0 || value > 255 || n == MOST)
                return probe_read_entry(a, -1, "", 0, NULL, why); /* spoils the list */
            text[n++] = (char)(unsigned char)value;
        }
        return probe_read_entry(a, -1, text, n, log_q, why);
    }
    if (!cJSON_IsString(token))
        return probe_read_entry(a, -1, "", 0, NULL, why);
    return probe_read_entry(a, -1, token->valuestring, n_kept(token->valuestring), log_q, why);
}

enum status probe_read_contents(struct probe_answer *a, const cJSON *list, struct status_why *why)
{
    size_t index = 0;
    enum status status = STATUS_OK;
    const cJSON *item, *entry;
    cJSON_ArrayForEach(item, list)
    {
        size_t before = a->n_places;
        status = probe_read_place(a, true, index++, why);
        if (status)
            return status;
        a->places[before].token = probe_read_id(base_json_member(item, "id"));
        cJSON_ArrayForEach(entry, base_json_member(item, "top_logprobs"))
        {
            status = read_named(a, entry, why);
            if (status)
                return status;
        }
        check_place(a, before);
    }
    return status;
}

enum status probe_read_prompt(struct probe_answer *a, const cJSON *list, bool generated,
                              struct status_why *why)
{
    size_t index = 0;
    enum status status = STATUS_OK;
    const cJSON *item, *entry;
    cJSON_ArrayForEach(item, list)
    {
        size_t before = a->n_places, at = index++;
        if (cJSON_IsNull(item))
            continue;
        status = probe_read_place(a, generated, at, why);
        cJSON_ArrayForEach(entry, item)
        {
            if (status)
                return status;
            char *end;
            long id = strtol(entry->string ? entry->string : "x", &end, 10);
            bool is_id = entry->string && *entry->string && !*end && id >= 0 && id < INT32_MAX;
            const cJSON *log_q = cJSON_IsNumber(entry) ? entry : base_json_member(entry, "logprob");
            status =
                probe_read_entry(a, is_id ? (int32_t)id : -1, "", 0, is_id ? log_q : NULL, why);
        }
        if (!status)
            check_place(a, before);
    }
    return status;
}

/** Keep the text of a token that a list is given for. */
static enum status keep_text(struct probe_answer *a, struct probe_text *out, const cJSON *token,
                             struct status_why *why)
{
    size_t n = token && cJSON_IsString(token) ? n_kept(token->valuestring) : 0;
    if (base_array_reserve(a->bytes, a->bytes_capacity, a->n_bytes + n + 1, "bytes", why))
        return STATUS_MEMORY;
    if (n)
        memcpy(a->bytes + a->n_bytes, token->valuestring, n);
    *out = (struct probe_text){a->n_bytes, n};
    a->n_bytes += n;
    return STATUS_OK;
}

/** Dictionaries by text or token_id:N. */
static enum status read_dictionaries(struct probe_answer *a, const cJSON *logprobs,
                                     struct status_why *why)
{
    const cJSON *lists = base_json_member(logprobs, "top_logprobs"), *item, *entry;
    const cJSON *tokens = base_json_member(logprobs, "tokens");
    const cJSON *token = cJSON_IsArray(tokens) ? tokens->child : NULL;
    /* One prompt is answered with one list; where its tokens have some, the first has none. */
    bool echo = (lists->child && cJSON_IsNull(lists->child)) ||
                (a->n_prompt > 1 && cJSON_GetArraySize(lists) >= a->n_prompt);
    size_t index = 0, n_prompt = echo && a->n_prompt > 0 ? (size_t)a->n_prompt : 0;
    enum status status = STATUS_OK;
    cJSON_ArrayForEach(item, lists)
    {
        size_t before = a->n_places, at = index++;
        const cJSON *given_for = token;
        token = token ? token->next : NULL;
        if (at == 0 && echo)
            status = keep_text(a, &a->first, given_for, why);
        if (status)
            return status;
        if (cJSON_IsNull(item))
            continue;
        bool generated = !echo || (n_prompt && at >= n_prompt);
        status = probe_read_place(a, generated, generated ? at - n_prompt : at, why);
        if (!status)
            status = keep_text(a, &a->places[before].text, given_for, why);
        cJSON_ArrayForEach(entry, item)
        {
            if (status)
                return status;
            const char *key = entry->string ? entry->string : "";
            bool is_id = strncmp(key, "token_id:", 9) == 0 && key[9] >= '0' && key[9] <= '9';
            long id = is_id ? strtol(key + 9, NULL, 10) : -1;
            status = probe_read_entry(a, id < INT32_MAX ? (int32_t)id : -1, is_id ? NULL : key,
                                      n_kept(key), entry, why);
            a->places[before].merged |= !is_id;
        }
        if (!status)
            check_place(a, before);
    }
    return status;
}

enum status probe_read_choice(struct probe_answer *a, const cJSON *root, struct status_why *why)
{
    const cJSON *choice = base_json_member(root, "choices")->child;
    const cJSON *usage = base_json_member(root, "usage");
    const cJSON *prompt = base_json_member(choice, "prompt_logprobs");
    const cJSON *logprobs = base_json_member(choice, "logprobs");
    const cJSON *content = base_json_member(logprobs, "content");
    const cJSON *lists = base_json_member(logprobs, "top_logprobs");
    a->n_prompt = probe_read_count(usage, "prompt_tokens");
    a->n_cached =
        probe_read_count(base_json_member(usage, "prompt_tokens_details"), "cached_tokens");
    if (!prompt)
        prompt = base_json_member(root, "prompt_logprobs");
    enum status status = probe_read_prompt(a, prompt, false, why);
    if (!status && cJSON_IsArray(content)) {
        status = probe_read_contents(a, content, why);
        if (!status)
            status = probe_read_written(a, NULL, probe_read_count(usage, "completion_tokens"),
                                        (size_t)cJSON_GetArraySize(content), why);
    }
    if (!status && !cJSON_IsArray(content) && cJSON_IsArray(lists))
        status = read_dictionaries(a, logprobs, why);
    return status;
}

/** [[value, id, text], ...] */
static enum status read_triples(struct probe_answer *a, const cJSON *list, struct status_why *why)
{
    enum status status = STATUS_OK;
    const cJSON *triple;
    cJSON_ArrayForEach(triple, list)
    {
        int32_t id = probe_read_id(cJSON_GetArrayItem(triple, 1));
        if (!status)
            status =
                probe_read_entry(a, id, "", 0, id < 0 ? NULL : cJSON_GetArrayItem(triple, 0), why);
    }
    return status;
}

static enum status read_sglang_lists(struct probe_answer *a, const cJSON *lists, bool generated,
                                     struct status_why *why)
{
    size_t index = 0;
    enum status status = STATUS_OK;
    const cJSON *item;
    cJSON_ArrayForEach(item, lists)
    {
        size_t before = a->n_places, at = index++;
        if (cJSON_IsNull(item) || status)
            continue;
        status = probe_read_place(a, generated, at, why);
        if (!status)
            status = read_triples(a, item, why);
        if (!status)
            check_place(a, before);
    }
    return status;
}

enum status probe_read_sglang(struct probe_answer *a, const cJSON *root, struct status_why *why)
{
    const cJSON *meta = base_json_member(root, "meta_info");
    a->n_prompt = probe_read_count(meta, "prompt_tokens");
    a->n_cached = probe_read_count(meta, "cached_tokens");
    enum status status =
        read_sglang_lists(a, base_json_member(meta, "input_top_logprobs"), false, why);
    return status ? status
                  : read_sglang_lists(a, base_json_member(meta, "output_top_logprobs"), true, why);
}

/** vLLM's RequestOutput: what its Python interface returns, as JSON. */
static enum status read_offline(struct probe_answer *a, const cJSON *root, struct status_why *why)
{
    const cJSON *outputs = base_json_member(root, "outputs"), *id;
    enum status status =
        probe_read_prompt(a, base_json_member(root, "prompt_logprobs"), false, why);
    cJSON_ArrayForEach(id, base_json_member(root, "prompt_token_ids"))
    {
        if (base_array_reserve(a->prompt, a->prompt_capacity, a->n_prompt_ids + 1, "tokens", why))
            return STATUS_MEMORY;
        a->prompt[a->n_prompt_ids++] = probe_read_id(id);
    }
    if (!status && outputs && outputs->child)
        status = probe_read_prompt(a, base_json_member(outputs->child, "logprobs"), true, why);
    return status;
}

enum status probe_read_root(struct probe_answer *a, const cJSON *root, struct status_why *why)
{
    *a = (struct probe_answer){.n_prompt = -1, .n_cached = -1};
    if (cJSON_IsArray(root)) /* llama-server answers lists of prompts with lists */
        root = root->child;
    const cJSON *native = base_json_member(root, "completion_probabilities");
    const cJSON *choices = base_json_member(root, "choices");
    const cJSON *contents = base_json_member(root, "logprobs");
    if (base_json_member(root, "meta_info"))
        return probe_read_sglang(a, root, why);
    if (cJSON_IsArray(choices) && choices->child)
        return probe_read_choice(a, root, why);
    if (base_json_member(root, "prompt_token_ids"))
        return read_offline(a, root, why);
    if (base_json_member(root, "tokens_evaluated") || native) {
        a->of_llama = true;
        a->n_prompt = probe_read_count(root, "tokens_evaluated");
        a->n_cached = probe_read_count(base_json_member(root, "timings"), "cache_n");
        enum status status = probe_read_contents(a, native, why);
        return status ? status
                      : probe_read_written(a, base_json_member(root, "tokens"),
                                           probe_read_count(root, "tokens_predicted"),
                                           (size_t)cJSON_GetArraySize(native), why);
    }
    if (base_json_member(root, "prompt_eval_count") || cJSON_IsArray(contents)) {
        a->of_llama = true;
        a->n_prompt = probe_read_count(root, "prompt_eval_count");
        return probe_read_contents(a, contents, why);
    }
    return status_fail(why, STATUS_FORMAT,
                       "expected completion_probabilities, choices, meta_info or logprobs in it, "
                       "found none of them");
}

/** What is no JSON, but Python writes it: NaN, Infinity, -Infinity; "": something else. */
static const char *unbounded_number(const char *bytes, size_t n_bytes)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (n_bytes >= strlen(words[i]) && memcmp(bytes, words[i], strlen(words[i])) == 0)
            return words[i];
    return "";
}

enum status probe_answer_read(struct probe_answer *out, const char *bytes, size_t n_bytes,
                              struct status_why *why)
{
    *out = (struct probe_answer){.places = NULL};
    cJSON *root = NULL;
    size_t n_read = 0;
    enum status status = base_json_parse(&root, bytes, n_bytes, &n_read, why);
    n_read = n_read < n_bytes ? n_read : n_bytes;
    const char *number = unbounded_number(bytes + n_read, n_bytes - n_read);
    if (status == STATUS_FORMAT && *number)
        status = status_fail(why, status, "expected numbers, found %s at byte %zu of %zu", number,
                             n_read, n_bytes);
    else if (status == STATUS_FORMAT)
        status = status_fail(why, status, "expected JSON, found something else at byte %zu of %zu",
                             n_read, n_bytes);
    if (!status)
        status = probe_read_root(out, root, why);
    cJSON_Delete(root);
    return status;
}

void probe_answer_error(char *out, size_t capacity, const char *bytes, size_t n_bytes)
{
    cJSON *root = NULL;
    out[0] = '\0';
    if (!bytes || base_json_parse(&root, bytes, n_bytes, NULL, NULL))
        return;
    const cJSON *error = base_json_member(root, "error");
    const cJSON *message = base_json_member(error ? error : root, "message");
    if (!message && error)
        message = error;
    if (!cJSON_IsString(message))
        message = base_json_member(root, "detail");
    if (message && cJSON_IsString(message))
        base_printable_text(out, capacity, message->valuestring);
    cJSON_Delete(root);
}

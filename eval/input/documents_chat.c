/* Documents that are conversations, or token ids. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "eval/input/documents.h"

static enum status open_chat(struct eval_documents *d, struct status_why *why)
{
    struct base_string text = d->rules->chat_template;
    enum status status = STATUS_OK;
    if (d->chat)
        return STATUS_OK;
    if (!text.data)
        status = model_tokenizer_chat_template(d->rules->tokenizer, &text, why);
    if (!status && text.n_bytes == 0)
        return status_fail(why, STATUS_FORMAT,
                           "is a conversation, but the model has no chat template (its file lacks "
                           "tokenizer.chat_template); give one with --chat-template");
    struct base_digest *digest = status ? NULL : base_digest_open();
    base_digest_add(digest, text.data, text.n_bytes);
    if (!status)
        status = base_digest_close(digest, d->template_sha256, why);
    return status
               ? status
               : model_chat_open(&d->chat, text, d->rules->tokenizer, &jinja_default_limits, why);
}

/** Whether a token of bytes from .. from+n-1 has some of a span; one of no bytes lies in it. */
static bool overlaps(const struct jinja_span *span, size_t from, size_t n)
{
    return from < span->to && from + n + (n == 0) > span->from;
}

/** A text's tokens with which of them the spans score; BOS stands in front once, if it is asked
 * for. */
static enum status add_rendered(struct eval_documents *d, const struct eval_document_head *head,
                                const struct eval_stream *stream,
                                const struct model_chat_text *text, struct status_why *why)
{
    const struct model_tokenizer *t = d->rules->tokenizer;
    bool twice = stream->has_bos && stream->n > 1 && stream->ids[1] == model_token_bos(t);
    size_t at = 0, span = 0;
    uint8_t *scored;
    if (base_array_new(scored, stream->n, "tokens", why))
        return STATUS_MEMORY;
    for (size_t i = 0; i < stream->n; i++) {
        size_t n = stream->n_text_bytes[i];
        while (span < text->n_spans && text->spans[span].to <= at)
            span++;
        for (size_t k = span; k < text->n_spans && text->spans[k].from <= at + n; k++)
            scored[i] |= overlaps(&text->spans[k], at, n);
        at += n;
    }
    const struct eval_document_tokens tokens = {stream->ids + twice, stream->n - twice,
                                                stream->n_text_bytes + twice, scored + twice};
    enum status status = eval_documents_add(d, head, &tokens, why);
    d->stream.has_bos |= stream->has_bos && !twice;
    d->stream.n_dropped += stream->n_dropped;
    free(scored);
    return status;
}

static void refuse(struct eval_refused *r, size_t line, const struct status_why *why)
{
    if (r->n_of_file == 0)
        r->why = *why;
    if (r->n_of_file < EVAL_REFUSED_NAMED)
        r->lines[r->n_of_file] = line;
    r->n_of_file++;
    r->n++;
}

void eval_refused_lines(char *out, size_t capacity, const struct eval_refused *r)
{
    size_t named = base_min(r->n_of_file, (size_t)EVAL_REFUSED_NAMED), more = r->n_of_file - named;
    size_t used = 0;
    for (size_t i = 0; i < named && used < capacity; i++)
        used += (size_t)snprintf(out + used, capacity - used, "%s%zu",
                                 i == 0                      ? ""
                                 : i + 1 < named || more > 0 ? ", "
                                                             : " and ",
                                 r->lines[i]);
    if (more > 0 && used < capacity)
        snprintf(out + used, capacity - used, " and %zu more", more);
}

/** Render a conversation, within what is left of the file's time. That it is refused is told apart.
 */
static enum status render(struct eval_documents *d, const cJSON *object, struct base_string bytes,
                          struct model_chat_text *text, bool *refused, struct status_why *why)
{
    double begin = base_clock_thread_seconds(), most = d->rules->chat_seconds;
    enum status status = open_chat(d, why);
    if (!status)
        status = model_chat_render(d->chat, object, bytes, d->rules->mask, text, why);
    *refused = text->refused;
    d->chat_seconds += base_clock_thread_seconds() - begin;
    if ((!status || *refused) && most > 0 && d->chat_seconds > most) {
        *refused = false;
        status = status_fail(why, STATUS_UNSUPPORTED,
                             "chat template: took more than %g seconds of processor time for the "
                             "conversations up to this one, the limit of a file",
                             most);
    }
    return status;
}

enum status eval_documents_add_chat(struct eval_documents *d, const struct eval_document_head *head,
                                    const cJSON *object, struct base_string bytes,
                                    struct status_why *why)
{
    const struct eval_stream_options options = {.bos_in_front = true, .parse_special = true};
    struct model_chat_text text = {0};
    struct eval_stream stream = {0};
    bool refused;
    enum status status = render(d, object, bytes, &text, &refused, why);
    if (refused) {
        refuse(&d->refused, head->line, why);
        return STATUS_OK;
    }
    const struct base_text borrowed = {.data = text.text, .n_bytes = text.n_bytes};
    if (!status)
        status = eval_stream_make(&stream, d->rules->tokenizer, &borrowed, &options, why);
    if (!status)
        status = model_chat_markers_find(&d->markers, d->rules->tokenizer, &text, bytes, why);
    if (!status)
        status = add_rendered(d, head, &stream, &text, why);
    if (!status)
        d->files[d->n_files - 1].n_crlf += base_count_crlf(text.text, text.n_bytes);
    d->n_conversations += !status;
    d->mask = d->rules->mask;
    eval_stream_free(&stream);
    model_chat_text_free(&text);
    return status;
}

/** Which of the two texts is scored, as a rendering says it. */
static size_t spans_of_prompt(struct jinja_span *span, size_t n_prompt, size_t n,
                              enum model_chat_mask mask)
{
    *span = (struct jinja_span){mask == MODEL_CHAT_ASSISTANT ? n_prompt : 0,
                                mask == MODEL_CHAT_USER ? n_prompt : n};
    return span->from < span->to;
}

enum status eval_documents_add_prompt(struct eval_documents *d,
                                      const struct eval_document_head *head,
                                      struct base_string prompt, struct base_string completion,
                                      struct status_why *why)
{
    const struct eval_stream_options options = {.bos_in_front = true,
                                                .parse_special = d->rules->parse_special};
    struct base_buffer joined = {0};
    struct jinja_span span;
    struct eval_stream stream = {0};
    base_buffer_add(&joined, prompt.data, prompt.n_bytes);
    base_buffer_add(&joined, completion.data, completion.n_bytes);
    enum status status = base_buffer_check(&joined, "a prompt", why);
    const struct base_text borrowed = {.data = joined.data, .n_bytes = joined.n};
    const struct model_chat_text text = {
        .text = joined.data,
        .n_bytes = joined.n,
        .spans = &span,
        .n_spans = spans_of_prompt(&span, prompt.n_bytes, joined.n, d->rules->mask)};
    if (!status)
        status = eval_stream_make(&stream, d->rules->tokenizer, &borrowed, &options, why);
    if (!status)
        status = add_rendered(d, head, &stream, &text, why);
    d->files[d->n_files - 1].n_crlf += joined.n ? base_count_crlf(joined.data, joined.n) : 0;
    d->n_conversations += !status;
    d->mask = d->rules->mask;
    eval_stream_free(&stream);
    base_buffer_free(&joined);
    return status;
}

/** Read a list of whole numbers from 0 to below `limit`. */
static enum status read_numbers(int32_t *out, const cJSON *list, const char *name, size_t limit,
                                struct status_why *why)
{
    size_t i = 0;
    for (const cJSON *item = list->child; item; item = item->next, i++) {
        double x = cJSON_IsBool(item) ? cJSON_IsTrue(item) : item->valuedouble;
        bool is_number = cJSON_IsNumber(item) || (limit == 2 && cJSON_IsBool(item));
        if (!is_number || x != floor(x) || x < 0 || x >= (double)limit)
            return status_fail(why, STATUS_FORMAT, "number %zu of \"%s\" is not among 0 to %zu",
                               i + 1, name, limit - 1);
        out[i] = (int32_t)x;
    }
    return STATUS_OK;
}

enum status eval_documents_add_ids(struct eval_documents *d, const struct eval_document_head *head,
                                   const cJSON *ids, const cJSON *mask, struct status_why *why)
{
    size_t n = (size_t)cJSON_GetArraySize(ids);
    if (!cJSON_IsArray(ids) || n == 0)
        return status_fail(why, STATUS_FORMAT, "expected \"ids\" with a list of token ids");
    if (mask && (!cJSON_IsArray(mask) || (size_t)cJSON_GetArraySize(mask) != n))
        return status_fail(why, STATUS_FORMAT,
                           "expected \"mask\" with a list of %zu numbers, one for each of \"ids\"",
                           n);
    const struct model_tokenizer *t = d->rules->tokenizer;
    int32_t *numbers = calloc(2 * n, sizeof *numbers);
    uint32_t *n_bytes = calloc(n, sizeof *n_bytes);
    uint8_t *scored = malloc(n);
    enum status status = STATUS_OK;
    if (!numbers || !n_bytes || !scored)
        status = status_fail(why, STATUS_MEMORY, "no memory for %zu ids", n);
    if (!status)
        status = read_numbers(numbers, ids, "ids", model_n_vocab(t), why);
    if (!status && mask)
        status = read_numbers(numbers + n, mask, "mask", 2, why);
    for (size_t i = 0; i < n && !status; i++) {
        scored[i] = !mask || numbers[n + i];
        if (model_token_type(t, numbers[i]) != MODEL_TOKEN_CONTROL)
            n_bytes[i] = (uint32_t)model_token_bytes(t, numbers[i], NULL, 0);
    }
    if (!status)
        status = eval_documents_add(
            d, head, &(struct eval_document_tokens){numbers, n, n_bytes, scored}, why);
    free(numbers);
    free(n_bytes);
    free(scored);
    return status;
}

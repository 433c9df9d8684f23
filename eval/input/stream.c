#include "eval/input/stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/** A stream under construction: ids and lengths grow together. */
struct builder {
    const struct model_tokenizer *tokenizer;
    bool parse_special;
    struct model_tokens tokens;
    uint32_t *n_text_bytes;
    size_t capacity; /* of n_text_bytes */
};

/** Room for a length beside every id. */
static enum status size_lengths(struct builder *b, struct status_why *why)
{
    return base_array_reserve(b->n_text_bytes, b->capacity, b->tokens.n, "tokens", why);
}

/** Append the ids of one piece of text and the bytes that each of them stands for. */
static enum status add_piece(struct builder *b, const char *text, size_t n_bytes,
                             struct status_why *why)
{
    size_t from = b->tokens.n;
    enum status status =
        model_tokenize(b->tokenizer, text, n_bytes, b->parse_special, &b->tokens, why);
    if (!status)
        status = size_lengths(b, why);
    if (status)
        return status;
    size_t at = 0;
    for (size_t i = from; i < b->tokens.n; i++) {
        size_t n = model_token_span(b->tokenizer, b->tokens.ids[i], text + at, n_bytes - at);
        b->n_text_bytes[i] = (uint32_t)n;
        at = n < n_bytes - at ? at + n : n_bytes;
    }
    return STATUS_OK;
}

static enum status add_bos(struct builder *b, struct status_why *why)
{
    enum status status = model_tokens_add(&b->tokens, model_token_bos(b->tokenizer), why);
    if (!status)
        status = size_lengths(b, why);
    if (!status)
        b->n_text_bytes[0] = 0;
    return status;
}

/** Each line with its newline; the last may lack one. */
static enum status add_lines(struct builder *b, const struct base_text *text,
                             struct status_why *why)
{
    enum status status = STATUS_OK;
    size_t n = 0;
    for (size_t at = 0; at < text->n_bytes && !status; at += n) {
        const char *newline = memchr(text->data + at, '\n', text->n_bytes - at);
        n = newline ? (size_t)(newline - text->data) + 1 - at : text->n_bytes - at;
        status = add_piece(b, text->data + at, n, why);
    }
    return status;
}

enum status eval_stream_make(struct eval_stream *out, const struct model_tokenizer *tokenizer,
                             const struct base_text *text,
                             const struct eval_stream_options *options, struct status_why *why)
{
    *out = (struct eval_stream){0};
    struct builder b = {.tokenizer = tokenizer, .parse_special = options->parse_special};
    enum status status = STATUS_OK;
    out->has_bos = options->bos_in_front && model_adds_bos(tokenizer);
    if (out->has_bos)
        status = add_bos(&b, why);
    if (!status)
        status = options->split_lines ? add_lines(&b, text, why)
                                      : add_piece(&b, text->data, text->n_bytes, why);
    out->ids = b.tokens.ids;
    out->n_dropped = b.tokens.n_dropped;
    out->n = b.tokens.n;
    out->n_text_bytes = b.n_text_bytes;
    if (!status)
        status = base_sha256_ids(out->sha256, out->ids, out->n, why);
    if (status)
        eval_stream_free(out);
    return status;
}

enum status eval_stream_of_ids(struct eval_stream *out, const int32_t *ids, size_t n,
                               struct status_why *why)
{
    *out = (struct eval_stream){.n = n};
    enum status status = base_array_new(out->ids, n, "tokens", why);
    if (!status)
        status = base_array_new(out->n_text_bytes, n, "tokens", why);
    if (!status && n)
        memcpy(out->ids, ids, n * sizeof *ids);
    if (!status)
        status = base_sha256_ids(out->sha256, out->ids, out->n, why);
    if (status)
        eval_stream_free(out);
    return status;
}

void eval_stream_free(struct eval_stream *stream)
{
    free(stream->ids);
    free(stream->n_text_bytes);
    *stream = (struct eval_stream){0};
}

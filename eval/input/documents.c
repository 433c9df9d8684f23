#include "eval/input/documents.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/content/kind.h"

static enum status no_memory(struct status_why *why)
{
    return status_fail(why, STATUS_MEMORY, "no memory for the documents of the text");
}

enum status eval_documents_begin_file(struct eval_documents *d, const char *path,
                                      const struct base_text *text, struct status_why *why)
{
    if (base_array_reserve(d->files, d->file_capacity, d->n_files + 1, "files", why) ||
        base_array_reserve(d->paths, d->path_capacity, d->n_files + 1, "files", why))
        return STATUS_MEMORY;
    d->paths[d->n_files] = strdup(path);
    if (!d->paths[d->n_files])
        return no_memory(why);
    struct eval_document_file *file = &d->files[d->n_files++];
    *file = (struct eval_document_file){
        .n_bytes = text->file_bytes,
        .converted_from = text->converted_from,
        .first = d->n,
        .is_page = base_file_kind((struct base_string){text->data, text->n_bytes})};
    memcpy(file->sha256, text->sha256, sizeof file->sha256);
    d->chat_seconds = 0;
    return STATUS_OK;
}

static enum status find_category(struct eval_documents *d, struct base_string name, int32_t *out,
                                 struct status_why *why)
{
    *out = name.n_bytes ? base_strtab_find(&d->categories, name) : EVAL_NO_CATEGORY;
    if (name.n_bytes == 0 || *out >= 0)
        return STATUS_OK;
    char *copy = strndup(name.data, name.n_bytes);
    if (!copy)
        return no_memory(why);
    enum status status =
        base_strtab_add(&d->categories, (struct base_string){copy, name.n_bytes}, out, why);
    if (status)
        free(copy);
    return status;
}

/** Room for n tokens more. */
static enum status grow(struct eval_documents *d, size_t n, struct status_why *why)
{
    struct eval_stream *s = &d->stream;
    size_t wanted = s->n + n + 1;
    enum status status = base_array_reserve(s->ids, d->id_capacity, wanted, "tokens", why);
    if (!status)
        status = base_array_reserve(s->n_text_bytes, d->byte_capacity, wanted, "tokens", why);
    if (!status)
        status = base_array_reserve(d->scored, d->scored_capacity, wanted, "tokens", why);
    return status ? status : base_array_reserve(d->items, d->capacity, d->n + 1, "documents", why);
}

enum status eval_documents_add(struct eval_documents *d, const struct eval_document_head *head,
                               const struct eval_document_tokens *tokens, struct status_why *why)
{
    struct eval_stream *s = &d->stream;
    struct eval_document added = {
        .file = d->n_files - 1, .line = head->line, .first = s->n, .n_tokens = tokens->n};
    enum status status = grow(d, tokens->n, why);
    if (!status)
        status = find_category(d, head->category, &added.category, why);
    if (!status && head->id.data) {
        added.id = strndup(head->id.data, head->id.n_bytes);
        status = added.id ? STATUS_OK : no_memory(why);
    }
    if (status)
        return status;
    for (size_t i = 0; i < tokens->n; i++, s->n++) {
        s->ids[s->n] = tokens->ids[i];
        s->n_text_bytes[s->n] = tokens->n_text_bytes ? tokens->n_text_bytes[i] : 0;
        d->scored[s->n] = i > 0 && (!tokens->scored || tokens->scored[i]);
        added.n_scored += d->scored[s->n];
    }
    d->n_scored += added.n_scored;
    d->items[d->n++] = added;
    d->files[added.file].n++;
    return STATUS_OK;
}

enum status eval_documents_add_text(struct eval_documents *d, const struct eval_document_head *head,
                                    struct base_string text, struct status_why *why)
{
    const struct eval_stream_options options = {.bos_in_front = true,
                                                .parse_special = d->rules->parse_special};
    const struct base_text borrowed = {.data = (char *)(uintptr_t)text.data,
                                       .n_bytes = text.n_bytes};
    struct eval_stream stream;
    enum status status = eval_stream_make(&stream, d->rules->tokenizer, &borrowed, &options, why);
    if (!status)
        status = eval_documents_add(
            d, head,
            &(struct eval_document_tokens){stream.ids, stream.n, stream.n_text_bytes, NULL}, why);
    d->files[d->n_files - 1].n_crlf += base_count_crlf(text.data, text.n_bytes);
    d->files[d->n_files - 1].n_marks += base_text_has_mark(&borrowed);
    d->stream.has_bos |= stream.has_bos;
    d->stream.n_dropped += stream.n_dropped;
    eval_stream_free(&stream);
    return status;
}

enum status eval_documents_end(struct eval_documents *d, struct status_why *why)
{
    if (d->n_scored == 0)
        return status_fail(why, STATUS_FORMAT,
                           "%zu document%s with %zu token%s: none of them is scored; expected a "
                           "document with a token that has another before it",
                           d->n, status_plural(d->n), d->stream.n, status_plural(d->stream.n));
    struct base_digest *digest = base_digest_open();
    for (size_t i = 0; i < d->n; i++) {
        const struct eval_document *item = &d->items[i];
        uint64_t numbers[] = {item->n_tokens, 0};
        struct base_string category = {NULL, 0};
        if (item->category != EVAL_NO_CATEGORY)
            category = d->categories.strings[item->category];
        numbers[1] = category.n_bytes;
        base_digest_add(digest, numbers, sizeof numbers);
        base_digest_add(digest, category.data, category.n_bytes);
        base_digest_add(digest, d->scored + item->first, item->n_tokens);
    }
    enum status status = base_digest_close(digest, d->sha256, why);
    digest = status ? NULL : base_digest_open();
    for (size_t i = 0; i < d->n_files && digest; i++)
        base_digest_add(digest, d->files[i].sha256, strlen(d->files[i].sha256));
    if (!status)
        status = base_digest_close(digest, d->text_sha256, why);
    return status ? status : base_sha256_ids(d->stream.sha256, d->stream.ids, d->stream.n, why);
}

void eval_documents_free(struct eval_documents *d)
{
    for (size_t i = 0; i < d->n; i++)
        free(d->items[i].id);
    for (size_t i = 0; i < d->n_files; i++)
        free(d->paths[i]);
    for (size_t i = 0; i < d->categories.n; i++)
        free((char *)(uintptr_t)d->categories.strings[i].data);
    base_strtab_free(&d->categories);
    free(d->items);
    free(d->files);
    free(d->paths);
    free(d->scored);
    model_chat_close(d->chat);
    model_chat_markers_free(&d->markers);
    eval_stream_free(&d->stream);
    *d = (struct eval_documents){0};
}

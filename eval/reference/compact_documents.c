#include "eval/reference/compact_documents.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "eval/reference/compact_file.h"

void eval_compact_documents_count(struct eval_compact_layout *l, const struct eval_documents *d)
{
    l->n_documents = d->n;
    l->n_files = d->n_files;
    l->n_categories = d->categories.n;
    l->n_names = 0;
    for (size_t i = 0; i < d->n_files; i++)
        l->n_names += strlen(d->paths[i]) + 1;
    for (size_t i = 0; i < d->categories.n; i++)
        l->n_names += d->categories.strings[i].n_bytes + 1;
    for (size_t i = 0; i < d->n; i++)
        l->n_names += d->items[i].id ? strlen(d->items[i].id) + 1 : 0;
}

/** Write a name and the zero byte after it, which is there already. */
static uint8_t *put_name(uint8_t *out, const char *name, size_t n_bytes)
{
    memcpy(out, name, n_bytes);
    return out + n_bytes + 1;
}

enum status eval_compact_documents_encode(uint8_t **out, const struct eval_documents *d,
                                          const struct eval_compact_offsets *at,
                                          struct status_why *why)
{
    uint8_t *bytes, *name;
    if (base_array_new(bytes, (size_t)at->documents_bytes, "bytes of documents", why))
        return STATUS_MEMORY;
    *out = bytes;
    name = bytes + (at->names - at->files);
    for (size_t i = 0; i < d->n_files; i++) {
        struct eval_compact_text file = {.n_bytes = d->files[i].n_bytes};
        base_digest_from_hex(file.sha256, d->files[i].sha256);
        memcpy(bytes + i * sizeof file, &file, sizeof file);
        name = put_name(name, d->paths[i], strlen(d->paths[i]));
    }
    for (size_t i = 0; i < d->categories.n; i++)
        name = put_name(name, d->categories.strings[i].data, d->categories.strings[i].n_bytes);
    for (size_t i = 0; i < d->n; i++) {
        const struct eval_document *item = &d->items[i];
        struct eval_compact_document document = {.n_tokens = item->n_tokens,
                                                 .line = item->line,
                                                 .file = (uint32_t)item->file,
                                                 .category = item->category,
                                                 .has_id = item->id != NULL};
        memcpy(bytes + (at->documents - at->files) + i * sizeof document, &document,
               sizeof document);
        if (item->id)
            name = put_name(name, item->id, strlen(item->id));
    }
    uint8_t *scored = bytes + (at->scored - at->files);
    for (size_t i = 0; i < d->n; i++)
        memcpy(scored + d->items[i].first, d->scored + d->items[i].first, d->items[i].n_tokens);
    return STATUS_OK;
}

/* Reading: documents are added as they were read from their files. */

struct reader {
    const struct eval_compact_file *file;
    struct eval_documents *out;
    struct base_string *categories; /* [n_categories] */
    const char *name, *names_end;   /* the next name */
    size_t token;                   /* the next one */
};

static enum status take_name(struct reader *r, struct base_string *out, struct status_why *why)
{
    const char *end = memchr(r->name, '\0', (size_t)(r->names_end - r->name));
    if (!end)
        return status_fail(why, STATUS_FORMAT,
                           "the names of the documents end early: expected a zero byte after each");
    *out = (struct base_string){r->name, (size_t)(end - r->name)};
    r->name = end + 1;
    return STATUS_OK;
}

static struct eval_compact_document document_of(const struct eval_compact_file *file, size_t i)
{
    struct eval_compact_document document;
    memcpy(&document, file->bytes + file->offsets.documents + i * sizeof document, sizeof document);
    return document;
}

static enum status refuse(size_t i, const char *field, uint64_t found, uint64_t least,
                          uint64_t most, struct status_why *why)
{
    return status_fail(why, STATUS_FORMAT,
                       "document %zu: %s is %" PRIu64 "; expected %" PRIu64 " to %" PRIu64, i,
                       field, found, least, most);
}

/** Check the fields of document i, and which of its tokens are scored. */
static enum status check_document(const struct reader *r, size_t i,
                                  const struct eval_compact_document *d, struct status_why *why)
{
    const struct eval_compact_layout *l = &r->file->layout;
    uint64_t left = l->n_tokens - r->token, least = i + 1 == l->n_documents ? left : 0;
    uint64_t first_file = r->out->n_files ? r->out->n_files - 1 : 0;
    if (d->n_tokens < least || d->n_tokens > left)
        return refuse(i, "the number of tokens", d->n_tokens, least, left, why);
    if (d->file < first_file || d->file >= l->n_files)
        return refuse(i, "the number of its file", d->file, first_file, l->n_files - 1, why);
    if (d->category < EVAL_NO_CATEGORY || d->category >= (int64_t)l->n_categories)
        return status_fail(why, STATUS_FORMAT,
                           "document %zu: its category is %" PRId32
                           "; expected -1 (none) to %" PRId64,
                           i, d->category, (int64_t)l->n_categories - 1);
    if (d->has_id > 1 || d->zero)
        return refuse(i, d->zero ? "its last field" : "the mark of a name",
                      d->zero ? d->zero : d->has_id, 0, !d->zero, why);
    const uint8_t *scored = r->file->bytes + r->file->offsets.scored + r->token;
    for (size_t k = 0; k < d->n_tokens; k++)
        if (scored[k] > (k > 0))
            return status_fail(why, STATUS_FORMAT,
                               "document %zu: the mark of its token %zu is %u; expected 0%s", i, k,
                               scored[k], k ? " or 1 (scored)" : ", as nothing predicts it");
    return STATUS_OK;
}

/** Begin the files up to one. */
static enum status begin_files(struct reader *r, size_t file, const struct base_string *names,
                               struct status_why *why)
{
    enum status status = STATUS_OK;
    while (r->out->n_files <= file && !status) {
        struct eval_compact_text stored;
        size_t i = r->out->n_files;
        memcpy(&stored, r->file->bytes + r->file->offsets.files + i * sizeof stored, sizeof stored);
        struct base_text text = {.file_bytes = (size_t)stored.n_bytes};
        base_digest_hex(text.sha256, stored.sha256);
        status = eval_documents_begin_file(r->out, names[i].data, &text, why);
    }
    return status;
}

static enum status add_document(struct reader *r, size_t i, struct status_why *why)
{
    const struct eval_compact_file *file = r->file;
    struct eval_compact_document d = document_of(file, i);
    struct eval_document_head head = {.line = (size_t)d.line};
    enum status status = STATUS_OK;
    if (d.category != EVAL_NO_CATEGORY)
        head.category = r->categories[d.category];
    if (d.has_id)
        status = take_name(r, &head.id, why);
    const struct eval_document_tokens tokens = {
        .ids = (const int32_t *)(const void *)(file->bytes + file->offsets.tokens) + r->token,
        .n = (size_t)d.n_tokens,
        .n_text_bytes =
            (const uint32_t *)(const void *)(file->bytes + file->offsets.lengths) + r->token,
        .scored = file->bytes + file->offsets.scored + r->token,
    };
    r->token += tokens.n;
    if (!status)
        status = eval_documents_add(r->out, &head, &tokens, why);
    if (!status && r->out->items[i].category != d.category)
        status = status_fail(why, STATUS_FORMAT,
                             "document %zu: its category, %" PRId32 ", is not the next new one: "
                             "expected the order in which documents have them",
                             i, d.category);
    return status;
}

/** Documents and files, whose names and categories were found. */
static enum status add_all(struct reader *r, const struct base_string *names,
                           struct status_why *why)
{
    const struct eval_compact_layout *l = &r->file->layout;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < l->n_documents && !status; i++) {
        struct eval_compact_document d = document_of(r->file, i);
        status = check_document(r, i, &d, why);
        if (!status)
            status = begin_files(r, d.file, names, why);
        if (!status)
            status = add_document(r, i, why);
    }
    if (!status)
        status = begin_files(r, (size_t)l->n_files - 1, names, why);
    if (!status && r->name != r->names_end)
        status = status_fail(why, STATUS_FORMAT,
                             "%zu bytes follow the last name of the documents; expected none",
                             (size_t)(r->names_end - r->name));
    if (!status && r->out->categories.n != l->n_categories)
        status = status_fail(why, STATUS_FORMAT,
                             "%" PRIu64 " categories have names; the documents have %zu of them",
                             l->n_categories, r->out->categories.n);
    r->out->stream.has_bos = l->bos_in_stream;
    return status ? status : eval_documents_end(r->out, why);
}

enum status eval_compact_documents(struct eval_documents *out, const struct eval_compact_file *file,
                                   struct status_why *why)
{
    const struct eval_compact_layout *l = &file->layout;
    *out = (struct eval_documents){0};
    struct reader r = {.file = file, .out = out};
    struct base_string *names = NULL; /* of files, then of categories */
    size_t n = (size_t)(l->n_files + l->n_categories);
    enum status status = base_array_new(names, n, "names", why);
    r.name = (const char *)file->bytes + file->offsets.names;
    r.names_end = r.name + l->n_names;
    for (size_t i = 0; i < n && !status; i++)
        status = take_name(&r, &names[i], why);
    r.categories = names + l->n_files;
    if (!status)
        status = add_all(&r, names, why);
    free(names);
    if (status)
        eval_documents_free(out);
    return status;
}

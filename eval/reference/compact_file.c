#include "eval/reference/compact_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "eval/identity.h"
#include "gguf/cursor.h"

/** Refuse bytes that do not have this SHA-256. */
static enum status check_part(const void *bytes, uint64_t n_bytes,
                              const uint8_t expected[BASE_SHA256_BYTES], const char *what,
                              struct status_why *why)
{
    uint8_t found[BASE_SHA256_BYTES];
    enum status status = eval_compact_sha256(found, bytes, (size_t)n_bytes, why);
    if (!status && memcmp(found, expected, sizeof found) != 0)
        status = status_fail(why, STATUS_FORMAT,
                             "%s not match the checksum in the header: the file is damaged", what);
    return status;
}

/** Whether the rows of window w, all of which must be there, have the checksum of their check. */
static enum status window_matches(const struct eval_compact_file *file, size_t w, bool *matches,
                                  struct status_why *why)
{
    const struct eval_compact_offsets *at = &file->offsets;
    const uint8_t *check = file->bytes + at->checks + w * EVAL_COMPACT_CHECK_BYTES;
    uint8_t found[BASE_SHA256_BYTES];
    struct base_digest *digest = base_digest_open();
    uint64_t first = eval_compact_first_row(file, w);
    base_digest_add(digest, eval_compact_rows_at(file, first),
                    (size_t)((eval_compact_first_row(file, w + 1) - first) * at->row_bytes));
    base_digest_add(digest, check, EVAL_COMPACT_CHECK_COVERED);
    enum status status = base_digest_close_bytes(digest, found, why);
    *matches = memcmp(found, check + EVAL_COMPACT_CHECK_COVERED, sizeof found) == 0 &&
               eval_compact_check_of(file, w).window == w;
    return status;
}

/** The sentence for a file that is shorter than its header says. */
static enum status truncated(const struct eval_compact_file *file, struct status_why *why)
{
    const struct eval_compact_offsets *at = &file->offsets;
    uint64_t n_bytes = file->n_bytes, n_rows = n_bytes > at->rows ? n_bytes - at->rows : 0;
    uint64_t n_there = at->window_bytes ? n_rows / at->window_bytes : 0;
    uint64_t n_whole = 0;
    bool matches = true;
    if (file->layout.n_documents) /* whose windows are not known yet */
        return status_fail(why, STATUS_FORMAT,
                           "has %" PRIu64 " bytes; expected %" PRIu64
                           ": the file is cut off; record it again",
                           n_bytes, at->end);
    for (uint64_t w = 0; w < n_there; w++) {
        if (window_matches(file, w, &matches, why))
            break;
        n_whole += matches;
    }
    return status_fail(why, STATUS_FORMAT,
                       "has %" PRIu64 " bytes; expected %" PRIu64 ": the file is cut off, %" PRIu64
                       " of its %" PRIu64 " window%s whole; record it again",
                       n_bytes, at->end, n_whole, file->layout.n_windows,
                       file->layout.n_windows == 1 ? " is" : "s are");
}

static enum status check_size(const struct eval_compact_file *file, struct status_why *why)
{
    if (file->n_bytes < file->offsets.end)
        return truncated(file, why);
    if (file->n_bytes > file->offsets.end)
        return status_fail(why, STATUS_FORMAT,
                           "has %zu bytes; expected %" PRIu64 ", as the header says", file->n_bytes,
                           file->offsets.end);
    return STATUS_OK;
}

static enum status check_parts(const struct eval_compact_file *file, struct status_why *why)
{
    const struct eval_compact_layout *l = &file->layout;
    const struct eval_compact_offsets *at = &file->offsets;
    const struct {
        uint64_t offset, n_bytes;
        const uint8_t *sha256;
        const char *what;
    } parts[] = {
        {at->tokens, l->n_tokens * sizeof(int32_t), l->tokens, "the tokens do"},
        {at->lengths, l->n_tokens * sizeof(uint32_t), l->lengths, "the lengths of the tokens do"},
        {at->description, l->n_description, l->description, "the description does"},
        {at->path, l->n_path, l->path, "the head's path does"},
        {at->bias, at->bias_bytes, l->bias, "the head's bias does"},
        {at->head, at->head_bytes, l->head, "the head does"},
        {at->files, at->documents_bytes, l->documents, "the documents do"},
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !status; i++)
        if ((l->has_bias || parts[i].sha256 != l->bias) &&
            (!l->by_path || parts[i].sha256 != l->head) &&
            (l->n_documents || parts[i].sha256 != l->documents))
            status = check_part(file->bytes + parts[i].offset, parts[i].n_bytes, parts[i].sha256,
                                parts[i].what, why);
    return status;
}

/** Check that there is nothing between the sections. */
static enum status check_gaps(const struct eval_compact_file *file, struct status_why *why)
{
    const struct eval_compact_layout *l = &file->layout;
    const struct eval_compact_offsets *at = &file->offsets;
    const uint64_t gaps[][2] = {
        {at->tokens + l->n_tokens * sizeof(int32_t), at->lengths},
        {at->lengths + l->n_tokens * sizeof(uint32_t), at->description},
        {at->description + l->n_description, at->path},
        {at->path + l->n_path, at->bias},
        {at->bias + at->bias_bytes, at->head},
        {at->head + at->head_bytes, at->files},
        {at->files + l->n_files * sizeof(struct eval_compact_text), at->documents},
        {at->documents + l->n_documents * sizeof(struct eval_compact_document), at->names},
        {at->names + l->n_names, at->scored},
        {at->scored + (l->n_documents ? l->n_tokens : 0), at->checks},
        {at->checks + l->n_windows * EVAL_COMPACT_CHECK_BYTES, at->rows},
    };
    for (size_t i = 0; i < sizeof gaps / sizeof *gaps; i++)
        for (uint64_t k = gaps[i][0]; k < gaps[i][1]; k++)
            if (file->bytes[k])
                return status_fail(why, STATUS_FORMAT,
                                   "byte %" PRIu64 ", between two parts, is %u; expected 0: the "
                                   "file is damaged",
                                   k, file->bytes[k]);
    return STATUS_OK;
}

static enum status check_tokens(const struct eval_compact_file *file, struct status_why *why)
{
    for (uint64_t i = 0; i < file->layout.n_tokens; i++) {
        uint32_t id = gguf_load_u32(file->bytes + file->offsets.tokens + i * sizeof id);
        if (id >= file->layout.n_vocab)
            return status_fail(why, STATUS_FORMAT,
                               "token %" PRIu64 " has the id %" PRId32 "; expected 0 to %" PRIu64,
                               i, (int32_t)id, file->layout.n_vocab - 1);
    }
    return STATUS_OK;
}

/** What the object has beside the bytes. */
static enum status take_parts(struct eval_compact_file *file, struct status_why *why)
{
    const struct eval_compact_layout *l = &file->layout;
    const struct eval_compact_offsets *at = &file->offsets;
    file->description = (const char *)file->bytes + at->description;
    if (base_array_new(file->checked, l->n_windows, "windows", why))
        return STATUS_MEMORY;
    file->head = (struct kern_weight){
        .type = l->head_type,
        .n_rows = (size_t)l->n_vocab,
        .n_cols = (size_t)l->width,
        .row_bytes = (size_t)at->head_row_bytes,
        .data = l->by_path ? NULL : file->bytes + at->head,
        .scale = l->head_scale,
        .generation = kern_next_generation(),
    };
    if (l->has_bias)
        file->bias = (struct kern_weight){
            .type = l->bias_type,
            .n_rows = 1,
            .n_cols = (size_t)l->n_vocab,
            .row_bytes = (size_t)at->bias_bytes,
            .data = file->bytes + at->bias,
            .scale = l->head_scale,
            .generation = kern_next_generation(),
        };
    if (!l->by_path)
        return STATUS_OK;
    const char *path = (const char *)file->bytes + at->path;
    if (memchr(path, '\0', l->n_path))
        return status_fail(why, STATUS_FORMAT, "the head's path has a zero byte");
    file->head_path = strndup(path, l->n_path);
    return file->head_path ? STATUS_OK : status_fail(why, STATUS_MEMORY, "no memory for a path");
}

/** The windows of documents, which must be those that the header counts. */
static enum status lay_windows(struct eval_compact_file *file, struct status_why *why)
{
    const struct eval_compact_layout *l = &file->layout;
    if (!l->n_documents)
        return STATUS_OK;
    struct eval_documents documents;
    enum status status = eval_compact_documents(&documents, file, why);
    const struct eval_plan_options options = {.n_ctx = (size_t)l->n_ctx, .bos = l->bos};
    if (!status)
        status = eval_plan_make_documents(&file->plan, &options, &documents, why);
    eval_documents_free(&documents);
    if (status)
        return status;
    if (l->n_windows > file->plan.n_windows || file->plan.windows[l->n_windows].row != l->n_scored)
        return status_fail(why, STATUS_FORMAT,
                           "the documents have %zu windows of %" PRIu64 " tokens; expected %" PRIu64
                           " at least, with %" PRIu64 " scored positions in them",
                           file->plan.n_windows, l->n_ctx, l->n_windows, l->n_scored);
    return STATUS_OK;
}

enum status eval_compact_view(struct eval_compact_file *out, const char *name, const void *bytes,
                              size_t n_bytes, struct status_why *why)
{
    *out = (struct eval_compact_file){.name = name, .bytes = bytes, .n_bytes = n_bytes};
    enum status status =
        eval_compact_header_decode(&out->layout, &out->offsets, bytes, n_bytes, why);
    if (!status)
        status = check_size(out, why);
    if (!status)
        status = check_parts(out, why);
    if (!status)
        status = check_gaps(out, why);
    if (!status)
        status = check_tokens(out, why);
    if (!status)
        status = take_parts(out, why);
    if (!status)
        status = lay_windows(out, why);
    if (status) {
        status_context(why, "%s", name);
        eval_compact_close(out);
    }
    return status;
}

enum status eval_compact_open(struct eval_compact_file *out, const char *path,
                              struct status_why *why)
{
    struct gguf_map map;
    *out = (struct eval_compact_file){0};
    enum status status = gguf_map_open(&map, path, why);
    if (!status)
        status = eval_compact_view(out, path, map.data, map.n_bytes, why);
    if (status)
        gguf_map_close(&map);
    else
        out->map = map;
    return status;
}

void eval_compact_close(struct eval_compact_file *file)
{
    gguf_map_close(&file->map);
    eval_plan_free(&file->plan);
    free(file->head_path);
    free(file->checked);
    *file = (struct eval_compact_file){0};
}

enum status eval_compact_stream(struct eval_stream *out, const struct eval_compact_file *file,
                                struct status_why *why)
{
    const void *ids = file->bytes + file->offsets.tokens;
    size_t n = (size_t)file->layout.n_tokens;
    enum status status = eval_stream_of_ids(out, ids, n, why);
    if (status) {
        status_context(why, "%s", file->name);
        return status;
    }
    memcpy(out->n_text_bytes, file->bytes + file->offsets.lengths, n * sizeof *out->n_text_bytes);
    out->has_bos = file->layout.bos_in_stream;
    return STATUS_OK;
}

enum status eval_compact_id(char hex[BASE_HEX], const struct eval_compact_file *file,
                            struct status_why *why)
{
    struct base_digest *digest = base_digest_open();
    base_digest_add(digest, file->bytes, EVAL_COMPACT_HEADER_BYTES);
    base_digest_add(digest, file->bytes + file->offsets.checks,
                    (size_t)file->layout.n_windows * EVAL_COMPACT_CHECK_BYTES);
    return base_digest_close(digest, hex, why);
}

/** Check that texts begin as those of the recording. */
static enum status check_bos(const struct eval_compact_file *file, const struct model *model,
                             struct status_why *why)
{
    const struct model_tokenizer *tokenizer = model_tokenizer(model);
    int32_t bos = model_adds_bos(tokenizer) ? model_token_bos(tokenizer) : -1;
    if (bos == file->layout.bos)
        return STATUS_OK;
    return status_fail(why, STATUS_FORMAT,
                       "%s: its windows begin with BOS %" PRId32 ", those of %s with %" PRId32
                       " (-1: none); only what agrees can be compared",
                       gguf_path(model_file(model)), bos, file->name, file->layout.bos);
}

enum status eval_compact_check_vocab(const struct eval_compact_file *file,
                                     const struct model *model, size_t *n_common,
                                     struct status_why *why)
{
    const char *path = gguf_path(model_file(model));
    uint32_t n_vocab = model_hparams(model)->n_vocab;
    size_t n_base = (size_t)file->layout.n_vocab;
    char id[BASE_HEX], expected[BASE_HEX];
    enum status status = eval_vocab_id_with(id, model, file->layout.bos, n_base, why);
    base_digest_hex(expected, file->layout.vocab);
    bool same = !status && strcmp(id, expected) == 0;
    if (n_common)
        *n_common = base_min(n_vocab, n_base);
    if (!status && n_vocab != n_base && !(n_common && same))
        return status_fail(why, STATUS_FORMAT,
                           "%s: a head of %" PRIu32 " rows where %s has %" PRIu64
                           "; only models of the same vocabulary can be compared",
                           path, n_vocab, file->name, file->layout.n_vocab);
    if (!status && !same)
        return status_fail(why, STATUS_FORMAT,
                           "%s: the texts of its %" PRIu32 " tokens are not those that %s was "
                           "recorded with (vocabulary %.16s, expected %.16s); only models of the "
                           "same vocabulary can be compared",
                           path, n_vocab, file->name, id, expected);
    if (!status)
        status = check_bos(file, model, why);
    return status ? status : eval_check_further_tokens(model, n_base, file->name, why);
}

enum status eval_compact_take_head(struct eval_compact_file *file, const struct model *model,
                                   const char model_id[BASE_HEX], struct status_why *why)
{
    char expected[BASE_HEX];
    base_digest_hex(expected, file->layout.model);
    const char *path = gguf_path(model_file(model));
    const struct kern_weight *head = model_head(model);
    float cap = model_kern_head(model).soft_cap;
    if (strcmp(expected, model_id) != 0)
        return status_fail(why, STATUS_FORMAT,
                           "%s: another model than the one whose head %s needs: its id is %s, "
                           "expected %s",
                           path, file->name, model_id, expected);
    enum status status = STATUS_FORMAT;
    if (head->type == file->head.type && head->n_rows == file->head.n_rows &&
        head->n_cols == file->head.n_cols && head->row_bytes == file->head.row_bytes &&
        head->scale == file->head.scale && cap == file->layout.soft_cap)
        status = check_part(head->data, (uint64_t)head->n_rows * head->row_bytes, file->layout.head,
                            "the head does", NULL);
    if (status == STATUS_FORMAT)
        return status_fail(why, status, "%s: the head is not the one that %s was recorded with",
                           path, file->name);
    if (status)
        return status_fail(why, status, "%s: no memory to check the head", path);
    file->head = *head;
    file->head_file = model_file(model);
    return STATUS_OK;
}

struct eval_compact_check eval_compact_check_of(const struct eval_compact_file *file, size_t w)
{
    struct eval_compact_check check;
    memcpy(&check, file->bytes + file->offsets.checks + w * sizeof check, sizeof check);
    return check;
}

uint64_t eval_compact_first_row(const struct eval_compact_file *file, size_t w)
{
    return file->plan.windows ? file->plan.windows[w].row : w * file->layout.n_scored;
}

size_t eval_compact_window_of(const struct eval_compact_file *file, uint64_t row)
{
    if (!file->plan.windows)
        return (size_t)(row / file->layout.n_scored);
    size_t low = 0, high = (size_t)file->layout.n_windows;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        *(file->plan.windows[middle].row <= row ? &low : &high) = middle;
    }
    return low;
}

double eval_compact_window_bytes(const struct eval_compact_file *file)
{
    return (double)file->offsets.row_bytes *
           (double)(file->plan.windows ? file->plan.n_inputs : file->layout.n_scored);
}

const uint8_t *eval_compact_rows_at(const struct eval_compact_file *file, uint64_t row)
{
    return file->bytes + file->offsets.rows + row * file->offsets.row_bytes;
}

enum status eval_compact_check_window(struct eval_compact_file *file, size_t w,
                                      struct status_why *why)
{
    if (file->checked[w])
        return STATUS_OK;
    enum status status = window_matches(file, w, &file->checked[w], why);
    if (status)
        file->checked[w] = false;
    else if (!file->checked[w])
        status = status_fail(why, STATUS_FORMAT,
                             "%s: window %zu (from 0) does not match its checksum: the file is "
                             "damaged; record it again",
                             file->name, w);
    return status;
}

#include "gguf/safetensors/header.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/content/kind.h"
#include "base/json/parse.h"
#include "base/json/read.h"
#include "base/text/quote.h"
#include "gguf/cursor.h"

enum { LENGTH_BYTES = 8 };

/** A number of JSON as a count; false where it is no number, or beyond what a double holds exactly.
 */
static bool is_count(const cJSON *item, uint64_t *value)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= 0x1p53))
        return false;
    *value = (uint64_t)item->valuedouble;
    return (double)*value == item->valuedouble;
}

static enum status read_type(struct safetensors_tensor *t, const cJSON *item,
                             struct status_why *why)
{
    if (!cJSON_IsString(item))
        return status_fail(why, STATUS_FORMAT, "has no dtype, expected a text like \"BF16\"");
    struct base_quoted shown;
    t->type = safetensors_type_find(item->valuestring);
    if (t->type == SAFETENSORS_N_TYPES)
        return status_fail(
            why, STATUS_UNSUPPORTED, "has dtype %s, expected one like F32, BF16 or F8_E4M3",
            base_quote(&shown, (struct base_string){item->valuestring, strlen(item->valuestring)}));
    return STATUS_OK;
}

/** The shape, and from it the number of elements and bytes. */
static enum status read_shape(struct safetensors_tensor *t, const cJSON *item,
                              struct status_why *why)
{
    if (!cJSON_IsArray(item))
        return status_fail(why, STATUS_FORMAT, "has no shape, expected a list of numbers");
    t->n_elements = 1;
    for (size_t i = 0; i < SAFETENSORS_MAX_DIMS; i++)
        t->shape[i] = 1;
    for (const cJSON *n = item->child; n; n = n->next) {
        if (t->n_dims == SAFETENSORS_MAX_DIMS)
            return status_fail(why, STATUS_UNSUPPORTED, "has %d dimensions, expected at most %d",
                               cJSON_GetArraySize(item), SAFETENSORS_MAX_DIMS);
        if (!is_count(n, &t->shape[t->n_dims]))
            return status_fail(why, STATUS_FORMAT,
                               "dimension %" PRIu32 " is no whole number from 0 to 2^53",
                               t->n_dims);
        if (__builtin_mul_overflow(t->n_elements, t->shape[t->n_dims], &t->n_elements) ||
            t->n_elements > INT64_MAX / 64)
            return status_fail(why, STATUS_FORMAT,
                               "dimension %" PRIu32 " is %" PRIu64
                               ", expected a product of the dimensions below 2^57",
                               t->n_dims, t->shape[t->n_dims]);
        t->n_dims++;
    }
    uint64_t n_bits = t->n_elements * safetensors_type_bits(t->type);
    t->n_bytes = n_bits / 8;
    if (n_bits % 8 != 0)
        return status_fail(why, STATUS_FORMAT,
                           "has %" PRIu64 " elements of %u bits, expected whole bytes",
                           t->n_elements, safetensors_type_bits(t->type));
    return STATUS_OK;
}

/** data_offsets, which are those of the shape, and within the data section of n_data bytes. */
static enum status read_offsets(struct safetensors_tensor *t, const cJSON *item, uint64_t n_data,
                                struct status_why *why)
{
    uint64_t begin, end;
    const cJSON *second = cJSON_IsArray(item) && item->child ? item->child->next : NULL;
    if (!second || second->next || !is_count(item->child, &begin) || !is_count(second, &end))
        return status_fail(why, STATUS_FORMAT,
                           "has no data_offsets, expected a list of two whole numbers");
    if (begin > end || end - begin != t->n_bytes)
        return status_fail(why, STATUS_FORMAT,
                           "has data from byte %" PRIu64 " to %" PRIu64 ", expected %" PRIu64
                           " bytes: its dtype is %s and its shape has %" PRIu64 " elements",
                           begin, end, t->n_bytes, safetensors_type_name(t->type), t->n_elements);
    if (end > n_data)
        return status_fail(why, STATUS_FORMAT,
                           "has data up to byte %" PRIu64 ", but the file has %" PRIu64
                           " bytes after the header: an incomplete download?",
                           end, n_data);
    t->offset = begin;
    return STATUS_OK;
}

static enum status read_tensor(struct safetensors_tensor *t, const cJSON *item, uint64_t n_data,
                               struct status_why *why)
{
    if (!cJSON_IsObject(item) || cJSON_GetArraySize(item) != 3)
        return status_fail(why, STATUS_FORMAT,
                           "is no object of 3 members, expected dtype, shape and data_offsets");
    enum status status = read_type(t, base_json_member(item, "dtype"), why);
    if (!status)
        status = read_shape(t, base_json_member(item, "shape"), why);
    return status ? status : read_offsets(t, base_json_member(item, "data_offsets"), n_data, why);
}

static enum status append(struct safetensors_header *h, const char *name,
                          const struct safetensors_tensor *tensor, struct status_why *why)
{
    size_t n = h->names.n, capacity = h->capacity;
    int32_t number;
    enum status status = base_array_reserve(h->tensors, capacity, n + 1, "tensors", why);
    if (!status)
        status = base_array_reserve(h->name_texts, h->capacity, n + 1, "names", why);
    if (status)
        return status;
    char *copy = h->name_texts[n] = strdup(name);
    if (!copy)
        return status_fail(why, STATUS_MEMORY, "no memory for a name");
    status = base_strtab_add(&h->names, (struct base_string){copy, strlen(copy)}, &number, why);
    if (!status && (size_t)number != n)
        status = status_fail(why, STATUS_FORMAT, "occurs twice, expected every tensor once");
    if (status) {
        free(copy);
        return status;
    }
    h->tensors[n] = *tensor;
    h->tensors[n].name = copy;
    return STATUS_OK;
}

static enum status read_entries(struct safetensors_header *h, const cJSON *root, uint64_t n_data,
                                struct status_why *why)
{
    bool metadata = false;
    for (const cJSON *item = root->child; item; item = item->next) {
        struct safetensors_tensor tensor = {0};
        struct base_string name = {item->string, strlen(item->string)};
        struct base_quoted shown;
        enum status status = STATUS_OK;
        if (strcmp(item->string, "__metadata__") == 0) {
            if (metadata || !cJSON_IsObject(item))
                return status_fail(why, STATUS_FORMAT,
                                   "__metadata__ is %s, expected an object, once",
                                   metadata ? "there twice" : "no object");
            metadata = true;
            continue;
        }
        if (name.n_bytes == 0)
            return status_fail(why, STATUS_FORMAT, "a tensor has an empty name");
        status = read_tensor(&tensor, item, n_data, why);
        if (!status)
            status = append(h, item->string, &tensor, why);
        if (status) {
            status_context(why, "tensor %s", base_quote(&shown, name));
            return status;
        }
    }
    return STATUS_OK;
}

static int by_offset(const void *x, const void *y)
{
    const struct safetensors_tensor *a = *(const struct safetensors_tensor *const *)x,
                                    *b = *(const struct safetensors_tensor *const *)y;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    if (a->n_bytes != b->n_bytes)
        return a->n_bytes < b->n_bytes ? -1 : 1;
    return a < b ? -1 : a > b;
}

/** The next tensor begins where the one before ends, and the last one ends where the file does. */
static enum status check_extents(const struct safetensors_tensor *const *sorted, size_t n,
                                 uint64_t n_data, struct status_why *why)
{
    uint64_t end = 0;
    for (size_t i = 0; i < n; i++) {
        const struct safetensors_tensor *t = sorted[i];
        struct base_quoted shown;
        if (t->offset != end)
            return status_fail(
                why, STATUS_FORMAT,
                "tensor %s: has data from byte %" PRIu64 ", expected %" PRIu64 ": %s",
                base_quote(&shown, (struct base_string){t->name, strlen(t->name)}), t->offset, end,
                t->offset < end ? "another tensor has those before"
                                : "those before are no tensor's");
        end += t->n_bytes;
    }
    if (end != n_data)
        return status_fail(why, STATUS_FORMAT,
                           "the last %" PRIu64 " bytes belong to no tensor, expected none",
                           n_data - end);
    return STATUS_OK;
}

static enum status place(struct safetensors_header *h, const uint8_t *bytes, uint64_t n_data,
                         struct status_why *why)
{
    size_t n = h->names.n;
    const struct safetensors_tensor **sorted;
    enum status status = base_array_new(sorted, n, "tensors", why);
    if (status)
        return status;
    for (size_t i = 0; i < n; i++)
        sorted[i] = &h->tensors[i];
    qsort(sorted, n, sizeof *sorted, by_offset);
    status = check_extents(sorted, n, n_data, why);
    free(sorted);
    for (size_t i = 0; i < n; i++) {
        h->tensors[i].offset += h->data_offset;
        h->tensors[i].data = bytes + h->tensors[i].offset;
    }
    return status;
}

/** The header's length: what the file begins with. */
static enum status read_length(struct safetensors_header *h, const uint8_t *bytes, uint64_t n_bytes,
                               struct status_why *why)
{
    struct base_string start = {(const char *)bytes, (size_t)(n_bytes < 512 ? n_bytes : 512)};
    uint64_t length = n_bytes < LENGTH_BYTES ? UINT64_MAX : gguf_load_u64(bytes);
    bool long_enough = n_bytes > LENGTH_BYTES && bytes[LENGTH_BYTES] == '{';
    if (!long_enough || length > n_bytes - LENGTH_BYTES) {
        bool other = length > SAFETENSORS_MAX_HEADER || !long_enough;
        enum status status =
            other ? base_file_check_no_text(start, "a safetensors file", why) : STATUS_OK;
        if (status)
            return status;
    }
    if (!long_enough)
        return status_fail(why, STATUS_FORMAT,
                           "is not a safetensors file: expected the length of a header in 8 bytes, "
                           "and then '{'");
    if (length > SAFETENSORS_MAX_HEADER)
        return status_fail(why, STATUS_FORMAT,
                           "the header's length is %" PRIu64 " bytes, expected at most %d", length,
                           SAFETENSORS_MAX_HEADER);
    if (length > n_bytes - LENGTH_BYTES)
        return status_fail(why, STATUS_FORMAT,
                           "the header's length is %" PRIu64 " bytes, but %" PRIu64
                           " follow: an incomplete download?",
                           length, n_bytes - LENGTH_BYTES);
    h->data_offset = LENGTH_BYTES + length;
    return STATUS_OK;
}

enum status safetensors_header_read(struct safetensors_header *out, const uint8_t *bytes,
                                    uint64_t n_bytes, struct status_why *why)
{
    *out = (struct safetensors_header){0};
    enum status status = read_length(out, bytes, n_bytes, why);
    if (status)
        return status;
    const char *text = (const char *)bytes + LENGTH_BYTES;
    size_t n_text = (size_t)out->data_offset - LENGTH_BYTES, n_read;
    if (base_json_find_nul(text, n_text))
        return status_fail(why, STATUS_FORMAT, "the header has the character U+0000");
    cJSON *root;
    status = base_json_parse(&root, text, n_text, &n_read, why);
    if (status == STATUS_FORMAT)
        return status_fail(why, STATUS_FORMAT, "the header is no JSON from its byte %zu on",
                           n_read);
    if (status) {
        status_context(why, "the header");
        return status;
    }
    while (n_read < n_text && text[n_read] == ' ')
        n_read++;
    if (n_read < n_text || !cJSON_IsObject(root))
        status =
            status_fail(why, STATUS_FORMAT,
                        "the header has something else than spaces after its byte %zu", n_read);
    if (!status)
        status = read_entries(out, root, n_bytes - out->data_offset, why);
    cJSON_Delete(root);
    return status ? status : place(out, bytes, n_bytes - out->data_offset, why);
}

void safetensors_header_free(struct safetensors_header *h)
{
    for (size_t i = 0; i < h->names.n; i++)
        free(h->name_texts[i]);
    free(h->name_texts);
    free(h->tensors);
    base_strtab_free(&h->names);
    *h = (struct safetensors_header){0};
}

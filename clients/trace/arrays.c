/*
 * .npy and .npz files. A member of an .npz is NAME.npy, or NAME.OPERATION.npy where one name stands
 * for several nodes of the graph ("Qcur-0.ROPE.npy"). Sizes are checked before they are used.
 */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/text/quote.h"
#include "clients/trace/file.h"
#include "gguf/gguf.h"

static const struct {
    const char *descr;
    enum trace_number type;
    unsigned n_bytes;
} numbers[] = {
    {"'<f4'", TRACE_NUMBER_F32, 4}, {"'<f8'", TRACE_NUMBER_F64, 8}, {"'<f2'", TRACE_NUMBER_F16, 2},
    {"'<i4'", TRACE_NUMBER_I32, 4}, {"'<i8'", TRACE_NUMBER_I64, 8},
};
enum { N_NUMBERS = sizeof numbers / sizeof *numbers, TYPE_SHOWN = 7 };

/** What follows 'key': in the dictionary; NULL: nothing. */
static const char *member(const char *text, size_t n, const char *key)
{
    const char *at = memmem(text, n, key, strlen(key));
    if (!at)
        return NULL;
    at += strlen(key);
    while (at < text + n && *at == ' ')
        at++;
    return at;
}

/** "(2, 3)" as axes, the fastest first. */
static bool read_shape(const char *at, const char *end, uint64_t ne[4])
{
    uint64_t dims[4], total = 1;
    size_t n = 0;
    if (at == end || *at++ != '(')
        return false;
    while (at < end && *at != ')') {
        uint64_t dim = 0;
        const char *first = at;
        for (; at < end && isdigit((unsigned char)*at) && at - first < 15; at++)
            dim = 10 * dim + (uint64_t)(*at - '0');
        if (at == first)
            return false;
        while (at < end && (*at == ',' || *at == ' '))
            at++;
        if (n == 4) { /* leading axes of 1 are none */
            if (dims[0] != 1)
                return false;
            memmove(dims, dims + 1, 3 * sizeof *dims);
            n--;
        }
        dims[n++] = dim;
    }
    if (at == end)
        return false;
    for (size_t d = 0; d < 4; d++) {
        ne[d] = d < n ? dims[n - 1 - d] : 1;
        if (__builtin_mul_overflow(total, ne[d], &total))
            return false;
    }
    return true;
}

/** The array that begins at byte `at` of the file and has n_bytes. */
static enum status read_npy(struct trace_file *file, struct trace_record *record, size_t at,
                            size_t n_bytes, struct status_why *why)
{
    const char *begin = file->text.data + at;
    if (n_bytes < 12 || memcmp(begin, "\x93NUMPY", 6) != 0)
        return status_fail(why, STATUS_FORMAT, "is no .npy: it does not begin with \\x93NUMPY");
    bool large = begin[6] > 1;
    size_t prefix = large ? 12 : 10;
    size_t n = large ? gguf_load_u32(begin + 8) : gguf_load_u16(begin + 8);
    if (n > n_bytes - prefix)
        return status_fail(why, STATUS_FORMAT, "its header of %zu bytes is longer than the array",
                           n);
    const char *text = begin + prefix, *descr = member(text, n, "'descr':");
    const char *order = member(text, n, "'fortran_order':"), *shape = member(text, n, "'shape':");
    if (!descr || !order || !shape || !read_shape(shape, text + n, record->ne))
        return status_fail(why, STATUS_FORMAT,
                           "its header has no descr, fortran_order and shape of at most 4 axes");
    if (text + n - order < 5 || memcmp(order, "False", 5) != 0)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "the array is in Fortran's order; expected C's "
                           "(numpy.ascontiguousarray)");
    size_t i = 0;
    while (i < N_NUMBERS &&
           ((size_t)(text + n - descr) < 5 || memcmp(descr, numbers[i].descr, 5) != 0))
        i++;
    if (i == N_NUMBERS)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "its type is %.*s; expected '<f4', '<f2', '<f8', '<i4' or '<i8'",
                           (int)base_min((size_t)(text + n - descr), TYPE_SHOWN), descr);
    uint64_t elements = trace_record_elements(record), left = n_bytes - prefix - n;
    if (elements > left / numbers[i].n_bytes || elements * numbers[i].n_bytes != left)
        return status_fail(why, STATUS_FORMAT,
                           "it has %" PRIu64 " bytes of values; expected %" PRIu64 " times %u",
                           left, elements, numbers[i].n_bytes);
    record->whole = true;
    record->type = numbers[i].type;
    record->at = at + prefix + n;
    record->n_values = (size_t)elements;
    return STATUS_OK;
}

/** The operation after the last point, if it is all capitals: "ROPE", "MUL_MAT_ID". */
static struct base_string split_op(struct base_string *name)
{
    size_t at = name->n_bytes;
    while (at > 0 && (isupper((unsigned char)name->data[at - 1]) || name->data[at - 1] == '_' ||
                      isdigit((unsigned char)name->data[at - 1])))
        at--;
    if (at < 2 || at == name->n_bytes || name->data[at - 1] != '.' ||
        !isupper((unsigned char)name->data[at]))
        return (struct base_string){"", 0};
    struct base_string op = {name->data + at, name->n_bytes - at};
    name->n_bytes = at - 1;
    return op;
}

/** The array that was read last has the ids of the window's tokens: it is no tensor. */
static enum status take_tokens(struct trace_file *file, struct status_why *why)
{
    const struct trace_record *record = &file->records[--file->n];
    if (file->tokens)
        return status_fail(why, STATUS_FORMAT, "it is there twice");
    if (record->type != TRACE_NUMBER_I32 && record->type != TRACE_NUMBER_I64)
        return status_fail(why, STATUS_FORMAT, "the ids of tokens have fractions; expected '<i4'");
    if (base_array_reserve(file->tokens, file->tokens_capacity, record->n_values, "tokens", why))
        return STATUS_MEMORY;
    for (file->n_tokens = 0; file->n_tokens < record->n_values; file->n_tokens++) {
        double id = trace_record_value(file, record, file->n_tokens);
        if (!(id >= 0 && id <= INT32_MAX))
            return status_fail(why, STATUS_FORMAT, "%.0f is not the id of a token", id);
        file->tokens[file->n_tokens] = (int32_t)id;
    }
    return STATUS_OK;
}

static enum status add(struct trace_file *file, struct base_string name, size_t at, size_t n_bytes,
                       struct status_why *why)
{
    static const char tokens[] = "tokens";
    struct base_quoted quoted;
    struct trace_record *record;
    struct base_string whole = name;
    if (name.n_bytes > 4 && memcmp(name.data + name.n_bytes - 4, ".npy", 4) == 0)
        name.n_bytes -= 4;
    struct base_string op = split_op(&name);
    enum status status = trace_file_add(file, name, op, &record, why);
    if (!status)
        status = read_npy(file, record, at, n_bytes, why);
    if (!status && strcmp(record->name, tokens) == 0 && record->layer < 0)
        status = take_tokens(file, why);
    if (status && whole.n_bytes)
        status_context(why, "array %s", base_quote(&quoted, whole));
    return status;
}

/* Zip, by PKWARE's APPNOTE.TXT: where the sizes in an entry of the directory are 2^32 - 1, they
 * are in an extra field of 64 bits. */
enum { LOCAL = 30, ENTRY = 46, END = 22, END64 = 56, LOCATOR = 20 };

struct entry {
    struct base_string name;
    uint64_t packed, n_bytes, local;
    unsigned method;
};

static enum status damaged(const char *what, struct status_why *why)
{
    return status_fail(why, STATUS_FORMAT, "%s: the file is damaged or cut off", what);
}

/** Sizes of 64 bits, in the order in which they are missing. */
static bool read_extra(struct entry *e, const char *at, size_t n)
{
    uint64_t *missing[] = {&e->n_bytes, &e->packed, &e->local};
    while (n >= 4) {
        size_t size = gguf_load_u16(at + 2);
        if (size > n - 4)
            return false;
        if (gguf_load_u16(at) == 1) {
            size_t used = 0;
            for (int i = 0; i < 3; i++) {
                if (*missing[i] != UINT32_MAX)
                    continue;
                if (size - used < 8)
                    return false;
                *missing[i] = gguf_load_u64(at + 4 + used);
                used += 8;
            }
        }
        at += 4 + size;
        n -= 4 + size;
    }
    return true;
}

/** The entry at byte *at of the directory; *at is moved to its end. */
static enum status read_entry(const struct trace_file *file, size_t *at, struct entry *e,
                              struct status_why *why)
{
    const char *p = file->text.data + *at;
    size_t left = file->text.n_bytes - *at;
    if (left < ENTRY || gguf_load_u32(p) != 0x02014b50)
        return damaged("the directory of the zip has no entry where one is expected", why);
    size_t n_name = gguf_load_u16(p + 28), n_extra = gguf_load_u16(p + 30);
    size_t n = ENTRY + n_name + n_extra + gguf_load_u16(p + 32);
    *e = (struct entry){.name = {p + ENTRY, n_name},
                        .packed = gguf_load_u32(p + 20),
                        .n_bytes = gguf_load_u32(p + 24),
                        .local = gguf_load_u32(p + 42),
                        .method = gguf_load_u16(p + 10)};
    if (n > left || !read_extra(e, p + ENTRY + n_name, n_extra))
        return damaged("an entry in the directory of the zip is too long", why);
    *at += n;
    return STATUS_OK;
}

static enum status add_entry(struct trace_file *file, const struct entry *e, struct status_why *why)
{
    struct base_quoted quoted;
    size_t size = file->text.n_bytes;
    if (e->method != 0)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "array %s is compressed; write the file with numpy.savez, not "
                           "savez_compressed",
                           base_quote(&quoted, e->name));
    if (size < LOCAL || e->local > size - LOCAL ||
        gguf_load_u32(file->text.data + e->local) != 0x04034b50)
        return damaged("the directory of the zip leads to no array", why);
    size_t begin = (size_t)e->local + LOCAL + gguf_load_u16(file->text.data + e->local + 26) +
                   gguf_load_u16(file->text.data + e->local + 28);
    if (begin > size || e->n_bytes > size - begin || e->packed != e->n_bytes)
        return damaged("an array of the zip goes beyond the end of the file", why);
    return add(file, e->name, begin, (size_t)e->n_bytes, why);
}

/** Where the directory begins, and of how many entries it is. */
static enum status find_directory(const struct trace_file *file, size_t *begin, uint64_t *n,
                                  struct status_why *why)
{
    const char *data = file->text.data;
    size_t size = file->text.n_bytes;
    if (size < END)
        return damaged("the zip has no end", why);
    size_t at = size - END, least = at > UINT16_MAX ? at - UINT16_MAX : 0;
    while (gguf_load_u32(data + at) != 0x06054b50) {
        if (at-- == least)
            return damaged("the zip has no directory at its end", why);
    }
    uint64_t from = gguf_load_u32(data + at + 16);
    *n = gguf_load_u16(data + at + 10);
    if (at >= LOCATOR && gguf_load_u32(data + at - LOCATOR) == 0x07064b50) {
        uint64_t end = gguf_load_u64(data + at - LOCATOR + 8);
        if (size < END64 || end > size - END64 || gguf_load_u32(data + end) != 0x06064b50)
            return damaged("the zip has no directory of 64 bits at its end", why);
        *n = gguf_load_u64(data + end + 32);
        from = gguf_load_u64(data + end + 48);
    }
    if (from > size)
        return damaged("the directory of the zip is beyond its end", why);
    *begin = (size_t)from;
    return STATUS_OK;
}

enum status trace_file_arrays(struct trace_file *file, struct base_string name,
                              struct status_why *why)
{
    if (file->text.n_bytes < 2 || memcmp(file->text.data, "PK", 2) != 0)
        return add(file, name, 0, file->text.n_bytes, why);
    size_t at = 0;
    uint64_t n = 0;
    enum status status = find_directory(file, &at, &n, why);
    for (uint64_t i = 0; !status && i < n; i++) {
        struct entry e = {0};
        status = read_entry(file, &at, &e, why);
        if (!status)
            status = add_entry(file, &e, why);
    }
    if (!status && file->n == 0)
        status = status_fail(why, STATUS_FORMAT, "the .npz holds no array%s",
                             file->n_tokens ? " but the tokens" : "");
    return status;
}

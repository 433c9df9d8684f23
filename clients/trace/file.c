#include "clients/trace/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "kernels/kernels.h"

/** The decimal digits from `from` on; at most 6, more are no layer. */
static bool read_layer(const char *from, size_t n_digits, int *layer)
{
    enum { MOST = 6 };
    int value = 0;
    for (size_t i = 0; i < n_digits && i < MOST; i++)
        value = 10 * value + (from[i] - '0');
    bool ok = n_digits > 0 && n_digits <= MOST;
    if (ok)
        *layer = value;
    return ok;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/** Cut "-3" off in front of byte `end` of the name. */
static bool cut_layer(struct trace_record *r, size_t end)
{
    size_t at = end;
    while (at > 0 && is_digit(r->name[at - 1]))
        at--;
    if (at < 2 || r->name[at - 1] != '-' || !read_layer(r->name + at, end - at, &r->layer))
        return false;
    memmove(r->name + at - 1, r->name + end, strlen(r->name + end) + 1);
    return true;
}

/** "Qcur-3" is Qcur of layer 3, "gate-3 (cont)" is "gate (cont)", "blk.3.x" is blk.x. */
static void split_name(struct trace_record *r, struct base_string name)
{
    static const char block[] = "blk.";
    size_t n = base_min(name.n_bytes, sizeof r->name - 1), prefix = strlen(block), n_digits = 0;
    memcpy(r->name, name.data, n);
    r->name[n] = '\0';
    r->layer = -1;
    if (cut_layer(r, strlen(r->name)) || cut_layer(r, strcspn(r->name, " ")) ||
        strncmp(r->name, block, prefix) != 0)
        return;
    char *digits = r->name + prefix;
    while (is_digit(digits[n_digits]))
        n_digits++;
    if (digits[n_digits] == '.' && read_layer(digits, n_digits, &r->layer))
        memmove(digits, digits + n_digits + 1, strlen(digits + n_digits + 1) + 1);
}

enum status trace_file_add(struct trace_file *file, struct base_string name, struct base_string op,
                           struct trace_record **out, struct status_why *why)
{
    if (base_array_reserve(file->records, file->capacity, file->n + 1, "tensors", why))
        return STATUS_MEMORY;
    struct trace_record *r = &file->records[file->n++];
    *r = (struct trace_record){.ne = {1, 1, 1, 1}};
    split_name(r, name);
    size_t n = base_min(op.n_bytes, sizeof r->op - 1);
    if (n)
        memcpy(r->op, op.data, n);
    *out = r;
    return STATUS_OK;
}

const char *trace_record_name(char out[TRACE_NAME_BYTES + 16], const struct trace_record *r)
{
    bool of_weight = strncmp(r->name, "blk.", 4) == 0;
    if (r->layer < 0)
        snprintf(out, TRACE_NAME_BYTES + 16, "%s", r->name);
    else if (of_weight)
        snprintf(out, TRACE_NAME_BYTES + 16, "blk.%d.%s", r->layer, r->name + 4);
    else
        snprintf(out, TRACE_NAME_BYTES + 16, "%s-%d", r->name, r->layer);
    return out;
}

uint64_t trace_record_elements(const struct trace_record *r)
{
    return r->ne[0] * r->ne[1] * r->ne[2] * r->ne[3];
}

uint64_t trace_record_index(const struct trace_record *r, size_t i)
{
    if (r->whole)
        return i;
    uint64_t index = 0, stride = 1;
    for (int d = 0; d < 4; d++) {
        uint64_t shown =
            r->ne[d] > 2 * TRACE_PRINTED_ENDS && d < 3 ? 2 * TRACE_PRINTED_ENDS : r->ne[d];
        uint64_t at = i % shown;
        if (shown < r->ne[d] && at >= TRACE_PRINTED_ENDS)
            at += r->ne[d] - shown;
        index += at * stride;
        stride *= r->ne[d];
        i /= shown;
    }
    return index;
}

double trace_record_value(const struct trace_file *file, const struct trace_record *r, size_t i)
{
    if (!r->whole)
        return file->numbers[r->at + i];
    const uint8_t *p = (const uint8_t *)file->text.data + r->at;
    union {
        double f64;
        float f32;
        int32_t i32;
        int64_t i64;
    } value;
    switch (r->type) {
    case TRACE_NUMBER_F16:
        return (double)kern_load_half(p + 2 * i);
    case TRACE_NUMBER_F32:
        memcpy(&value, p + 4 * i, 4);
        return (double)value.f32;
    case TRACE_NUMBER_I32:
        memcpy(&value, p + 4 * i, 4);
        return value.i32;
    case TRACE_NUMBER_I64:
        memcpy(&value, p + 8 * i, 8);
        return (double)value.i64;
    case TRACE_NUMBER_F64:
        break;
    }
    memcpy(&value, p + 8 * i, 8);
    return value.f64;
}

size_t trace_file_logits(const struct trace_file *file, size_t n_tokens)
{
    uint64_t n = 1;
    for (size_t i = 0; i < file->n; i++)
        if (trace_place_match(MODEL_AT_LOGITS, "", file->records[i].name, NULL))
            n = file->records[i].ne[1];
    return n < 1 || n > n_tokens ? 1 : (size_t)n;
}

void trace_file_free(struct trace_file *file)
{
    base_text_free(&file->text);
    free(file->records);
    free(file->numbers);
    free(file->tokens);
    *file = (struct trace_file){.n = 0};
}

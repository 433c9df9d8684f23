#include "model/tokenizer/declared/nfc.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text/utf8.h"

struct model_nfc_char {
    uint32_t code_point;
    uint8_t class;
};

/* Syllables of Hangul are made by a rule: 19 initials, 21 vowels, 27 finals. */
enum {
    SYLLABLES = 0xAC00,
    INITIALS = 0x1100,
    VOWELS = 0x1161,
    FINALS = 0x11A7, /* less one */
    N_INITIALS = 19,
    N_VOWELS = 21,
    N_FINALS = 28, /* none is one of them */
    N_SYLLABLES = N_INITIALS * N_VOWELS * N_FINALS
};

/** The row of a table by code points that begins with c, or whose first two are around it. */
static const uint32_t *find_row(const uint32_t *table, size_t n, size_t width, uint32_t c,
                                bool ranges)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const uint32_t *row = table + middle * width;
        if (c >= row[0] && c <= row[ranges])
            return row;
        if (c < row[0])
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static uint8_t class_of(uint32_t c)
{
    const uint32_t *row =
        c < 0x300 ? NULL : find_row(model_nfc_classes, model_nfc_n_classes, 3, c, true);
    return row ? (uint8_t)row[2] : 0;
}

/** Write what c is made of, to the end: at most 4 characters. Returns how many. */
static size_t decompose(uint32_t c, uint32_t out[4])
{
    uint32_t s = c - SYLLABLES;
    if (s < N_SYLLABLES) {
        out[0] = INITIALS + s / (N_VOWELS * N_FINALS);
        out[1] = VOWELS + s / N_FINALS % N_VOWELS;
        out[2] = FINALS + s % N_FINALS;
        return s % N_FINALS ? 3 : 2;
    }
    const uint32_t *row =
        c < 0xC0 ? NULL : find_row(model_nfc_singles, model_nfc_n_singles, 2, c, false);
    if (row)
        return decompose(row[1], out);
    row = c < 0xC0 ? NULL : find_row(model_nfc_pairs, model_nfc_n_pairs, 3, c, false);
    size_t n = row ? decompose(row[1], out) : 0; /* the second part is never made of others */
    out[n] = row ? row[2] : c;
    return n + 1;
}

/** The character that two become, or 0. */
static uint32_t compose(uint32_t a, uint32_t b)
{
    uint32_t initial = a - INITIALS, vowel = b - VOWELS, s = a - SYLLABLES, final = b - FINALS;
    if (initial < N_INITIALS && vowel < N_VOWELS)
        return SYLLABLES + (initial * N_VOWELS + vowel) * N_FINALS;
    if (s < N_SYLLABLES && s % N_FINALS == 0 && final > 0 && final < N_FINALS)
        return a + final;
    size_t low = 0, high = model_nfc_n_composed;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const uint32_t *row = model_nfc_pairs + (size_t)3 * model_nfc_composed[middle];
        if (row[1] == a && row[2] == b)
            return row[0];
        if (a < row[1] || (a == row[1] && b < row[2]))
            high = middle;
        else
            low = middle + 1;
    }
    return 0;
}

/** Put marks into the order of their classes, equal ones as they stand: by counting. */
static enum status sort_marks(struct model_nfc_char *marks, size_t n, struct status_why *why)
{
    size_t from[257] = {0}, i = 1;
    while (i < n && marks[i - 1].class <= marks[i].class)
        i++;
    if (i >= n)
        return STATUS_OK;
    struct model_nfc_char *sorted = malloc(n * sizeof *sorted);
    if (!sorted)
        return status_fail(why, STATUS_MEMORY, "no memory for %zu marks", n);
    for (i = 0; i < n; i++)
        from[marks[i].class + 1]++;
    for (i = 1; i < 257; i++)
        from[i] += from[i - 1];
    for (i = 0; i < n; i++)
        sorted[from[marks[i].class]++] = marks[i];
    memcpy(marks, sorted, n * sizeof *sorted);
    free(sorted);
    return STATUS_OK;
}

/** Order the marks after the first character, and join those that it can be joined with. */
static enum status settle(struct model_nfc *nfc, struct status_why *why)
{
    struct model_nfc_char *c = nfc->chars;
    size_t first = nfc->n > 0 && c[0].class == 0, kept = first;
    enum status status = sort_marks(c + first, nfc->n - first, why);
    for (size_t i = first; first && i < nfc->n; i++) {
        bool blocked = kept > 1 && c[kept - 1].class == c[i].class;
        uint32_t joined = blocked ? 0 : compose(c[0].code_point, c[i].code_point);
        if (joined)
            c[0].code_point = joined;
        else
            c[kept++] = c[i];
    }
    if (first)
        nfc->n = kept;
    return status;
}

static void emit(struct model_nfc *nfc, struct base_buffer *out)
{
    for (size_t i = 0; i < nfc->n; i++) {
        char bytes[4];
        base_buffer_add(out, bytes, base_utf8_encode(nfc->chars[i].code_point, bytes));
    }
    nfc->n = 0;
}

static enum status take(struct model_nfc *nfc, struct base_buffer *out, uint32_t code_point,
                        struct status_why *why)
{
    struct model_nfc_char c = {code_point, class_of(code_point)};
    enum status status = STATUS_OK;
    if (c.class == 0 && nfc->n > 0) {
        status = settle(nfc, why);
        bool alone = nfc->n == 1 && nfc->chars[0].class == 0;
        uint32_t joined = alone ? compose(nfc->chars[0].code_point, code_point) : 0;
        if (joined) {
            nfc->chars[0].code_point = joined;
            return status;
        }
        emit(nfc, out);
    }
    if (!status)
        status = base_array_reserve(nfc->chars, nfc->capacity, nfc->n + 1, "marks", why);
    if (!status)
        nfc->chars[nfc->n++] = c;
    return status;
}

enum status model_nfc_append(struct model_nfc *nfc, struct base_buffer *out,
                             struct base_string text, struct status_why *why)
{
    enum status status = STATUS_OK;
    nfc->n = 0;
    for (size_t i = 0; i < text.n_bytes && !status;) {
        uint32_t c = 0, parts[4];
        size_t n = base_utf8_decode(text.data + i, text.n_bytes - i, &c);
        i += n ? n : 1;
        size_t n_parts = decompose(c, parts);
        for (size_t k = 0; k < n_parts && !status; k++)
            status = take(nfc, out, parts[k], why);
    }
    if (!status)
        status = settle(nfc, why);
    emit(nfc, out);
    return status ? status : base_buffer_check(out, "a text", why);
}

void model_nfc_free(struct model_nfc *nfc)
{
    free(nfc->chars);
    *nfc = (struct model_nfc){0};
}

int model_nfc_is_plain(struct base_string text)
{
    size_t i = 0;
    while (i < text.n_bytes && (uint8_t)text.data[i] < 0xCC) /* U+0300 begins with 0xCC */
        i++;
    return i == text.n_bytes;
}

#include "cli/output/value.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/escape.h"

enum {
    VALUE_WIDTH = 72,   /* a longer value is cut */
    LISTED_ELEMENTS = 8 /* of an array */
};

/* An escaped text, cut where it is too long for a line; never inside a character. */
static void print_cut(const char *text, size_t n_bytes)
{
    size_t n = n_bytes;
    if (n > VALUE_WIDTH) {
        n = VALUE_WIDTH;
        while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
            n--;
    }
    printf("%.*s%s", (int)n, text, n < n_bytes ? "..." : "");
}

/* A string of a pair, escaped and cut to what fits. */
static size_t string_text(char *out, size_t capacity, const struct gguf_kv *kv, uint64_t i)
{
    struct base_string string = gguf_kv_string(kv, i);
    size_t n = base_escape(out, capacity - 1, string.data, string.n_bytes);
    out[n < capacity ? n : capacity - 1] = '\0';
    return n;
}

/* The fewest digits that are read back as the same number: 1e-05, not 9.99999975e-06. */
static int real_text(char *out, size_t capacity, double value, bool is_float)
{
    char digits[40];
    for (int n_digits = 1; n_digits <= 17; n_digits++) {
        snprintf(digits, sizeof digits, "%.*g", n_digits, value);
        double read = is_float ? (double)strtof(digits, NULL) : strtod(digits, NULL);
        if (read == value)
            break;
    }
    return snprintf(out, capacity, "%s", digits);
}

/*
 * Element i of a pair's value: numbers with all their digits, strings escaped. Returns how many
 * bytes there are; writes at most `capacity`, NUL included (as snprintf).
 */
static size_t value_text(char *out, size_t capacity, const struct gguf_kv *kv, uint64_t i)
{
    enum gguf_value_type type = kv->element_type;
    int n;
    if (type == GGUF_VALUE_STRING)
        return string_text(out, capacity, kv, i);
    if (type == GGUF_VALUE_BOOL) {
        n = snprintf(out, capacity, "%s", gguf_kv_int(kv, i) ? "true" : "false");
    } else if (type == GGUF_VALUE_U64) {
        uint64_t value;
        memcpy(&value, kv->data + 8 * i, sizeof value);
        n = snprintf(out, capacity, "%" PRIu64, value);
    } else if (gguf_value_is_int(type)) {
        n = snprintf(out, capacity, "%" PRId64, gguf_kv_int(kv, i));
    } else {
        n = real_text(out, capacity, gguf_kv_float(kv, i), type == GGUF_VALUE_F32);
    }
    return (size_t)n;
}

void cli_print_value(const struct gguf_kv *kv)
{
    char text[512];
    if (kv->type != GGUF_VALUE_ARRAY) {
        size_t n = value_text(text, sizeof text, kv, 0);
        print_cut(text, n < sizeof text ? n : sizeof text - 1);
        return;
    }
    size_t used = 0;
    uint64_t i = 0;
    for (; i < kv->count && i < LISTED_ELEMENTS && used < VALUE_WIDTH; i++) {
        char element[160];
        size_t n = value_text(element, sizeof element, kv, i);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s", i ? ", " : "", element,
                                 n >= sizeof element ? "..." : "");
    }
    text[used] = '\0';
    printf("[");
    print_cut(text, used);
    printf("%s]", i < kv->count ? ", ..." : "");
}

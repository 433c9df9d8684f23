#include "base/text/labels.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/buffer.h"
#include "base/text/escape.h"
#include "base/text/printable.h"
#include "base/text/string.h"

static bool begins_character(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

static size_t columns_of(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += begins_character(*text);
    return n;
}

/* The bytes of the first n characters. */
static size_t bytes_of(const char *text, size_t n)
{
    size_t i = 0;
    while (text[i] && (n > 0 || !begins_character(text[i])))
        n -= begins_character(text[i++]);
    return i;
}

static const char *fit(struct base_label *label, const char *bytes, size_t n_bytes, size_t width)
{
    char shown[BASE_PATH_BYTES];
    base_printable(shown, sizeof shown, bytes, n_bytes);
    size_t n = columns_of(shown), n_tail = width / 2, head = strlen(shown), tail = head;
    if (n > width) {
        head = bytes_of(shown, width - 1 - n_tail);
        tail = bytes_of(shown, n - n_tail);
    }
    snprintf(label->text, sizeof label->text, "%.*s%s%.*s", (int)head, shown, n > width ? "…" : "",
             (int)strlen(shown + tail), shown + tail);
    return label->text;
}

const char *base_label_fit(struct base_label *label, const char *text, size_t width)
{
    return fit(label, text, strlen(text), width);
}

static bool are_digits(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isdigit((unsigned char)text[i]))
            return false;
    return true;
}

/* "-00001-of-00003" at the end. */
static bool ends_as_part(struct base_string s)
{
    enum { N = sizeof "-00001-of-00003" - 1 };
    if (s.n_bytes <= N)
        return false;
    const char *end = s.data + s.n_bytes - N;
    return *end == '-' && are_digits(end + 1, 5) && memcmp(end + 6, "-of-", 4) == 0 &&
           are_digits(end + 10, 5);
}

/* What names the model in a path. */
static struct base_string stem_of(const char *path)
{
    struct base_string s = {path, strlen(path)};
    if (s.n_bytes > 5 && memcmp(path + s.n_bytes - 5, ".gguf", 5) == 0)
        s.n_bytes -= 5;
    if (ends_as_part(s))
        s.n_bytes -= strlen("-00001-of-00003");
    return s;
}

static bool same(struct base_string a, struct base_string b)
{
    return a.n_bytes == b.n_bytes && memcmp(a.data, b.data, a.n_bytes) == 0;
}

/* Whether a word ends with byte i: the dot of 3.1 is within one. */
static bool ends_word(struct base_string s, size_t i)
{
    bool in_number = i > 0 && i + 1 < s.n_bytes && isdigit((unsigned char)s.data[i - 1]) &&
                     isdigit((unsigned char)s.data[i + 1]);
    return memchr("-/ ", s.data[i], 3) || (s.data[i] == '.' && !in_number);
}

/* How many whole words all stems begin with, in bytes, so that something is left of each. */
static size_t shared_beginning(const struct base_string *stems, size_t n)
{
    size_t shared = stems[0].n_bytes;
    for (size_t i = 0; i < n; i++) {
        size_t k = 0, most = base_min(shared, stems[i].n_bytes ? stems[i].n_bytes - 1 : 0);
        while (k < most && stems[i].data[k] == stems[0].data[k])
            k++;
        shared = k;
    }
    while (shared > 0 && !ends_word(stems[0], shared - 1))
        shared--;
    return shared;
}

/* How many bytes they end with in common, after what they begin with. */
static size_t shared_end(const struct base_string *stems, size_t n, size_t n_beginning)
{
    struct base_string first = stems[0];
    size_t shared = first.n_bytes - n_beginning;
    for (size_t i = 0; i < n; i++) {
        const char *end = stems[i].data + stems[i].n_bytes;
        size_t left = stems[i].n_bytes - n_beginning;
        size_t k = 0, most = base_min(shared, left ? left - 1 : 0);
        while (k < most && end[-1 - (ptrdiff_t)k] == first.data[first.n_bytes - 1 - k])
            k++;
        shared = k;
    }
    while (shared > 0 && !ends_word(first, first.n_bytes - shared))
        shared--;
    return shared;
}

/* Without what they share; the names of different files stay different where they are cut, too. */
static void shorten(struct base_label *out, const struct base_string *stems, size_t n)
{
    bool differ = false;
    for (size_t i = 1; i < n; i++)
        differ |= !same(stems[i], stems[0]);
    size_t n_beginning = differ ? shared_beginning(stems, n) : 0;
    size_t n_end = differ ? shared_end(stems, n, n_beginning) : 0;
    for (size_t i = 0; i < n; i++) {
        const char *begin = stems[i].data + n_beginning;
        size_t n_bytes = stems[i].n_bytes - n_beginning - n_end;
        fit(&out[i], begin, n_bytes, BASE_LABEL_WIDTH);
        for (size_t k = 0; k < i; k++) {
            if (strcmp(out[k].text, out[i].text) != 0 || same(stems[k], stems[i]))
                continue;
            size_t n_digits = (size_t)snprintf(NULL, 0, " #%zu", i + 1);
            fit(&out[i], begin, n_bytes, BASE_LABEL_WIDTH - n_digits);
            size_t used = strlen(out[i].text);
            snprintf(out[i].text + used, sizeof out[i].text - used, " #%zu", i + 1);
        }
    }
}

/* "sha256-…" and the like: 32 hexadecimal digits or more, and nothing after them. */
static bool is_hash(struct base_string s)
{
    enum { LEAST = 32 };
    static const char prefix[] = "sha256-";
    size_t n = sizeof prefix - 1;
    if (s.n_bytes > n && memcmp(s.data, prefix, n) == 0)
        s = (struct base_string){s.data + n, s.n_bytes - n};
    for (size_t i = 0; i < s.n_bytes; i++)
        if (!isxdigit((unsigned char)s.data[i]))
            return false;
    return s.n_bytes >= LEAST;
}

/* What names a model that its path does not name: the text is added to `made`. */
static void name_hash(struct base_string *stem, const struct base_named *m,
                      struct base_buffer *made)
{
    size_t begin = made->n;
    int n_type = m->type ? (int)strcspn(m->type, ",") : 0; /* "Q3_K_M, mostly Q4_0" */
    base_buffer_format(made, "%s%s%.*s", m->name, n_type ? "-" : "", n_type, n_type ? m->type : "");
    *stem = (struct base_string){made->failed ? m->path : made->data + begin, made->n - begin};
}

enum status base_labels(struct base_label *out, const struct base_named *models, size_t n,
                        struct status_why *why)
{
    struct base_string *stems;
    struct base_buffer made = {0};
    size_t room = 0;
    if (base_array_new(stems, n, "names", why))
        return STATUS_MEMORY;
    for (size_t i = 0; i < n; i++)
        room += (models[i].name ? strlen(models[i].name) : 0) +
                (models[i].type ? strlen(models[i].type) : 0) + 2;
    bool with_folders = false, reserved = base_buffer_reserve(&made, room);
    for (size_t i = 0; i < n; i++) {
        stems[i] = stem_of(base_file_name(models[i].path));
        if (reserved && models[i].name && *models[i].name && is_hash(stems[i]))
            name_hash(&stems[i], &models[i], &made);
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            with_folders |= same(stems[i], stems[k]) && strcmp(models[i].path, models[k].path) != 0;
    for (size_t i = 0; i < n && with_folders; i++)
        stems[i] = stem_of(models[i].path);
    if (n)
        shorten(out, stems, n);
    base_buffer_free(&made);
    free(stems);
    return reserved ? STATUS_OK : status_fail(why, STATUS_MEMORY, "no memory for names");
}

#include "base/content/text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/content/kind.h"
#include "base/text/utf8.h"

enum { STEP_BYTES = 1 << 16 }; /* read at once */

static const char *shown_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

static const char utf16_big[] = "UTF-16BE", utf16_little[] = "UTF-16LE";

/* UTF-16 of most languages has a NUL in every other byte, UTF-32 in two or three of four. */
static const char *encoding_by_nuls(const char *bytes, size_t n)
{
    size_t n_even = 0, n_odd = 0;
    for (size_t i = 0; i < n; i++)
        if (bytes[i] == '\0')
            ++*(i % 2 ? &n_odd : &n_even);
    if (n_even + n_odd == 0)
        return NULL;
    if (n_even + n_odd > n / 2 && n >= 4)
        return "UTF-32";
    if (base_min(n_even, n_odd) || n_even + n_odd <= n / 4)
        return "binary";
    return n_even ? utf16_big : utf16_little;
}

static bool is_control(char c)
{
    return ((unsigned char)c < 32 && !strchr("\t\n\v\f\r\b\x1b", c)) || c == 127;
}

static bool mostly_control(const char *bytes, size_t n)
{
    size_t n_control = 0;
    for (size_t i = 0; i < n; i++)
        n_control += is_control(bytes[i]);
    return n_control > n / 2;
}

/* What the bytes seem to be, if no text of bytes; or NULL. */
static const char *other_encoding(const char *bytes, size_t n)
{
    if (n >= 4 && (memcmp(bytes, "\xff\xfe\0\0", 4) == 0 || memcmp(bytes, "\0\0\xfe\xff", 4) == 0))
        return "UTF-32";
    if (n >= 2 && memcmp(bytes, "\xff\xfe", 2) == 0)
        return utf16_little;
    if (n >= 2 && memcmp(bytes, "\xfe\xff", 2) == 0)
        return utf16_big;
    const char *encoding = encoding_by_nuls(bytes, n);
    return encoding || !mostly_control(bytes, n) ? encoding : "binary";
}

enum status base_text_check(const char *bytes, size_t n_bytes, struct status_why *why)
{
    const char *encoding = other_encoding(bytes, base_min(n_bytes, STEP_BYTES));
    const char *nul = n_bytes ? memchr(bytes, '\0', n_bytes) : NULL;
    size_t line = 1;
    for (const char *at = bytes; nul && at < nul; at++)
        line += *at == '\n';
    if (encoding && *encoding == 'U')
        return status_fail(why, STATUS_FORMAT, "is %s, expected UTF-8", encoding);
    return nul ? status_fail(why, STATUS_FORMAT,
                             "line %zu: has a byte of 0, expected a text in UTF-8", line)
               : STATUS_OK;
}

/* How a file is read. */
struct rules {
    size_t max_bytes;
    bool drop_newline, may_be_empty;
    const char *remedy; /* against what is no text; NULL: any bytes are taken */
    bool recode;        /* UTF-16, also without a remedy */
};

/* The first bytes, before a device that never ends fills the memory. */
static enum status check_beginning(struct base_text *text, const char *name,
                                   const struct rules *rules, struct status_why *why)
{
    const char *bytes = text->data;
    size_t n = text->n_bytes;
    static const char zeros[STEP_BYTES];
    if (n == STEP_BYTES && memcmp(bytes, zeros, n) == 0)
        return status_fail(why, STATUS_FORMAT, "%s: its first %zu bytes are all 0, expected a text",
                           name, n);
    const struct base_file_kind *kind =
        rules->remedy ? base_file_kind((struct base_string){bytes, n}) : NULL;
    if (kind && !kind->is_text)
        return status_fail(why, STATUS_FORMAT, "%s: is %s, expected a text; %s%s", name, kind->name,
                           kind->remedy, rules->remedy);
    const char *encoding = (rules->remedy || rules->recode) && n ? other_encoding(bytes, n) : NULL;
    if (encoding == utf16_big || encoding == utf16_little) {
        text->converted_from = encoding;
        return STATUS_OK;
    }
    return encoding && rules->remedy
               ? status_fail(why, STATUS_FORMAT,
                             "%s: seems to be %s, and every byte would be evaluated as it "
                             "stands; convert it to UTF-8%s",
                             name, encoding, rules->remedy)
               : STATUS_OK;
}

/** Read on until there are `wanted` bytes, or no more come. */
static enum status read_up_to(struct base_text *text, int fd, size_t wanted, const char *name,
                              struct status_why *why)
{
    while (text->n_bytes < wanted) {
        ssize_t n = read(fd, text->data + text->n_bytes, wanted - text->n_bytes);
        if (n < 0)
            return status_fail(why, STATUS_IO, "%s: cannot be read: %s", name, strerror(errno));
        if (n == 0)
            break;
        text->n_bytes += (size_t)n;
    }
    return STATUS_OK;
}

/** Append everything that fd gives. */
static enum status read_all(struct base_text *text, int fd, const char *name,
                            const struct rules *rules, struct status_why *why)
{
    size_t capacity = 0;
    for (;;) {
        size_t wanted = base_min(text->n_bytes + STEP_BYTES, rules->max_bytes + 1);
        bool first = text->n_bytes == 0;
        char *grown = base_array_grow(text->data, &capacity, wanted, 1);
        if (!grown)
            return status_fail(why, STATUS_MEMORY, "%s: no memory for %zu bytes of text", name,
                               wanted);
        text->data = grown;
        enum status status = read_up_to(text, fd, wanted, name, why);
        if (!status && first)
            status = check_beginning(text, name, rules, why);
        if (status || text->n_bytes < wanted)
            return status;
        if (text->n_bytes > rules->max_bytes)
            return status_fail(why, STATUS_FORMAT,
                               "%s: goes on after %zu bytes; expected at most that many", name,
                               rules->max_bytes);
    }
}

/** UTF-16 that was read becomes UTF-8. */
static enum status convert(struct base_text *text, const char *name, struct status_why *why)
{
    bool big_endian = text->converted_from == utf16_big;
    size_t n, at = base_utf8_from_utf16(text->data, text->n_bytes, big_endian, NULL, &n);
    if (at < text->n_bytes)
        return status_fail(why, STATUS_FORMAT,
                           "%s: seems to be %s, but byte %zu begins no character of it", name,
                           text->converted_from, at);
    char *converted = malloc(n + 1);
    if (!converted)
        return status_fail(why, STATUS_MEMORY, "%s: no memory for %zu bytes of text", name, n);
    base_utf8_from_utf16(text->data, text->n_bytes, big_endian, converted, &n);
    free(text->data);
    text->data = converted;
    text->n_bytes = n;
    return STATUS_OK;
}

static enum status finish(struct base_text *text, const char *name, const struct rules *rules,
                          struct status_why *why)
{
    text->file_bytes = text->n_bytes;
    enum status status = base_sha256(text->sha256, text->data, text->n_bytes, why);
    if (!status && text->converted_from)
        status = convert(text, name, why);
    if (status)
        return status;
    if (rules->drop_newline && text->n_bytes && text->data[text->n_bytes - 1] == '\n') {
        text->n_bytes--;
        text->newline_dropped = true;
    }
    if (text->n_bytes == 0 && !rules->may_be_empty)
        return status_fail(why, STATUS_FORMAT, "%s: is empty (of %zu bytes)", name,
                           text->file_bytes);
    return STATUS_OK;
}

static enum status read_file(struct base_text *out, const char *path, const struct rules *rules,
                             struct status_why *why)
{
    *out = (struct base_text){0};
    const char *name = shown_name(path);
    bool standard_input = strcmp(path, "-") == 0;
    int fd = standard_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return status_fail(why, STATUS_IO, "%s: cannot be opened: %s", name, strerror(errno));
    enum status status = read_all(out, fd, name, rules, why);
    if (!standard_input)
        close(fd);
    if (!status)
        status = finish(out, name, rules, why);
    if (status)
        base_text_free(out);
    return status;
}

enum status base_text_read(struct base_text *out, const char *path, size_t max_bytes,
                           struct status_why *why)
{
    return read_file(out, path, &(struct rules){max_bytes, .drop_newline = true}, why);
}

enum status base_text_read_whole(struct base_text *out, const char *path, size_t max_bytes,
                                 struct status_why *why)
{
    return read_file(out, path, &(struct rules){max_bytes}, why);
}

enum status base_text_read_any(struct base_text *out, const char *path, size_t max_bytes,
                               struct status_why *why)
{
    return read_file(out, path, &(struct rules){max_bytes, .recode = true}, why);
}

enum status base_text_read_utf8(struct base_text *out, const char *path, size_t max_bytes,
                                const char *remedy, struct status_why *why)
{
    return read_file(out, path, &(struct rules){max_bytes, true, false, remedy}, why);
}

enum status base_text_read_document(struct base_text *out, const char *path, size_t max_bytes,
                                    const char *remedy, struct status_why *why)
{
    return read_file(out, path, &(struct rules){max_bytes, true, true, remedy}, why);
}

bool base_text_has_mark(const struct base_text *text)
{
    return text->n_bytes >= 3 && memcmp(text->data, "\xef\xbb\xbf", 3) == 0;
}

size_t base_count_crlf(const char *bytes, size_t n_bytes)
{
    size_t n = 0;
    const char *end = n_bytes ? bytes + n_bytes : bytes;
    for (const char *at = bytes; at < end && (at = memchr(at, '\r', (size_t)(end - at))); at++)
        n += at + 1 == end || at[1] == '\n';
    return n;
}

enum status base_text_copy(struct base_text *out, const char *bytes, size_t n_bytes,
                           struct status_why *why)
{
    *out = (struct base_text){.data = malloc(n_bytes + 1), .n_bytes = n_bytes};
    if (!out->data)
        return status_fail(why, STATUS_MEMORY, "no memory for %zu bytes of text", n_bytes);
    memcpy(out->data, bytes, n_bytes);
    enum status status = finish(out, "the text given", &(struct rules){0}, why);
    if (status)
        base_text_free(out);
    return status;
}

void base_text_unescape(struct base_text *text)
{
    static const char letters[] = "nrt'\"\\", meant[] = "\n\r\t'\"\\";
    char *to = text->data;
    const char *from = text->data, *end = from + text->n_bytes;
    while (from < end) {
        const char *letter =
            *from == '\\' && end - from >= 2 && from[1] ? strchr(letters, from[1]) : NULL;
        bool hexadecimal = *from == '\\' && end - from >= 4 && from[1] == 'x' &&
                           isxdigit((unsigned char)from[2]) && isxdigit((unsigned char)from[3]);
        if (letter)
            *to++ = meant[letter - letters];
        else if (hexadecimal)
            *to++ = (char)strtol((const char[]){from[2], from[3], '\0'}, NULL, 16);
        else
            *to++ = *from;
        from += letter ? 2 : hexadecimal ? 4 : 1;
    }
    text->n_bytes = (size_t)(to - text->data);
}

void base_text_free(struct base_text *text)
{
    free(text->data);
    *text = (struct base_text){0};
}

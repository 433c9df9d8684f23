#include "base/content/written.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/content/kind.h"
#include "base/text/string.h"

enum { BEGINNING = 8192 }; /* bytes of a file that are looked at */

#define BYTES(text)                                                                                \
    {                                                                                              \
        (text), sizeof(text) - 1                                                                   \
    }
/* A key of GGUF and its value, a string, whose length is given as its first byte. */
#define KEY(key, length, value) BYTES(key "\x8\0\0\0" length "\0\0\0\0\0\0\0" value)

/* What begins with these bytes, and has the others in its beginning, or in its first line. */
static const struct {
    const char *name;
    struct base_string begins, has;
    bool in_line;
} kinds[] = {
    {BASE_JOURNAL, BYTES(BASE_JOURNAL_MAGIC), BYTES(""), false},
    {BASE_SUMS, BYTES(BASE_SUMS_MAGIC), BYTES(""), false},
    {BASE_COMPACT, BYTES(BASE_COMPACT_MAGIC), BYTES(""), false},
    {BASE_LOGITS, BYTES(BASE_LOGITS_MAGIC), BYTES(""), false},
    {BASE_MATRIX, BYTES("GGUF"), KEY("general.type", "\x7", "imatrix"), false},
    {"a LoRA adapter", BYTES("GGUF"), KEY("general.type", "\x7", "adapter"), false},
    {"a projector of images or sounds (mmproj)", BYTES("GGUF"),
     KEY("general.type", "\x6", "mmproj"), false},
    {"a projector of images or sounds (mmproj)", BYTES("GGUF"),
     KEY("general.architecture", "\x4", "clip"), false},
    {"a control vector", BYTES("GGUF"), KEY("general.architecture", "\xd", "controlvector"), false},
    {BASE_MIXTURE, BYTES("GGUF"), BYTES(BASE_MIXTURE_KEY), false},
    {BASE_MODEL, BYTES("GGUF"), BYTES(""), false},
    {BASE_NPY, BYTES("\x93NUMPY"), BYTES(""), false},
    {BASE_NPZ, BYTES("PK\3\4"), BYTES(".npy"), false},
    {BASE_ANSWERS, BYTES("{\"form\":\"assay-answers "), BYTES(""), true},
    {BASE_TOKENS, BYTES("window\tposition\ttoken_id\ttoken\t"), BYTES(""), true},
    {BASE_TOKENS, BYTES("candidate\twindow\tposition\ttoken_id\ttoken\t"), BYTES(""), true},
    {BASE_TASKS, BYTES("task\tanswer\tchoice\tscores\n"), BYTES(""), true},
    {BASE_SWEPT, BYTES("group\tlayer\trole\tcandidate\t"), BYTES(""), true},
    {BASE_SCORES, BYTES("{"), BYTES("\"is_greedy\": "), true},
    {BASE_PAGE, BYTES("<!DOCTYPE html>\n<html lang=\"en\">\n"), BYTES("style-src 'sha256-"), false},
    {BASE_CARD, BYTES("## What quantisation did\n"), BYTES(""), true},
    {BASE_CARD, BYTES("## Perplexity\n"), BYTES(""), true},
    {BASE_CHART, BYTES("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 "),
     BYTES(""), true},
    {BASE_CHART, BYTES("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 "),
     BYTES("<style>text{font:11px sans-serif;fill:#222}.h{"), false},
    {BASE_TYPES, BYTES("^"), BYTES("$="), true},
    {BASE_SUITE, BYTES("## Made by assay recipe: "), BYTES(""), true},
    {BASE_WATCHED, BYTES("computing "), BYTES(""), true},
    {BASE_WATCHED, BYTES("done "), BYTES(""), true},
    {BASE_WATCHED, BYTES("reload_failed "), BYTES(""), true},
    {BASE_WATCHED, BYTES("exiting "), BYTES(""), true},
    {BASE_COMMAND, BYTES("reload"), BYTES(""), true},
    {BASE_COMMAND, BYTES("compute"), BYTES(""), true},
    {BASE_COMMAND, BYTES("exit"), BYTES(""), true},
    {BASE_COMMAND, BYTES("quit"), BYTES(""), true},
    {BASE_COMMAND, BYTES("stop"), BYTES(""), true},
};

static bool has(struct base_string s, struct base_string part)
{
    return part.n_bytes == 0 || memmem(s.data, s.n_bytes, part.data, part.n_bytes);
}

static bool begins(struct base_string s, struct base_string with)
{
    return s.n_bytes >= with.n_bytes && memcmp(s.data, with.data, with.n_bytes) == 0;
}

static struct base_string first_line(struct base_string s)
{
    const char *end = s.n_bytes ? memchr(s.data, '\n', s.n_bytes) : NULL;
    return end ? (struct base_string){s.data, (size_t)(end - s.data)} : s;
}

/** The older format of importance matrices: a count, the length of the first name, the name. */
static bool is_dat(struct base_string s)
{
    int32_t numbers[2];
    if (s.n_bytes < sizeof numbers + 1)
        return false;
    memcpy(numbers, s.data, sizeof numbers);
    bool is = numbers[0] > 0 && numbers[0] < 1 << 24 && numbers[1] > 0 && numbers[1] < 256;
    for (size_t i = sizeof numbers; i < s.n_bytes && i < sizeof numbers + (size_t)numbers[1]; i++)
        is &= s.data[i] > ' ' && s.data[i] < 0x7f;
    return is;
}

/** The "schema" of a document of this program; NULL: it is none. */
static const char *schema_of(char out[BASE_WRITTEN_NAME], struct base_string s)
{
    static const char key[] = "\"schema\"", value[] = "\"" BASE_DOCUMENT;
    const char *at = s.data[0] == '{' ? memmem(s.data, s.n_bytes, key, sizeof key - 1) : NULL;
    if (!at)
        return NULL;
    const char *end = s.data + s.n_bytes;
    at += sizeof key - 1;
    while (at < end && *at && strchr(" \t\r\n:", *at))
        at++;
    if (!begins((struct base_string){at, (size_t)(end - at)},
                (struct base_string){value, sizeof value - 1}))
        return NULL;
    const char *quote = memchr(at + 1, '"', (size_t)(end - at - 1));
    size_t n = quote ? (size_t)(quote - at - 1) : 0;
    if (n == 0 || n >= BASE_WRITTEN_NAME)
        return NULL;
    memcpy(out, at + 1, n);
    out[n] = '\0';
    return out;
}

static bool is_printable(struct base_string s)
{
    for (size_t i = 0; i < s.n_bytes; i++)
        if ((unsigned char)s.data[i] < ' ' && !memchr("\t\n\f\r\x1b", s.data[i], 5))
            return false;
    return true;
}

static const char *name_of(char out[BASE_WRITTEN_NAME], struct base_string s)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (begins(s, kinds[i].begins) && has(kinds[i].in_line ? first_line(s) : s, kinds[i].has))
            return kinds[i].name;
    if (is_dat(s))
        return BASE_MATRIX_DAT;
    const char *schema = schema_of(out, s);
    const struct base_file_kind *other = schema ? NULL : base_file_kind_of_text(s);
    return schema            ? schema
           : other           ? other->name
           : is_printable(s) ? "a text"
                             : "a file that assay does not write";
}

const char *base_written_name(char out[BASE_WRITTEN_NAME], const char *path)
{
    char bytes[BEGINNING];
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) /* it may not be read, but a rename could still replace it */
        return stat(path, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0
                   ? "a file that cannot be read"
                   : NULL;
    ssize_t n =
        fstat(fd, &about) == 0 && S_ISREG(about.st_mode) ? pread(fd, bytes, BEGINNING, 0) : 0;
    close(fd);
    return n > 0 ? name_of(out, (struct base_string){bytes, (size_t)n}) : NULL;
}

static bool is_document(const char *kind)
{
    return strncmp(kind, BASE_DOCUMENT, strlen(BASE_DOCUMENT)) == 0;
}

static const char *before(const char *kind)
{
    return is_document(kind) ? "a document (" : "";
}

static const char *after(const char *kind)
{
    return is_document(kind) ? ")" : "";
}

enum status base_written_check(const char *path, const char *kind, struct status_why *why)
{
    char found[BASE_WRITTEN_NAME];
    const char *name = kind ? base_written_name(found, path) : NULL;
    if (!name || strcmp(name, kind) == 0)
        return STATUS_OK;
    return status_fail(why, STATUS_USAGE,
                       "%s: is %s%s%s, expected a new file or %s%s%s; give another name, or "
                       "--force to replace it",
                       path, before(name), name, after(name), before(kind), kind, after(kind));
}

#include "base/content/kind.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Bytes with these values in front: the file is of this kind. */
static const struct {
    struct base_string bytes;
    struct base_file_kind kind;
} magics[] = {
#define UNPACK  "unpack it first"
#define CONVERT "llama.cpp's convert_hf_to_gguf.py makes GGUF of a checkpoint"
#define GIVE    "models are given by -m"
#define MAGIC(bytes)                                                                               \
    {                                                                                              \
        (bytes), sizeof(bytes) - 1                                                                 \
    }
    {MAGIC("version https://git-lfs.github.com/spec/"),
     {"a Git LFS pointer, which stands for the file", "fetch the file itself (git lfs pull)"}},
    {MAGIC("PK\3\4"), {"a ZIP archive, as PyTorch's checkpoints (.bin, .pt) are", CONVERT}},
    {MAGIC("GGUF\2\0\0\0"), {"a GGUF file", GIVE}},
    {MAGIC("GGUF\3\0\0\0"), {"a GGUF file", GIVE}},
    {MAGIC("tjgg\1\0\0\0"), {"a GGML file, as models were before GGUF", "download it as GGUF"}},
    {MAGIC("tjgg\3\0\0\0"), {"a GGML file, as models were before GGUF", "download it as GGUF"}},
    {MAGIC("PAR1\25"), {"a Parquet table", "write its rows as JSON lines"}},
    {MAGIC("%PDF-1."), {"a PDF document", "extract its text"}},
    {MAGIC("\x1f\x8b\x08"), {"a file packed with gzip", UNPACK}},
    {MAGIC("\x28\xb5\x2f\xfd"), {"a file packed with zstd", UNPACK}},
    {MAGIC("\xfd\x37zXZ\0"), {"a file packed with xz", UNPACK}},
    {MAGIC("7z\xbc\xaf\x27\x1c"), {"a 7-Zip archive", UNPACK}},
};

static const struct base_file_kind safetensors = {"a safetensors file", CONVERT, false};
static const struct base_file_kind pickle = {
    "a Python pickle, as PyTorch's older checkpoints (.bin, .pt) are", CONVERT, false};
static const struct base_file_kind page = {
    "an HTML page", "where a download gave it, the server answered with a page: fetch it again",
    true};

static bool is_blank(char c)
{
    return (unsigned char)c <= ' ';
}

/* A length of 64 bits, then as many bytes of a JSON object. */
static bool is_safetensors(struct base_string s)
{
    const uint64_t most = 100u << 20; /* what the format's own library takes */
    uint64_t n_header = 0;
    for (size_t i = 8; i-- > 0 && s.n_bytes >= 10;)
        n_header = n_header << 8 | (unsigned char)s.data[i];
    return n_header >= 2 && n_header <= most && s.data[8] == '{' &&
           (s.data[9] == '"' || s.data[9] == '}' || is_blank(s.data[9]));
}

/* A version, 2 to 5, and a first object: a number, a frame, a list, a mapping, a class, a text. */
static bool is_pickle(struct base_string s)
{
    return s.n_bytes >= 4 && s.data[0] == '\x80' && s.data[1] >= 2 && s.data[1] <= 5 && s.data[2] &&
           strchr("\x8a\x95]}(cX", s.data[2]);
}

static bool is_page(struct base_string s)
{
    static const char bom[] = "\xef\xbb\xbf", type[] = "<!doctype html", tag[] = "<html";
    if (s.n_bytes == 0)
        return false;
    const char *at = s.data, *end = s.data + s.n_bytes;
    if (s.n_bytes >= sizeof bom - 1 && memcmp(at, bom, sizeof bom - 1) == 0)
        at += sizeof bom - 1;
    while (at < end && *at && is_blank(*at))
        at++;
    size_t n = (size_t)(end - at);
    return (n >= sizeof type && strncasecmp(at, type, sizeof type - 1) == 0) ||
           (n >= sizeof tag && strncasecmp(at, tag, sizeof tag - 1) == 0 &&
            (at[sizeof tag - 1] == '>' || is_blank(at[sizeof tag - 1])));
}

const struct base_file_kind *base_file_kind(struct base_string s)
{
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (s.n_bytes >= magics[i].bytes.n_bytes &&
            memcmp(s.data, magics[i].bytes.data, magics[i].bytes.n_bytes) == 0)
            return &magics[i].kind;
    return is_safetensors(s) ? &safetensors : is_pickle(s) ? &pickle : is_page(s) ? &page : NULL;
}

/** kind NULL: it is none of those that are known. */
static enum status check(const struct base_file_kind *kind, const char *expected,
                         struct status_why *why)
{
    return kind ? status_fail(why, STATUS_FORMAT, "is %s, expected %s; %s", kind->name, expected,
                              kind->remedy)
                : STATUS_OK;
}

enum status base_file_check_kind(struct base_string beginning, const char *expected,
                                 struct status_why *why)
{
    return check(base_file_kind(beginning), expected, why);
}

/** The beginning has this word. */
static bool has(struct base_string s, const char *word)
{
    return memmem(s.data, s.n_bytes, word, strlen(word)) != NULL;
}

/** A separator that two lines in front have as often, and no byte that a text has not. */
static bool is_table(struct base_string s)
{
    size_t n[2][2] = {{0}}, line = 0;
    for (size_t i = 0; i < s.n_bytes && line < 2; i++) {
        unsigned char c = (unsigned char)s.data[i];
        if (c < ' ' && c != '\t' && c != '\r' && c != '\n')
            return false;
        n[line][0] += c == ',';
        n[line][1] += c == '\t';
        line += c == '\n';
    }
    return line == 2 && ((n[0][0] && n[0][0] == n[1][0]) || (n[0][1] && n[0][1] == n[1][1]));
}

/* Documents of assay, by their schema; the last one is any other. */
static const struct {
    const char *schema;
    struct base_file_kind kind;
} results[] = {
    {"\"assay-best\"", {"a result of assay best", "assay table, card and report read it", true}},
    {"\"assay-sweep\"", {"a result of assay sweep", "assay recipe and report read it", true}},
    {"\"assay-recipe\"", {"a recipe of assay recipe", "assay mix reads it", true}},
    {"\"assay-", {"a result that assay wrote", "assay table, compare and report read it", true}},
};

static const struct base_file_kind *result_of(struct base_string s)
{
    size_t i = 0, n = sizeof results / sizeof *results;
    if (!has(s, "\"schema\""))
        return NULL;
    while (i < n && !has(s, results[i].schema))
        i++;
    return i < n ? &results[i].kind : NULL;
}

const struct base_file_kind *base_file_kind_of_text(struct base_string s)
{
    static const struct base_file_kind json = {
        "JSON", "a config.json lies beside a checkpoint; " CONVERT, true};
    static const struct base_file_kind table = {"a table (CSV or TSV)", "texts are given by -f",
                                                true};
    enum { ENOUGH = 4096 };
    s.n_bytes = s.n_bytes < ENOUGH ? s.n_bytes : ENOUGH;
    size_t first = 0;
    while (first < s.n_bytes && is_blank(s.data[first]))
        first++;
    char c = first < s.n_bytes ? s.data[first] : '\0';
    const struct base_file_kind *kind = base_file_kind(s);
    if (!kind && c == '{')
        kind = result_of(s);
    if (!kind && (c == '{' || c == '[') && (has(s, "\":") || has(s, "\" :")))
        kind = &json;
    if (!kind && is_table(s))
        kind = &table;
    return kind;
}

enum status base_file_check_no_text(struct base_string beginning, const char *expected,
                                    struct status_why *why)
{
    return check(base_file_kind_of_text(beginning), expected, why);
}

/** The first bytes of a file; how many: 0 where it cannot be read. */
static size_t beginning_of(const char *path, char *bytes, size_t most)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return 0;
    ssize_t n = pread(fd, bytes, most, 0);
    close(fd);
    return n > 0 ? (size_t)n : 0;
}

bool base_file_begins(const char *path, const char magic[8])
{
    return base_file_begins_with(path, (struct base_string){magic, 8});
}

bool base_file_begins_with(const char *path, struct base_string magic)
{
    char bytes[8];
    return beginning_of(path, bytes, sizeof bytes) >= magic.n_bytes &&
           memcmp(bytes, magic.data, magic.n_bytes) == 0;
}

bool base_file_begins_object(const char *path)
{
    char bytes[8];
    size_t n = beginning_of(path, bytes, sizeof bytes), i = 0;
    while (i < n && is_blank(bytes[i]))
        i++;
    return i < n && bytes[i] == '{';
}

enum status base_file_check_no_result(const char *path, const char *expected,
                                      struct status_why *why)
{
    char bytes[512];
    struct base_string beginning = {bytes, beginning_of(path, bytes, sizeof bytes)};
    const struct base_file_kind *kind = base_file_kind_of_text(beginning);
    enum status status =
        kind && kind == result_of(beginning) ? check(kind, expected, why) : STATUS_OK;
    if (status)
        status_context(why, "%s", path);
    return status;
}

#include "model/overrides.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/** A value in the form in which files store it. */
struct stored {
    enum gguf_value_type type;
    uint8_t bytes[sizeof(uint64_t) + 256];
};

static bool parse_int(const char *text, struct stored *to)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0)
        return false;
    int64_t stored = value;
    to->type = GGUF_VALUE_I64;
    memcpy(to->bytes, &stored, sizeof stored);
    return true;
}

static bool parse_float(const char *text, struct stored *to)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value))
        return false;
    to->type = GGUF_VALUE_F64;
    memcpy(to->bytes, &value, sizeof value);
    return true;
}

static bool parse_bool(const char *text, struct stored *to)
{
    bool is_true = strcmp(text, "true") == 0;
    if (!is_true && strcmp(text, "false") != 0)
        return false;
    to->type = GGUF_VALUE_BOOL;
    to->bytes[0] = is_true;
    return true;
}

static bool parse_string(const char *text, struct stored *to)
{
    uint64_t n_bytes = strlen(text);
    if (n_bytes > sizeof to->bytes - sizeof n_bytes)
        return false;
    to->type = GGUF_VALUE_STRING;
    memcpy(to->bytes, &n_bytes, sizeof n_bytes);
    memcpy(to->bytes + sizeof n_bytes, text, n_bytes);
    return true;
}

static const struct {
    const char *name; /* with its colon */
    bool (*parse)(const char *text, struct stored *to);
} kinds[] = {
    {"int:", parse_int},
    {"float:", parse_float},
    {"bool:", parse_bool},
    {"str:", parse_string},
};

static bool parse_value(const char *text, struct stored *to)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t n = strlen(kinds[i].name);
        if (strncmp(text, kinds[i].name, n) == 0)
            return kinds[i].parse(text + n, to);
    }
    return false;
}

static enum status apply(struct gguf_file *file, const char *line, struct model_remarks *remarks,
                         struct status_why *why)
{
    const char *equals = strchr(line, '=');
    struct stored value;
    if (!equals || equals == line || !parse_value(equals + 1, &value))
        return status_fail(why, STATUS_USAGE,
                           "override \"%s\" cannot be read, expected KEY=TYPE:VALUE with TYPE "
                           "int, float, bool (true or false) or str (at most 256 bytes)",
                           line);
    size_t n_before = gguf_n_kv(file);
    struct gguf_kv pair = {.key = {line, (size_t)(equals - line)},
                           .type = value.type,
                           .element_type = value.type,
                           .count = 1,
                           .data = value.bytes};
    enum status status = gguf_override(file, &pair, why);
    if (!status && gguf_n_kv(file) > n_before)
        model_remark(remarks, "override of a key that the file does not have: %s", line);
    return status;
}

enum status model_overrides_apply(struct gguf_file *file, const struct model_options *options,
                                  struct model_remarks *remarks, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; !status && i < options->n_overrides; i++)
        status = apply(file, options->overrides[i], remarks, why);
    return status;
}

/* Opening: a file, or all of a model in several, NAME-00001-of-00003.gguf and so on, each a GGUF of
 * its own. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text/quote.h"
#include "gguf/file_impl.h"

/* What the name of a part says: everything before the last "-00001-of-00003.gguf". */
struct part_name {
    size_t n_prefix;
    uint32_t number; /* from 1 */
    uint32_t count;
};

enum { SUFFIX_BYTES = sizeof "-00001-of-00003.gguf" - 1 };

static bool parse_digits(const char *text, uint32_t *value)
{
    *value = 0;
    for (int i = 0; i < 5; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        *value = *value * 10 + (uint32_t)(text[i] - '0');
    }
    return true;
}

static bool parse_name(const char *path, struct part_name *name)
{
    size_t n = strlen(path);
    if (n < SUFFIX_BYTES)
        return false;
    const char *suffix = path + n - SUFFIX_BYTES;
    name->n_prefix = n - SUFFIX_BYTES;
    return suffix[0] == '-' && parse_digits(suffix + 1, &name->number) &&
           memcmp(suffix + 6, "-of-", 4) == 0 && parse_digits(suffix + 10, &name->count) &&
           memcmp(suffix + 15, ".gguf", 5) == 0 && name->number >= 1 && name->number <= name->count;
}

uint32_t gguf_part_number(const char *path, size_t *n_prefix)
{
    struct part_name name;
    if (!parse_name(path, &name))
        return 0;
    *n_prefix = name.n_prefix;
    return name.number;
}

static enum status get_u32(const struct gguf_shard *shard, const char *key, uint32_t *value,
                           struct status_why *why)
{
    const struct gguf_kv *kv = gguf_shard_find(shard, key);
    if (!kv)
        return STATUS_OK;
    enum status status = gguf_kv_u32(kv, value, why);
    if (status)
        status_context(why, "%s", shard->path);
    return status;
}

enum status gguf_split_count(const struct gguf_shard *shard, uint32_t *count,
                             struct status_why *why)
{
    *count = 1;
    enum status status = get_u32(shard, "split.count", count, why);
    if (!status && (*count == 0 || *count > UINT16_MAX))
        status = status_fail(why, STATUS_FORMAT,
                             "%s: key 'split.count' is %" PRIu32 ", expected 1 to %d parts",
                             shard->path, *count, UINT16_MAX);
    return status;
}

/* Compare what a part's keys say with its place among the parts. */
static enum status check_part(const struct gguf_shard *shard, uint32_t number, uint32_t count,
                              struct status_why *why)
{
    uint32_t found_count;
    uint32_t found_no = 0; /* what a file that is not split may leave out */
    enum status status = gguf_split_count(shard, &found_count, why);
    if (!status)
        status = get_u32(shard, "split.no", &found_no, why);
    if (status)
        return status;
    if (found_count != count)
        return status_fail(why, STATUS_FORMAT,
                           "%s: is one of %" PRIu32 " parts (key 'split.count'), expected one of "
                           "%" PRIu32,
                           shard->path, found_count, count);
    if (found_no != number - 1)
        return status_fail(why, STATUS_FORMAT,
                           "%s: key 'split.no' is %" PRIu32 ", expected %" PRIu32
                           " in part %" PRIu32 " of %" PRIu32,
                           shard->path, found_no, number - 1, number, count);
    return STATUS_OK;
}

/* Every part may say how many tensors all parts have together. */
static enum status check_n_tensors(const struct gguf_file *file, struct status_why *why)
{
    size_t n_tensors = gguf_n_tensors(file);
    for (size_t i = 0; i < file->n_shards; i++) {
        uint32_t expected = 0;
        if (!gguf_shard_find(&file->shards[i], "split.tensors.count"))
            continue;
        enum status status = get_u32(&file->shards[i], "split.tensors.count", &expected, why);
        if (status)
            return status;
        if (expected != n_tensors)
            return status_fail(why, STATUS_FORMAT,
                               "%s: all parts together have %zu tensor%s, expected %" PRIu32
                               " (key 'split.tensors.count')",
                               file->shards[i].path, n_tensors, status_plural(n_tensors), expected);
    }
    return STATUS_OK;
}

/* Map and check the parts in their order. */
static enum status open_parts(struct gguf_file *file, const struct part_name *name,
                              struct status_why *why)
{
    const size_t suffix = 48; /* more than the suffix takes */
    char *path = malloc(name->n_prefix + suffix);
    if (!path)
        return status_fail(why, STATUS_MEMORY, "%s: out of memory", file->path);
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < name->count && !status; i++) {
        memcpy(path, file->path, name->n_prefix);
        snprintf(path + name->n_prefix, suffix, "-%05u-of-%05u.gguf", i + 1, name->count);
        status = gguf_file_map_shard(file, i, path, why);
        if (!status)
            status = check_part(&file->shards[i], i + 1, name->count, why);
        else
            status_context(why, "part %" PRIu32 " of %" PRIu32, i + 1, name->count);
    }
    free(path);
    return status ? status : check_n_tensors(file, why);
}

/* If the file that `*file` holds as its only shard says that it is one of several, replace `*file`
 * by one that holds all parts. On failure `*file` stays the caller's to close. */
static enum status open_others(struct gguf_file **file, struct status_why *why)
{
    const struct gguf_shard *shard = &(*file)->shards[0];
    const char *path = (*file)->path;
    uint32_t count;
    struct part_name name;
    enum status status = gguf_split_count(shard, &count, why);
    if (status)
        return status;
    if (count == 1) {
        status = check_part(shard, 1, 1, why);
        return status ? status : check_n_tensors(*file, why);
    }
    if (!parse_name(path, &name))
        return status_fail(why, STATUS_FORMAT,
                           "%s: is one of %" PRIu32 " parts, expected a name that ends with "
                           "-00001-of-%05" PRIu32 ".gguf (or another part's number), by which "
                           "the others can be found",
                           path, count, count);
    status = check_part(shard, name.number, name.count, why);
    if (status)
        return status;

    struct gguf_file *whole;
    status = gguf_file_new(&whole, path, count, why);
    if (status)
        return status;
    status = open_parts(whole, &name, why);
    if (status) {
        gguf_close(whole);
        return status;
    }
    gguf_close(*file);
    *file = whole;
    return STATUS_OK;
}

/* The last step of opening: on failure the end of *file. */
static enum status finish(struct gguf_file **file, enum status status)
{
    if (status) {
        gguf_close(*file);
        *file = NULL;
    }
    return status;
}

/* alone: without the parts that its keys tell of. */
static enum status list(struct gguf_file **out, const char *path, bool alone,
                        struct status_why *why)
{
    enum status status = gguf_file_new(out, path, 1, why);
    if (!status)
        status = gguf_file_map_shard(*out, 0, path, why);
    if (!status && !alone)
        status = open_others(out, why);
    return finish(out, status ? status : gguf_file_copy_names(*out, why));
}

enum status gguf_list(struct gguf_file **out, const char *path, struct status_why *why)
{
    return list(out, path, false, why);
}

enum status gguf_list_part(struct gguf_file **out, const char *path, struct status_why *why)
{
    return list(out, path, true, why);
}

enum status gguf_check_types(const struct gguf_file *file, struct status_why *why)
{
    for (size_t i = 0; i < gguf_n_tensors(file); i++) {
        const struct gguf_tensor *tensor = &file->tensors[i];
        struct base_quoted name;
        bool known = gguf_type_info(tensor->type_id) || tensor->type_id == GGUF_WHOLE_NUMBERS;
        if (!known)
            return status_fail(why, STATUS_UNSUPPORTED,
                               "%s: tensor %s: has type %" PRIu32
                               " (%s), expected a type that can be decoded; take "
                               "a file of the model in another type, or quantise it again",
                               file->shards[tensor->shard].path,
                               base_quote(&name, file->tensor_names.strings[i]), tensor->type_id,
                               tensor->type->name);
    }
    return STATUS_OK;
}

enum status gguf_open(struct gguf_file **out, const char *path, struct status_why *why)
{
    enum status status = gguf_list(out, path, why);
    return status ? status : finish(out, gguf_check_types(*out, why));
}

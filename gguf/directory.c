/* One GGUF file from its first byte to the end of its directory. */
#include <inttypes.h>

#include "base/content/kind.h"
#include "base/text/quote.h"
#include "gguf/file_impl.h"

enum {
    PAIR_BYTES_MIN = 14, /* a key of one byte, a type, a value of one byte */
    ENTRY_BYTES_MIN = 33 /* a name of one byte, n_dims, one dimension, type, offset */
};

struct header {
    uint32_t version;
    uint64_t n_tensors;
    uint64_t n_pairs;
};

static enum status check_version(uint32_t version, struct status_why *why)
{
    if (version == 2 || version == 3)
        return STATUS_OK;
    uint32_t swapped = __builtin_bswap32(version);
    if (swapped >= 1 && swapped <= 3)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "is a big-endian GGUF file (version %" PRIu32
                           " with its bytes swapped), expected a little-endian one",
                           swapped);
    if (version == 1)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "is a GGUF file of version 1, whose counts have 32 bits, expected "
                           "version 2 or 3: convert the model again");
    return status_fail(why, STATUS_UNSUPPORTED,
                       "is a GGUF file of version %" PRIu32 ", expected version 2 or 3", version);
}

/* A count can be at most what the rest of the file has room for. */
static enum status check_count(uint64_t count, uint64_t bytes_each, uint64_t n_left,
                               const char *what, struct status_why *why)
{
    if (count <= n_left / bytes_each)
        return STATUS_OK;
    return status_fail(why, STATUS_FORMAT,
                       "the header counts %" PRIu64 " %s, expected at most %" PRIu64
                       ": only %" PRIu64 " bytes follow: an incomplete download?",
                       count, what, n_left / bytes_each, n_left);
}

static enum status read_header(struct gguf_cursor *cursor, struct header *header,
                               struct status_why *why)
{
    static const char magic[4] = {'G', 'G', 'U', 'F'};
    size_t n_shown = cursor->n_bytes < sizeof magic ? (size_t)cursor->n_bytes : sizeof magic;
    if (n_shown < sizeof magic || memcmp(cursor->data, magic, sizeof magic) != 0) {
        struct base_quoted shown;
        struct base_string start = {(const char *)cursor->data, (size_t)cursor->n_bytes};
        enum status status = base_file_check_no_text(start, "a GGUF file", why);
        start.n_bytes = n_shown;
        return status ? status
                      : status_fail(why, STATUS_FORMAT,
                                    "is not a GGUF file: begins with %s, expected 'GGUF'",
                                    base_quote(&shown, start));
    }
    cursor->at = sizeof magic;
    enum status status = gguf_cursor_u32(cursor, &header->version, "the version", why);
    if (!status)
        status = check_version(header->version, why);
    if (!status)
        status = gguf_cursor_u64(cursor, &header->n_tensors, "the number of tensors", why);
    if (!status)
        status = gguf_cursor_u64(cursor, &header->n_pairs, "the number of key/value pairs", why);
    if (!status)
        status = check_count(header->n_tensors, ENTRY_BYTES_MIN, gguf_cursor_left(cursor),
                             "tensors", why);
    if (!status)
        status = check_count(header->n_pairs, PAIR_BYTES_MIN, gguf_cursor_left(cursor),
                             "key/value pairs", why);
    return status;
}

static enum status read_alignment(struct gguf_shard *shard, struct status_why *why)
{
    uint32_t alignment = GGUF_DEFAULT_ALIGNMENT;
    const struct gguf_kv *kv = gguf_shard_find(shard, "general.alignment");
    if (kv) {
        enum status status = gguf_kv_u32(kv, &alignment, why);
        if (status)
            return status;
    }
    if (alignment == 0 || (alignment & (alignment - 1)) != 0)
        return status_fail(why, STATUS_FORMAT,
                           "key 'general.alignment' is %" PRIu32 ", expected a power of two",
                           alignment);
    shard->alignment = alignment;
    return STATUS_OK;
}

/* Where tensor data starts: after the directory and its padding. */
static enum status set_data_offset(struct gguf_shard *shard, uint64_t directory_end,
                                   uint64_t n_tensors, struct status_why *why)
{
    shard->data_offset = directory_end;
    if (n_tensors == 0)
        return STATUS_OK;
    uint64_t padding = (shard->alignment - directory_end % shard->alignment) % shard->alignment;
    if (padding > shard->n_bytes - directory_end)
        return status_fail(why, STATUS_FORMAT,
                           "tensor data should start at byte %" PRIu64 " (alignment %" PRIu64
                           "), but the file has only %" PRIu64 " bytes: an incomplete download?",
                           directory_end + padding, shard->alignment, shard->n_bytes);
    for (uint64_t at = directory_end; at < directory_end + padding; at++)
        if (shard->data[at] != 0)
            return status_fail(why, STATUS_FORMAT,
                               "byte %" PRIu64 ", in the padding after the directory, is 0x%02x, "
                               "expected 0: the header may count too few tensors, or the alignment "
                               "of %" PRIu64 " may be wrong",
                               at, shard->data[at], shard->alignment);
    shard->data_offset += padding;
    return STATUS_OK;
}

static enum status read_shard(struct gguf_file *file, size_t i_shard, struct status_why *why)
{
    struct gguf_shard *shard = &file->shards[i_shard];
    struct gguf_cursor cursor = {shard->data, shard->n_bytes, 0};
    struct header header = {0};
    size_t first = file->tensor_names.n;
    enum status status = read_header(&cursor, &header, why);
    if (status)
        return status;
    shard->version = header.version;
    status = gguf_pairs_read(shard, &cursor, header.n_pairs, why);
    if (!status)
        status = read_alignment(shard, why);
    if (!status)
        status = gguf_tensors_read(file, i_shard, &cursor, header.n_tensors, why);
    if (!status)
        status = set_data_offset(shard, cursor.at, header.n_tensors, why);
    return status ? status : gguf_tensors_place(file, i_shard, first, why);
}

enum status gguf_directory_read(struct gguf_file *file, size_t shard, struct status_why *why)
{
    enum status status = read_shard(file, shard, why);
    if (status)
        status_context(why, "%s", file->shards[shard].path);
    return status;
}

enum status gguf_file_map_shard(struct gguf_file *file, size_t i_shard, const char *path,
                                struct status_why *why)
{
    struct gguf_shard *shard = &file->shards[i_shard];
    shard->path = strdup(path);
    if (!shard->path)
        return status_fail(why, STATUS_MEMORY, "%s: out of memory", path);
    enum status status = gguf_map_open(&shard->map, path, why);
    if (status)
        return status;
    shard->data = shard->map.data;
    shard->n_bytes = shard->map.n_bytes;
    return gguf_directory_read(file, i_shard, why);
}

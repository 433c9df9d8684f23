#include "eval/run/memory.h"

#include "base/system/system.h"

/** Whether one of the file's shards lies in [start, end), or a part of it. */
static bool holds_shard(const void *context, uintptr_t start, uintptr_t end)
{
    const struct gguf_file *file = context;
    for (size_t i = 0; i < gguf_n_shards(file); i++) {
        uint64_t n_bytes = 0, data_offset = 0;
        uintptr_t at = (uintptr_t)gguf_shard_data(file, i, &n_bytes, &data_offset);
        if (start < at + n_bytes && at < end)
            return true;
    }
    return false;
}

static bool holds_none(const void *context, uintptr_t start, uintptr_t end)
{
    return !holds_shard(context, start, end);
}

double eval_memory_present(const struct gguf_file *file)
{
    double n_bytes = base_system_resident_of(holds_none, file);
    return n_bytes >= 0 ? n_bytes : base_system_peak(); /* which is at least what is resident now */
}

double eval_memory_resident(const struct gguf_file *file)
{
    double n_bytes = base_system_resident_of(holds_shard, file);
    return n_bytes >= 0 ? n_bytes : 0;
}

double eval_memory_mapped(const struct gguf_file *file)
{
    double sum = 0;
    for (size_t i = 0; i < gguf_n_shards(file); i++) {
        uint64_t n_bytes = 0, data_offset = 0;
        gguf_shard_data(file, i, &n_bytes, &data_offset);
        sum += (double)n_bytes;
    }
    return sum;
}

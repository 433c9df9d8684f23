#include "eval/run/memory.h"

#include <stdio.h>
#include <sys/resource.h>

double eval_memory_peak(void)
{
    char line[128];
    unsigned long long peak = 0;
    FILE *about = fopen("/proc/self/status", "re");
    while (about && !peak && fgets(line, sizeof line, about))
        if (sscanf(line, "VmHWM: %llu kB", &peak) != 1)
            peak = 0;
    if (about)
        fclose(about);
    struct rusage usage; /* has also what the program had that became this one */
    if (!peak && getrusage(RUSAGE_SELF, &usage) == 0)
        peak = (unsigned long long)usage.ru_maxrss;
    return 1024 * (double)peak;
}

/** Whether one of the file's shards lies in [start, end), or a part of it. */
static bool holds_shard(const struct gguf_file *file, uintptr_t start, uintptr_t end)
{
    for (size_t i = 0; i < gguf_n_shards(file); i++) {
        uint64_t n_bytes = 0, data_offset = 0;
        uintptr_t at = (uintptr_t)gguf_shard_data(file, i, &n_bytes, &data_offset);
        if (start < at + n_bytes && at < end)
            return true;
    }
    return false;
}

/** Resident bytes of the mappings that hold a shard of the file, or of all others. */
static double resident(const struct gguf_file *file, bool of_shards)
{
    /* Entries of a line "start-end perms ..." and lines "Name: value kB", Rss among them. */
    FILE *maps = fopen("/proc/self/smaps", "re");
    if (!maps) /* all that ever was resident is at least what is now */
        return of_shards ? 0 : eval_memory_peak();
    char line[512];
    bool counted = false;
    double kilobytes = 0;
    while (fgets(line, sizeof line, maps)) {
        unsigned long long start, end, rss;
        if (sscanf(line, "%llx-%llx ", &start, &end) == 2)
            counted = holds_shard(file, (uintptr_t)start, (uintptr_t)end) == of_shards;
        else if (counted && sscanf(line, "Rss: %llu kB", &rss) == 1)
            kilobytes += (double)rss;
    }
    fclose(maps);
    return 1024 * kilobytes;
}

double eval_memory_present(const struct gguf_file *file)
{
    return resident(file, false);
}

double eval_memory_resident(const struct gguf_file *file)
{
    return resident(file, true);
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

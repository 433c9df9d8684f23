/*
 * Feeds files to a fuzz target, for compilers without libFuzzer.
 * usage: fuzz_<name> FILE_OR_FOLDER...     (arguments with a dash are libFuzzer's: ignored)
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

static bool replay_file(const char *path)
{
    FILE *stream = fopen(path, "rb");
    struct stat about;
    if (!stream || fstat(fileno(stream), &about) != 0) {
        perror(path);
        if (stream)
            fclose(stream);
        return false;
    }
    /* A block of exactly the input's size, so that sanitizers see a read beyond it. */
    size_t n_bytes = (size_t)about.st_size;
    uint8_t *data = malloc(n_bytes ? n_bytes : 1);
    bool ok = data && fread(data, 1, n_bytes, stream) == n_bytes;
    fclose(stream);
    if (ok)
        LLVMFuzzerTestOneInput(data, n_bytes);
    else
        fprintf(stderr, "%s: cannot be read\n", path);
    free(data);
    return ok;
}

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Number of inputs run, in the order of their names; -1 after a failure. */
static int replay_folder(const char *folder)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, is_input, alphasort);
    if (n < 0) {
        perror(folder);
        return -1;
    }
    bool ok = true;
    for (int i = 0; i < n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        ok = ok && replay_file(path);
        free(entries[i]);
    }
    free(entries);
    return ok ? n : -1;
}

int main(int argc, char **argv)
{
    int n_inputs = 0;
    for (int i = 1; i < argc; i++) {
        struct stat about;
        if (argv[i][0] == '-')
            continue;
        bool folder = stat(argv[i], &about) == 0 && S_ISDIR(about.st_mode);
        int n = folder ? replay_folder(argv[i]) : replay_file(argv[i]) ? 1 : -1;
        if (n < 0)
            return 1;
        n_inputs += n;
    }
    printf("%d inputs replayed\n", n_inputs);
    return n_inputs > 0 ? 0 : 1;
}

/** A folder of its own for tests that read and write files. */
#ifndef TESTS_HARNESS_TEMP_H
#define TESTS_HARNESS_TEMP_H

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** Make a folder below /tmp; the caller removes it with temp_remove once it is empty. */
static inline void temp_make(char folder[64])
{
    snprintf(folder, 64, "/tmp/assay-test-XXXXXX");
    if (!mkdtemp(folder)) {
        perror(folder);
        exit(1);
    }
}

static inline const char *temp_path(char path[128], const char *folder, const char *name)
{
    snprintf(path, 128, "%s/%s", folder, name);
    return path;
}

static inline void temp_write(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

/** Everything in a file, NUL-terminated; the caller frees it. */
static inline char *temp_read(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    if (!f || !text) {
        perror(path);
        exit(1);
    }
    size_t n = fread(text, 1, (1 << 20) - 1, f);
    text[n] = '\0';
    fclose(f);
    return text;
}

#endif

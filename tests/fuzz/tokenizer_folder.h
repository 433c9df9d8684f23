/** A folder with a file that tells of tokens, and a text that they cut: what both targets share. */
#ifndef TESTS_FUZZ_TOKENIZER_FOLDER_H
#define TESTS_FUZZ_TOKENIZER_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/model.h"
#include "tests/fuzz/fuzz.h"

static char folder[] = "/tmp/assay-fuzz-XXXXXX", path[sizeof folder + 16];

static void remove_folder(void)
{
    unlink(path);
    rmdir(folder);
}

static void write_file(const char *name, const uint8_t *data, size_t n_bytes)
{
    if (!*path) {
        require(mkdtemp(folder));
        snprintf(path, sizeof path, "%s/%s", folder, name);
        atexit(remove_folder);
    }
    FILE *f = fopen(path, "wb");
    require(f && fwrite(data, 1, n_bytes, f) == n_bytes && fclose(f) == 0);
}

static void tokenize(const struct model_tokenizer *t, const char *text, size_t n_bytes)
{
    for (int parse_special = 0; parse_special < 2; parse_special++) {
        struct model_tokens ids = {0};
        struct status_why why = {""};
        enum status status = model_tokenize(t, text, n_bytes, parse_special, &ids, &why);
        require(!status == !*why.text);
        size_t at = 0;
        for (size_t i = 0; i < ids.n; i++) {
            require(ids.ids[i] >= 0 && (size_t)ids.ids[i] < model_n_vocab(t));
            size_t n = model_token_span(t, ids.ids[i], text + at, n_bytes - at);
            at = n < n_bytes - at ? at + n : n_bytes;
        }
        free(ids.ids);
    }
}

/** Write the file, and cut the text if it is a good one. */
static void try_folder(const char *name, const uint8_t *data, size_t n_bytes, const uint8_t *text,
                       size_t n_text)
{
    struct gguf_file *file;
    struct model_tokenizer *t = NULL;
    struct status_why why = {""};
    write_file(name, data, n_bytes);
    enum status status = model_tokens_open(&file, folder, 0, &why);
    if (!status)
        status = model_tokenizer_open(&t, file, NULL, false, &why);
    require(!status == !*why.text && !strchr(why.text, '\n'));
    char *copy = fuzz_copy(text, n_text);
    if (!status)
        tokenize(t, copy, n_text);
    free(copy);
    model_tokenizer_close(t);
    gguf_close(file);
}

#endif

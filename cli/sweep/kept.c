/* The folder in which models that were made for a sweep stay, and what says of what they are. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/content/text.h"
#include "base/file/atomic_file.h"
#include "base/file/folder.h"
#include "base/text/words.h"
#include "cli/sweep/donors.h"

enum { DESCRIPTION_BYTES = 1 << 20 };

void cli_donors_add_path(struct base_buffer *out, const char *path)
{
    base_buffer_format(out, "%s%s", *path == '-' ? "./" : "", path);
}

void cli_donors_add_kept(struct base_buffer *out, const char *keep, const char *type)
{
    cli_donors_add_path(out, keep);
    base_buffer_format(out, "/%s.gguf", type);
}

/** A file by its size and time; a word that is none is said as it is. */
static void describe_file(struct base_buffer *out, const char *word)
{
    struct stat about;
    char *whole = realpath(word, NULL);
    base_buffer_format(out, "%s", whole ? whole : word);
    if (whole && stat(whole, &about) == 0)
        base_buffer_format(out, " (%lld bytes of %lld.%09ld)", (long long)about.st_size,
                           (long long)about.st_mtim.tv_sec, about.st_mtim.tv_nsec);
    base_buffer_format(out, "\n");
    free(whole);
}

/** What the files of a folder are made of, as a text: the same for the same order. */
static enum status describe(struct base_buffer *out, const struct cli_donors_order *order,
                            struct status_why *why)
{
    const char *words = order->quantizer, *word;
    size_t length;
    base_buffer_format(out, "The models here were made by assay sweep --types. Of:\n");
    describe_file(out, order->base);
    base_buffer_format(out, "By, with --pure:\n");
    while ((words = base_words_next(words, &word, &length))) {
        char *copy = strndup(word, length);
        out->failed |= !copy;
        if (copy)
            describe_file(out, copy);
        free(copy);
    }
    return base_buffer_check(out, "a description of models", why);
}

/** Compare a folder's description with that of the order. found, same: out. */
static enum status compare(bool *found, bool *same, const char *path,
                           const struct base_buffer *wanted, struct status_why *why)
{
    struct base_text text;
    *found = access(path, F_OK) == 0;
    if (!*found)
        return STATUS_OK;
    enum status status = base_text_read_whole(&text, path, DESCRIPTION_BYTES, why);
    if (status)
        return status;
    *same = text.n_bytes == wanted->n && memcmp(text.data, wanted->data, wanted->n) == 0;
    base_text_free(&text);
    return STATUS_OK;
}

static enum status has_models(bool *out, const char *keep, struct status_why *why)
{
    struct base_folder folder;
    enum status status = base_folder_list(&folder, keep, why);
    *out = false;
    for (size_t i = 0; i < folder.n && !status; i++)
        *out |= base_ends_with(folder.paths[i], ".gguf");
    base_folder_free(&folder);
    return status;
}

/** The first of the order's models that the folder has; "" in path: it has none. */
static enum status find_model(struct base_buffer *path, const struct cli_donors_order *order,
                              struct status_why *why)
{
    for (size_t i = 0; i < order->types->n; i++) {
        path->n = 0;
        cli_donors_add_kept(path, order->keep, order->types->items[i]);
        if (path->failed || access(path->data, F_OK) == 0)
            return base_buffer_check(path, "the name of a model", why);
    }
    path->n = 0;
    return STATUS_OK;
}

static enum status name_description(struct base_buffer *path, const struct cli_donors_order *order,
                                    struct status_why *why)
{
    cli_donors_add_path(path, order->keep);
    base_buffer_format(path, "/made-of.txt");
    return base_buffer_check(path, "a folder of models", why);
}

enum status cli_donors_sign(const struct cli_donors_order *order, struct status_why *why)
{
    struct base_buffer path = {0}, text = {0};
    struct base_file *file = NULL;
    enum status status = name_description(&path, order, why);
    if (!status)
        status = describe(&text, order, why);
    if (!status)
        status = base_file_create(&file, path.data, NULL, why);
    if (!status) {
        base_file_printf(file, "%s", text.data);
        status = base_file_commit(file, why);
    }
    base_buffer_free(&path);
    base_buffer_free(&text);
    return status;
}

enum status cli_donors_enter(const struct cli_donors_order *order, struct status_why *why)
{
    struct base_buffer path = {0}, text = {0}, model = {0};
    bool found = false, same = false, some = false;
    enum status status = name_description(&path, order, why);
    if (!status && mkdir(order->keep, 0777) != 0 && errno != EEXIST)
        status = status_fail(why, STATUS_IO, "--keep: %s cannot be made: %s", order->keep,
                             strerror(errno));
    if (!status)
        status = find_model(&model, order, why);
    if (!status)
        status = describe(&text, order, why);
    if (!status)
        status = compare(&found, &same, path.data, &text, why);
    if (!status && found && !same)
        status = has_models(&some, order->keep, why);
    if (!status && some)
        status = status_fail(why, STATUS_USAGE,
                             "%s: the models in this folder are of another base or quantizer than "
                             "these options name; give another folder with --keep",
                             path.data);
    if (!status && model.n && !found)
        status = status_fail(why, STATUS_USAGE,
                             "--keep: %s exists, and this command has not made it; give it with "
                             "--from, or give another folder",
                             model.data);
    base_buffer_free(&path);
    base_buffer_free(&text);
    base_buffer_free(&model);
    return status;
}

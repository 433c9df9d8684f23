/* The folder in which models that were made for a sweep stay, and what says of what they are. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/printable.h"
#include "cli/sweep/donors.h"

enum { DESCRIPTION_BYTES = 4096 };

void cli_donors_add_path(struct base_buffer *out, const char *path)
{
    base_buffer_format(out, "%s%s", *path == '-' ? "./" : "", path);
}

/** What the files of a folder are made of, as a text: the same for the same order. */
static enum status describe(struct base_buffer *out, const struct cli_donors_order *order,
                            struct status_why *why)
{
    struct stat about;
    if (stat(order->base, &about) != 0)
        return status_fail(why, STATUS_IO, "%s: cannot be examined: %s", order->base,
                           strerror(errno));
    base_buffer_format(out,
                       "The models here were made by assay sweep --types.\n"
                       "of: %s, %lld bytes, written at %lld\nby: %s --pure\n",
                       base_file_name(order->base), (long long)about.st_size,
                       (long long)about.st_mtime, order->quantizer);
    return out->failed ? status_fail(why, STATUS_MEMORY, "no memory to make a model") : STATUS_OK;
}

/** Compare a folder's description with that of the order. found: there is one. */
static enum status compare(const char *path, const struct base_buffer *wanted, bool *found,
                           struct status_why *why)
{
    char text[DESCRIPTION_BYTES];
    FILE *file = fopen(path, "r");
    *found = file != NULL;
    if (!file)
        return errno == ENOENT ? STATUS_OK
                               : status_fail(why, STATUS_IO, "%s: %s", path, strerror(errno));
    size_t n = fread(text, 1, sizeof text, file);
    fclose(file);
    if (n == wanted->n && memcmp(text, wanted->data, n) == 0)
        return STATUS_OK;
    return status_fail(why, STATUS_USAGE,
                       "%s: the models in this folder are of another base or quantizer than these "
                       "options name; give another folder with --keep",
                       path);
}

/** A model that is in the folder without a description may be anything. */
static enum status check_absent(const struct cli_donors_order *order, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < order->types->n && !status; i++) {
        struct base_buffer path = {0};
        cli_donors_add_path(&path, order->keep);
        base_buffer_format(&path, "/%s.gguf", order->types->items[i]);
        if (path.failed)
            status = status_fail(why, STATUS_MEMORY, "no memory to make a model");
        else if (access(path.data, F_OK) == 0)
            status = status_fail(why, STATUS_USAGE,
                                 "--keep: %s exists, and this command has not made it; give it "
                                 "with --from, or give another folder",
                                 path.data);
        base_buffer_free(&path);
    }
    return status;
}

/** Write the description of a folder that has none. */
static enum status sign(const char *path, const struct base_buffer *text, struct status_why *why)
{
    FILE *file = fopen(path, "wx");
    bool written = file && fwrite(text->data, 1, text->n, file) == text->n;
    if (file && fclose(file) != 0)
        written = false;
    return written
               ? STATUS_OK
               : status_fail(why, STATUS_IO, "%s: cannot be written: %s", path, strerror(errno));
}

enum status cli_donors_keep(const struct cli_donors_order *order, struct status_why *why)
{
    struct base_buffer path = {0}, text = {0};
    bool found = false;
    cli_donors_add_path(&path, order->keep);
    base_buffer_format(&path, "/made-of.txt");
    enum status status = base_buffer_check(&path, "a folder of models", why);
    if (!status && mkdir(order->keep, 0777) != 0 && errno != EEXIST)
        status = status_fail(why, STATUS_IO, "--keep: %s cannot be made: %s", order->keep,
                             strerror(errno));
    if (!status)
        status = describe(&text, order, why);
    if (!status)
        status = compare(path.data, &text, &found, why);
    if (!status && !found)
        status = check_absent(order, why);
    if (!status && !found)
        status = sign(path.data, &text, why);
    base_buffer_free(&path);
    base_buffer_free(&text);
    return status;
}

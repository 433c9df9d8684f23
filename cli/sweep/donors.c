#include "cli/sweep/donors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buffer.h"
#include "base/file/folder.h"
#include "base/text/printable.h"
#include "cli/options/value.h"
#include "cli/process/program.h"
#include "cli/process/say.h"
#include "cli/process/signals.h"

enum { SHOWN_BYTES = 2000 };

static enum status check_types(const struct cli_list *types, struct status_why *why)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    for (size_t i = 0; i < types->n; i++) {
        const char *type = types->items[i];
        if (!*type || strlen(type) > 32 || type[strspn(type, letters)])
            return status_fail(why, STATUS_USAGE,
                               "--types: '%.40s' is no name of a type; expected some like "
                               "Q4_K,IQ3_S",
                               type);
        for (size_t k = 0; k < i; k++)
            if (strcmp(type, types->items[k]) == 0)
                return status_fail(why, STATUS_USAGE, "--types: %s is there twice", type);
    }
    return STATUS_OK;
}

/** A temporary folder in that where the models stay, or in TMPDIR. */
static enum status make_folder(struct cli_donors *d, const char *keep, struct status_why *why)
{
    const char *parent = keep ? keep : getenv("TMPDIR");
    parent = parent && *parent ? parent : "/tmp";
    struct base_buffer path = {0};
    cli_donors_add_path(&path, parent);
    base_buffer_format(&path, "/" CLI_DONORS_FOLDER "XXXXXX");
    bool fits = !path.failed && path.n < sizeof d->folder;
    errno = path.failed ? ENOMEM : ENAMETOOLONG;
    if (fits)
        memcpy(d->folder, path.data, path.n + 1);
    base_buffer_free(&path);
    if (fits && mkdtemp(d->folder))
        return STATUS_OK;
    enum status status = status_fail(why, STATUS_IO, "%s: no folder can be made in %.200s: %s",
                                     keep ? "--keep" : "TMPDIR", parent, strerror(errno));
    *d->folder = '\0';
    return status;
}

/** No donor is larger than the base, but for what a quantizer that is asked for larger types does.
 */
static enum status check_room(const struct cli_donors *d, const char *base, struct status_why *why)
{
    struct statvfs room;
    struct stat about;
    if (stat(base, &about) != 0 || statvfs(d->folder, &room) != 0)
        return status_fail(why, STATUS_IO, "%s: cannot be examined: %s", base, strerror(errno));
    double left = (double)room.f_bavail * (double)room.f_frsize, needed = (double)about.st_size;
    return left >= needed
               ? STATUS_OK
               : status_fail(why, STATUS_IO,
                             "%s: has room for %.1f MB; a model that is made of %s may take %.1f "
                             "MB; --keep, or TMPDIR without it, names another folder",
                             d->folder, left / 1e6, base, needed / 1e6);
}

/** The end of what a program has printed. */
static void show(const char *path)
{
    char text[SHOWN_BYTES + 1], shown[4 * SHOWN_BYTES + 1];
    FILE *file = fopen(path, "r");
    size_t n = 0;
    if (file && fseek(file, -SHOWN_BYTES, SEEK_END) != 0)
        rewind(file);
    if (file)
        n = fread(text, 1, SHOWN_BYTES, file);
    if (file)
        fclose(file);
    text[n] = '\0';
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        cli_complain("%s\n", base_printable_text(shown, sizeof shown, line));
    }
}

/** The words between blanks, in place. Returns how many there are. */
static size_t split(char **words, char *text)
{
    size_t n = 0;
    for (char *word; (word = strsep(&text, " "));)
        if (*word)
            words[n++] = word;
    return n;
}

/** Run it, and see that it has made the file. */
static enum status run(char *const *words, const char *path, const char *log,
                       struct status_why *why)
{
    int ended = 0;
    enum status status = cli_program_run(&ended, words, log, why);
    if (status == STATUS_CANCELLED)
        return status_fail(why, status, "interrupted: nothing was evaluated");
    if (status) {
        status_context(why, "--quantizer");
        return status;
    }
    if (!WIFEXITED(ended) || WEXITSTATUS(ended) != 0) {
        show(log);
        return status_fail(why, STATUS_IO,
                           "--quantizer: %s ended with %s %d; its last lines are above", words[0],
                           WIFSIGNALED(ended) ? "signal" : "exit code",
                           WIFSIGNALED(ended) ? WTERMSIG(ended) : WEXITSTATUS(ended));
    }
    if (access(path, F_OK) == 0)
        return STATUS_OK;
    show(log);
    return status_fail(why, STATUS_USAGE,
                       "--quantizer: %s ended well and did not write %s where it was "
                       "told to; leave out options that make no file or several "
                       "(--dry-run, --keep-split); its last lines are above",
                       words[0], strrchr(path, '/') + 1);
}

/** The program and its options, then: --pure, the base, the file, the type, perhaps threads. */
static enum status make(const struct cli_donors *d, const struct cli_donors_order *order,
                        const char *type, const char *path, struct status_why *why)
{
    struct base_buffer from = {0}, log = {0};
    char *copy = strdup(order->quantizer), **words = NULL, n_threads[12] = "";
    size_t n = 0;
    cli_donors_add_path(&from, order->base);
    base_buffer_format(&log, "%s/log", d->folder);
    enum status status =
        !copy || from.failed || log.failed
            ? status_fail(why, STATUS_MEMORY, "no memory to make a model")
            : base_array_new(words, strlen(order->quantizer) / 2 + 7, "words of --quantizer", why);
    if (!status && !(n = split(words, copy)))
        status = status_fail(why, STATUS_USAGE, "--quantizer: expected the name of a program");
    if (!status) {
        char pure[] = "--pure";
        char *const rest[] = {pure, from.data, (char *)(uintptr_t)path, (char *)(uintptr_t)type,
                              NULL, NULL};
        memcpy(words + n, rest, sizeof rest);
        if (order->n_threads) {
            snprintf(n_threads, sizeof n_threads, "%d", order->n_threads);
            words[n + 4] = n_threads;
        }
        cli_say("assay: %s makes %s of %s\n", words[0], type, order->base);
        status = run(words, path, log.data, why);
    }
    base_buffer_free(&from);
    base_buffer_free(&log);
    free(words);
    free(copy);
    return status;
}

/** Give a file another name, which no file has: what came there meanwhile is not replaced. */
static int put(const char *path, const char *to)
{
    if (link(path, to) == 0)
        return unlink(path);
    bool unable = errno == EPERM || errno == ENOTSUP || errno == ENOSYS;
    return unable && access(to, F_OK) != 0 ? rename(path, to) : -1;
}

/** Make the file of a type, unless it is kept; one that is not whole never has its name. */
static enum status provide(struct cli_donors *d, const struct cli_donors_order *order,
                           const char *type, struct status_why *why)
{
    struct base_buffer path = {0}, kept = {0};
    base_buffer_format(&path, "%s/%s.gguf", d->folder, type);
    if (order->keep)
        cli_donors_add_kept(&kept, order->keep, type);
    const struct base_buffer *end = order->keep ? &kept : &path;
    enum status status = path.failed || kept.failed
                             ? status_fail(why, STATUS_MEMORY, "no memory to make a model")
                             : cli_list_append(&d->paths, end->data, end->n, why);
    if (!status && order->keep && access(kept.data, F_OK) == 0)
        cli_say("assay: %s is there already\n", kept.data);
    else if (!status) {
        status = check_room(d, order->base, why);
        if (!status)
            status = make(d, order, type, path.data, why);
        if (!status && order->keep)
            status = cli_donors_sign(order, why);
        if (!status && order->keep && put(path.data, kept.data) != 0)
            status = status_fail(why, STATUS_IO, "%s: cannot be put in its place: %s", kept.data,
                                 strerror(errno));
    }
    base_buffer_free(&path);
    base_buffer_free(&kept);
    return status;
}

enum status cli_donors_make(struct cli_donors *out, const struct cli_donors_order *order,
                            struct status_why *why)
{
    enum status status = check_types(order->types, why);
    (void)cli_interrupt_catch();
    if (!status && order->keep)
        status = cli_donors_enter(order, why);
    if (!status)
        status = make_folder(out, order->keep, why);
    for (size_t i = 0; i < order->types->n && !status; i++)
        status = provide(out, order, order->types->items[i], why);
    return status;
}

double cli_donors_seconds(size_t *n, const struct cli_list *types, const char *keep,
                          double n_weights)
{
    double seconds = 0;
    *n = 0;
    /* llama-quantize of October 2026 on a Zen 4, for a weight: it searches longest for IQ types. */
    for (size_t i = 0; i < types->n; i++) {
        struct base_buffer path = {0};
        if (keep)
            cli_donors_add_kept(&path, keep, types->items[i]);
        bool is_there = path.data && access(path.data, F_OK) == 0;
        base_buffer_free(&path);
        if (is_there)
            continue;
        ++*n;
        seconds += strncasecmp(types->items[i], "IQ", 2) == 0  ? 270e-9 * n_weights
                   : strcasestr(types->items[i], "_K") != NULL ? 25e-9 * n_weights
                                                               : 5e-9 * n_weights;
    }
    return seconds;
}

void cli_donors_remove(struct cli_donors *d)
{
    struct status_why why = {""};
    if (*d->folder && base_folder_remove(d->folder, &why))
        cli_complain("assay: %s\n", why.text);
    cli_list_clear(&d->paths);
    *d->folder = '\0';
}

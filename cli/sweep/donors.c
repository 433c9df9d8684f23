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

/** A path that no program takes for an option. */
static void add_path(struct base_buffer *out, const char *path)
{
    base_buffer_format(out, "%s%s", *path == '-' ? "./" : "", path);
}

static enum status make_folder(struct cli_donors *d, struct status_why *why)
{
    const char *parent = getenv("TMPDIR");
    struct base_buffer path = {0};
    add_path(&path, parent && *parent ? parent : "/tmp");
    base_buffer_format(&path, "/assay-donors-XXXXXX");
    bool fits = !path.failed && path.n < sizeof d->folder;
    errno = path.failed ? ENOMEM : ENAMETOOLONG;
    if (fits)
        memcpy(d->folder, path.data, path.n + 1);
    base_buffer_free(&path);
    if (fits && mkdtemp(d->folder))
        return STATUS_OK;
    enum status status = status_fail(why, STATUS_IO, "TMPDIR: no folder can be made in %.200s: %s",
                                     parent && *parent ? parent : "/tmp", strerror(errno));
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
                             "MB; TMPDIR names another folder",
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

/** The program and its options, then: --pure, the base, the file, the type. */
static enum status make(struct cli_donors *d, const char *type, const char *quantizer,
                        const char *base, struct status_why *why)
{
    struct base_buffer from = {0}, path = {0}, log = {0};
    char *copy = strdup(quantizer), **words = NULL;
    size_t n = 0;
    add_path(&from, base);
    base_buffer_format(&path, "%s/%s.gguf", d->folder, type);
    base_buffer_format(&log, "%s/log", d->folder);
    enum status status =
        !copy || from.failed || path.failed || log.failed
            ? status_fail(why, STATUS_MEMORY, "no memory to make a model")
            : base_array_new(words, strlen(quantizer) / 2 + 6, "words of --quantizer", why);
    if (!status)
        status = cli_list_append(&d->paths, path.data, path.n, why);
    if (!status && !(n = split(words, copy)))
        status = status_fail(why, STATUS_USAGE, "--quantizer: expected the name of a program");
    if (!status) {
        char pure[] = "--pure";
        char *const rest[] = {pure, from.data, path.data, (char *)(uintptr_t)type, NULL};
        memcpy(words + n, rest, sizeof rest);
        cli_say("assay: %s makes %s of %s\n", words[0], type, base);
        status = run(words, path.data, log.data, why);
    }
    base_buffer_free(&from);
    base_buffer_free(&path);
    base_buffer_free(&log);
    free(words);
    free(copy);
    return status;
}

enum status cli_donors_make(struct cli_donors *out, const struct cli_list *types,
                            const char *quantizer, const char *base, struct status_why *why)
{
    enum status status = check_types(types, why);
    (void)cli_interrupt_catch();
    if (!status)
        status = make_folder(out, why);
    for (size_t i = 0; i < types->n && !status; i++) {
        status = check_room(out, base, why);
        if (!status)
            status = make(out, types->items[i], quantizer, base, why);
    }
    return status;
}

void cli_donors_remove(struct cli_donors *d)
{
    struct status_why why = {""};
    if (*d->folder && base_folder_remove(d->folder, &why))
        cli_complain("assay: %s\n", why.text);
    cli_list_clear(&d->paths);
    *d->folder = '\0';
}

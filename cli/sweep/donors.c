#include "cli/sweep/donors.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file/folder.h"
#include "base/text/printable.h"
#include "cli/options/value.h"
#include "cli/process/say.h"
#include "cli/process/signals.h"

enum { MOST_WORDS = 32, SHOWN_BYTES = 2000 };
extern char **environ;

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

static enum status make_folder(struct cli_donors *d, struct status_why *why)
{
    const char *parent = getenv("TMPDIR");
    int n = snprintf(d->folder, sizeof d->folder, "%s/assay-donors-XXXXXX",
                     parent && *parent ? parent : "/tmp");
    if (n >= 0 && (size_t)n < sizeof d->folder && mkdtemp(d->folder))
        return STATUS_OK;
    enum status status = status_fail(why, STATUS_IO, "%.200s: no folder can be made: %s", d->folder,
                                     strerror(errno));
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

/** Wait for a program; an interruption ends it. Returns its status as waitpid has it. */
static int wait_for(pid_t pid)
{
    const struct timespec step = {0, 50 * 1000 * 1000};
    int ended = 0;
    bool told = false;
    while (waitpid(pid, &ended, WNOHANG) == 0) {
        if (cli_interrupted() && !told)
            kill(pid, SIGTERM);
        told = cli_interrupted();
        nanosleep(&step, NULL);
    }
    return ended;
}

/** Run a program with its output in a file. */
static enum status run(char **words, const char *log, struct status_why *why)
{
    posix_spawn_file_actions_t files;
    pid_t pid;
    int failed = posix_spawn_file_actions_init(&files);
    if (failed)
        return status_fail(why, STATUS_MEMORY, "no memory to run %s", words[0]);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    failed = posix_spawnp(&pid, words[0], &files, NULL, words, environ);
    posix_spawn_file_actions_destroy(&files);
    if (failed)
        return status_fail(why, STATUS_IO, "--quantizer: %s cannot be run: %s", words[0],
                           strerror(failed));
    int ended = wait_for(pid);
    if (cli_interrupted())
        return status_fail(why, STATUS_CANCELLED, "interrupted: nothing was evaluated");
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0)
        return STATUS_OK;
    show(log);
    return status_fail(why, STATUS_IO, "--quantizer: %s ended with %s %d; its last lines are above",
                       words[0], WIFSIGNALED(ended) ? "signal" : "exit code",
                       WIFSIGNALED(ended) ? WTERMSIG(ended) : WEXITSTATUS(ended));
}

/** The program and its options, then: --pure, the base, the file, the type. */
static enum status make(struct cli_donors *d, const char *type, const char *quantizer,
                        const char *base, struct status_why *why)
{
    struct base_buffer path = {0}, log = {0};
    char *words[MOST_WORDS + 5], *next = NULL, *copy = strdup(quantizer);
    size_t n = 0;
    for (char *word = copy; word && *word && n < MOST_WORDS; word = next) {
        size_t length = strcspn(word, " ");
        next = word[length] ? word + length + 1 : word + length;
        word[length] = '\0';
        if (length)
            words[n++] = word;
    }
    base_buffer_format(&path, "%s/%s.gguf", d->folder, type);
    base_buffer_format(&log, "%s/log", d->folder);
    enum status status = !copy || path.failed || log.failed
                             ? status_fail(why, STATUS_MEMORY, "no memory to make a model")
                             : cli_list_append(&d->paths, path.data, path.n, why);
    if (!status && n == 0)
        status = status_fail(why, STATUS_USAGE, "--quantizer: expected the name of a program");
    if (!status) {
        const char *const rest[] = {"--pure", base, path.data, type, NULL};
        for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
            words[n + i] = (char *)(uintptr_t)rest[i];
        cli_say("assay: %s makes %s of %s\n", words[0], type, base);
        status = run(words, log.data, why);
        if (!status && access(path.data, F_OK) != 0) {
            show(log.data);
            status =
                status_fail(why, STATUS_USAGE,
                            "--quantizer: %s ended well and did not write %s.gguf where it was "
                            "told to; leave out options that make no file or several "
                            "(--dry-run, --keep-split); its last lines are above",
                            words[0], type);
        }
    }
    base_buffer_free(&path);
    base_buffer_free(&log);
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
    struct base_folder folder = {0}; /* whatever a program has left there */
    if (*d->folder && !base_folder_list(&folder, d->folder, NULL))
        for (size_t i = 0; i < folder.n; i++)
            unlink(folder.paths[i]);
    base_folder_free(&folder);
    for (size_t i = 0; i < d->paths.n; i++)
        unlink(d->paths.items[i]);
    if (*d->folder)
        rmdir(d->folder);
    cli_list_clear(&d->paths);
    *d->folder = '\0';
}

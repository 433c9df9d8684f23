/* Files that a request may name: those under some folders, and no others are opened. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file/folder.h"
#include "cli/options/value.h"
#include "cli/reference/base.h"
#include "clients/serve/serve.h"

/** The folder without links that a path leads to; nothing where there is none. */
static enum status add_folder(struct cli_list *folders, const char *path, struct status_why *why)
{
    char *real = realpath(path, NULL);
    if (!real)
        return STATUS_OK;
    enum status status = cli_list_append(folders, real, strlen(real), why);
    free(real);
    return status;
}

/** The folder of a model's name; a link there does not bring the folder that it leads to. */
static enum status add_folder_of(struct cli_list *folders, const char *file, struct status_why *why)
{
    const char *slash = strrchr(file, '/');
    char *folder = slash ? strndup(file, (size_t)(slash - file) + 1) : strdup(".");
    enum status status = folder ? add_folder(folders, folder, why)
                                : status_fail(why, STATUS_MEMORY, "no memory for %s", file);
    free(folder);
    return status;
}

enum status serve_find_folders(struct cli_list *folders, const struct serve_settings *settings,
                               struct status_why *why)
{
    enum status status = add_folder_of(folders, settings->model, why);
    if (!status && settings->base && cli_base_recognise(settings->base) == &cli_base_model)
        status = add_folder_of(folders, settings->base, why);
    for (size_t i = 0; i < settings->files_from.n && !status; i++) {
        const char *path = settings->files_from.items[i];
        if (!base_is_folder(path))
            return status_fail(why, STATUS_USAGE, "--files-from %s: there is no such folder", path);
        status = add_folder(folders, path, why);
    }
    return status;
}

/** Whether a path without links leads into one of the folders. */
static bool is_within(const struct cli_list *folders, const char *path)
{
    for (size_t i = 0; i < folders->n; i++) {
        size_t n = strlen(folders->items[i]);
        n -= folders->items[i][n - 1] == '/'; /* of the root folder */
        if (strncmp(path, folders->items[i], n) == 0 && path[n] == '/')
            return true;
    }
    return false;
}

/** Whether no part of a model in several files is a link that leads elsewhere. */
static bool are_parts_within(const struct cli_list *folders, const char *path)
{
    static const char pattern[] = "-00000-of-00000.gguf";
    size_t n_path = strlen(path), n = sizeof pattern - 1;
    if (n_path < n)
        return true;
    const char *suffix = path + n_path - n;
    for (size_t i = 0; i < n; i++)
        if (pattern[i] == '0' ? !strchr("0123456789", suffix[i]) : suffix[i] != pattern[i])
            return true; /* it is one file */
    long count = strtol(suffix + strlen("-00000-of-"), NULL, 10);
    bool within = true;
    for (long i = 1; i <= count && within; i++) {
        char part[PATH_MAX], real[PATH_MAX];
        struct stat about;
        snprintf(part, sizeof part, "%.*s-%05ld-of-%05ld.gguf", (int)(n_path - n), path, i, count);
        if (lstat(part, &about) == 0 && S_ISLNK(about.st_mode))
            within = realpath(part, real) && is_within(folders, real);
    }
    return within;
}

enum status serve_find_file(char **out, const struct cli_list *folders, const char *path,
                            struct status_why *why)
{
    char *real = realpath(path, NULL);
    if (real && is_within(folders, real) && are_parts_within(folders, real)) {
        *out = real;
        return STATUS_OK;
    }
    free(real);
    return status_fail(why, STATUS_USAGE,
                       "%s: there is no such file under the folder of a model or of --files-from",
                       path);
}

#include "cli/input/models.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file/folder.h"
#include "base/status.h"
#include "base/text/printable.h"
#include "base/text/words.h"
#include "cli/process/say.h"
#include "gguf/gguf.h"

/* What says which model a path names: the first of its files. False: it is not there. */
static bool find_first_part(struct stat *out, const char *path)
{
    char first[BASE_PATH_BYTES];
    size_t n_prefix;
    if (!gguf_part_number(path, &n_prefix))
        return stat(path, out) == 0;
    int n = snprintf(first, sizeof first, "%.*s-00001%s", (int)n_prefix, path,
                     path + n_prefix + strlen("-00001"));
    return n < (int)sizeof first && stat(first, out) == 0;
}

static bool same_model(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return find_first_part(&of_a, a) && find_first_part(&of_b, b) && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

static bool is_among(char *const *paths, size_t n, const char *path)
{
    for (size_t i = 0; i < n; i++)
        if (same_model(paths[i], path))
            return true;
    return false;
}

/* Put item i after all others. */
static void move_to_end(const struct cli_list *models, size_t i)
{
    char *item = models->items[i];
    memmove(models->items + i, models->items + i + 1, (models->n - i - 1) * sizeof item);
    models->items[models->n - 1] = item;
}

size_t cli_models_once(const struct cli_list *models, const char *base)
{
    size_t n = models->n, n_again = 0, n_base = 0, i = 0;
    while (i < n) {
        bool again = is_among(models->items, i, models->items[i]);
        bool is_base = !again && base && n > 1 && same_model(models->items[i], base);
        n_again += again;
        n_base += is_base;
        if (again || is_base) {
            move_to_end(models, i);
            n--;
        } else {
            i++;
        }
    }
    if (n_base)
        cli_say("assay: note: %s is the base, and is left out of the models that are compared with "
                "it\n",
                base);
    if (n_again)
        cli_say("assay: note: %zu file%s left out: %s of a model that is given already\n", n_again,
                n_again == 1 ? " is" : "s are", n_again == 1 ? "it is" : "each is");
    return n;
}

/** Why a file is no model that could be evaluated; false: it may be one. */
static bool is_no_model(const char *path, struct status_why *why)
{
    const char *other = gguf_other(path);
    struct gguf_file *file = NULL;
    size_t n_prefix;
    if (base_is_folder(path))
        return false;
    if (other)
        status_fail(why, STATUS_FORMAT, "%s: is %s, no model", path, other);
    if (other || gguf_list_part(&file, path, why) == STATUS_FORMAT)
        return true;
    bool empty = file && !gguf_n_tensors(file) && !gguf_part_number(path, &n_prefix);
    if (empty)
        status_fail(why, STATUS_FORMAT, "%s: has no tensors: it is a vocabulary, no model", path);
    gguf_close(file);
    return empty;
}

/** Add a name to the line for remarks, or that there are more. */
static void tell_left_out(struct cli_evaluate_settings *settings, const char *path)
{
    char name[96], *line = settings->left_out;
    enum { ROOM = 8 }; /* for the last words */
    size_t size = sizeof settings->left_out, n = strlen(line);
    base_printable_text(name, sizeof name, base_file_name(path));
    if (n + strlen(name) + 2 + ROOM < size)
        snprintf(line + n, size - n, "%s%s", n ? ", " : "left out, as no whole models: ", name);
    else if (!base_ends_with(line, ", ..."))
        snprintf(line + n, size - n, ", ...");
}

size_t cli_models_chosen(const struct cli_list *models, size_t n_bare, const char *base,
                         struct cli_evaluate_settings *settings)
{
    struct status_why why;
    if (!n_bare)
        return models->n;
    const struct cli_list once = {models->items, cli_models_once(models, base)};
    if (n_bare < models->n)
        return once.n;
    size_t n_models = 0, n = once.n, i = 0;
    for (size_t k = 0; k < once.n; k++)
        n_models += !is_no_model(once.items[k], &why);
    while (n_models && i < n)
        if (is_no_model(once.items[i], &why)) {
            cli_complain("assay: note: left out: %s\n",
                         why.text); /* with --quiet, too: it is missing */
            tell_left_out(settings, once.items[i]);
            move_to_end(&once, i);
            n--;
        } else {
            i++;
        }
    return n;
}

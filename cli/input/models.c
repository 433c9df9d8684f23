#include "cli/input/models.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/status.h"
#include "base/text/printable.h"
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

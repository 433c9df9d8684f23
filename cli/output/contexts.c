#include "cli/output/contexts.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/text/printable.h"
#include "cli/process/run.h"
#include "cli/session/cluster.h"

enum { N_FILES = 3 };

/** Files of a run, and their names in this one. */
struct names {
    const char **at[N_FILES], *given[N_FILES];
    char own[N_FILES][PATH_MAX];
};

static enum status check(const struct cli_contexts *c, const struct names *names,
                         struct status_why *why)
{
    enum status status = cli_cluster_join(&c->evaluate->machine, why);
    if (status)
        return status;
    const char *what = c->evaluate->host            ? "a server"
                       : c->evaluate->watch.wanted  ? "--hot-swap"
                       : cli_cluster()->n_ranks > 1 ? "several processes"
                                                    : NULL;
    if (what)
        return status_fail(why, STATUS_USAGE, "-c: several context sizes do not go with %s", what);
    for (size_t i = 0; i < c->text->texts.n; i++)
        if (strcmp(c->text->texts.items[i], "-") == 0)
            return status_fail(why, STATUS_USAGE,
                               "-c: with several context sizes the text is read again, which "
                               "standard input (-f -) cannot be");
    for (size_t i = 0; i < N_FILES; i++)
        if (names->given[i] && strcmp(names->given[i], "-") == 0)
            return status_fail(why, STATUS_USAGE,
                               "-: with several context sizes each has a file of its own; expected "
                               "a name");
    for (struct cli_counts a = c->windows->n_ctx; a.more;) {
        int64_t size = a.value;
        a = cli_counts_next(a);
        for (struct cli_counts b = a;; b = cli_counts_next(b)) {
            if (b.value == size)
                return status_fail(why, STATUS_USAGE, "-c: %" PRId64 " is there twice", size);
            if (!b.more)
                break;
        }
    }
    return STATUS_OK;
}

/** The size stands before what the name ends in: r.json, r-c512.json. */
static enum status name_files(struct names *names, int64_t size, struct status_why *why)
{
    for (size_t i = 0; i < N_FILES; i++) {
        const char *given = names->given[i];
        if (!given)
            continue;
        const char *name = base_file_name(given), *dot = strrchr(name, '.');
        size_t n = dot && dot > name ? (size_t)(dot - given) : strlen(given);
        int length = snprintf(names->own[i], PATH_MAX, "%.*s-c%" PRId64 "%s", (int)n, given, size,
                              given + n);
        if (length < 0 || length >= PATH_MAX)
            return status_fail(why, STATUS_USAGE, "%.80s...: the name is too long", given);
        *names->at[i] = names->own[i];
    }
    return STATUS_OK;
}

static void print_table(const struct cli_contexts *c)
{
    if (c->rows.n)
        printf("\n%s%s", c->head, c->rows.data);
    cli_flush();
}

enum status cli_contexts_run(struct cli_contexts *c, struct status_why *why)
{
    const struct cli_counts sizes = c->windows->n_ctx;
    struct names names = {
        .at = {&c->evaluate->output.json_file, &c->evaluate->state_file, c->per_token_file}};
    for (size_t i = 0; i < N_FILES; i++)
        names.given[i] = *names.at[i];
    enum status status = check(c, &names, why);
    bool more = !status;
    for (struct cli_counts at = sizes; more; at = more ? cli_counts_next(at) : at) {
        status = name_files(&names, at.value, why);
        if (status)
            break;
        printf("%s-c %" PRId64 "\n", at.more == sizes.more ? "" : "\n", at.value);
        cli_flush();
        c->windows->n_ctx = (struct cli_counts){.value = at.value};
        status = c->run(c->settings, why);
        more = at.more && !status;
    }
    print_table(c);
    for (size_t i = 0; i < N_FILES; i++)
        *names.at[i] = names.given[i];
    c->windows->n_ctx = sizes;
    if (!status)
        status = base_buffer_check(&c->rows, "the table of contexts", why);
    base_buffer_free(&c->rows);
    return status;
}

#include "cli/results/compare.h"

/* A choice task is the same in both where its file is; its tokens are the model's own affair. */
static enum status check_tasks(const struct cli_field *a, const struct cli_field *b,
                               struct status_why *why)
{
    static const char *const paths[] = {"kind", "text.sha256", "settings.llama_compat",
                                        "settings.parse_special", "settings.escape"};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof paths / sizeof *paths && status == STATUS_OK; i++)
        status = cli_fields_equal(a, b, paths[i], NULL, why);
    return status;
}

/*
 * The same scored positions of the same tokens. Models may be opened and computed with other
 * settings: that may be what is to be compared.
 */
static enum status check_windows(const struct cli_field *a, const struct cli_field *b,
                                 struct status_why *why)
{
    static const char *const paths[] = {
        "tokens.sha256", "tokens.bos_in_windows", "windows.n_tokens",
        "windows.step",  "windows.n_inputs",      "windows.first_scored",
    };
    enum status status = cli_fields_same_text(a, b, why);
    for (size_t i = 0; i < sizeof paths / sizeof *paths && status == STATUS_OK; i++)
        status = cli_fields_equal(a, b, paths[i], NULL, why);
    return status;
}

/* The two divergences must also be from the same base, opened and computed in the same way. */
static enum status check_base(const struct cli_field *a, const struct cli_field *b,
                              struct status_why *why)
{
    enum status status = cli_fields_equal(a, b, "base.id", NULL, why);
    if (status == STATUS_OK)
        status = cli_fields_equal(a, b, "settings", "chunks chunk_from js", why);
    return status;
}

static enum status check_same_inputs(const struct cli_compare *c, struct status_why *why)
{
    const struct cli_document *a = &c->sides[0].result, *b = &c->sides[1].result;
    struct cli_field in_a = cli_document_root(a), in_b = cli_document_root(b);
    if (a->kind != b->kind)
        return status_fail(why, STATUS_USAGE,
                           "%s is a result of schema %s, %s of %s; only results of the same "
                           "evaluator can be compared",
                           a->file, cli_document_schema(a->kind), b->file,
                           cli_document_schema(b->kind));
    if (a->kind == CLI_DOCUMENT_TASKS)
        return check_tasks(&in_a, &in_b, why);
    enum status status = check_windows(&in_a, &in_b, why);
    if (status == STATUS_OK && a->kind == CLI_DOCUMENT_KLD)
        status = check_base(&in_a, &in_b, why);
    else if (status == STATUS_OK)
        status = cli_fields_equal(&in_a, &in_b, "settings.llama_compat", NULL, why);
    return status;
}

/* The candidate of a kld result that is meant, or the whole document. */
static enum status choose(struct cli_field *out, const struct cli_compare *c, size_t side,
                          struct status_why *why)
{
    const struct cli_document *r = &c->sides[side].result;
    *out = cli_document_root(r);
    size_t wanted = (size_t)c->settings.candidates[side], n;
    const char *option = side ? "--candidate-b" : "--candidate-a";
    if (r->kind != CLI_DOCUMENT_KLD)
        return wanted == 0 ? STATUS_OK
                           : status_fail(why, STATUS_USAGE, "%s: %s is a result of one model",
                                         option, r->file);
    struct cli_field root = *out, list;
    enum status status = cli_field_list(&list, &n, &root, "candidates", why);
    if (status != STATUS_OK)
        return status;
    if (wanted > n || (wanted == 0 && n != 1))
        return status_fail(why, STATUS_USAGE,
                           "%s has %zu model%s; choose one with %s N, N from 1 to %zu", r->file, n,
                           status_plural(n), option, n);
    struct cli_field item = {0};
    while (cli_field_next(&list, &item) && item.index + 1 < wanted) {
    }
    *out = item;
    return STATUS_OK;
}

enum status cli_compare_make(struct cli_compare *c, struct status_why *why)
{
    enum status status = check_same_inputs(c, why);
    for (size_t side = 0; side < 2 && status == STATUS_OK; side++) {
        struct cli_compared *s = &c->sides[side];
        status = choose(&s->place, c, side, why);
        if (status == STATUS_OK)
            status = cli_field_text(&s->name, &s->place, "model.name", why);
        if (status == STATUS_OK)
            status = cli_field_text(&s->id, &s->place, "model.id", why);
    }
    if (status != STATUS_OK)
        return status;
    return c->sides[0].result.kind == CLI_DOCUMENT_TASKS ? cli_compare_tasks(c, why)
                                                         : cli_compare_windows(c, why);
}

void cli_compare_close(struct cli_compare *c)
{
    cli_document_free(&c->sides[0].result);
    cli_document_free(&c->sides[1].result);
}

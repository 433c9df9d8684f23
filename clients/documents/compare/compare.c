#include "clients/documents/compare/compare.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/printable.h"
#include "base/text/words.h"

/* What a base was computed with: a recorded one may have another precision than the run. */
static struct base_field base_precision(struct base_field root)
{
    bool recorded = base_field_find(root, "base.precision").json;
    return base_field_need(root, recorded ? "base.precision" : "settings.precision");
}

static enum status check_same_base(struct base_field a, struct base_field b, struct status_why *why)
{
    struct base_field id_a = doc_base_id(a), id_b = doc_base_id(b);
    enum status status = doc_values_equal(id_a, id_b, why);
    if (status)
        return status;
    struct base_field precision_a = base_precision(a), precision_b = base_precision(b);
    return doc_values_equal(precision_a, precision_b, why);
}

enum status doc_computed_alike(struct base_field a, struct base_field b, struct status_why *why)
{
    enum status status = base_field_find(a, "base").json ? check_same_base(a, b, why) : STATUS_OK;
    return status ? status
                  : doc_equal(a, b, "settings",
                              "chunks chunk_from js cache_type_k cache_type_v kv_rotation memory "
                              "size context speed prompt_speed margin margin_share alpha",
                              why);
}

/*
 * A choice task is the same in both where its file is; its tokens depend on the model. Windows are
 * the same where the same positions of the same tokens are scored. Models may be opened and
 * computed with other settings: that may be what is to be compared. But two divergences must be
 * from the same base, opened and computed in the same way.
 */
static enum status check_same_inputs(struct doc_compare *c, struct status_why *why)
{
    struct doc_document *a = &c->sides[0].document, *b = &c->sides[1].document;
    struct base_field in_a = doc_root(a), in_b = doc_root(b);
    if (a->kind != b->kind)
        return status_fail(why, STATUS_USAGE,
                           "%s is a result of schema %s, %s of %s; only results of the same "
                           "evaluator can be compared",
                           a->json.file, doc_schema(a->kind), b->json.file, doc_schema(b->kind));
    if (a->kind == DOC_TASKS)
        return doc_equal(in_a, in_b,
                         "kind text.sha256 settings.llama_compat settings.parse_special "
                         "settings.escape",
                         NULL, why);
    enum status status = doc_same_text(in_a, in_b, why);
    if (!status)
        status = doc_equal(in_a, in_b,
                           "tokens.sha256 tokens.bos_in_windows windows.n_tokens "
                           "windows.step windows.n_inputs windows.first_scored",
                           NULL, why);
    if (status)
        return status;
    return a->kind == DOC_KLD ? doc_computed_alike(in_a, in_b, why)
                              : doc_equal(in_a, in_b, "settings.llama_compat", NULL, why);
}

/* Whether a file is meant: "m.Q4_K_M.gguf", the same without ending, or the last of its words. */
static bool names_file(const char *file, const char *wanted)
{
    struct base_string name = {base_file_name(file), strlen(base_file_name(file))};
    size_t n = strlen(wanted);
    if (strcmp(name.data, wanted) == 0)
        return true;
    name.n_bytes -= base_ends_with(name.data, ".gguf") ? strlen(".gguf") : 0;
    return n && n <= name.n_bytes && memcmp(name.data + name.n_bytes - n, wanted, n) == 0 &&
           (n == name.n_bytes || strchr(".- ", name.data[name.n_bytes - n - 1]));
}

/* Whether a candidate is meant, with what keys and values were rounded to or without. */
static bool is_called(struct base_field candidate, const char *wanted)
{
    char kv[DOC_KV_LABEL], name[BASE_PATH_BYTES];
    struct base_field model = base_field_need(candidate, "model");
    const char *label = doc_model_label_in(model);
    doc_model_kv_in(kv, model);
    size_t n = strlen(wanted), n_kv = strlen(kv);
    if (n_kv && n > n_kv && strcmp(wanted + n - n_kv, kv) == 0)
        n -= n_kv;
    if (n >= sizeof name)
        return false;
    memcpy(name, wanted, n);
    name[n] = '\0';
    return (label && strcmp(label, name) == 0) || names_file(doc_model_file_in(model), name) ||
           strcmp(base_field_text(model, "quantisation"), name) == 0;
}

/* The only candidate that is called so. */
static enum status find_named(struct base_field *out, const struct doc_document *d,
                              struct base_field list, const char *wanted, struct status_why *why)
{
    size_t n_found = 0;
    for (struct base_field item = {0}; base_field_next(list, &item);)
        if (is_called(item, wanted)) {
            *out = item;
            n_found++;
        }
    if (n_found == 1)
        return STATUS_OK;
    return status_fail(why, STATUS_USAGE,
                       "%s has %zu models that are called '%.80s'; expected one: its name in the "
                       "table, or its number from 1 to %zu",
                       d->json.file, n_found, wanted, base_field_count(list));
}

/* The candidate of a kld result that is meant, or the whole document. */
static enum status choose(struct base_field *out, struct doc_compare *c, size_t side,
                          struct status_why *why)
{
    struct doc_document *d = &c->sides[side].document;
    const char *wanted = c->settings.candidates[side];
    const char *option = side ? "--candidate-b" : "--candidate-a";
    size_t n;
    *out = doc_root(d);
    if (d->kind != DOC_KLD)
        return !wanted ? STATUS_OK
                       : status_fail(why, STATUS_USAGE, "%s: %s is a result of one model", option,
                                     d->json.file);
    struct base_field list = doc_list(&n, *out, "candidates"), item = {0};
    enum status status = doc_status(d, why);
    if (status)
        return status;
    bool is_number = wanted && *wanted && !wanted[strspn(wanted, "0123456789")];
    if (wanted && !is_number)
        return find_named(out, d, list, wanted, why);
    size_t number = is_number ? strtoul(wanted, NULL, 10) : n == 1;
    if (number < 1 || number > n)
        return status_fail(why, STATUS_USAGE,
                           "%s has %zu model%s; choose one with %s, by its name in the table or "
                           "its number from 1 to %zu",
                           d->json.file, n, status_plural(n), option, n);
    while (base_field_next(list, &item) && item.index + 1 < number) {
    }
    *out = item;
    return STATUS_OK;
}

/* By its label in the document, or beside the other's. */
static enum status label(struct doc_compare *c, struct status_why *why)
{
    struct base_label labels[2];
    struct base_named models[2];
    for (size_t side = 0; side < 2; side++) {
        struct base_field model = base_field_need(c->sides[side].field, "model");
        models[side] = (struct base_named){c->sides[side].file, base_field_text(model, "name"),
                                           base_field_text(model, "quantisation")};
    }
    enum status status = base_labels(labels, models, 2, why);
    for (size_t side = 0; side < 2 && !status; side++) {
        struct doc_compared *s = &c->sides[side];
        struct base_field model = base_field_need(s->field, "model");
        const char *given = doc_model_label_in(model);
        s->label = labels[side];
        if (given)
            base_label_fit(&s->label, given, BASE_LABEL_WIDTH);
    }
    return status ? status : doc_compare_status(c, why);
}

enum status doc_compare_make(struct doc_compare *c, struct status_why *why)
{
    enum status status = check_same_inputs(c, why);
    for (size_t side = 0; side < 2 && !status; side++) {
        struct doc_compared *s = &c->sides[side];
        status = choose(&s->field, c, side, why);
        if (status)
            return status;
        struct base_field model = base_field_need(s->field, "model");
        s->file = doc_model_file_in(model);
        doc_model_kv_in(s->kv, model);
        s->name = base_field_text(s->field, "model.name");
        s->id = base_field_text(s->field, "model.id");
        status = doc_compare_status(c, why);
    }
    if (!status)
        status = label(c, why);
    if (status)
        return status;
    return c->sides[0].document.kind == DOC_TASKS ? doc_compare_tasks(c, why)
                                                  : doc_compare_windows(c, why);
}

void doc_compare_close(struct doc_compare *c)
{
    doc_free(&c->sides[0].document);
    doc_free(&c->sides[1].document);
}

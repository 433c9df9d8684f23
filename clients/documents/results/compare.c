#include "clients/documents/results/compare.h"

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
    bool is_kld = a->kind == DOC_KLD;
    if (is_kld)
        status = check_same_base(in_a, in_b, why);
    return status ? status
                  : doc_equal(in_a, in_b, is_kld ? "settings" : "settings.llama_compat",
                              is_kld ? "chunks chunk_from js cache_type_k cache_type_v kv_rotation"
                                     : NULL,
                              why);
}

/* The candidate of a kld result that is meant, or the whole document. */
static enum status choose(struct base_field *out, struct doc_compare *c, size_t side,
                          struct status_why *why)
{
    struct doc_document *d = &c->sides[side].document;
    *out = doc_root(d);
    size_t wanted = (size_t)c->settings.candidates[side], n;
    const char *option = side ? "--candidate-b" : "--candidate-a";
    if (d->kind != DOC_KLD)
        return wanted == 0 ? STATUS_OK
                           : status_fail(why, STATUS_USAGE, "%s: %s is a result of one model",
                                         option, d->json.file);
    struct base_field list = doc_list(&n, *out, "candidates"), item = {0};
    enum status status = doc_status(d, why);
    if (status)
        return status;
    if (wanted > n || (wanted == 0 && n != 1))
        return status_fail(why, STATUS_USAGE,
                           "%s has %zu model%s; choose one with %s N, N from 1 to %zu",
                           d->json.file, n, status_plural(n), option, n);
    while (base_field_next(list, &item) && item.index + 1 < wanted) {
    }
    *out = item;
    return STATUS_OK;
}

enum status doc_compare_status(const struct doc_compare *c, struct status_why *why)
{
    enum status status = doc_status(&c->sides[0].document, why);
    return status ? status : doc_status(&c->sides[1].document, why);
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

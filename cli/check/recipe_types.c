#include "cli/check/recipe_types.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/text/printable.h"
#include "base/text/strtab.h"
#include "cli/process/run.h"
#include "cli/process/version.h"
#include "cli/session/outputs.h"
#include "clients/documents/recipe/type_rules.h"
#include "clients/documents/schema.h"

enum { NAME_BYTES = 256 };

struct checking {
    const char *model;
    const struct cli_list *recipes;
    struct gguf_file *file;
    struct doc_type_rules rules;
    struct doc_type_check check;
};

static const char *type_of(const struct doc_typed_tensor *t)
{
    return t->tensor ? t->tensor->type->name : NULL;
}

static void print_tensor(const struct doc_typed_tensor *t)
{
    char name[NAME_BYTES], rule[NAME_BYTES];
    printf("%s\t%s\t%s\t%s", base_printable_text(name, sizeof name, t->name), t->rule->type->name,
           t->tensor ? type_of(t) : "missing",
           base_printable_text(rule, sizeof rule, t->rule->text));
    if (t->tensor && t->instead)
        printf("\trows of %" PRIu64 " do not fit; expected one of: %s", t->tensor->ne[0],
               t->instead);
    putchar('\n');
}

/** Why tensors fell back: those of one reason have one line. The bytes are compared. */
struct reason {
    const struct gguf_type_info *from, *to;
    uint64_t n_cols;
};

static enum status count_reasons(const struct doc_type_check *c, struct base_strtab *table,
                                 struct reason *reasons, size_t *counts, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < c->n_tensors && !status; i++) {
        const struct doc_typed_tensor *t = &c->tensors[i];
        int32_t number = 0;
        if (t->outcome != DOC_TYPED_FALLBACK)
            continue;
        struct reason *r = &reasons[table->n];
        *r = (struct reason){t->rule->type, t->tensor->type, t->tensor->ne[0]};
        status =
            base_strtab_add(table, (struct base_string){(const char *)r, sizeof *r}, &number, why);
        if (!status)
            counts[number]++;
    }
    return status;
}

/** A line for each reason, in the order of the first tensors. */
static enum status print_fallbacks(const struct doc_type_check *c, struct status_why *why)
{
    struct base_strtab table = {0};
    struct reason *reasons = NULL;
    size_t *counts = NULL, n = c->n[DOC_TYPED_FALLBACK];
    enum status status = base_array_new(reasons, n + 1, "fallbacks", why);
    if (!status)
        status = base_array_new(counts, n + 1, "fallbacks", why);
    if (!status)
        status = count_reasons(c, &table, reasons, counts, why);
    if (!status && n)
        puts("\nfell back from\tto");
    for (size_t i = 0; i < table.n && !status; i++) {
        const struct gguf_type_info *type = reasons[i].from, *kind = reasons[i].to;
        printf("%s\t%s\t%zu tensor%s of rows of %" PRIu64 ", no multiple of %" PRIu32 "\n",
               type->name, kind->name, counts[i], status_plural(counts[i]), reasons[i].n_cols,
               type->block_elems);
    }
    base_strtab_free(&table);
    free(reasons);
    free(counts);
    return status;
}

static enum status print(const struct checking *k, struct status_why *why)
{
    const struct doc_type_check *c = &k->check;
    char sentence[DOC_TYPE_SENTENCE], shown[DOC_TYPE_SENTENCE], rule[NAME_BYTES];
    doc_type_sentence(sentence, c, base_file_name(k->model));
    printf("%s\n", base_printable_text(shown, sizeof shown, sentence));
    if (c->n[DOC_TYPED_WRONG] + c->n[DOC_TYPED_MISSING])
        puts("\ntensor\tsays\thas\trule");
    for (size_t i = 0; i < c->n_tensors; i++)
        if (c->tensors[i].outcome == DOC_TYPED_WRONG || c->tensors[i].outcome == DOC_TYPED_MISSING)
            print_tensor(&c->tensors[i]);
    enum status status = print_fallbacks(c, why);
    if (status)
        return status;
    if (c->n_idle)
        puts("\nrules that name no tensor, or none that an earlier one does not");
    for (size_t i = 0; i < k->rules.n; i++)
        if (k->rules.items[i].is_expression && !c->named[i])
            printf("%s\t%s\n", base_printable_text(rule, sizeof rule, k->rules.items[i].text),
                   k->rules.items[i].type->name);
    cli_flush();
    return STATUS_OK;
}

static void add_tensors(struct base_json *json, const struct doc_type_check *c)
{
    cJSON *tensors = base_json_list(json, json->root, "tensors");
    for (size_t i = 0; i < c->n_tensors; i++) {
        const struct doc_typed_tensor *t = &c->tensors[i];
        cJSON *o = base_json_object(json, tensors, NULL);
        base_json_text(json, o, "name", t->name);
        base_json_text(json, o, "outcome", doc_typed_name(t->outcome));
        base_json_text(json, o, "type", type_of(t));
        base_json_text(json, o, "expected_type", t->rule->type->name);
        base_json_text(json, o, "instead", t->instead);
        base_json_text(json, o, "rule", t->rule->text);
    }
}

static enum status write_json(const struct checking *k, struct base_file *file,
                              struct status_why *why)
{
    struct base_json json;
    struct cli_versions versions;
    char sentence[DOC_TYPE_SENTENCE];
    const struct doc_type_check *c = &k->check;
    cli_versions_read(&versions);
    doc_json_begin(&json, DOC_RECIPE_CHECK_SCHEMA);
    cJSON *o = base_json_object(&json, json.root, "result");
    base_json_text(&json, o, "verdict", doc_type_check_fails(c) ? "differs" : "right");
    base_json_text(&json, o, "sentence", doc_type_sentence(sentence, c, base_file_name(k->model)));
    for (enum doc_typed t = 0; t < DOC_N_TYPED; t++) {
        snprintf(sentence, sizeof sentence, "n_%s", doc_typed_name(t));
        base_json_uint(&json, o, sentence, c->n[t]);
    }
    base_json_uint(&json, o, "n_not_named", c->n_unnamed);
    add_tensors(&json, c);
    cJSON *rules = base_json_list(&json, json.root, "rules");
    for (size_t i = 0; i < k->rules.n; i++) {
        cJSON *rule = base_json_object(&json, rules, NULL);
        base_json_text(&json, rule, "rule", k->rules.items[i].text);
        base_json_text(&json, rule, "type", k->rules.items[i].type->name);
        base_json_uint(&json, rule, "n_tensors", c->named[i]);
    }
    cJSON *run = base_json_object(&json, json.root, "run");
    base_json_text(&json, run, "model_file", k->model);
    cJSON *recipes = base_json_list(&json, run, "recipes");
    for (size_t i = 0; i < k->recipes->n; i++)
        base_json_text(&json, recipes, NULL, k->recipes->items[i]);
    base_json_text(&json, run, "assay", versions.assay);
    base_json_text(&json, run, "commit", versions.commit);
    return doc_json_end(&json, file, why);
}

static enum status run(struct checking *k, const struct cli_output_settings *output,
                       struct base_file **file, struct status_why *why)
{
    const struct cli_named_file out = {"--json", output->json_file}, model = {"-m", k->model};
    enum status status = cli_outputs_check(&out, 1, &model, 1, why);
    if (!status)
        status = cli_outputs_check_list(&out, 1, "--recipe", k->recipes, why);
    if (!status)
        status = gguf_list(&k->file, k->model, why);
    if (!status)
        status = cli_outputs_check_model(&out, 1, "-m", k->file, why);
    for (size_t i = 0; i < k->recipes->n && !status; i++)
        status = doc_type_rules_add(&k->rules, k->recipes->items[i], why);
    if (!status)
        status = doc_type_check_make(&k->check, &k->rules, k->file, why);
    if (!status)
        status = cli_output_create(file, output->json_file,
                                   output->force ? NULL : DOC_RECIPE_CHECK_SCHEMA, why);
    if (status)
        return status;
    status = print(k, why);
    if (*file)
        status = cli_output_commit(file, status ? status : write_json(k, *file, why), why);
    if (!status && doc_type_check_fails(&k->check))
        status = status_fail(why, STATUS_EXCEEDED, "%s: it is not what the recipe says", k->model);
    return status;
}

enum status cli_recipe_types_check(const char *model, const struct cli_list *recipes,
                                   const struct cli_output_settings *output, struct status_why *why)
{
    struct checking k = {.model = model, .recipes = recipes};
    struct base_file *file = NULL;
    enum status status = run(&k, output, &file, why);
    doc_type_check_free(&k.check);
    doc_type_rules_free(&k.rules);
    gguf_close(k.file);
    return status;
}

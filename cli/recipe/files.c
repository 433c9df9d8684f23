/* What assay recipe writes: its document, and lists of types that other programs read. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/output/json_parts.h"
#include "cli/recipe/recipe.h"

static int by_count(const void *x, const void *y)
{
    const struct cli_type_count *a = x, *b = y;
    if (a->n_groups != b->n_groups)
        return a->n_groups > b->n_groups ? -1 : 1;
    return strcmp(a->type, b->type);
}

static int by_type(const void *x, const void *y)
{
    const struct cli_type_count *a = x, *b = y;
    return strcmp(a->type, b->type);
}

size_t cli_recipe_count(const struct doc_plan *plan, const size_t *chosen,
                        struct cli_type_count *counts)
{
    size_t n = 0, n_groups = plan->sweep->n_groups;
    for (size_t g = 0; g < n_groups; g++)
        counts[g] = (struct cli_type_count){doc_plan_choice(plan, chosen, g)->type, 1};
    qsort(counts, n_groups, sizeof *counts, by_type);
    for (size_t g = 1; g < n_groups; g++)
        if (strcmp(counts[g].type, counts[n].type) == 0)
            counts[n].n_groups++;
        else
            counts[++n] = counts[g];
    qsort(counts, ++n, sizeof *counts, by_count);
    return n;
}

/** Handles a tensor that comes from files[file]. */
typedef enum status take_tensor(void *user, const char *name, const char *type, size_t file,
                                struct status_why *why);

static enum status walk_group(const struct cli_recipe *r, size_t g, take_tensor *take, void *user,
                              struct status_why *why)
{
    const struct doc_swept_group *group = &r->sweep.groups[g];
    const struct doc_swept_choice *c = doc_plan_choice(&r->plan, r->chosen, g);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < group->n_tensors && !status; i++) {
        const char *type = doc_plan_type(&r->plan, c, group->tensors[i]);
        if (!type)
            return status_fail(why, STATUS_USAGE,
                               "%s: is not there, and the sweep does not say which tensors of '%s' "
                               "are %s",
                               r->sweep.files[c->file].path, group->name, c->type);
        status = take(user, group->tensors[i], type, c->file, why);
    }
    return status;
}

/* All tensors: those of the groups in the sweep's order, then the others. */
static enum status walk_tensors(const struct cli_recipe *r, take_tensor *take, void *user,
                                struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t g = 0; g < r->sweep.n_groups && !status; g++)
        status = walk_group(r, g, take, user, why);
    for (size_t i = 0; i < r->sweep.n_rest && !status; i++)
        status = take(user, r->sweep.rest[i].name, r->sweep.rest[i].type, 0, why);
    return status;
}

/** A document that is being filled. */
struct filling {
    struct base_json json;
    cJSON *tensors;
};

static enum status add_tensor(void *user, const char *name, const char *type, size_t file,
                              struct status_why *why)
{
    (void)why;
    struct filling *f = user;
    cJSON *o = base_json_object(&f->json, f->tensors, NULL);
    base_json_text(&f->json, o, "name", name);
    base_json_text(&f->json, o, "type", type);
    base_json_uint(&f->json, o, "file", file);
    return STATUS_OK;
}

static void add_file(struct base_json *json, cJSON *o, const struct doc_mixed_file *file)
{
    base_json_text(json, o, "file", file->path);
    base_json_text(json, o, "id", file->id);
    base_json_text(json, o, "sha256", file->sha256);
}

/* All that the sweep has: assay mix names them, so that its file has the size that is predicted. */
static void add_files(struct base_json *json, const struct cli_recipe *r)
{
    cJSON *list = base_json_list(json, json->root, "files");
    for (size_t i = 0; i < r->sweep.n_files; i++)
        add_file(json, base_json_object(json, list, NULL), &r->sweep.files[i]);
}

static void add_figures(struct base_json *json, cJSON *o, const struct doc_plan_figures *f)
{
    base_json_uint(json, o, "file_bytes", f->n_bytes);
    base_json_uint(json, o, "tensor_bytes", f->n_tensor_bytes);
    base_json_real(json, o, "bits_per_weight", f->bits_per_weight);
    cJSON *kld = base_json_object(json, o, "kld");
    base_json_real(json, kld, "mean", f->kld);
    base_json_real(json, kld, "se", f->kld_error);
}

static void add_counts(struct base_json *json, cJSON *o, const struct cli_recipe *r,
                       const size_t *chosen, struct cli_type_count *counts)
{
    cJSON *types = base_json_object(json, o, "groups");
    size_t n = cli_recipe_count(&r->plan, chosen, counts);
    for (size_t i = 0; i < n; i++)
        base_json_uint(json, types, counts[i].type, counts[i].n_groups);
}

static void add_head(struct base_json *json, const struct cli_recipe *r,
                     struct cli_type_count *counts)
{
    const struct doc_target *t = &r->settings->target;
    cJSON *target = base_json_object(json, json->root, "target");
    base_json_text(json, target, "size", t->size);
    base_json_real(json, target, "bits_per_weight", t->bpw);
    base_json_real(json, target, "kld", t->kld);
    cJSON *predicted = base_json_object(json, json->root, "predicted");
    add_figures(json, predicted, &r->figures);
    base_json_real(json, predicted, "gap", r->gap);
    add_counts(json, predicted, r, r->chosen, counts);
    cJSON *curve = base_json_list(json, json->root, "curve");
    for (size_t i = 0; i < r->curve.n; i++) {
        cJSON *o = base_json_object(json, curve, NULL);
        add_figures(json, o, &r->curve.points[i].figures);
        add_counts(json, o, r, r->curve.points[i].chosen, counts);
    }
    cJSON *sweep = base_json_object(json, json->root, "sweep");
    base_json_text(json, sweep, "file", r->sweep_file);
    base_json_text(json, sweep, "sha256", r->sweep_sha256);
    add_file(json, base_json_object(json, json->root, "base"), &r->sweep.base);
}

enum status cli_recipe_write_json(const struct cli_recipe *r, struct base_file *file,
                                  struct status_why *why)
{
    struct cli_type_count *counts;
    struct filling f;
    if (base_array_new(counts, r->sweep.n_groups, "groups", why))
        return STATUS_MEMORY;
    doc_json_begin(&f.json, DOC_RECIPE_SCHEMA);
    add_head(&f.json, r, counts);
    add_files(&f.json, r);
    f.tensors = base_json_list(&f.json, f.json.root, "tensors");
    enum status status = walk_tensors(r, add_tensor, &f, why);
    if (!status)
        status = base_json_write(&f.json, file, why);
    base_json_free(&f.json);
    free(counts);
    return status;
}

/* llama-quantize makes small letters of the expression, which would match no capital one. */
static void put_expression(struct base_file *file, const char *name)
{
    base_file_printf(file, "^");
    for (const char *c = name; *c; c++)
        if (isupper((unsigned char)*c))
            base_file_printf(file, ".");
        else
            base_file_printf(file, strchr("\\^$.|?*+()[]{}/", *c) ? "\\%c" : "%c", *c);
    base_file_printf(file, "$=");
}

/* Small letters, but for the K of Q2_K to Q8_K: so do those who read it write them. */
static void put_type(struct base_file *file, const char *type)
{
    bool k = strlen(type) == 4 && type[0] == 'Q' && type[3] == 'K';
    for (const char *c = type; *c; c++)
        base_file_printf(file, "%c", k && !c[1] ? 'K' : tolower((unsigned char)*c));
    base_file_printf(file, "\n");
}

static enum status put_line(void *user, const char *name, const char *type, size_t file,
                            struct status_why *why)
{
    (void)file;
    for (const char *c = name; *c; c++)
        if (*c <= ' ' || *c == '=' || *c == '#' || *c == 127)
            return status_fail(why, STATUS_USAGE,
                               "tensor '%s' has a name that cannot stand in a list of types", name);
    put_expression(user, name);
    put_type(user, type);
    return STATUS_OK;
}

enum status cli_recipe_write_types(const struct cli_recipe *r, struct base_file *file,
                                   bool comments, struct status_why *why)
{
    if (comments)
        base_file_printf(file,
                         "## Made by assay recipe: %" PRIu64 " bytes, %.4f bits per weight, "
                         "predicted KLD %.6g\n",
                         r->figures.n_bytes, r->figures.bits_per_weight, r->figures.kld);
    return walk_tensors(r, put_line, file, why);
}

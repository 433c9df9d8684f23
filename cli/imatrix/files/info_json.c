#include <math.h>

#include "base/json/build.h"
#include "cli/imatrix/files/info.h"
#include "cli/session/outputs.h"
#include "clients/documents/schema.h"

static void add_head(struct base_json *json, const struct cli_imatrix_info *info)
{
    const struct imat_matrix *m = &info->matrix;
    base_json_text(json, json->root, "file", info->path);
    base_json_text(json, json->root, "format", info->is_gguf ? "gguf" : "dat");
    base_json_flag(json, json->root, "exact", m->exact);
    base_json_flag(json, json->root, "counts_lost", m->counts_lost);
    base_json_text(json, json->root, "model", m->model);
    cJSON *list = base_json_list(json, json->root, "datasets");
    for (size_t i = 0; i < m->n_datasets; i++)
        base_json_text(json, list, NULL, m->datasets[i]);
    list = base_json_list(json, json->root, "text_sha256");
    for (size_t i = 0; m->hashes && i < m->n_datasets; i++)
        base_json_text(json, list, NULL, m->hashes[i]);
    list = base_json_list(json, json->root, "windows");
    for (size_t i = 0; i < m->n_ranges; i++) {
        cJSON *range = base_json_object(json, list, NULL);
        base_json_text(json, range, "dataset", m->datasets[m->ranges[i].text]);
        base_json_uint(json, range, "begin", m->ranges[i].begin);
        base_json_uint(json, range, "end", m->ranges[i].end);
    }
    if (m->chunk_size > 1)
        base_json_uint(json, json->root, "chunk_size", m->chunk_size);
    else
        base_json_text(json, json->root, "chunk_size", NULL);
    base_json_uint(json, json->root, "n_chunks", m->n_chunks);
}

/* The matrices of a stack without rows, or the others that have few. */
static void add_rare(struct base_json *json, cJSON *item, const char *key,
                     const struct imat_entry *e, bool none)
{
    cJSON *list = base_json_list(json, item, key);
    for (uint64_t k = 0; k < e->n_matrices; k++)
        if (imat_is_rare(e, k) && (e->counts[k] == 0) == none)
            base_json_uint(json, list, NULL, k);
}

static void add_counts(struct base_json *json, cJSON *item, const struct imat_entry *e)
{
    cJSON *rows = base_json_list(json, item, "rows");
    for (uint64_t k = 0; k < e->n_matrices; k++)
        base_json_uint(json, rows, NULL, e->counts[k]);
}

static void add_row(struct base_json *json, cJSON *list, const struct cli_imatrix_row *r)
{
    const struct imat_entry *e = r->entry;
    const struct imat_statistics *s = &r->statistics;
    cJSON *item = base_json_object(json, list, NULL);
    base_json_text(json, item, "name", e->name);
    base_json_uint(json, item, "n_columns", e->n_columns);
    base_json_uint(json, item, "n_matrices", e->n_matrices);
    add_counts(json, item, e);
    base_json_uint(json, item, "n", s->n);
    base_json_real(json, item, "total", s->total);
    base_json_real(json, item, "min", s->min);
    base_json_real(json, item, "max", s->max);
    base_json_real(json, item, "mean", s->mean);
    base_json_real(json, item, "deviation", s->deviation);
    base_json_real(json, item, "active", s->active);
    base_json_real(json, item, "entropy", s->entropy);
    base_json_real(json, item, "entropy_norm", s->entropy_norm);
    base_json_real(json, item, "outlying", s->outlying);
    base_json_real(json, item, "cosine", r->cosine);
    base_json_real(json, item, "cosine_sums", r->cosine_sums);
    if (e->n_matrices > 1) {
        add_rare(json, item, "without_rows", e, true);
        add_rare(json, item, "few_rows", e, false);
    }
}

static void add_use(struct base_json *json, cJSON *item, const struct imat_entry *e)
{
    const struct imat_use use = imat_use_of(e);
    add_counts(json, item, e);
    base_json_uint(json, item, "least", use.least);
    base_json_uint(json, item, "most", use.most);
    base_json_real(json, item, "even", imat_even_share(e));
    base_json_uint(json, item, "n_none", use.n_none);
    base_json_uint(json, item, "n_few", use.n_few);
    base_json_real(json, item, "entropy", use.entropy);
    base_json_real(json, item, "entropy_norm", use.entropy_norm);
    base_json_real(json, item, "effective", exp2(use.entropy));
}

static void add_experts(struct base_json *json, cJSON *list, const struct imat_matrix *m,
                        const struct cli_imatrix_experts *x)
{
    cJSON *item = base_json_object(json, list, NULL), *categories;
    base_json_text(json, item, "name", x->entry->name);
    base_json_int(json, item, "block", x->block);
    add_use(json, item, x->entry);
    categories = base_json_list(json, item, "categories");
    for (size_t i = 0; i < m->n_categories; i++) {
        const struct imat_entry of = imat_of_category(x->entry, i);
        cJSON *o = base_json_object(json, categories, NULL);
        base_json_text(json, o, "category", m->categories[i]);
        base_json_int(json, o, "block", x->block);
        add_use(json, o, &of);
        base_json_real(json, o, "differs", imat_use_differs(&of, x->entry));
    }
}

enum status cli_imatrix_write_json(const struct cli_imatrix_info *info, struct status_why *why)
{
    struct base_file *file;
    struct base_json json;
    enum status status = cli_output_create(&file, "-", NULL, why);
    if (status)
        return status;
    doc_json_begin(&json, DOC_IMATRIX_SCHEMA);
    add_head(&json, info);
    cJSON *list = base_json_list(&json, json.root, "matrices");
    for (size_t i = 0; i < info->matrix.n; i++)
        add_row(&json, list, &info->rows[i]);
    list = base_json_list(&json, json.root, "blocks");
    for (size_t i = 0; i < info->n_blocks; i++) {
        const struct cli_imatrix_block *b = &info->blocks[i];
        cJSON *item = base_json_object(&json, list, NULL);
        base_json_int(&json, item, "block", b->block);
        base_json_real(&json, item, "total", b->total);
        base_json_real(&json, item, "outlying", b->outlying);
        base_json_real(&json, item, "cosine", b->cosine);
    }
    list = base_json_list(&json, json.root, "experts");
    for (size_t i = 0; i < info->n_experts; i++)
        add_experts(&json, list, &info->matrix, &info->experts[i]);
    return cli_output_commit(&file, doc_json_end(&json, file, why), why);
}

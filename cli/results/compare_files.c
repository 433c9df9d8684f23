/* assay compare of two GGUF files of models. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/content/kind.h"
#include "base/text/escape.h"
#include "base/text/printable.h"
#include "cli/imatrix/files/files.h"
#include "cli/output/value.h"
#include "cli/process/run.h"
#include "cli/process/signals.h"
#include "cli/process/version.h"
#include "cli/results/compare.h"
#include "cli/server/phase.h"
#include "cli/session/outputs.h"
#include "clients/conversion/files/files.h"
#include "clients/documents/schema.h"

enum { NAME_BYTES = 256 };

struct comparing {
    const char *const *paths;
    const struct cli_compare_files_settings *settings;
    struct gguf_file *files[2], *base;
    struct conv_files result;
    struct cli_phase phase;
};

bool cli_compare_is_model(const char *path)
{
    return base_file_begins_with(path, (struct base_string){"GGUF", 4}) && !cli_imatrix_is(path);
}

static void on_compared(void *user, double fraction)
{
    cli_phase_show(user, fraction);
}

static enum status open_files(struct comparing *c, const struct cli_named_file *out,
                              struct status_why *why)
{
    static const char *const letters[] = {"A", "B"};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < 2 && !status; i++) {
        status = gguf_open(&c->files[i], c->paths[i], why);
        if (!status)
            status = cli_outputs_check_model(out, 1, letters[i], c->files[i], why);
    }
    if (!status && c->settings->base)
        status = model_file_open(&c->base, c->settings->base, NULL, why);
    return status || !c->base ? status : cli_outputs_check_model(out, 1, "--base", c->base, why);
}

static enum status compare(struct comparing *c, struct status_why *why)
{
    const struct conv_files_options options = {.a = c->files[0],
                                               .b = c->files[1],
                                               .base = c->base,
                                               .n_threads = (unsigned)c->settings->n_threads,
                                               .cancel = cli_interrupt_catch(),
                                               .progress = on_compared,
                                               .user = &c->phase};
    cli_phase_begin(&c->phase);
    enum status status = conv_files_compare(&c->result, &options, why);
    cli_phase_end(&c->phase);
    for (size_t i = 0; i < 2 && !status; i++)
        status = gguf_check_unchanged(c->files[i], why);
    return status || !c->base ? status : gguf_check_unchanged(c->base, why);
}

static void print_side(const struct gguf_kv *kv)
{
    putchar('\t');
    if (kv)
        cli_print_value(kv);
    else
        putchar('-');
}

static void print_error(bool known, const struct conv_sums *sums)
{
    if (known)
        printf("\t%.3e", conv_error(sums));
    else
        printf("\t-");
}

/** What a line ends with where the files' tensor is not one matrix, or rows of it are not. */
static void print_remarks(const struct conv_both *t)
{
    if (t->judged && !t->version)
        printf("\tfurther apart than their types explain");
    if (t->n_finite_once)
        printf("\t%" PRIu64 " value%s finite in one of them only", t->n_finite_once,
               t->n_finite_once == 1 ? " is" : "s are");
    if (t->n_rows_far)
        printf("\t%" PRIu64 " row%s beyond the bound, the first is %" PRIu64, t->n_rows_far,
               t->n_rows_far == 1 ? " is" : "s are", t->first_row_far);
    putchar('\n');
}

static void print_tensor(const struct conv_both *t, bool base)
{
    char name[NAME_BYTES];
    const struct gguf_tensor *either = t->a ? t->a : t->b;
    printf("%s\t%s\t%s\t", base_printable_text(name, sizeof name, either->name),
           t->a ? t->a->type->name : "-", t->b ? t->b->type->name : "-");
    if (t->pairing == CONV_OTHER_BYTES)
        printf("%" PRIu64 " of %" PRIu64, t->n_blocks_differ, t->n_blocks);
    else
        printf("%s", t->pairing == CONV_OTHER_SHAPE ? "another shape" : "-");
    print_error(t->judged, &t->sums);
    for (size_t side = 0; side < 2 && base; side++)
        print_error(t->has_base, &t->base[side]);
    print_remarks(t);
}

static void print(const struct comparing *c)
{
    const struct conv_files *f = &c->result;
    char sentence[CONV_SENTENCE_BYTES], shown[CONV_SENTENCE_BYTES], key[NAME_BYTES];
    conv_files_sentence(sentence, f, base_file_name(c->paths[0]), base_file_name(c->paths[1]));
    printf("%s\n", base_printable_text(shown, sizeof shown, sentence));
    printf("%zu of %zu tensors have the same bytes", f->n[CONV_SAME], f->n_tensors);
    if (f->error > 0)
        printf("; B is %.3e from A in the others", f->error);
    if (!isnan(f->base_error[0]))
        printf("; from the base A is %.3e there, B %.3e", f->base_error[0], f->base_error[1]);
    puts(f->n_keys ? "\n\nkey\tA\tB" : "");
    for (size_t i = 0; i < f->n_keys; i++) {
        const struct base_string name = (f->keys[i].a ? f->keys[i].a : f->keys[i].b)->key;
        printf("%s", base_printable(key, sizeof key, name.data, name.n_bytes));
        print_side(f->keys[i].a);
        print_side(f->keys[i].b);
        putchar('\n');
    }
    if (f->n[CONV_SAME] < f->n_tensors)
        printf("\ntensor\tA\tB\tblocks that differ\tB from A%s\n",
               c->base ? "\tA from base\tB from base" : "");
    for (size_t i = 0; i < f->n_tensors; i++)
        if (f->tensors[i].pairing != CONV_SAME)
            print_tensor(&f->tensors[i], c->base != NULL);
    cli_flush();
}

static void add_tensor(struct base_json *json, cJSON *list, const struct conv_both *t)
{
    const double none = (double)NAN;
    cJSON *o = base_json_object(json, list, NULL);
    base_json_text(json, o, "name", (t->a ? t->a : t->b)->name);
    base_json_text(json, o, "outcome", conv_pairing_name(t->pairing));
    base_json_text(json, o, "type_a", t->a ? t->a->type->name : NULL);
    base_json_text(json, o, "type_b", t->b ? t->b->type->name : NULL);
    base_json_uint(json, o, "n_blocks", t->n_blocks);
    base_json_uint(json, o, "n_blocks_differ", t->n_blocks_differ);
    base_json_uint(json, o, "n_bytes", t->n_bytes);
    base_json_uint(json, o, "n_bytes_differ", t->n_bytes_differ);
    base_json_flag(json, o, "far", t->judged && !t->version);
    base_json_uint(json, o, "n_rows_far", t->n_rows_far);
    base_json_uint(json, o, "n_finite_once", t->n_finite_once);
    base_json_real(json, o, "error", t->judged ? conv_error(&t->sums) : none);
    base_json_real(json, o, "correlation", t->judged ? conv_correlation(&t->sums) : none);
    base_json_real(json, o, "base_error_a", t->has_base ? conv_error(&t->base[0]) : none);
    base_json_real(json, o, "base_error_b", t->has_base ? conv_error(&t->base[1]) : none);
}

static void add_result(struct base_json *json, const struct comparing *c)
{
    const struct conv_files *f = &c->result;
    char sentence[CONV_SENTENCE_BYTES];
    cJSON *o = base_json_object(json, json->root, "result");
    base_json_text(json, o, "verdict", conv_kin_name(f->kin));
    base_json_text(
        json, o, "sentence",
        conv_files_sentence(sentence, f, base_file_name(c->paths[0]), base_file_name(c->paths[1])));
    base_json_uint(json, o, "n_tensors", f->n_tensors);
    base_json_uint(json, o, "n_same", f->n[CONV_SAME]);
    base_json_uint(json, o, "n_bytes", f->n_bytes);
    base_json_uint(json, o, "n_bytes_differ", f->n_bytes_differ);
    base_json_uint(json, o, "n_blocks", f->n_blocks);
    base_json_uint(json, o, "n_blocks_differ", f->n_blocks_differ);
    base_json_real(json, o, "error", f->error);
    base_json_real(json, o, "base_error_a", f->base_error[0]);
    base_json_real(json, o, "base_error_b", f->base_error[1]);
}

static enum status write_json(const struct comparing *c, struct base_file *file,
                              struct status_why *why)
{
    struct base_json json;
    struct cli_versions versions;
    const struct conv_files *f = &c->result;
    cli_versions_read(&versions);
    doc_json_begin(&json, DOC_COMPARE_FILES_SCHEMA);
    add_result(&json, c);
    cJSON *keys = base_json_list(&json, json.root, "keys");
    for (size_t i = 0; i < f->n_keys; i++) {
        const struct conv_both_key *k = &f->keys[i];
        const struct base_string name = (k->a ? k->a : k->b)->key;
        cJSON *o = base_json_object(&json, keys, NULL);
        base_json_bytes(&json, o, "key", name.data, name.n_bytes);
        base_json_text(&json, o, "outcome", !k->a ? "only_b" : !k->b ? "only_a" : "values");
        base_json_flag(&json, o, "read", k->read);
    }
    cJSON *tensors = base_json_list(&json, json.root, "tensors");
    for (size_t i = 0; i < f->n_tensors; i++)
        add_tensor(&json, tensors, &f->tensors[i]);
    cJSON *run = base_json_object(&json, json.root, "run");
    base_json_text(&json, run, "a", c->paths[0]);
    base_json_text(&json, run, "b", c->paths[1]);
    base_json_text(&json, run, "base_file", c->settings->base);
    base_json_text(&json, run, "assay", versions.assay);
    base_json_text(&json, run, "commit", versions.commit);
    return doc_json_end(&json, file, why);
}

enum status cli_compare_files(const char *const paths[2],
                              const struct cli_compare_files_settings *settings,
                              const char *json_file, bool force, struct status_why *why)
{
    const struct cli_named_file out = {"--json", json_file}, base = {"--base", settings->base};
    struct comparing c = {.paths = paths, .settings = settings};
    struct base_file *file = NULL;
    enum status status = cli_outputs_check(&out, 1, &base, 1, why);
    if (!status)
        status = open_files(&c, &out, why);
    if (!status)
        status = cli_output_create(&file, json_file, force ? NULL : DOC_COMPARE_FILES_SCHEMA, why);
    if (!status)
        status = compare(&c, why);
    if (!status)
        print(&c);
    if (file)
        status = cli_output_commit(&file, status ? status : write_json(&c, file, why), why);
    conv_files_free(&c.result);
    gguf_close(c.files[0]);
    gguf_close(c.files[1]);
    gguf_close(c.base);
    return status;
}

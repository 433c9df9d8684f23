/* What is printed of a comparison with a folder, and its document. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/text/printable.h"
#include "cli/check/conversion/conversion.h"
#include "cli/output/json_parts.h"
#include "cli/process/run.h"
#include "cli/process/say.h"
#include "cli/process/version.h"

enum { SHAPE_BYTES = 100 };

static const char *write_shape(char out[SHAPE_BYTES], const struct gguf_tensor *t)
{
    size_t used = 0;
    for (uint32_t d = 0; d < t->n_dims; d++)
        used += (size_t)snprintf(out + used, SHAPE_BYTES - used, "%s%" PRIu64, d ? " x " : "",
                                 t->ne[d]);
    return out;
}

/** How much of a tensor differs, or how. */
static void print_extent(const struct conv_tensor *t)
{
    char shapes[2][SHAPE_BYTES];
    const struct conv_sums *s = &t->sums;
    if (t->outcome == CONV_SHAPE)
        printf("%s, expected %s\t\t\t", write_shape(shapes[0], t->found),
               write_shape(shapes[1], t->expected));
    else if (t->outcome != CONV_DIFFERS)
        printf("%s\t\t\t", conv_outcome_name(t->outcome));
    else if (t->rule == CONV_STEP)
        printf("%" PRIu64 " rows\t%.2e\t%.4f\t", s->n_rows_wrong, conv_error(s),
               conv_correlation(s));
    else
        printf("%" PRIu64 " of %" PRIu64 " values\t%.2e\t%.4f\t", s->n_wrong, s->n, conv_error(s),
               conv_correlation(s));
}

static void print_tensor(const struct conv_tensor *t)
{
    char name[128], words[CONV_VALUE_BYTES];
    const struct conv_sums *s = &t->sums;
    printf("%s\t%s\t", base_printable_text(name, sizeof name, t->name),
           t->found ? t->found->type->name : "-");
    print_extent(t);
    base_printable_text(name, sizeof name, conv_describe(words, t));
    if (*name)
        printf("%s\n", name);
    else if (t->outcome == CONV_DIFFERS && s->n_rows_wrong > 0 && s->n_rows_wrong < 10)
        printf("from row %" PRIu64 " on\n", s->first_row);
    else
        puts("");
}

/** Print what differs of the kinds from first to last. name: the head of the first column. */
static void print_keys(const struct conv_result *r, enum conv_kind first, enum conv_kind last,
                       const char *name)
{
    bool begun = false;
    for (size_t i = 0; i < r->n_keys; i++) {
        if (r->keys[i].kind < first || r->keys[i].kind > last)
            continue;
        if (!begun)
            printf("\n%s\texpected\tfound\n", name);
        begun = true;
        printf("%s\t%s\t%s\n", r->keys[i].key, r->keys[i].expected, r->keys[i].found);
    }
}

void cli_conversion_print(const struct cli_conversion *c)
{
    char sentence[CONV_SENTENCE_BYTES], shown[CONV_SENTENCE_BYTES];
    const struct conv_result *r = &c->result;
    const char *file = base_file_name(c->settings->model);
    conv_sentence(sentence, r, file, c->settings->folder);
    printf("%s\n", base_printable_text(shown, sizeof shown, sentence));
    if (r->n_tensors)
        puts("\ntensor\ttype\tdiffer\terror\tcorrelation\tlooks like");
    for (size_t i = 0; i < r->n_tensors; i++)
        print_tensor(&r->tensors[i]);
    print_keys(r, CONV_HPARAM, CONV_TOKEN, "key");
    print_keys(r, CONV_PROMPT, CONV_PROMPT, "prompt");
    if (r->n_beyond)
        printf("\nNot compared: %zu tensor%s of blocks after the layers\n", r->n_beyond,
               status_plural(r->n_beyond));
    cli_flush();
    for (size_t i = 0; i < r->n_notes; i++)
        cli_say("assay: note: %s: %s\n", file, r->notes[i]);
}

static void add_tensor(struct base_json *json, cJSON *list, const struct conv_tensor *t)
{
    char words[CONV_VALUE_BYTES];
    const struct conv_sums *s = &t->sums;
    bool differs = t->outcome == CONV_DIFFERS, judged = differs && s->n > 0;
    cJSON *o = base_json_object(json, list, NULL);
    base_json_text(json, o, "name", t->name);
    base_json_text(json, o, "outcome", conv_outcome_name(t->outcome));
    base_json_text(json, o, "type", t->found ? t->found->type->name : NULL);
    base_json_text(json, o, "expected_type", t->expected ? t->expected->type->name : NULL);
    base_json_text(json, o, "rule", judged ? conv_rule_name(t->rule) : NULL);
    base_json_text(json, o, "looks_like", conv_look_name(t->look));
    base_json_text(json, o, "words", conv_describe(words, t));
    base_json_text(json, o, "other", t->look == CONV_OTHER_TENSOR ? t->other->name : NULL);
    base_json_uint(json, o, "n_values", s->n);
    base_json_uint(json, o, "n_wrong", s->n_wrong);
    base_json_uint(json, o, "n_rows_wrong", s->n_rows_wrong);
    base_json_uint(json, o, "n_matrices_wrong", t->n_matrices_wrong);
    base_json_uint(json, o, "n_nonfinite", s->n_nonfinite);
    base_json_real(json, o, "error", judged ? conv_error(s) : (double)NAN);
    base_json_real(json, o, "largest", judged ? s->largest : (double)NAN);
    base_json_real(json, o, "correlation", judged ? conv_correlation(s) : (double)NAN);
}

static void add_result(struct base_json *json, const struct cli_conversion *c)
{
    char sentence[CONV_SENTENCE_BYTES];
    const struct conv_result *r = &c->result;
    const struct cli_conversion_divergence *d = &c->divergence;
    const char *file = base_file_name(c->settings->model);
    cJSON *o = base_json_object(json, json->root, "result");
    base_json_text(json, o, "verdict", conv_result_differs(r) ? "differs" : "right");
    base_json_text(json, o, "sentence", conv_sentence(sentence, r, file, c->settings->folder));
    base_json_uint(json, o, "n_tensors", r->n_compared);
    base_json_uint(json, o, "n_exact", r->n_exact);
    base_json_uint(json, o, "n_quantised", r->n_quantised);
    base_json_uint(json, o, "n_lossless", r->n_lossless);
    base_json_uint(json, o, "n_hparams", r->n_hparams);
    base_json_uint(json, o, "n_tokenizer", r->n_tokens);
    base_json_uint(json, o, "n_prompts", r->n_prompts);
    base_json_uint(json, o, "n_prompts_differ", r->n_prompts_differ);
    base_json_uint(json, o, "n_prompts_refused", r->n_prompts_refused);
    base_json_uint(json, o, "n_prompts_unknown", r->n_prompts_unknown);
    base_json_text(json, o, "prompts_why", *r->prompts_why ? r->prompts_why : NULL);
    base_json_uint(json, o, "n_not_compared", r->n_beyond);
    cli_json_estimate(json, o, "kld",
                      d->measured ? d->kld : (struct base_estimate){(double)NAN, (double)NAN});
    cli_json_estimate(json, o, "same_top",
                      d->measured ? d->same_top : (struct base_estimate){(double)NAN, (double)NAN});
    base_json_uint(json, o, "n_tokens", d->n_tokens);
    cJSON *tensors = base_json_list(json, json->root, "tensors");
    for (size_t i = 0; i < r->n_tensors; i++)
        add_tensor(json, tensors, &r->tensors[i]);
    cJSON *keys = base_json_list(json, json->root, "keys");
    for (size_t i = 0; i < r->n_keys; i++) {
        cJSON *key = base_json_object(json, keys, NULL);
        base_json_text(json, key, "kind", conv_kind_name(r->keys[i].kind));
        base_json_text(json, key, "key", r->keys[i].key);
        base_json_text(json, key, "expected", r->keys[i].expected);
        base_json_text(json, key, "found", r->keys[i].found);
    }
}

enum status cli_conversion_write(const struct cli_conversion *c, struct base_file *file,
                                 struct status_why *why)
{
    struct base_json json;
    struct cli_versions versions;
    cli_versions_read(&versions);
    doc_json_begin(&json, DOC_CONVERSION_SCHEMA);
    add_result(&json, c);
    cJSON *notes = base_json_list(&json, json.root, "notes");
    for (size_t i = 0; i < c->result.n_notes; i++)
        base_json_text(&json, notes, NULL, c->result.notes[i]);
    cJSON *run = base_json_object(&json, json.root, "run");
    base_json_text(&json, run, "model_file", c->settings->model);
    base_json_text(&json, run, "base_file", c->settings->folder);
    base_json_text(&json, run, "text_file", c->settings->text_file);
    base_json_text(&json, run, "assay", versions.assay);
    base_json_text(&json, run, "commit", versions.commit);
    return doc_json_end(&json, file, why);
}

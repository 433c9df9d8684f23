/* Vocabularies that are padded or enlarged: what both have is compared, the rest is weighed. */
#include <stdio.h>

#include "base/text/printable.h"
#include "base/text/quote.h"
#include "cli/kld/kld_evaluator.h"
#include "cli/output/json_parts.h"
#include "eval/identity.h"

static size_t n_tokens(const struct cli_kld *k, size_t i)
{
    return model_hparams(k->models[i])->n_vocab;
}

bool cli_kld_has_others(const struct cli_kld *k, size_t i)
{
    return n_tokens(k, i) != k->base.kind->n_vocab(&k->base);
}

/** The first token that only one of them has, quoted; a file of rows has no texts. */
static void name_first(char out[128], const struct cli_kld *k, size_t i)
{
    const struct model *larger = k->models[i];
    struct base_quoted quoted;
    if (n_tokens(k, i) == k->n_common)
        larger = k->base.model.model;
    *out = 0;
    if (larger)
        snprintf(
            out, 128, ", %s",
            base_quote(&quoted, model_token_text(model_tokenizer(larger), (int32_t)k->n_common)));
}

/** Only common tokens are compared with candidate i: a note says so, or --strict refuses. */
static enum status remark(struct cli_kld *k, size_t i, struct status_why *why)
{
    char one[96], two[96], first[128], text[500];
    name_first(first, k, i);
    snprintf(text, sizeof text,
             "%s has %zu tokens, %s has %zu: the %zu that both have are compared, as if there were "
             "no others; the first of these is token %zu%s",
             base_printable_text(one, sizeof one, base_file_name(k->candidates[i].path)),
             n_tokens(k, i), base_printable_text(two, sizeof two, base_file_name(k->base.path)),
             k->base.kind->n_vocab(&k->base), k->n_common, k->n_common, first);
    if (k->settings->text.strict)
        return status_fail(why, STATUS_USAGE, "--strict: %s", text);
    cli_remark(&k->e, "%s", text);
    return STATUS_OK;
}

enum status cli_kld_check_vocabulary(struct cli_kld *k, size_t i, struct status_why *why)
{
    size_t n, n_of_two;
    enum status status = k->base.kind->check(&k->base, k->models[i], &n, why);
    if (!status && i && cli_base_has_rows(&k->base))
        status = eval_check_common_vocab(&n_of_two, k->models[0], k->models[i], why);
    if (status)
        return status;
    if (i && n != k->n_common)
        return status_fail(why, STATUS_FORMAT,
                           "%s: it has %zu tokens in common with %s, %s has %zu: their figures "
                           "would be of other tokens; compare them one at a time",
                           k->candidates[i].path, n, k->base.path, k->candidates[0].path,
                           k->n_common);
    k->n_common = n;
    if (!cli_kld_has_others(k, i))
        return STATUS_OK;
    k->is_cut = true;
    return remark(k, i, why);
}

enum status cli_kld_check_ids(const struct cli_kld *k, struct status_why *why)
{
    const struct eval_stream *stream = &k->windows.stream;
    for (size_t i = 0; k->is_cut && i < stream->n; i++)
        if ((size_t)stream->ids[i] >= k->n_common)
            return status_fail(why, STATUS_FORMAT,
                               "token %zu of the text is %d, and the vocabularies have %zu in "
                               "common; only texts of common tokens can be compared",
                               i, stream->ids[i], k->n_common);
    return STATUS_OK;
}

static void add_beyond(struct base_json *json, cJSON *parent, const char *key,
                       const struct eval_beyond *b)
{
    cJSON *o = base_json_object(json, parent, key);
    cli_json_estimate(json, o, "mean", b->mean);
    base_json_real(json, o, "max", b->largest);
}

void cli_kld_add_vocabulary(struct base_json *json, cJSON *parent, const struct cli_kld *k,
                            size_t i)
{
    if (!cli_kld_has_others(k, i))
        return;
    cJSON *o = base_json_object(json, parent, "vocabulary");
    base_json_uint(json, o, "n_common", k->n_common);
    base_json_uint(json, o, "n_base", k->base.kind->n_vocab(&k->base));
    base_json_uint(json, o, "n_model", n_tokens(k, i));
    add_beyond(json, o, "base_others", &k->results[i].base_beyond);
    add_beyond(json, o, "others", &k->results[i].beyond);
}

static void print_beyond(const char *label, const struct eval_beyond *b)
{
    printf("%s%11.4e mean, %.4e largest\n", label, b->mean.value, b->largest);
}

void cli_kld_print_vocabulary(const struct cli_kld *k, size_t i)
{
    if (!cli_kld_has_others(k, i))
        return;
    printf("Tokens compared: %zu of %zu, base %zu\n", k->n_common, n_tokens(k, i),
           k->base.kind->n_vocab(&k->base));
    print_beyond("On others, Q   : ", &k->results[i].beyond);
    print_beyond("On others, base: ", &k->results[i].base_beyond);
}

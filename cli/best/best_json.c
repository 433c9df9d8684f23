/* The result of assay best as JSON. Everything outside `run` is a function of models, text and
 * settings. */
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/text/printable.h"
#include "cli/best/best.h"
#include "cli/output/json_parts.h"
#include "clients/documents/schema.h"

static void add_index(struct base_json *json, cJSON *o, const char *key, size_t i)
{
    if (i == SIZE_MAX)
        base_json_text(json, o, key, NULL);
    else
        base_json_uint(json, o, key, i);
}

/** Null where nothing was measured; an error is null of one repetition, too. */
static void add_speeds(struct base_json *json, cJSON *o, const struct cli_best_file *f)
{
    static const char *const names[][2] = {
        [DOC_PROMPT] = {"prompt_speed", "prompt_speed_deviation"},
        [DOC_GENERATION] = {"generation_speed", "generation_speed_deviation"}};
    for (size_t kind = 0; kind < DOC_N_SPEEDS; kind++) {
        const struct doc_metric_value *v = &f->speeds[kind];
        base_json_real(json, o, names[kind][0], v->known ? v->value : (double)NAN);
        base_json_real(json, o, names[kind][1], v->known ? v->error : (double)NAN);
    }
}

/* of_kld: what assay kld would write of the candidates on these windows. */
static void add_candidate(struct base_json *json, cJSON *list, const struct cli_best *b, size_t i,
                          const cJSON *of_kld)
{
    const struct cli_best_file *f = &b->files[i];
    const struct cli_kld *k = &b->k;
    struct cli_best_place p = cli_best_place(b, i);
    bool clear;
    const struct eval_kld_result *r = &k->results[f->candidate];
    cJSON *o = base_json_object(json, list, NULL);
    cli_json_add_model(json, o, "model", &k->candidates[f->candidate], true);
    base_json_uint(json, o, "file_bytes", f->on_disk);
    base_json_real(json, o, "cache_bytes", f->cache);
    add_speeds(json, o, f);
    base_json_text(json, o, "standing", cli_best_standings[p.standing]);
    base_json_flag(json, o, "clear", p.clear);
    base_json_flag(json, o, "front", eval_race_survives(&b->race, f->candidate, &clear));
    base_json_flag(json, o, "front_clear", clear);
    base_json_uint(json, o, "n_windows", r->n_windows);
    cli_json_estimate(json, o, "kld", r->figures.kld);
    cli_json_estimate(json, o, "same_top", r->figures.same_top);
    cli_json_estimate(json, o, "ln_ratio", r->figures.log_ratio);
    cJSON *figures = cJSON_Duplicate(cJSON_GetArrayItem(of_kld, (int)f->candidate), true);
    json->failed |= !figures || !cJSON_AddItemToObject(o, "figures", figures);
}

static cJSON *member(cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static void add_pair(struct base_json *json, cJSON *list, const struct cli_best *b, size_t i,
                     size_t j)
{
    static const char *const relations[] = {
        [EVAL_RACE_OPEN] = NULL, [EVAL_RACE_AS_GOOD] = "as good", [EVAL_RACE_WORSE] = "worse"};
    const struct eval_race_pair *p = &b->race.pairs[i * b->rules.n + j];
    cJSON *o = base_json_object(json, list, NULL);
    base_json_uint(json, o, "a", i);
    base_json_uint(json, o, "b", j);
    base_json_text(json, o, "a_is", relations[p->relation]);
    base_json_uint(json, o, "n_windows", p->difference.n);
    base_json_real(json, o, "difference", p->difference.n ? p->difference.mean : (double)NAN);
    base_json_real(json, o, "low", p->low);
    base_json_real(json, o, "high", p->high);
}

void cli_best_add_verdict(const struct cli_best *b, struct base_json *json)
{
    struct status_why *sentences;
    size_t n = 0;
    cJSON *list = base_json_list(json, json->root, "verdict");
    if (base_array_new(sentences, b->n_files + 1, "sentences", NULL))
        json->failed = true;
    else
        cli_best_verdict(b, sentences, &n);
    for (size_t i = 0; i < n; i++)
        base_json_text(json, list, NULL, sentences[i].text);
    free(sentences);
}

static void add_too_large(struct base_json *json, cJSON *list, const struct cli_best_file *f)
{
    cJSON *o = base_json_object(json, list, NULL);
    base_json_text(json, o, "file", base_file_name(f->path));
    base_json_text(json, o, "quantisation", f->quantisation);
    base_json_uint(json, o, "n_bytes", f->n_bytes);
    base_json_uint(json, o, "file_bytes", f->on_disk);
    base_json_real(json, o, "cache_bytes", f->cache);
    add_speeds(json, o, f);
    base_json_flag(json, o, "too_slow", f->too_slow);
}

static void add_result(const void *self, struct base_json *json)
{
    const struct cli_best *b = self;
    bool clear;
    size_t answer = cli_best_answer(b, &clear);
    struct base_json kld;
    doc_json_begin(&kld, cli_kld_members.schema);
    cli_kld_members.result(&b->k, &kld);
    json->failed |= kld.failed;
    cJSON *result = base_json_object(json, json->root, "result");
    base_json_flag(json, result, "complete", b->k.results[0].complete);
    add_index(json, result, "answer", answer);
    base_json_flag(json, result, "clear", clear);
    base_json_uint(json, result, "n_windows", b->race.n_seen);
    base_json_uint(json, result, "n_windows_of_text", b->rules.n_windows);
    cJSON *n_tokens = cJSON_Duplicate(member(member(kld.root, "result"), "n_tokens"), false);
    json->failed |= !n_tokens || !cJSON_AddItemToObject(result, "n_tokens", n_tokens);
    base_json_uint(json, result, "n_looks", b->race.n_looks);
    base_json_real(json, result, "share_of_tokens", cli_best_share(b));
    cli_best_add_verdict(b, json);
    cJSON *candidates = base_json_list(json, json->root, "candidates");
    for (size_t i = 0; i < b->n_files; i++)
        if (b->files[i].candidate != SIZE_MAX)
            add_candidate(json, candidates, b, i, member(kld.root, "candidates"));
    cJSON *others = base_json_list(json, json->root, "too_large");
    for (size_t i = 0; i < b->n_files; i++)
        if (b->files[i].candidate == SIZE_MAX)
            add_too_large(json, others, &b->files[i]);
    cJSON *pairs = base_json_list(json, json->root, "pairs");
    for (size_t i = 0; i < b->rules.n; i++)
        for (size_t j = 0; j < b->rules.n; j++)
            if (i != j)
                add_pair(json, pairs, b, i, j);
    base_json_free(&kld);
}

static void add_limit(struct base_json *json, cJSON *o, const char *key, uint64_t limit)
{
    base_json_real(json, o, key, limit ? (double)limit : (double)NAN);
}

static void add_speed_limit(struct base_json *json, cJSON *o, const char *key, double limit)
{
    base_json_real(json, o, key, limit > 0 ? limit : (double)NAN);
}

static void add_settings(struct base_json *json, const struct cli_best *b)
{
    const struct cli_kld_settings *s = &b->settings->kld;
    cJSON *o = base_json_object(json, json->root, "settings");
    base_json_real(json, o, "margin", b->rules.nats);
    base_json_real(json, o, "margin_share", b->rules.share);
    base_json_real(json, o, "alpha", b->rules.alpha);
    add_limit(json, o, "memory", b->limits.memory);
    add_limit(json, o, "size", b->limits.size);
    base_json_int(json, o, "context", b->settings->context);
    add_speed_limit(json, o, "speed", b->settings->least_speed[DOC_GENERATION]);
    add_speed_limit(json, o, "prompt_speed", b->settings->least_speed[DOC_PROMPT]);
    cli_json_add_window_settings(json, o, &s->windows, &b->k.windows.plan);
    cli_json_add_text_settings(json, o, &s->text);
    cli_json_add_computation(json, o, &b->k.e);
}

static void describe(const void *self, struct base_json *json, bool for_journal)
{
    const struct cli_best *b = self;
    const struct cli_kld *k = &b->k;
    add_settings(json, b);
    cli_base_add_json(json, json->root, &k->base, !for_journal);
    cJSON *candidates = for_journal ? base_json_list(json, json->root, "candidates") : NULL;
    for (size_t i = 0; i < k->n_candidates && candidates; i++)
        cli_json_add_model(json, base_json_object(json, candidates, NULL), "model",
                           &k->candidates[i], false);
    cli_json_add_text(json, &k->windows, model_tokenizer(cli_kld_reader(k)));
    if (!for_journal)
        cli_json_add_doubts(json, &k->windows);
}

static void add_files(const void *self, struct base_json *json, cJSON *run)
{
    const struct cli_best *b = self;
    cli_kld_members.files(&b->k, json, run);
    cJSON *list = b->n_benches ? base_json_list(json, run, "bench_files") : NULL;
    for (size_t i = 0; i < b->n_benches; i++)
        base_json_text(json, list, NULL, b->benches[i].json.file);
}

const struct cli_members cli_best_members = {"assay-best", add_result, describe, NULL, add_files};

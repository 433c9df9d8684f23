#include "model/tokenizer/declared/declared.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json/parse.h"
#include "base/text/utf8.h"

/* What the regular expressions of Rust's library call \w. */
static const char word[] = "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200C}\\x{200D}]";

static enum status read_flags(struct model_declared *d, struct status_why *why)
{
    static const char key[] = "tokenizer.declared.added";
    const struct gguf_kv *kv;
    enum status status = model_vocab_array(&kv, d->vocab->file, key, false, d->vocab->n, why);
    if (status || !kv)
        return status;
    if (kv->element_type != GGUF_VALUE_U8)
        return status_fail(why, STATUS_FORMAT, "%s: key %s is an array of %s; expected u8",
                           gguf_path(d->vocab->file), key, gguf_value_type_name(kv->element_type));
    d->flags = kv->data;
    d->has_declared = true;
    for (size_t i = 0; i < d->vocab->n; i++)
        if (d->flags[i] > MODEL_ADDED_FLAGS ||
            (d->flags[i] && d->vocab->text[i].n_bytes > MODEL_ADDED_MAX_BYTES))
            return status_fail(why, STATUS_UNSUPPORTED,
                               "%s: key %s: entry %zu is %u, of a token of %zu bytes, expected at "
                               "most %d and %d",
                               gguf_path(d->vocab->file), key, i, d->flags[i],
                               d->vocab->text[i].n_bytes, (int)MODEL_ADDED_FLAGS,
                               (int)MODEL_ADDED_MAX_BYTES);
    return STATUS_OK;
}

static enum status read_front(struct model_declared *d, struct status_why *why)
{
    static const char key[] = MODEL_DECLARED_FRONT;
    const char *path = gguf_path(d->vocab->file);
    const struct gguf_kv *kv = gguf_kv_find(d->vocab->file, key);
    if (!kv)
        return STATUS_OK;
    if (kv->type != GGUF_VALUE_ARRAY || kv->element_type != GGUF_VALUE_I32)
        return status_fail(why, STATUS_FORMAT, "%s: key %s is no array of i32", path, key);
    enum status status = base_array_new(d->front, (size_t)kv->count, "tokens", why);
    for (; d->n_front < kv->count && !status; d->n_front++) {
        int64_t id = gguf_kv_int(kv, d->n_front);
        d->front[d->n_front] = (int32_t)id;
        if (id < 0 || (size_t)id >= d->vocab->n)
            status = status_fail(why, STATUS_FORMAT,
                                 "%s: key %s: entry %zu is %" PRId64 ", expected an id below %zu",
                                 path, key, d->n_front, id, d->vocab->n);
    }
    return status;
}

/** Add a member of tokenizer.json that a key has as a text, if there is one. */
static enum status add_member(cJSON *tokenizer, const struct gguf_file *file, const char *key,
                              struct status_why *why)
{
    struct base_string text = {0};
    bool found = false;
    cJSON *item = NULL;
    enum status status = gguf_get_string(file, key, &text, &found, why);
    if (status || !found)
        return status;
    if (base_json_find_nul(text.data, text.n_bytes) ||
        base_utf8_first_bad(text.data, text.n_bytes) < text.n_bytes)
        status = STATUS_FORMAT;
    else
        status = base_json_parse(&item, text.data, text.n_bytes, NULL, why);
    if (status == STATUS_FORMAT)
        return status_fail(why, STATUS_FORMAT, "%s: key %s is no JSON", gguf_path(file), key);
    if (!status && !cJSON_AddItemToObject(tokenizer, strrchr(key, '.') + 1, item)) {
        cJSON_Delete(item);
        status = status_fail(why, STATUS_MEMORY, "%s: key %s: no memory", gguf_path(file), key);
    }
    return status;
}

static enum status read_steps(struct model_declared *d, struct status_why *why)
{
    const struct gguf_file *file = d->vocab->file;
    struct base_json_reader json = {.file = "tokenizer.json", .root = cJSON_CreateObject()};
    enum status status = add_member(json.root, file, "tokenizer.declared.normalizer", why);
    if (!status)
        status = add_member(json.root, file, "tokenizer.declared.pre_tokenizer", why);
    if (!status) {
        model_steps_read(&d->steps, base_json_root(&json));
        status = base_json_status(&json, why);
        if (status)
            status_context(why, "%s", gguf_path(file));
    }
    base_json_close(&json);
    return status;
}

static enum status keep_piece(void *user, struct base_string piece, bool first)
{
    (void)first;
    base_buffer_add(user, piece.data, piece.n_bytes);
    return STATUS_OK;
}

/** Append the normalised text of a token. */
static enum status normalise(const struct model_declared *d, struct base_string text,
                             struct base_buffer *out, struct status_why *why)
{
    struct model_steps_run run = {.why = why, .n_text_bytes = text.n_bytes};
    const struct model_steps_call call = {&d->steps, &run, keep_piece, out, d->steps.n_normalising};
    enum status status = base_utf8_first_bad(text.data, text.n_bytes) < text.n_bytes
                             ? STATUS_OK /* it is never met */
                             : model_steps_apply(&call, 0, text, true);
    model_steps_run_free(&run);
    return status ? status : base_buffer_check(out, "a token", why);
}

/** The tokens that are looked for in the text as it stands, or in the normalised one. */
static enum status build(struct model_declared *d, bool normalised, struct status_why *why)
{
    const struct model_vocab *v = d->vocab;
    struct model_special_item *items = NULL;
    struct base_buffer texts = {0};
    size_t n = 0, capacity = 0, at = 0;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < v->n && !status; i++) {
        if (!d->flags[i] || !(d->flags[i] & MODEL_ADDED_NORMALIZED) == normalised)
            continue;
        status = base_array_reserve(items, capacity, n + 1, "added tokens", why);
        if (!status)
            items[n++] = (struct model_special_item){v->text[i], (int32_t)i};
        if (!status && normalised) {
            size_t before = texts.n;
            status = normalise(d, v->text[i], &texts, why);
            items[n - 1].text.n_bytes = texts.n - before;
        }
    }
    d->normalised = normalised ? base_buffer_take(&texts) : d->normalised;
    for (size_t i = 0; i < n && normalised && d->normalised; i++) { /* where they lie at last */
        items[i].text.data = d->normalised + at;
        at += items[i].text.n_bytes;
    }
    if (!status)
        status = model_special_build(normalised ? &d->in_normalised : &d->in_text, items, n, why);
    base_buffer_free(&texts);
    free(items);
    return status;
}

enum status model_declared_init(struct model_declared *d, const struct model_vocab *vocab,
                                struct status_why *why)
{
    bool stated;
    *d = (struct model_declared){.vocab = vocab};
    enum status status = read_flags(d, why);
    if (status || !d->has_declared)
        return status;
    status = read_front(d, why);
    if (!status)
        status = read_steps(d, why);
    if (!status)
        status = gguf_get_bool(vocab->file, "tokenizer.declared.ignore_merges", &d->ignore_merges,
                               &stated, why);
    if (!status)
        status = model_regex_compile(&d->word, word, false, why);
    if (!status)
        status = build(d, false, why);
    return status ? status : build(d, true, why);
}

void model_declared_free(struct model_declared *d)
{
    model_special_free(&d->in_text);
    model_special_free(&d->in_normalised);
    model_steps_free(&d->steps);
    model_regex_free(d->word);
    free(d->normalised);
    free(d->front);
    *d = (struct model_declared){0};
}

struct cutting {
    const struct model_declared *d;
    const struct model_declared_sink *sink;
    bool parse_special;
    struct model_steps_run run;
};

/** White space as Rust's library has it: Unicode's White_Space. */
static bool is_white(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0D) || c == ' ' || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

/** Whether the n bytes are one character of a word. */
static enum status is_word(struct cutting *c, const char *at, size_t n, bool *is)
{
    struct model_regex_match match;
    enum status status = model_regex_find(c->d->word, &c->run.regex, (struct base_string){at, n}, 0,
                                          UINT32_MAX, &match, c->run.why);
    *is = match.found;
    return status;
}

/** Whether a letter or the like touches [begin, end). */
static enum status touches(struct cutting *c, struct base_string text, size_t begin, size_t end,
                           bool *is)
{
    enum status status = STATUS_OK;
    *is = false;
    if (begin > 0) {
        size_t n = base_utf8_decode_last(text.data, begin, NULL);
        status = is_word(c, text.data + begin - n, n, is);
    }
    if (!status && !*is && end < text.n_bytes)
        status = is_word(c, text.data + end,
                         base_utf8_decode(text.data + end, text.n_bytes - end, NULL), is);
    return status;
}

/** The white space around a token that it takes; not from `done` on to the left. */
static void strip(struct base_string text, uint8_t flags, size_t done, size_t *begin, size_t *end)
{
    uint32_t c;
    size_t n;
    while ((flags & MODEL_ADDED_LSTRIP) && *begin > done &&
           (n = base_utf8_decode_last(text.data, *begin, &c)) > 0 && is_white(c))
        *begin -= n;
    while ((flags & MODEL_ADDED_RSTRIP) && *end < text.n_bytes &&
           (n = base_utf8_decode(text.data + *end, text.n_bytes - *end, &c)) > 0 && is_white(c))
        *end += n;
}

typedef enum status stretch_fn(struct cutting *c, struct base_string stretch, bool first);

/**
 * Hand out the added tokens of a set and what lies between them: leftmost first, the longest of
 * those that begin at one place.
 */
static enum status walk(struct cutting *c, const struct model_special *set, struct base_string text,
                        bool first, stretch_fn *fn)
{
    const struct model_vocab *v = c->d->vocab;
    size_t done = 0;
    enum status status = STATUS_OK;
    for (size_t at = 0, n; at < text.n_bytes && !status; at += n ? n : 1) {
        int32_t token = -1;
        bool word_touches = false;
        n = set->root_child[(uint8_t)text.data[at]]
                ? model_special_longest(set, text.data + at, text.n_bytes - at, &token)
                : 0;
        if (n == 0 || (!c->parse_special && v->recognition[token] != MODEL_RECOGNISED_ALWAYS))
            continue;
        size_t begin = at, end = at + n;
        uint8_t flags = c->d->flags[token];
        if (flags & MODEL_ADDED_SINGLE_WORD)
            status = touches(c, text, begin, end, &word_touches);
        if (status || word_touches)
            continue;
        strip(text, flags, done, &begin, &end);
        if (begin > done)
            status = fn(c, (struct base_string){text.data + done, begin - done}, first && !done);
        if (!status)
            status = c->sink->token(c->sink->user, token);
        done = end;
    }
    if (!status && done < text.n_bytes)
        status = fn(c, (struct base_string){text.data + done, text.n_bytes - done}, first && !done);
    return status;
}

static enum status give_piece(void *user, struct base_string piece, bool first)
{
    struct cutting *c = user;
    (void)first;
    return c->sink->piece(c->sink->user, piece);
}

static enum status pre_tokenise(struct cutting *c, struct base_string stretch, bool first)
{
    const struct model_steps *steps = &c->d->steps;
    const struct model_steps_call call = {steps, &c->run, give_piece, c, steps->n};
    return model_steps_apply(&call, steps->n_normalising, stretch, first);
}

static enum status take_normalised(void *user, struct base_string text, bool first)
{
    struct cutting *c = user;
    return walk(c, &c->d->in_normalised, text, first, pre_tokenise);
}

static enum status normalise_stretch(struct cutting *c, struct base_string stretch, bool first)
{
    const struct model_steps *steps = &c->d->steps;
    const struct model_steps_call call = {steps, &c->run, take_normalised, c, steps->n_normalising};
    return model_steps_apply(&call, 0, stretch, first);
}

enum status model_declared_cut(const struct model_declared *d, struct base_string text,
                               bool parse_special, const struct model_declared_sink *sink,
                               struct status_why *why)
{
    struct cutting c = {.d = d,
                        .sink = sink,
                        .parse_special = parse_special,
                        .run = {.why = why, .n_text_bytes = text.n_bytes}};
    enum status status = walk(&c, &d->in_text, text, true, normalise_stretch);
    model_steps_run_free(&c.run);
    return status;
}

size_t model_declared_span(const struct model_declared *d, int32_t id, const char *text,
                           size_t n_left)
{
    const struct base_string own = d->vocab->text[id], whole = {text, n_left};
    uint8_t flags = d->flags[id];
    size_t begin = 0, end = 0;
    if (flags & MODEL_ADDED_LSTRIP)
        strip(whole, MODEL_ADDED_RSTRIP, 0, &begin, &end); /* from here to the right */
    if (!flags || own.n_bytes > n_left - end || memcmp(text + end, own.data, own.n_bytes) != 0)
        return 0;
    end += own.n_bytes;
    strip(whole, flags & MODEL_ADDED_RSTRIP, 0, &begin, &end);
    return end;
}

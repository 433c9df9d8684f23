#include "tests/model/vocabulary.h"

#include "tests/harness/cmocka.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/gguf_bytes.h"

static struct base_string keep(struct vocabulary *v, const char *bytes, size_t n_bytes)
{
    assert_true(n_bytes <= sizeof v->bytes - v->n_bytes);
    struct base_string s = {v->bytes + v->n_bytes, n_bytes};
    memcpy(v->bytes + v->n_bytes, bytes, n_bytes);
    v->n_bytes += n_bytes;
    return s;
}

static void clear(struct vocabulary *v, const char *model)
{
    memset(v, 0, sizeof *v);
    v->model = model;
    v->bos = v->eos = v->unknown = VOCABULARY_ABSENT;
    v->add_bos = v->add_eos = v->add_space_prefix = VOCABULARY_ABSENT;
}

int32_t vocabulary_add_bytes(struct vocabulary *v, const char *bytes, size_t n_bytes, float score,
                             enum model_token_type type)
{
    assert_true(v->n_tokens < VOCABULARY_LIMIT);
    v->tokens[v->n_tokens] = keep(v, bytes, n_bytes);
    v->scores[v->n_tokens] = score;
    v->types[v->n_tokens] = (int32_t)type;
    v->n_scores = v->n_types = v->n_tokens + 1;
    return (int32_t)v->n_tokens++;
}

int32_t vocabulary_add(struct vocabulary *v, const char *text, float score,
                       enum model_token_type type)
{
    return vocabulary_add_bytes(v, text, strlen(text), score, type);
}

void vocabulary_spm(struct vocabulary *v)
{
    clear(v, "llama");
    vocabulary_add(v, "<unk>", 0, MODEL_TOKEN_UNKNOWN);
    vocabulary_add(v, "<s>", 0, MODEL_TOKEN_CONTROL);
    vocabulary_add(v, "</s>", 0, MODEL_TOKEN_CONTROL);
    for (unsigned b = 0; b < 256; b++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", b);
        vocabulary_add(v, name, 0, MODEL_TOKEN_BYTE);
    }
}

void vocabulary_stand_in(uint8_t byte, char out[3])
{
    /* Bytes without a printable character of their own follow U+0100 in their order. */
    unsigned code_point = byte;
    if (byte <= 0x20)
        code_point = 0x100u + byte;
    else if (byte >= 0x7F && byte <= 0xA0)
        code_point = 0x121u + (byte - 0x7Fu);
    else if (byte == 0xAD)
        code_point = 0x143;
    if (code_point < 0x80) {
        out[0] = (char)code_point;
        out[1] = 0;
        return;
    }
    out[0] = (char)(0xC0 | code_point >> 6);
    out[1] = (char)(0x80 | (code_point & 0x3F));
    out[2] = 0;
}

void vocabulary_bpe(struct vocabulary *v)
{
    clear(v, "gpt2");
    v->pre = "gpt-2";
    v->has_merges = true;
    for (unsigned b = 0; b < 256; b++) {
        char stand_in[3];
        vocabulary_stand_in((uint8_t)b, stand_in);
        vocabulary_add(v, stand_in, 0, MODEL_TOKEN_NORMAL);
    }
}

int32_t vocabulary_find(const struct vocabulary *v, const char *bytes, size_t n_bytes)
{
    for (size_t i = 0; i < v->n_tokens; i++)
        if (v->tokens[i].n_bytes == n_bytes && memcmp(v->tokens[i].data, bytes, n_bytes) == 0)
            return (int32_t)i;
    return -1;
}

int32_t vocabulary_merge(struct vocabulary *v, const char *left, const char *right)
{
    char text[256];
    int n = snprintf(text, sizeof text, "%s %s", left, right);
    assert_true(n > 0 && (size_t)n < sizeof text && v->n_merges < VOCABULARY_LIMIT);
    v->merges[v->n_merges++] = keep(v, text, (size_t)n);
    n = snprintf(text, sizeof text, "%s%s", left, right);
    int32_t id = vocabulary_find(v, text, (size_t)n);
    return id >= 0 ? id : vocabulary_add(v, text, 0, MODEL_TOKEN_NORMAL);
}

static void write_id(struct gguf_writer *w, const char *key, int value)
{
    if (value != VOCABULARY_ABSENT)
        gguf_writer_u32(w, key, (uint32_t)value);
}

static void write_bool(struct gguf_writer *w, const char *key, int value)
{
    if (value != VOCABULARY_ABSENT)
        gguf_writer_bool(w, key, value != 0);
}

static void write_string(struct gguf_writer *w, const char *key, const char *value)
{
    if (value)
        gguf_writer_string(w, key, value);
}

enum status vocabulary_open(struct opened *o, const struct vocabulary *v, const char *pre,
                            struct status_why *why)
{
    *o = (struct opened){0};
    struct gguf_writer *w;
    assert_int_equal(gguf_writer_new(&w, why), STATUS_OK);
    write_string(w, "general.name", v->name);
    write_string(w, "tokenizer.ggml.model", v->model);
    write_string(w, "tokenizer.ggml.pre", v->pre);
    if (v->n_tokens > 0)
        gguf_writer_strings(w, "tokenizer.ggml.tokens", v->tokens, v->n_tokens);
    int32_t whole[VOCABULARY_LIMIT];
    for (size_t i = 0; v->whole_scores && i < v->n_scores; i++)
        whole[i] = (int32_t)v->scores[i];
    if (v->n_scores > 0 && v->whole_scores)
        gguf_writer_i32s(w, "tokenizer.ggml.scores", whole, v->n_scores);
    else if (v->n_scores > 0)
        gguf_writer_f32s(w, "tokenizer.ggml.scores", v->scores, v->n_scores);
    if (v->n_types > 0)
        gguf_writer_i32s(w, "tokenizer.ggml.token_type", v->types, v->n_types);
    if (v->has_merges)
        gguf_writer_strings(w, "tokenizer.ggml.merges", v->merges, v->n_merges);
    write_id(w, "tokenizer.ggml.bos_token_id", v->bos);
    write_id(w, "tokenizer.ggml.eos_token_id", v->eos);
    write_id(w, "tokenizer.ggml.unknown_token_id", v->unknown);
    write_bool(w, "tokenizer.ggml.add_bos_token", v->add_bos);
    write_bool(w, "tokenizer.ggml.add_eos_token", v->add_eos);
    write_bool(w, "tokenizer.ggml.add_space_prefix", v->add_space_prefix);
    size_t n_bytes;
    if (gguf_writer_finish_memory(w, &o->data, &n_bytes, why) ||
        gguf_bytes_open(&o->file, o->data, n_bytes, "vocabulary", why))
        fail_msg("%s", why->text);
    return model_tokenizer_open(&o->tokenizer, o->file, pre, v->llama_compat, why);
}

struct opened vocabulary_opened(const struct vocabulary *v)
{
    struct opened o;
    struct status_why why = {0};
    if (vocabulary_open(&o, v, NULL, &why))
        fail_msg("%s", why.text);
    return o;
}

void opened_close(struct opened *o)
{
    model_tokenizer_close(o->tokenizer);
    gguf_close(o->file);
    free(o->data);
    *o = (struct opened){0};
}

struct model_tokens opened_encode(const struct opened *o, const char *text, size_t n_bytes,
                                  bool parse_special)
{
    struct model_tokens ids = {0};
    struct status_why why = {0};
    if (model_tokenize(o->tokenizer, text, n_bytes, parse_special, &ids, &why))
        fail_msg("%s", why.text);
    return ids;
}

void opened_expect(const struct opened *o, const char *text, size_t n_bytes, bool parse_special,
                   const int32_t *expected, size_t n_expected)
{
    struct model_tokens ids = opened_encode(o, text, n_bytes, parse_special);
    for (size_t i = 0; i < ids.n || i < n_expected; i++) {
        if (i < ids.n && i < n_expected && ids.ids[i] == expected[i])
            continue;
        fail_msg("text \"%.*s\": token %zu of %zu is %d; expected %d of %zu", (int)n_bytes, text, i,
                 ids.n, i < ids.n ? ids.ids[i] : -1, i < n_expected ? expected[i] : -1, n_expected);
    }
    free(ids.ids);
}

#include "model/tokenizer/tokenizer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/text/utf8.h"
#include "model/tokenizer/state.h"

size_t model_tokens_common(const struct model_tokens *a, const struct model_tokens *b)
{
    size_t i = 0;
    while (i < a->n && i < b->n && a->ids[i] == b->ids[i])
        i++;
    return i;
}

/** Only what is declared as added is recognised; no option cuts a declared tokenizer otherwise. */
static enum status open_declared(struct model_tokenizer *t, const char *pre, bool as_llama_cpp,
                                 struct status_why *why)
{
    enum status status = model_declared_init(&t->declared, &t->vocab, why);
    if (status || !t->declared.has_declared)
        return status;
    if (pre || as_llama_cpp)
        return status_fail(why, STATUS_USAGE,
                           "%s: tokenizer.json declares how texts are cut, and %s has no effect on "
                           "that; expected --tokenizer FILE.gguf with it",
                           gguf_path(t->vocab.file), pre ? "--tokenizer-pre" : "--llama-compat");
    for (size_t i = 0; i < t->vocab.n; i++)
        if (!t->declared.flags[i])
            t->vocab.recognition[i] = MODEL_RECOGNISED_NEVER;
    free(t->vocab.eats_space);
    t->vocab.eats_space = NULL;
    return STATUS_OK;
}

static enum status open_spm(struct model_tokenizer *t, const char *pre, struct status_why *why)
{
    if (t->declared.has_declared)
        t->vocab.add_space_prefix = false;
    if (pre)
        return status_fail(why, STATUS_USAGE,
                           "%s: pre-tokeniser %s was asked for, but this vocabulary is %s, which "
                           "has none",
                           gguf_path(t->vocab.file), pre,
                           t->vocab.kind == MODEL_VOCAB_SPM ? "SentencePiece" : "gemma4");
    enum status status = model_spm_init(&t->spm, &t->vocab, why);
    t->spm.verbatim = t->declared.has_declared;
    t->spm.ignore_merges = t->declared.ignore_merges;
    return status;
}

static enum status open_bpe(struct model_tokenizer *t, const char *pre, bool as_llama_cpp,
                            struct status_why *why)
{
    struct base_string name = {"default", strlen("default")};
    bool found;
    enum status status = gguf_get_string(t->vocab.file, "tokenizer.ggml.pre", &name, &found, why);
    if (status)
        return status;
    if (pre)
        name = (struct base_string){pre, strlen(pre)};
    if (t->declared.has_declared)
        name = (struct base_string){0};
    status = model_bpe_init(&t->bpe, &t->vocab, name, as_llama_cpp, why);
    if (t->declared.has_declared)
        t->bpe.ignore_merges = t->declared.ignore_merges;
    else if (!status && !t->vocab.add_bos_stated)
        t->vocab.add_bos = t->bpe.pre.row->flags & MODEL_PRE_BOS;
    if (!status && t->bpe.pre.row && t->bpe.pre.row->flags & MODEL_PRE_CHARACTERS) {
        model_merges_free(&t->bpe.merges); /* spm reads them */
        t->vocab.kind = MODEL_VOCAB_GEMMA4;
        status = model_spm_init(&t->spm, &t->vocab, why);
    }
    return status;
}

static enum status check_ends(const struct model_tokenizer *t, const struct gguf_file *file,
                              struct status_why *why)
{
    if (t->vocab.add_bos && t->vocab.bos < 0)
        return status_fail(why, STATUS_FORMAT,
                           "%s: texts are to begin with BOS, but key tokenizer.ggml.bos_token_id "
                           "is missing",
                           gguf_path(file));
    if (t->vocab.add_eos && t->vocab.eos < 0)
        return status_fail(why, STATUS_FORMAT,
                           "%s: texts are to end with EOS, but key tokenizer.ggml.eos_token_id is "
                           "missing",
                           gguf_path(file));
    return STATUS_OK;
}

enum status model_tokenizer_open(struct model_tokenizer **out, const struct gguf_file *file,
                                 const char *pre, bool as_llama_cpp, struct status_why *why)
{
    *out = NULL;
    struct model_tokenizer *t = calloc(1, sizeof *t);
    if (!t)
        return status_fail(why, STATUS_MEMORY, "cannot allocate a tokenizer");
    enum status status = model_vocab_init(&t->vocab, file, as_llama_cpp, why);
    if (!status)
        status = open_declared(t, pre, as_llama_cpp, why);
    if (!status)
        status = t->vocab.kind == MODEL_VOCAB_BPE ? open_bpe(t, pre, as_llama_cpp, why)
                                                  : open_spm(t, pre, why);
    if (!status)
        status = check_ends(t, file, why);
    if (!status)
        status = model_special_init(&t->always, &t->vocab, false, why);
    if (!status)
        status = model_special_init(&t->on_request, &t->vocab, true, why);
    if (status) {
        model_tokenizer_close(t);
        return status;
    }
    *out = t;
    return STATUS_OK;
}

void model_tokenizer_close(struct model_tokenizer *t)
{
    if (!t)
        return;
    model_declared_free(&t->declared);
    model_special_free(&t->on_request);
    model_special_free(&t->always);
    model_bpe_free(&t->bpe);
    model_spm_free(&t->spm);
    model_vocab_free(&t->vocab);
    free(t);
}

enum status model_tokenizer_chat_template(const struct model_tokenizer *t, struct base_string *text,
                                          struct status_why *why)
{
    bool found;
    *text = (struct base_string){NULL, 0};
    return gguf_get_string(t->vocab.file, "tokenizer.chat_template", text, &found, why);
}

/** State of one call, between the stretches of its text. */
struct call {
    const struct model_tokenizer *t;
    struct model_tok_run run;
    bool after_special; /* also true at the beginning of the text */
    bool eats_space;    /* so does the special token that came last */
};

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static enum status encode_characters(void *user, const char *piece, size_t n_bytes)
{
    struct call *call = user;
    return model_spm_encode(&call->t->spm, &call->run, piece, n_bytes, false);
}

/** BPE of characters in the pieces of a pre-tokeniser. */
static enum status encode_lines(struct call *call, const char *text, size_t n_bytes)
{
    struct base_buffer repaired = {0};
    enum status status = model_tok_repair(&call->run, &repaired, &text, &n_bytes);
    if (!status)
        status = model_pretokenizer_split(&call->t->bpe.pre, &call->run, text, n_bytes,
                                          encode_characters, call);
    base_buffer_free(&repaired);
    return status;
}

static enum status encode_stretch(void *user, const char *raw, size_t n_bytes, int32_t token)
{
    struct call *call = user;
    const struct model_vocab *vocab = &call->t->vocab;
    enum status status = STATUS_OK;
    for (; call->eats_space && n_bytes > 0 && is_space(*raw); n_bytes--)
        raw++;
    if (n_bytes > 0 && vocab->kind == MODEL_VOCAB_BPE)
        status = model_bpe_encode(&call->t->bpe, &call->run, raw, n_bytes);
    else if (n_bytes > 0 && call->t->bpe.pre.row)
        status = encode_lines(call, raw, n_bytes);
    else if (n_bytes > 0)
        status = model_spm_encode(&call->t->spm, &call->run, raw, n_bytes,
                                  vocab->add_space_prefix && call->after_special);
    if (!status && token >= 0)
        status = model_tok_emit(&call->run, token);
    call->after_special = token >= 0;
    call->eats_space = token >= 0 && vocab->eats_space && vocab->eats_space[token];
    return status;
}

static enum status encode_piece(void *user, struct base_string piece)
{
    struct call *call = user;
    return call->t->vocab.kind == MODEL_VOCAB_BPE
               ? model_bpe_encode_piece(&call->t->bpe, &call->run, piece)
               : model_spm_encode(&call->t->spm, &call->run, piece.data, piece.n_bytes, false);
}

static enum status emit_token(void *user, int32_t token)
{
    struct call *call = user;
    return model_tok_emit(&call->run, token);
}

/** A text that is cut as tokenizer.json declares. */
static enum status encode_declared(struct call *call, const char *text, size_t n_bytes,
                                   bool parse_special)
{
    const struct model_declared_sink sink = {encode_piece, emit_token, call};
    struct base_buffer repaired = {0};
    enum status status = model_tok_repair(&call->run, &repaired, &text, &n_bytes);
    if (!status)
        status = model_declared_cut(&call->t->declared, (struct base_string){text, n_bytes},
                                    parse_special, &sink, call->run.why);
    base_buffer_free(&repaired);
    return status;
}

enum status model_tokenize(const struct model_tokenizer *t, const char *text, size_t n_bytes,
                           bool parse_special, struct model_tokens *out, struct status_why *why)
{
    if (n_bytes == 0)
        return STATUS_OK;
    size_t n_before = out->n, n_dropped = out->n_dropped;
    struct call call = {.t = t, .run = {.out = out, .why = why}, .after_special = true};
    enum status status = model_tok_cache_init(&call.run.cache, n_bytes, why);
    if (!status && t->declared.has_declared)
        status = encode_declared(&call, text, n_bytes, parse_special);
    else if (!status)
        status = model_special_split(parse_special ? &t->on_request : &t->always, text, n_bytes,
                                     encode_stretch, &call, why);
    model_tok_run_free(&call.run);
    if (status) {
        out->n = n_before;
        out->n_dropped = n_dropped;
    }
    return status;
}

size_t model_n_vocab(const struct model_tokenizer *t)
{
    return t->vocab.n;
}

const char *model_tokenizer_kind(const struct model_tokenizer *t)
{
    return t->vocab.kind == MODEL_VOCAB_SPM ? "spm" : "bpe";
}

const char *model_tokenizer_pre(const struct model_tokenizer *t)
{
    return t->declared.has_declared              ? "tokenizer.json"
           : t->bpe.pre.row                      ? t->bpe.pre.row->name
           : t->vocab.kind == MODEL_VOCAB_GEMMA4 ? "gemma4"
                                                 : "";
}

int32_t model_token_bos(const struct model_tokenizer *t)
{
    return t->vocab.bos;
}

int32_t model_token_eos(const struct model_tokenizer *t)
{
    return t->vocab.eos;
}

int32_t model_token_unknown(const struct model_tokenizer *t)
{
    return t->vocab.unknown;
}

bool model_adds_bos(const struct model_tokenizer *t)
{
    return t->vocab.add_bos;
}

bool model_adds_eos(const struct model_tokenizer *t)
{
    return t->vocab.add_eos;
}

enum status model_begin_text(const struct model_tokenizer *t, struct model_tokens *out,
                             struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < t->declared.n_front && !status; i++)
        status = model_tokens_add(out, t->declared.front[i], why);
    if (!t->declared.n_front && t->vocab.add_bos)
        status = model_tokens_add(out, t->vocab.bos, why);
    return status;
}

enum model_token_type model_token_type(const struct model_tokenizer *t, int32_t id)
{
    assert(id >= 0 && (size_t)id < t->vocab.n);
    return t->vocab.type[id];
}

struct base_string model_token_text(const struct model_tokenizer *t, int32_t id)
{
    assert(id >= 0 && (size_t)id < t->vocab.n);
    return t->vocab.text[id];
}

static size_t copy_bytes(struct base_string s, char *bytes, size_t capacity)
{
    size_t n = base_min(s.n_bytes, capacity);
    if (n > 0)
        memcpy(bytes, s.data, n);
    return s.n_bytes;
}

size_t model_token_bytes(const struct model_tokenizer *t, int32_t id, char *bytes, size_t capacity)
{
    struct base_string text = model_token_text(t, id);
    if (t->vocab.recognition[id] != MODEL_RECOGNISED_NEVER)
        return copy_bytes(text, bytes, capacity);
    if (t->vocab.kind == MODEL_VOCAB_BPE)
        return model_bpe_token_bytes(text, bytes, capacity);
    return model_spm_token_bytes(&t->spm, id, bytes, capacity);
}

static bool begins(const char *text, size_t n_left, struct base_string with)
{
    return with.n_bytes <= n_left && memcmp(text, with.data, with.n_bytes) == 0;
}

/** Bytes in front of a token that were left out, as the vocabulary has none for them. */
static size_t count_dropped(const struct model_tokenizer *t, int32_t id, const char *text,
                            size_t n_left)
{
    size_t n = 0;
    uint32_t c;
    while (t->vocab.kind == MODEL_VOCAB_BPE && n < n_left && t->bpe.byte_id[(uint8_t)text[n]] < 0 &&
           !begins(text + n, n_left - n, model_token_text(t, id)) &&
           (((uint8_t)text[n] & 0xC0) == 0x80 || base_utf8_decode(text + n, n_left - n, &c) > 0))
        n++;
    return n;
}

static size_t span_of(const struct model_tokenizer *t, int32_t id, const char *text, size_t n_left)
{
    const struct model_vocab *vocab = &t->vocab;
    struct base_string own = model_token_text(t, id);
    size_t n_declared =
        t->declared.has_declared ? model_declared_span(&t->declared, id, text, n_left) : 0;
    if (n_declared > 0)
        return n_declared;
    if (vocab->recognition[id] != MODEL_RECOGNISED_NEVER && begins(text, n_left, own)) {
        size_t n = own.n_bytes;
        while (vocab->eats_space && vocab->eats_space[id] && n < n_left && is_space(text[n]))
            n++;
        return n;
    }
    if (id == vocab->unknown && n_left > 0)
        return vocab->kind == MODEL_VOCAB_BPE ? 1 : base_min(base_utf8_announced(*text), n_left);
    if (vocab->kind == MODEL_VOCAB_BPE || vocab->recognition[id] != MODEL_RECOGNISED_NEVER)
        return model_token_bytes(t, id, NULL, 0);
    return model_spm_token_span(&t->spm, id, text, n_left);
}

size_t model_token_span(const struct model_tokenizer *t, int32_t id, const char *text,
                        size_t n_left)
{
    size_t n = count_dropped(t, id, text, n_left);
    return n + span_of(t, id, text + n, n_left - n);
}

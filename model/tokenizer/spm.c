#include "model/tokenizer/spm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buffer.h"
#include "base/text/utf8.h"

/* U+2581, which stands for a space inside the vocabulary. */
static const char meta_space[] = "\xE2\x96\x81";
enum { META_BYTES = 3 };

struct scored {
    double score;
    int32_t id;
};

static int by_falling_score(const void *a, const void *b)
{
    double x = ((const struct scored *)a)->score, y = ((const struct scored *)b)->score;
    return (x < y) - (x > y);
}

/** A score's place among all float32, from the highest on; equal scores have the same. */
static uint32_t place_of(float score)
{
    uint32_t bits;
    score += 0.0F; /* -0 is 0 */
    memcpy(&bits, &score, sizeof bits);
    return bits >> 31 ? bits : INT32_MAX - bits;
}

/** Ranks of scores that some write as integers or in double precision. */
static enum status sort_scores(struct model_spm *spm, const struct gguf_kv *scores,
                               struct status_why *why)
{
    struct scored *order = NULL;
    size_t n = spm->vocab->n;
    bool is_float = gguf_value_is_float(scores->element_type);
    if (base_array_new(order, n, "scores", why))
        return STATUS_MEMORY;
    for (size_t i = 0; i < n; i++)
        order[i] = (struct scored){
            is_float ? gguf_kv_float(scores, i) : (double)gguf_kv_int(scores, i), (int32_t)i};
    qsort(order, n, sizeof *order, by_falling_score);
    uint32_t rank = 0;
    for (size_t i = 0; i < n; i++) {
        rank += i > 0 && order[i].score < order[i - 1].score;
        spm->rank[order[i].id] = rank;
    }
    free(order);
    return STATUS_OK;
}

static enum status read_scores(struct model_spm *spm, struct status_why *why)
{
    static const char key[] = "tokenizer.ggml.scores";
    const struct gguf_file *file = spm->vocab->file;
    size_t n = spm->vocab->n;
    const struct gguf_kv *kv;
    enum status status = model_vocab_array(&kv, file, key, true, n, why);
    if (status)
        return status;
    bool is_float = gguf_value_is_float(kv->element_type);
    if (!is_float && !gguf_value_is_int(kv->element_type))
        return status_fail(why, STATUS_FORMAT, "%s: key %s is an array of %s; expected numbers",
                           gguf_path(file), key, gguf_value_type_name(kv->element_type));
    spm->rank = malloc(n * sizeof *spm->rank);
    if (!spm->rank)
        return status_fail(why, STATUS_MEMORY, "cannot allocate the scores of %zu tokens", n);
    for (size_t i = 0; i < n && is_float; i++) {
        double score = gguf_kv_float(kv, i);
        if (isnan(score))
            return status_fail(why, STATUS_FORMAT, "%s: key %s: entry %zu is not a number",
                               gguf_path(file), key, i);
        spm->rank[i] = place_of((float)score);
    }
    return kv->element_type == GGUF_VALUE_F32 ? STATUS_OK : sort_scores(spm, kv, why);
}

static void find_byte_tokens(struct model_spm *spm)
{
    for (int b = 0; b < 256; b++) {
        char name[8], byte = (char)b;
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)b);
        int32_t id = model_vocab_find(spm->vocab, name, 6);
        spm->byte_id[b] = id >= 0 ? id : model_vocab_find(spm->vocab, &byte, 1);
    }
}

/** The bytes of a character of n_bytes <= 4 as a number. The lead byte tells their count. */
static uint32_t pack(const char *p, size_t n_bytes)
{
    uint32_t packed = 0;
    memcpy(&packed, p, n_bytes);
    return packed;
}

static bool is_meta_space(const char *p, size_t n_bytes)
{
    return n_bytes == META_BYTES && memcmp(p, meta_space, META_BYTES) == 0;
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/**
 * Where text may be cut: before a U+2581, unless some token holds the character that precedes
 * it and the U+2581 side by side. A symbol is a run of whole characters, cut by their lead
 * bytes, and so is a token that it can become; a symbol across the cut would be such a token.
 * What is left and right of the cut therefore merges as if the other were not there.
 * Usually only U+2581 itself may stand before U+2581 in a token (runs of spaces).
 */
static enum status find_joins(struct model_spm *spm, struct status_why *why)
{
    size_t capacity = 0;
    for (size_t i = 0; i < spm->vocab->n; i++) {
        const struct base_string t = spm->vocab->text[i];
        size_t before = 0, before_bytes = 0;
        if (t.n_bytes < 2 || !memchr(t.data + 1, meta_space[0], t.n_bytes - 1))
            continue;
        for (size_t at = 0, n; at < t.n_bytes; before = at, before_bytes = n, at += n) {
            n = base_utf8_announced(t.data[at]);
            if (n > t.n_bytes - at)
                break;
            if (before_bytes == 0 || !is_meta_space(t.data + at, n))
                continue;
            if (before_bytes == 1 && !(t.data[before] & 0x80)) {
                spm->joins_ascii[(uint8_t)t.data[before]] = true;
                continue;
            }
            uint32_t packed = pack(t.data + before, before_bytes);
            if (spm->n_joins > 0 && spm->joins[spm->n_joins - 1] == packed)
                continue;
            if (base_array_reserve(spm->joins, capacity, spm->n_joins + 1, "words", why))
                return STATUS_MEMORY;
            spm->joins[spm->n_joins++] = packed;
        }
    }
    if (spm->n_joins == 0)
        return STATUS_OK;
    qsort(spm->joins, spm->n_joins, sizeof *spm->joins, by_value);
    size_t kept = 1;
    for (size_t i = 1; i < spm->n_joins; i++)
        if (spm->joins[i] != spm->joins[kept - 1])
            spm->joins[kept++] = spm->joins[i];
    spm->n_joins = kept;
    return STATUS_OK;
}

enum status model_spm_init(struct model_spm *spm, const struct model_vocab *vocab,
                           struct status_why *why)
{
    *spm = (struct model_spm){.vocab = vocab};
    find_byte_tokens(spm);
    enum status status = vocab->kind == MODEL_VOCAB_GEMMA4
                             ? model_merges_init(&spm->merges, vocab, why)
                             : read_scores(spm, why);
    return status ? status : find_joins(spm, why);
}

void model_spm_free(struct model_spm *spm)
{
    model_merges_free(&spm->merges);
    free(spm->rank);
    free(spm->joins);
    *spm = (struct model_spm){0};
}

/** The byte that a byte token stands for, or -1. */
static int byte_of(const struct model_spm *spm, int32_t id)
{
    for (int b = 0; b < 256 && spm->vocab->type[id] == MODEL_TOKEN_BYTE; b++)
        if (spm->byte_id[b] == id)
            return b;
    return -1;
}

size_t model_spm_token_bytes(const struct model_spm *spm, int32_t id, char *bytes, size_t capacity)
{
    const struct base_string t = spm->vocab->text[id];
    int byte = byte_of(spm, id);
    if (byte >= 0) {
        if (capacity > 0)
            bytes[0] = (char)byte;
        return 1;
    }
    size_t n_out = 0;
    for (size_t i = 0; i < t.n_bytes; n_out++) {
        bool space = t.n_bytes - i >= META_BYTES && is_meta_space(t.data + i, META_BYTES);
        char c = t.data[i];
        if (space)
            c = ' ';
        if (n_out < capacity)
            bytes[n_out] = c;
        i += space ? META_BYTES : 1;
    }
    return n_out;
}

/**
 * The character that one byte of the text became: a space, or a byte that is not well-formed
 * UTF-8 (of gemma4; elsewhere the vocabulary has the byte itself). NULL for any other byte.
 */
static const char *replaced_by(const char *text, size_t n_left)
{
    uint32_t cp;
    return n_left == 0                               ? NULL
           : *text == ' '                            ? meta_space
           : base_utf8_decode(text, n_left, &cp) > 0 ? NULL
                                                     : "\xEF\xBF\xBD";
}

/** Bytes of `text` that begins as the token goes on from `i`; SIZE_MAX if it does not. */
static size_t match(const struct base_string t, size_t i, const char *text, size_t n_left)
{
    size_t at = 0;
    while (i < t.n_bytes && at < n_left) {
        const char *other = replaced_by(text + at, n_left - at);
        if (other && t.n_bytes - i >= META_BYTES && !memcmp(t.data + i, other, META_BYTES))
            i += META_BYTES;
        else if (text[at] == t.data[i])
            i++; /* U+2581 byte by byte, too */
        else
            break;
        at++;
    }
    return i < t.n_bytes ? SIZE_MAX : at;
}

size_t model_spm_token_span(const struct model_spm *spm, int32_t id, const char *text,
                            size_t n_left)
{
    const struct base_string t = spm->vocab->text[id];
    int byte = byte_of(spm, id);
    if (byte >= 0 && n_left > 0 && (uint8_t)*text == byte)
        return 1;
    const char *other = replaced_by(text, n_left);
    if (byte >= 0) /* one of three that one byte became: the last of them has it */
        return other && byte == (uint8_t)other[META_BYTES - 1];
    size_t n = match(t, 0, text, n_left);
    if (n == SIZE_MAX && t.n_bytes >= META_BYTES && is_meta_space(t.data, META_BYTES))
        n = match(t, META_BYTES, text, n_left); /* a space that was put in front */
    return n == SIZE_MAX ? model_spm_token_bytes(spm, id, NULL, 0) : n;
}

static bool joins_meta_space(const struct model_spm *spm, const char *p, size_t n_bytes)
{
    if (n_bytes == 1 && !(*p & 0x80))
        return spm->joins_ascii[(uint8_t)*p];
    uint32_t packed = pack(p, n_bytes);
    return spm->n_joins > 0 &&
           bsearch(&packed, spm->joins, spm->n_joins, sizeof packed, by_value) != NULL;
}

struct spm_piece {
    const struct model_spm *spm;
    const char *text;
    const uint32_t *slots;
};

/** The token of the symbol of slots [begin, end), or -1. */
static int32_t find_symbol(const struct spm_piece *piece, uint32_t begin, uint32_t end)
{
    uint32_t from = piece->slots[begin];
    return model_vocab_find(piece->spm->vocab, piece->text + from, piece->slots[end] - from);
}

static uint32_t rank_by_score(const void *user, uint32_t left, uint32_t right, uint32_t end)
{
    const struct spm_piece *piece = user;
    (void)right;
    int32_t id = find_symbol(piece, left, end);
    return id < 0 ? MODEL_MERGE_NONE : piece->spm->rank[id];
}

static uint32_t rank_by_merges(const void *user, uint32_t left, uint32_t right, uint32_t end)
{
    const struct spm_piece *piece = user;
    return model_merges_rank(&piece->spm->merges, find_symbol(piece, left, right),
                             find_symbol(piece, right, end));
}

/** A symbol that is no token: its bytes; one unknown token where a byte has none. */
static enum status emit_bytes(const struct model_spm *spm, struct model_tok_run *run,
                              const char *bytes, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        if (spm->byte_id[(uint8_t)bytes[i]] >= 0)
            continue;
        if (spm->vocab->unknown >= 0)
            return model_tok_emit(run, spm->vocab->unknown);
        return model_vocab_fail_byte(spm->vocab, (uint8_t)bytes[i], run->why);
    }
    for (size_t i = 0; i < n_bytes; i++) {
        enum status status = model_tok_emit(run, spm->byte_id[(uint8_t)bytes[i]]);
        if (status)
            return status;
    }
    return STATUS_OK;
}

static enum status merge_piece(const struct model_spm *spm, struct model_tok_run *run,
                               size_t n_slots)
{
    struct spm_piece piece = {spm, run->text.data, run->slots};
    const struct model_merge_rules rules = {.rank = spm->rank ? rank_by_score : rank_by_merges,
                                            .user = &piece};
    enum status status = model_merge_run(&run->merge, n_slots, &rules, run->why);
    for (size_t i = 0; !status && i < n_slots; i = (size_t)run->merge.other[i] + 1) {
        uint32_t end = run->merge.other[i] + 1;
        int32_t id = find_symbol(&piece, (uint32_t)i, end);
        status = id >= 0 ? model_tok_emit(run, id)
                         : emit_bytes(spm, run, run->text.data + run->slots[i],
                                      run->slots[end] - run->slots[i]);
    }
    return status;
}

/** The first n_bytes of run->text, which are n_slots characters. */
static enum status encode_piece(const struct model_spm *spm, struct model_tok_run *run,
                                size_t n_bytes, size_t n_slots)
{
    if (n_bytes > MODEL_TOK_CACHE_BYTES)
        return merge_piece(spm, run, n_slots);
    int hit;
    struct model_tok_entry *e = model_tok_cache_find(&run->cache, run->text.data, n_bytes, &hit);
    if (hit)
        return model_tok_emit_all(run, e->ids, e->n_ids);
    size_t before = run->out->n;
    enum status status = merge_piece(spm, run, n_slots);
    if (!status)
        model_tok_cache_put(e, run->text.data, n_bytes, run->out->ids + before,
                            run->out->n - before);
    return status;
}

/** Raw text, read as if its spaces were U+2581. */
struct spm_source {
    const char *p, *end;
    bool verbatim;
};

/** Let run->text have n bytes, if the source has as many. */
static void fill(struct model_tok_run *run, struct spm_source *src, size_t n)
{
    struct base_buffer *text = &run->text;
    while (text->n < n && src->p < src->end) {
        char c = *src->p++;
        if (c == ' ' && !src->verbatim) {
            memcpy(text->data + text->n, meta_space, META_BYTES);
            text->n += META_BYTES;
        } else {
            text->data[text->n++] = c;
        }
    }
}

enum status model_spm_encode(const struct model_spm *spm, struct model_tok_run *run,
                             const char *text, size_t n_bytes, bool space_prefix)
{
    enum { SLACK = 8 }; /* a character, and the U+2581 that one of its bytes may become */
    enum status status = model_tok_reserve(run, &run->text, META_BYTES + SLACK);
    if (!status && spm->vocab->kind == MODEL_VOCAB_GEMMA4)
        status = model_tok_repair(run, &run->word, &text, &n_bytes);
    if (status)
        return status;
    struct spm_source src = {text, text + n_bytes, spm->verbatim};
    int32_t whole = spm->ignore_merges ? model_vocab_find(spm->vocab, text, n_bytes) : -1;
    if (whole >= 0)
        return model_tok_emit(run, whole);
    run->text.n = 0;
    if (space_prefix) {
        memcpy(run->text.data, meta_space, META_BYTES);
        run->text.n = META_BYTES;
    }
    size_t at = 0, n_slots = 0, last = 0; /* of the character, its slot, the one before */
    for (;;) {
        status = model_tok_reserve(run, &run->text, at + SLACK);
        if (!status)
            status = model_tok_reserve_slots(run, n_slots + 2);
        if (status)
            return status;
        fill(run, &src, at + 1);
        if (at == run->text.n)
            break;
        char *c = run->text.data + at;
        size_t n = base_utf8_announced(*c);
        if (n > 1) {
            fill(run, &src, at + n);
            n = n < run->text.n - at ? n : run->text.n - at; /* cut off by the end of the text */
        }
        if (n_slots > 0 && is_meta_space(c, n) &&
            !joins_meta_space(spm, run->text.data + last, at - last)) {
            run->slots[n_slots] = (uint32_t)at;
            status = encode_piece(spm, run, at, n_slots);
            if (status)
                return status;
            run->text.n -= at; /* what was read ahead begins the next piece */
            memmove(run->text.data, c, run->text.n);
            at = n_slots = 0;
        }
        if (at > UINT32_MAX - SLACK)
            return status_fail(run->why, STATUS_UNSUPPORTED,
                               "a stretch of 2^32 bytes without a place to cut; expected less");
        run->slots[n_slots++] = (uint32_t)at;
        last = at;
        at += n;
    }
    run->slots[n_slots] = (uint32_t)at;
    return n_slots > 0 ? encode_piece(spm, run, at, n_slots) : STATUS_OK;
}

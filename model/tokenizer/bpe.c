#include "model/tokenizer/bpe.h"

#include <string.h>

#include "base/text/utf8.h"

enum { STAND_IN_LIMIT = 0x100 + 68 }; /* 68 bytes have no printable character of their own */

/**
 * The byte that a code point stands for, or -1. As in GPT-2: a printable byte stands for itself;
 * the others are numbered from U+0100 on, in their order: 0 to 0x20, 0x7F to 0xA0, 0xAD.
 */
static int byte_of(uint32_t cp)
{
    if (cp < 0x100)
        return (cp >= 0x21 && cp <= 0x7E) || (cp >= 0xA1 && cp != 0xAD) ? (int)cp : -1;
    uint32_t n = cp - 0x100, n_low = 0x21, n_high = 0xA1 - 0x7F;
    return n < n_low                    ? (int)n
           : n < n_low + n_high         ? (int)(n - n_low + 0x7F)
           : n + 0x100 < STAND_IN_LIMIT ? 0xAD
                                        : -1;
}

size_t model_bpe_token_bytes(struct base_string token, char *bytes, size_t capacity)
{
    size_t n_out = 0;
    for (size_t i = 0, n; i < token.n_bytes; i += n) {
        uint32_t cp;
        n = base_utf8_decode(token.data + i, token.n_bytes - i, &cp);
        int known = n > 0 ? byte_of(cp) : -1;
        n = n > 0 ? n : 1;
        const char byte = (char)known;
        const char *from = known >= 0 ? &byte : token.data + i;
        for (size_t k = 0; k < (known >= 0 ? 1 : n); k++, n_out++)
            if (n_out < capacity)
                bytes[n_out] = from[k];
    }
    return n_out;
}

enum status model_bpe_init(struct model_bpe *bpe, const struct model_vocab *vocab,
                           struct base_string pre, bool as_llama_cpp, struct status_why *why)
{
    *bpe = (struct model_bpe){.vocab = vocab};
    for (uint32_t cp = 0; cp < STAND_IN_LIMIT; cp++)
        if (byte_of(cp) >= 0)
            bpe->stand_in[byte_of(cp)] = cp;
    for (int b = 0; b < 256; b++) {
        char utf8[4];
        bpe->byte_id[b] = model_vocab_find(vocab, utf8, base_utf8_encode(bpe->stand_in[b], utf8));
    }
    enum status status =
        pre.data ? model_pretokenizer_init(&bpe->pre, pre, as_llama_cpp, why) : STATUS_OK;
    if (status) {
        status_context(why, "%s", gguf_path(vocab->file));
        return status;
    }
    bpe->ignore_merges = bpe->pre.row && bpe->pre.row->flags & MODEL_PRE_WHOLE;
    return model_merges_init(&bpe->merges, vocab, why);
}

void model_bpe_free(struct model_bpe *bpe)
{
    model_pretokenizer_free(&bpe->pre);
    model_merges_free(&bpe->merges);
    *bpe = (struct model_bpe){0};
}

struct bpe_piece {
    const struct model_bpe *bpe;
    int32_t *ids; /* of the symbol that begins at each slot */
};

static uint32_t rank_of_pair(const void *user, uint32_t left, uint32_t right, uint32_t end)
{
    const struct bpe_piece *piece = user;
    (void)end;
    return model_merges_rank(&piece->bpe->merges, piece->ids[left], piece->ids[right]);
}

static void take_result(void *user, uint32_t left, uint32_t rank)
{
    const struct bpe_piece *piece = user;
    piece->ids[left] = (int32_t)piece->bpe->merges.result[rank];
}

static enum status emit_symbol(struct model_tok_run *run, int32_t id)
{
    if (id >= 0)
        return model_tok_emit(run, id);
    run->out->n_dropped++;
    return STATUS_OK;
}

/** The id of the piece where it is a token as a whole, else -1; *status: STATUS_MEMORY or OK. */
static int32_t whole_piece(const struct model_bpe *bpe, struct model_tok_run *run,
                           const char *piece, size_t n_bytes, enum status *status)
{
    *status = STATUS_OK;
    if (n_bytes > bpe->vocab->max_bytes) /* a stand-in is never shorter than its byte */
        return -1;
    *status = model_tok_reserve(run, &run->word, n_bytes * 4);
    if (*status)
        return -1;
    size_t n = 0;
    for (size_t i = 0; i < n_bytes; i++)
        n += base_utf8_encode(bpe->stand_in[(uint8_t)piece[i]], run->word.data + n);
    return model_vocab_find(bpe->vocab, run->word.data, n);
}

static enum status merge_piece(const struct model_bpe *bpe, struct model_tok_run *run,
                               const char *piece, size_t n_bytes)
{
    enum status status;
    if (bpe->ignore_merges) {
        int32_t id = whole_piece(bpe, run, piece, n_bytes, &status);
        if (status || id >= 0)
            return status ? status : model_tok_emit(run, id);
    }
    status = model_tok_reserve_slots(run, n_bytes);
    if (status)
        return status;
    struct bpe_piece state = {bpe, (int32_t *)run->slots};
    for (size_t i = 0; i < n_bytes; i++)
        state.ids[i] = bpe->byte_id[(uint8_t)piece[i]];
    const struct model_merge_rules rules = {rank_of_pair, take_result, &state};
    status = model_merge_run(&run->merge, n_bytes, &rules, run->why);
    for (size_t i = 0; !status && i < n_bytes; i = (size_t)run->merge.other[i] + 1)
        status = emit_symbol(run, state.ids[i]);
    return status;
}

struct bpe_call {
    const struct model_bpe *bpe;
    struct model_tok_run *run;
};

enum status model_bpe_encode_piece(const struct model_bpe *bpe, struct model_tok_run *run,
                                   struct base_string p)
{
    if (p.n_bytes > MODEL_TOK_CACHE_BYTES)
        return merge_piece(bpe, run, p.data, p.n_bytes);
    int hit;
    struct model_tok_entry *e = model_tok_cache_find(&run->cache, p.data, p.n_bytes, &hit);
    if (hit)
        return model_tok_emit_all(run, e->ids, e->n_ids);
    size_t before = run->out->n, n_dropped = run->out->n_dropped;
    enum status status = merge_piece(bpe, run, p.data, p.n_bytes);
    if (!status && n_dropped == run->out->n_dropped) /* else they are to be counted again */
        model_tok_cache_put(e, p.data, p.n_bytes, run->out->ids + before, run->out->n - before);
    return status;
}

static enum status encode_piece(void *user, const char *piece, size_t n_bytes)
{
    const struct bpe_call *call = user;
    return model_bpe_encode_piece(call->bpe, call->run, (struct base_string){piece, n_bytes});
}

enum status model_bpe_encode(const struct model_bpe *bpe, struct model_tok_run *run,
                             const char *text, size_t n_bytes)
{
    struct bpe_call call = {bpe, run};
    enum status status = model_tok_repair(run, &run->text, &text, &n_bytes);
    return status ? status
                  : model_pretokenizer_split(&bpe->pre, run, text, n_bytes, encode_piece, &call);
}

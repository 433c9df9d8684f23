#include "model/tokenizer/compare/compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/text/escape.h"
#include "base/text/quote.h"
#include "base/text/utf8.h"
#include "model/tokenizer/state.h"

/** A comparison under way. */
struct comparing {
    struct model_difference *out;
    const struct model_tokenizer *t[2];
    struct status_why *why;
};

bool model_difference_is_none(const struct model_difference *d)
{
    return !*d->key && !*d->text;
}

/* Texts. */

enum { SHOWN_IDS = 8, SHOWN_BYTES = 40 };

void model_difference_ids(char out[MODEL_DIFFERENCE_BYTES], const struct model_tokens *tokens,
                          size_t from)
{
    size_t used = 0;
    *out = 0;
    for (size_t i = from; i < tokens->n && i < from + SHOWN_IDS; i++)
        used += (size_t)snprintf(out + used, MODEL_DIFFERENCE_BYTES - used, "%s%d", used ? " " : "",
                                 tokens->ids[i]);
    snprintf(out + used, MODEL_DIFFERENCE_BYTES - used, "%s",
             from >= tokens->n              ? "nothing"
             : tokens->n > from + SHOWN_IDS ? " ..."
                                            : "");
}

void model_difference_show(char out[MODEL_DIFFERENCE_BYTES], struct base_string text)
{
    size_t end = base_min(text.n_bytes, SHOWN_BYTES), used;
    while (end < text.n_bytes && end > 0 && ((uint8_t)text.data[end] & 0xC0) == 0x80)
        end--;
    used = base_escape(out, MODEL_DIFFERENCE_BYTES - 4, text.data, end);
    snprintf(out + base_min(used, MODEL_DIFFERENCE_BYTES - 4), 4, "%s",
             end < text.n_bytes ? "..." : "");
}

/** Show a text from the place on where its ids part. */
static void show_text(struct comparing *c, struct base_string text,
                      const struct model_tokens tokens[2])
{
    size_t n = model_tokens_common(&tokens[0], &tokens[1]), at = 0;
    for (size_t i = 0; i < n; i++)
        at +=
            base_min(model_token_span(c->t[0], tokens[0].ids[i], text.data + at, text.n_bytes - at),
                     text.n_bytes - at);
    model_difference_show(c->out->text, (struct base_string){text.data + at, text.n_bytes - at});
    for (int i = 0; i < 2; i++)
        model_difference_ids(c->out->ids[i], &tokens[i], n);
}

/** Make ids of a text by both; of the first that differs keep what is shown. */
static enum status try_text(struct comparing *c, struct base_string text)
{
    struct model_tokens tokens[2] = {{0}, {0}};
    enum status status = STATUS_OK;
    for (int i = 0; i < 2 && !status; i++)
        status = model_tokenize(c->t[i], text.data, text.n_bytes, false, &tokens[i], c->why);
    size_t n = model_tokens_common(&tokens[0], &tokens[1]);
    if (!status && (n < tokens[0].n || n < tokens[1].n))
        show_text(c, text, tokens);
    free(tokens[0].ids);
    free(tokens[1].ids);
    return status;
}

static bool takes_whole(const struct model_tokenizer *t)
{
    return t->vocab.kind == MODEL_VOCAB_BPE ? t->bpe.ignore_merges : t->spm.ignore_merges;
}

/** Tokens that both have. */
static size_t n_common(const struct comparing *c)
{
    return base_min(c->t[0]->vocab.n, c->t[1]->vocab.n);
}

/** The texts of common tokens: where one takes whole pieces, which the other may not merge to. */
static enum status try_tokens(struct comparing *c)
{
    const struct model_vocab *v = &c->t[0]->vocab;
    struct base_buffer bytes = {0};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < n_common(c) && !status && !*c->out->text; i++) {
        size_t n = model_token_bytes(c->t[0], (int32_t)i, NULL, 0);
        if (v->recognition[i] != MODEL_RECOGNISED_NEVER || n == 0)
            continue;
        status = base_array_reserve(bytes.data, bytes.capacity, n, "bytes of a token", c->why);
        if (status)
            break;
        (void)model_token_bytes(c->t[0], (int32_t)i, bytes.data, n);
        if (base_utf8_first_bad(bytes.data, n) == n)
            status = try_text(c, (struct base_string){bytes.data, n});
    }
    base_buffer_free(&bytes);
    return status;
}

static enum status compare_texts(struct comparing *c)
{
    struct base_string text;
    enum status status = STATUS_OK;
    for (size_t i = 0; !status && !*c->out->text && (text = model_probe(i)).data; i++)
        status = try_text(c, text);
    if (!status && !*c->out->text && takes_whole(c->t[0]) != takes_whole(c->t[1]))
        status = try_tokens(c);
    return status;
}

/* Keys. */

static void set_key(struct comparing *c, const char *key, int32_t entry, size_t n_more)
{
    char *out = c->out->key;
    int n = snprintf(out, MODEL_DIFFERENCE_BYTES, "tokenizer.ggml.%s", key);
    if (entry >= 0)
        n += snprintf(out + n, MODEL_DIFFERENCE_BYTES - (size_t)n, "[%d]", entry);
    if (n_more > 0)
        snprintf(out + n, MODEL_DIFFERENCE_BYTES - (size_t)n, " and %zu more", n_more);
}

static bool is_filler(const struct model_vocab *v, size_t id)
{
    char name[32];
    int n = snprintf(name, sizeof name, "[PAD%zu]", id);
    return v->text[id].n_bytes == (size_t)n && memcmp(v->text[id].data, name, (size_t)n) == 0;
}

bool model_token_is_filler(const struct model_tokenizer *t, int32_t id)
{
    return is_filler(&t->vocab, (size_t)id);
}

static void write_type(char out[MODEL_DIFFERENCE_BYTES], const struct model_vocab *v, size_t id)
{
    static const char *const names[] = {"",       "normal", "unknown", "control", "user-defined",
                                        "unused", "byte"};
    struct base_quoted text;
    snprintf(out, MODEL_DIFFERENCE_BYTES, "%d, %s: %s", v->type[id], names[v->type[id]],
             base_quote(&text, v->text[id]));
}

static void compare_types(struct comparing *c)
{
    const struct model_vocab *a = &c->t[0]->vocab, *b = &c->t[1]->vocab;
    size_t n = 0, first = 0;
    for (size_t i = n_common(c); i-- > 0;)
        if (a->recognition[i] != b->recognition[i] && !is_filler(a, i) && !is_filler(b, i)) {
            first = i;
            n++;
        }
    if (n == 0)
        return;
    set_key(c, "token_type", (int32_t)first, n - 1);
    write_type(c->out->values[0], a, first);
    write_type(c->out->values[1], b, first);
}

static const struct model_merges *merges_of(const struct model_tokenizer *t)
{
    return t->vocab.kind == MODEL_VOCAB_BPE ? &t->bpe.merges : &t->spm.merges;
}

static enum status compare_merges(struct comparing *c)
{
    bool differ;
    int32_t halves[2][2];
    struct base_quoted left, right;
    enum status status =
        model_merges_compare(merges_of(c->t[0]), merges_of(c->t[1]), &differ, halves, c->why);
    if (status || !differ)
        return status;
    for (int i = 0; i < 2; i++) {
        const struct model_vocab *v = &c->t[i]->vocab;
        if (halves[i][0] < 0)
            snprintf(c->out->values[i], MODEL_DIFFERENCE_BYTES, "absent");
        else
            snprintf(c->out->values[i], MODEL_DIFFERENCE_BYTES, "%.70s %.70s",
                     base_quote(&left, v->text[halves[i][0]]),
                     base_quote(&right, v->text[halves[i][1]]));
    }
    bool has = halves[0][0] >= 0;
    const struct model_merges *m = merges_of(c->t[!has]);
    set_key(c, "merges", (int32_t)model_merges_rank(m, halves[!has][0], halves[!has][1]), 0);
    return STATUS_OK;
}

/** Whether merging can make the token: its halves are tokens or single characters. */
static bool is_made(const struct model_vocab *v, size_t id)
{
    const struct base_string t = v->text[id];
    size_t last = 0, at = 0;
    for (; at < t.n_bytes; last = at, at += base_utf8_announced(t.data[at]))
        ;
    for (size_t i = 0; i < t.n_bytes;) {
        size_t n = base_utf8_announced(t.data[i]), next = i + n;
        bool left = i == 0 || model_vocab_find(v, t.data, next) >= 0;
        bool right = next == last || (next < t.n_bytes &&
                                      model_vocab_find(v, t.data + next, t.n_bytes - next) >= 0);
        if (left && right)
            return true;
        i = next;
    }
    return false;
}

/** A token's places in the orders of both. */
struct placed {
    uint32_t rank[2];
    int32_t id;
};

static int by_first_rank(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->rank[0] != y->rank[0])
        return x->rank[0] < y->rank[0] ? -1 : 1;
    return (x->rank[1] > y->rank[1]) - (x->rank[1] < y->rank[1]);
}

/** Scores count by the order that they give the tokens that merging makes. */
static enum status compare_scores(struct comparing *c)
{
    const struct model_vocab *v = &c->t[0]->vocab;
    const uint32_t *ranks[] = {c->t[0]->spm.rank, c->t[1]->spm.rank};
    struct placed *placed = NULL;
    size_t n = 0, at = 1, n_both = n_common(c);
    if (memcmp(ranks[0], ranks[1], n_both * sizeof *ranks[0]) == 0)
        return STATUS_OK;
    enum status status = base_array_new(placed, n_both, "scores", c->why);
    for (size_t i = 0; i < n_both && !status; i++)
        if (is_made(v, i))
            placed[n++] = (struct placed){{ranks[0][i], ranks[1][i]}, (int32_t)i};
    if (!status)
        qsort(placed, n, sizeof *placed, by_first_rank);
    while (at < n &&
           (placed[at].rank[0] > placed[at - 1].rank[0]) ==
               (placed[at].rank[1] > placed[at - 1].rank[1]) &&
           placed[at].rank[1] >= placed[at - 1].rank[1])
        at++;
    for (int i = 0; i < 2 && !status && at < n; i++) {
        uint32_t before = placed[at - 1].rank[i], after = placed[at].rank[i];
        struct base_quoted x, y;
        set_key(c, "scores", -1, 0);
        snprintf(c->out->values[i], MODEL_DIFFERENCE_BYTES, "%.60s %s %.60s",
                 base_quote(&x, v->text[placed[at - 1].id]),
                 before < after   ? "above"
                 : before > after ? "below"
                                  : "equal to",
                 base_quote(&y, v->text[placed[at].id]));
    }
    free(placed);
    return status;
}

static void write_pre(char out[MODEL_DIFFERENCE_BYTES], const struct model_tokenizer *t,
                      const char *names)
{
    snprintf(out, MODEL_DIFFERENCE_BYTES, "%s",
             !t->declared.has_declared ? model_tokenizer_pre(t)
             : *names                  ? names
                                       : "no known name, by tokenizer.json");
}

/** What else there is that a text may show, where the keys above are the same. */
static enum status compare_cutting(struct comparing *c)
{
    const struct model_tokenizer *a = c->t[0], *b = c->t[1];
    static const char *const words[] = {"false", "true"};
    char names[2][MODEL_DIFFERENCE_BYTES] = {"", ""};
    enum status status = STATUS_OK;
    if (a->vocab.kind == MODEL_VOCAB_BPE && b->vocab.kind == MODEL_VOCAB_BPE) {
        for (int i = 0; i < 2 && !status; i++)
            status = model_tokenizer_names(names[i], c->t[i], c->why);
        if (status || (strcmp(names[0], names[1]) == 0 && takes_whole(a) == takes_whole(b)))
            return status;
        set_key(c, "pre", -1, 0);
        write_pre(c->out->values[0], a, names[0]);
        write_pre(c->out->values[1], b, names[1]);
    } else if (a->vocab.add_space_prefix != b->vocab.add_space_prefix &&
               !a->declared.has_declared && !b->declared.has_declared) {
        set_key(c, "add_space_prefix", -1, 0);
        for (int i = 0; i < 2; i++)
            snprintf(c->out->values[i], MODEL_DIFFERENCE_BYTES, "%s",
                     words[c->t[i]->vocab.add_space_prefix]);
    }
    return status;
}

/** A published folder's BPE of characters may be SentencePiece in a file, as it was trained. */
static bool are_of_one_model(const struct model_tokenizer *a, const struct model_tokenizer *b)
{
    return a->vocab.kind == b->vocab.kind ||
           ((a->declared.has_declared || b->declared.has_declared) &&
            a->vocab.kind != MODEL_VOCAB_BPE && b->vocab.kind != MODEL_VOCAB_BPE);
}

static enum status compare_keys(struct comparing *c)
{
    const struct model_tokenizer *a = c->t[0], *b = c->t[1];
    enum status status = STATUS_OK;
    if (!are_of_one_model(a, b)) {
        set_key(c, "model", -1, 0);
        for (int i = 0; i < 2; i++)
            snprintf(c->out->values[i], MODEL_DIFFERENCE_BYTES, "%s",
                     model_vocab_kind_name(c->t[i]->vocab.kind));
        return STATUS_OK;
    }
    compare_types(c);
    if (!*c->out->key && a->vocab.kind == b->vocab.kind)
        status = a->vocab.kind == MODEL_VOCAB_SPM ? compare_scores(c) : compare_merges(c);
    if (!status && !*c->out->key && *c->out->text)
        status = compare_cutting(c);
    return status;
}

enum status model_tokenizer_compare(struct model_difference *out, const struct model_tokenizer *a,
                                    const struct model_tokenizer *b, struct status_why *why)
{
    struct comparing c = {out, {a, b}, why};
    *out = (struct model_difference){0};
    enum status status = compare_texts(&c);
    return status ? status : compare_keys(&c);
}

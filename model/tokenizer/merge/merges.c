#include "model/tokenizer/merge/merge.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/text/hash.h"
#include "base/text/quote.h"

struct model_merges_pair {
    int32_t left, right;
    uint32_t rank; /* MODEL_MERGE_NONE: free */
};

static size_t pair_slot(const struct model_merges *m, int32_t left, int32_t right)
{
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    return base_hash_mix(key ^ m->seed, UINT64_C(0x9e3779b97f4a7c15)) & m->mask;
}

/** The pair's place, or the free one where it would go. */
static struct model_merges_pair *find_pair(const struct model_merges *m, int32_t left,
                                           int32_t right)
{
    size_t s = pair_slot(m, left, right);
    while (m->pairs[s].rank != MODEL_MERGE_NONE &&
           (m->pairs[s].left != left || m->pairs[s].right != right))
        s = (s + 1) & m->mask;
    return &m->pairs[s];
}

/** Take in merge i, "left right". The same pair again changes nothing: the first rank counts. */
static enum status add_merge(struct model_merges *m, const struct model_vocab *vocab,
                             struct base_string merge, uint32_t i, char *joined,
                             struct status_why *why)
{
    struct base_quoted quoted;
    const char *space = merge.n_bytes > 1 ? memchr(merge.data + 1, ' ', merge.n_bytes - 1) : NULL;
    size_t n_left = space ? (size_t)(space - merge.data) : 0;
    if (!space || n_left + 1 == merge.n_bytes)
        return status_fail(why, STATUS_FORMAT,
                           "entry %u is %s; expected two tokens with a space between them", i,
                           base_quote(&quoted, merge));
    size_t n_right = merge.n_bytes - n_left - 1;
    memcpy(joined, merge.data, n_left);
    memcpy(joined + n_left, space + 1, n_right);
    int32_t left = model_vocab_find(vocab, merge.data, n_left);
    int32_t right = model_vocab_find(vocab, space + 1, n_right);
    int32_t result = model_vocab_find(vocab, joined, n_left + n_right);
    if (left < 0 || right < 0 || result < 0)
        return status_fail(why, STATUS_FORMAT,
                           "entry %u is %s: %s is not in tokenizer.ggml.tokens; expected both "
                           "halves and what they make",
                           i, base_quote(&quoted, merge),
                           left < 0    ? "its left half"
                           : right < 0 ? "its right half"
                                       : "what they make");
    m->result[i] = (uint32_t)result;
    struct model_merges_pair *pair = find_pair(m, left, right);
    if (pair->rank == MODEL_MERGE_NONE)
        *pair = (struct model_merges_pair){left, right, i};
    return STATUS_OK;
}

static enum status index_merges(struct model_merges *m, const struct model_vocab *vocab,
                                const struct base_string *merges, size_t n, struct status_why *why)
{
    size_t n_slots = 16, longest = 0;
    while (n_slots < n * 2)
        n_slots *= 2;
    for (size_t i = 0; i < n; i++)
        longest = base_max(longest, merges[i].n_bytes);
    m->mask = n_slots - 1;
    m->n = n;
    m->pairs = malloc(n_slots * sizeof *m->pairs);
    m->result = malloc((n > 0 ? n : 1) * sizeof *m->result);
    char *joined = malloc(longest + 1);
    enum status status = STATUS_OK;
    if (!m->pairs || !m->result || !joined)
        status = status_fail(why, STATUS_MEMORY, "cannot allocate an index of %zu merges", n);
    for (size_t i = 0; !status && i < n_slots; i++)
        m->pairs[i].rank = MODEL_MERGE_NONE;
    for (size_t i = 0; !status && i < n; i++)
        status = add_merge(m, vocab, merges[i], (uint32_t)i, joined, why);
    free(joined);
    return status;
}

enum status model_merges_init(struct model_merges *m, const struct model_vocab *vocab,
                              struct status_why *why)
{
    *m = (struct model_merges){.seed = vocab->index.seed};
    static const char key[] = "tokenizer.ggml.merges";
    const struct gguf_kv *kv;
    enum status status = model_vocab_array(&kv, vocab->file, key, true, 0, why);
    if (status)
        return status;
    if (kv->element_type != GGUF_VALUE_STRING || kv->count > INT32_MAX)
        return status_fail(why, STATUS_FORMAT,
                           "%s: key %s is an array of %" PRIu64 " entries of type %s; expected at "
                           "most 2147483647 strings",
                           gguf_path(vocab->file), key, kv->count,
                           gguf_value_type_name(kv->element_type));
    struct base_string *merges;
    status = gguf_kv_strings(kv, &merges, why);
    if (status)
        return status;
    status = index_merges(m, vocab, merges, (size_t)kv->count, why);
    if (status == STATUS_FORMAT)
        status_context(why, "%s: key %s", gguf_path(vocab->file), key);
    free(merges);
    return status;
}

void model_merges_free(struct model_merges *m)
{
    free(m->pairs);
    free(m->result);
    *m = (struct model_merges){0};
}

uint32_t model_merges_rank(const struct model_merges *m, int32_t left, int32_t right)
{
    return find_pair(m, left, right)->rank;
}

/** The pairs by their rank; where an equal one came before, left is -1. */
static enum status list_pairs(struct model_merges_pair **out, const struct model_merges *m,
                              struct status_why *why)
{
    enum status status = base_array_new(*out, m->n, "merges", why);
    for (size_t i = 0; i < m->n && !status; i++)
        (*out)[i].left = -1;
    for (size_t s = 0; s <= m->mask && !status; s++)
        if (m->pairs[s].rank != MODEL_MERGE_NONE)
            (*out)[m->pairs[s].rank] = m->pairs[s];
    return status;
}

enum status model_merges_compare(const struct model_merges *a, const struct model_merges *b,
                                 bool *differ, int32_t halves[2][2], struct status_why *why)
{
    struct model_merges_pair *p = NULL, *q = NULL, end = {-1, -1, 0};
    enum status status = list_pairs(&p, a, why);
    if (!status)
        status = list_pairs(&q, b, why);
    *differ = false;
    for (size_t i = 0, k = 0; !status && !*differ; i++, k++) {
        while (i < a->n && p[i].left < 0)
            i++;
        while (k < b->n && q[k].left < 0)
            k++;
        const struct model_merges_pair *x = i < a->n ? &p[i] : &end, *y = k < b->n ? &q[k] : &end;
        if (x == &end && y == &end)
            break;
        *differ = x->left != y->left || x->right != y->right;
        halves[0][0] = x->left;
        halves[0][1] = x->right;
        halves[1][0] = y->left;
        halves[1][1] = y->right;
    }
    free(p);
    free(q);
    return status;
}

#include "model/tokenizer/special.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/** A prefix of some token. Node 0 is the root: the empty prefix, and also "none". */
struct model_special_node {
    uint32_t child, sibling; /* first longer prefix; next one with the same parent */
    uint32_t fail;           /* the longest proper suffix that is a prefix too */
    uint32_t ends;           /* this node or the nearest along `fail` that is a whole token */
    uint32_t depth;          /* bytes */
    int32_t token;           /* id, or -1 */
    uint8_t byte;            /* the last one */
};

static uint32_t find_child(const struct model_special *s, uint32_t node, uint8_t byte)
{
    if (node == 0)
        return s->root_child[byte];
    uint32_t c = s->nodes[node].child;
    while (c != 0 && s->nodes[c].byte != byte)
        c = s->nodes[c].sibling;
    return c;
}

static uint32_t step(const struct model_special *s, uint32_t node, uint8_t byte)
{
    uint32_t next;
    while ((next = find_child(s, node, byte)) == 0 && node != 0)
        node = s->nodes[node].fail;
    return next;
}

static void add_token(struct model_special *s, struct base_string text, int32_t id)
{
    uint32_t node = 0;
    for (size_t i = 0; i < text.n_bytes; i++) {
        uint8_t byte = (uint8_t)text.data[i];
        uint32_t next = find_child(s, node, byte);
        if (next == 0) {
            next = s->n_nodes++;
            s->nodes[next] = (struct model_special_node){.sibling = s->nodes[node].child,
                                                         .depth = s->nodes[node].depth + 1,
                                                         .token = -1,
                                                         .byte = byte};
            s->nodes[node].child = next;
            if (node == 0)
                s->root_child[byte] = next;
        }
        node = next;
    }
    if (s->nodes[node].token < 0)
        s->nodes[node].token = id;
}

/** Set `fail` and `ends` of all nodes, parents before children. queue: room for all nodes. */
static void link_nodes(struct model_special *s, uint32_t *queue)
{
    size_t head = 0, tail = 1;
    queue[0] = 0;
    while (head < tail) {
        uint32_t node = queue[head++];
        for (uint32_t c = s->nodes[node].child; c != 0; c = s->nodes[c].sibling) {
            struct model_special_node *child = &s->nodes[c];
            child->fail = node == 0 ? 0 : step(s, s->nodes[node].fail, child->byte);
            child->ends = child->token >= 0 ? c : s->nodes[child->fail].ends;
            queue[tail++] = c;
        }
    }
}

enum status model_special_build(struct model_special *s, const struct model_special_item *items,
                                size_t n, struct status_why *why)
{
    *s = (struct model_special){0};
    size_t n_bytes = 0;
    for (size_t i = 0; i < n; i++)
        n_bytes += items[i].text.n_bytes;
    if (n_bytes == 0)
        return STATUS_OK;
    if (n_bytes >= UINT32_MAX)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "special tokens of %zu bytes in all; expected less than 2^32", n_bytes);
    uint32_t *queue = malloc((n_bytes + 1) * sizeof *queue);
    s->nodes = malloc((n_bytes + 1) * sizeof *s->nodes);
    if (!queue || !s->nodes) {
        free(queue);
        return status_fail(why, STATUS_MEMORY, "cannot allocate %zu bytes of special tokens",
                           n_bytes);
    }
    s->nodes[0] = (struct model_special_node){.token = -1};
    s->n_nodes = 1;
    for (size_t i = 0; i < n; i++)
        if (items[i].text.n_bytes > 0)
            add_token(s, items[i].text, items[i].token);
    link_nodes(s, queue);
    free(queue);
    return STATUS_OK;
}

enum status model_special_init(struct model_special *s, const struct model_vocab *vocab,
                               bool on_request, struct status_why *why)
{
    *s = (struct model_special){0};
    enum model_recognition least =
        on_request ? MODEL_RECOGNISED_ON_REQUEST : MODEL_RECOGNISED_ALWAYS;
    struct model_special_item *items = NULL;
    size_t n = 0, capacity = 0;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < vocab->n && !status; i++) {
        if (vocab->recognition[i] < least)
            continue;
        status = base_array_reserve(items, capacity, n + 1, "special tokens", why);
        if (!status)
            items[n++] = (struct model_special_item){vocab->text[i], (int32_t)i};
    }
    if (!status)
        status = model_special_build(s, items, n, why);
    free(items);
    return status;
}

size_t model_special_longest(const struct model_special *s, const char *text, size_t n_bytes,
                             int32_t *token)
{
    size_t longest = 0;
    uint32_t node = 0;
    for (size_t i = 0; s->nodes && i < n_bytes; i++) {
        node = find_child(s, node, (uint8_t)text[i]);
        if (node == 0)
            break;
        if (s->nodes[node].token >= 0) {
            longest = i + 1;
            *token = s->nodes[node].token;
        }
    }
    return longest;
}

void model_special_free(struct model_special *s)
{
    free(s->nodes);
    *s = (struct model_special){0};
}

/** Tokens that end at a place; `node` is the longest of them that may still be chosen. */
struct ending {
    size_t end; /* offset in the text, past the last byte */
    uint32_t node;
};

struct chosen {
    size_t begin, end;
    int32_t token;
};

/** Overlapping matches that have not been settled yet. */
struct cluster {
    const struct model_special *special;
    size_t begin; /* no match of the cluster begins before this offset */
    struct ending *endings;
    size_t n_endings, endings_capacity;
    struct chosen *chosen;
    size_t n_chosen, chosen_capacity;
    uint8_t *taken; /* [bytes of the cluster] 1: inside a chosen token */
    size_t taken_capacity;
};

static int by_begin(const void *a, const void *b)
{
    size_t x = ((const struct chosen *)a)->begin, y = ((const struct chosen *)b)->begin;
    return (x > y) - (x < y);
}

static enum status add_ending(struct cluster *c, size_t end, uint32_t node, struct status_why *why)
{
    if (base_array_reserve(c->endings, c->endings_capacity, c->n_endings + 1,
                           "matches of special tokens", why))
        return STATUS_MEMORY;
    c->endings[c->n_endings++] = (struct ending){end, node};
    return STATUS_OK;
}

/**
 * One pass over the endings that are left, choosing the tokens of `depth` bytes, the longest
 * there are. A chosen token is never shorter than `depth`, so one that overlaps a candidate
 * covers its first byte or its last. Returns the length of the longest that remain, 0 if none.
 */
static uint32_t choose_longest(struct cluster *c, uint32_t depth)
{
    const struct model_special_node *nodes = c->special->nodes;
    uint32_t next_depth = 0;
    size_t n_kept = 0;
    for (size_t i = 0; i < c->n_endings; i++) {
        struct ending e = c->endings[i];
        if (c->taken[e.end - 1 - c->begin])
            continue;
        if (nodes[e.node].depth == depth) {
            size_t begin = e.end - depth;
            if (!c->taken[begin - c->begin]) {
                memset(c->taken + (begin - c->begin), 1, depth);
                c->chosen[c->n_chosen++] = (struct chosen){begin, e.end, nodes[e.node].token};
                continue;
            }
            e.node = nodes[nodes[e.node].fail].ends;
            if (e.node == 0)
                continue;
        }
        next_depth = nodes[e.node].depth > next_depth ? nodes[e.node].depth : next_depth;
        c->endings[n_kept++] = e;
    }
    c->n_endings = n_kept;
    return next_depth;
}

/** Settle the cluster: fill `chosen`, in the order of the text, and empty `endings`. */
static enum status settle(struct cluster *c, struct status_why *why)
{
    c->n_chosen = 0;
    if (c->n_endings == 0)
        return STATUS_OK;
    size_t n_bytes = c->endings[c->n_endings - 1].end - c->begin;
    if (base_array_reserve(c->taken, c->taken_capacity, n_bytes, "bytes", why) ||
        base_array_reserve(c->chosen, c->chosen_capacity, c->n_endings, "special tokens", why))
        return STATUS_MEMORY;
    memset(c->taken, 0, n_bytes);
    uint32_t depth = 0;
    for (size_t i = 0; i < c->n_endings; i++) {
        uint32_t d = c->special->nodes[c->endings[i].node].depth;
        depth = d > depth ? d : depth;
    }
    while (depth > 0)
        depth = choose_longest(c, depth);
    qsort(c->chosen, c->n_chosen, sizeof *c->chosen, by_begin);
    return STATUS_OK;
}

struct output {
    const char *text;
    size_t done; /* bytes handed out */
    model_special_fn *fn;
    void *user;
};

static enum status hand_out(struct output *out, struct cluster *c, struct status_why *why)
{
    enum status status = settle(c, why);
    for (size_t i = 0; !status && i < c->n_chosen; i++) {
        struct chosen m = c->chosen[i];
        status = out->fn(out->user, out->text + out->done, m.begin - out->done, m.token);
        out->done = m.end;
    }
    return status;
}

static enum status scan(struct output *out, struct cluster *c, size_t n_bytes,
                        struct status_why *why)
{
    const struct model_special *s = c->special;
    uint32_t state = 0;
    for (size_t i = 0; i < n_bytes; i++) {
        uint8_t byte = (uint8_t)out->text[i];
        if (state == 0 && s->root_child[byte] == 0)
            continue;
        state = step(s, state, byte);
        /* Whatever ends later begins at open or after it. */
        size_t end = i + 1, open = end - s->nodes[state].depth;
        if (c->n_endings > 0 && open >= c->endings[c->n_endings - 1].end) {
            enum status status = hand_out(out, c, why);
            if (status)
                return status;
        }
        uint32_t longest = s->nodes[state].ends;
        if (longest == 0)
            continue;
        if (c->n_endings == 0)
            c->begin = open;
        enum status status = add_ending(c, end, longest, why);
        if (status)
            return status;
    }
    return hand_out(out, c, why);
}

enum status model_special_split(const struct model_special *s, const char *text, size_t n_bytes,
                                model_special_fn *fn, void *user, struct status_why *why)
{
    struct output out = {.text = text, .fn = fn, .user = user};
    struct cluster cluster = {.special = s};
    enum status status = s->nodes ? scan(&out, &cluster, n_bytes, why) : STATUS_OK;
    if (!status)
        status = fn(user, text + out.done, n_bytes - out.done, -1);
    free(cluster.endings);
    free(cluster.chosen);
    free(cluster.taken);
    return status;
}

/* Blocks after the layers, which predict further tokens: how many, and whether they are such. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/quote.h"
#include "model/arch.h"

/** A block's tensors in the file. */
struct block {
    bool of_layer, of_nextn;
    const char *name; /* of one of them; a further one's where it has such */
};

/** Tensors of blocks; a name that is none of theirs is left aside. Returns how many there would be,
 * which may be more than n. */
static uint32_t read_blocks(const struct gguf_file *file, struct block *blocks, uint32_t n)
{
    uint32_t n_found = n;
    for (size_t i = 0; i < gguf_n_tensors(file); i++) {
        const char *name = gguf_tensor_at(file, i)->name;
        unsigned number;
        int n_read = 0;
        if (strncmp(name, "blk.", 4) != 0 || !isdigit((unsigned char)name[4]) ||
            sscanf(name + 4, "%9u.%n", &number, &n_read) != 1 || n_read == 0)
            continue;
        bool further = strncmp(name + 4 + n_read, "nextn.", 6) == 0;
        struct block *b = &blocks[number < n ? number : n];
        b->of_nextn |= further;
        b->of_layer |= !further;
        b->name = further || !b->name ? name : b->name;
        n_found = number < n_found ? n_found : number + 1;
    }
    return n_found;
}

/** The file's tensors must say the same as the two counts: a block that is not evaluated has such
 * tensors, or none, as it was left out; the layers before have none of them. */
static void check_blocks(const struct model_hparams *h, const struct model_reading *r)
{
    const char *prefix = r->keys.prefix;
    struct block *blocks = calloc(r->n_blocks + 1, sizeof *blocks);
    if (!blocks) {
        status_keep(r->keys.kept, STATUS_MEMORY, "no memory for %u blocks", r->n_blocks);
        return;
    }
    uint32_t n_found = read_blocks(r->keys.file, blocks, r->n_blocks);
    for (uint32_t i = 0; i < r->n_blocks; i++) {
        const struct block *b = &blocks[i];
        if (i >= h->n_layers && b->of_layer && !b->of_nextn)
            model_keys_fail(
                &r->keys, STATUS_FORMAT,
                "block %u has the tensors of a layer ('%s') and none of a block that predicts "
                "further tokens ('blk.%u.nextn.*'), but it is one by key '%s.nextn_predict_layers' "
                "(%u) and key '%s.block_count' (%u), expected other counts",
                i, b->name, i, prefix, h->n_nextn, prefix, r->n_blocks);
        if (i < h->n_layers && b->of_nextn && !r->options->allow_unknown)
            model_keys_fail(
                &r->keys, STATUS_FORMAT,
                "tensor '%s' is of a block that predicts further tokens, but block %u "
                "is a layer by key '%s.nextn_predict_layers' (%u) and key '%s.block_count' "
                "(%u), expected other counts",
                b->name, i, prefix, h->n_nextn, prefix, r->n_blocks);
    }
    if (n_found > r->n_blocks && !r->options->allow_unknown)
        model_key_fail(&r->keys, STATUS_FORMAT, "block_count",
                       "is %u, but there is a tensor '%s', expected a count of %u or more",
                       r->n_blocks, blocks[r->n_blocks].name, n_found);
    free(blocks);
}

/** Refuse a file without such a block, or with one that is not known. join: a tensor of it. */
static void need_nextn(const struct model_hparams *h, const struct model_reading *r,
                       const char *join)
{
    char known[512] = "";
    for (size_t i = 0; r->archs[i]; i++)
        if (r->archs[i]->nextn != MODEL_NEXTN_UNKNOWN)
            base_list_name(known, sizeof known, r->archs[i]->name);
    if (r->arch->nextn == MODEL_NEXTN_UNKNOWN)
        model_keys_fail(&r->keys, STATUS_UNSUPPORTED,
                        "architecture '%s' has no block that predicts further tokens, or "
                        "one of a form that is not known; it is known of %s",
                        r->arch->name, known);
    if (h->n_nextn == 0)
        model_key_fail(
            &r->keys, STATUS_FORMAT, "nextn_predict_layers",
            "is 0 or missing, expected a model with a block that predicts further tokens");
    if (!gguf_tensor_find(r->keys.file, join))
        model_keys_fail(&r->keys, STATUS_FORMAT,
                        "the block that predicts further tokens was left out of this file: "
                        "tensor '%s' is missing, and key '%s.nextn_predict_layers' is %u; "
                        "expected a file that was made with it",
                        join, r->keys.prefix, h->n_nextn);
}

/** Count the block that is bound, if it is there and of a known form. */
static void take_nextn(struct model_hparams *h, const struct model_reading *r)
{
    char join[64];
    snprintf(join, sizeof join, "blk.%u.nextn.eh_proj.weight", h->n_layers);
    if (r->options->nextn == MODEL_NEXTN_WANTED)
        need_nextn(h, r, join);
    h->n_bound = r->arch->nextn != MODEL_NEXTN_UNKNOWN && h->n_nextn > 0 &&
                 gguf_tensor_find(r->keys.file, join);
    h->nextn_stream = r->arch->nextn == MODEL_NEXTN_STREAM;
}

/**
 * Blocks at the end that predict the tokens after the next are not evaluated, but for the first of
 * them where the caller wants it: it counts as a layer while layers are read.
 */
void model_nextn_read(struct model_hparams *h, const struct model_reading *r)
{
    h->n_nextn = model_key_u32_or(&r->keys, "nextn_predict_layers",
                                  (struct model_range){0, r->n_blocks - 1}, 0);
    h->n_layers = r->n_blocks - h->n_nextn;
    check_blocks(h, r);
    if (r->options->nextn)
        take_nextn(h, r);
    if (r->keys.kept->status)
        return; /* there may be fewer such blocks than are wanted */
    uint32_t n_left = h->n_nextn - h->n_bound;
    if (n_left > 0)
        model_remark(r->remarks,
                     "the last %u block%s (%s.nextn_predict_layers) predict%s tokens "
                     "after the next and %s not evaluated",
                     n_left, status_plural(n_left), r->keys.prefix, n_left == 1 ? "s" : "",
                     n_left == 1 ? "is" : "are");
    h->n_layers += h->n_bound;
}

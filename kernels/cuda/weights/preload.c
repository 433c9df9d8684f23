/* What the first use of a weight would do: upload its panels, decode them, try its products. */
#include "kernels/cuda/integers/integers.h"
#include "kernels/cuda/walk.h"

/** Upload panels of panel_rows rows until one finds no room: the others are uploaded when used. */
static enum status upload_panels(struct kern_cuda *cuda, const struct kern_weight *weight,
                                 size_t panel_rows, struct status_why *why)
{
    bool stays = true;
    enum status status = STATUS_OK;
    for (size_t row = 0; !status && stays && row < weight->n_rows; row += panel_rows) {
        size_t index, n_rows = base_min(weight->n_rows - row, panel_rows);
        status = kern_cuda_cancelled(cuda);
        if (!status)
            status = kern_cuda_cache_find(cuda, weight, row, n_rows, &index, why);
        if (!status)
            status = kern_cuda_cache_settle(cuda, index, &stays, why);
        if (status)
            break;
        struct kern_cuda_panel *panel = &cuda->cache.panels[index];
        panel->preloaded = stays;
        panel->decoded_bytes = kern_cuda_weight_bytes(cuda, weight, n_rows);
    }
    return status;
}

enum status kern_cuda_preload(struct kern_backend *b, const struct kern_weight *weight,
                              struct status_why *why)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    struct kern_cuda_product shape = kern_cuda_linear_shape(cuda, weight);
    size_t panel_rows = shape.n_weights;
    enum status status = STATUS_OK;
    if (!kern_cuda_uses_integers(cuda, weight->type))
        status = kern_cuda_products_prepare(cuda, &shape, weight->n_rows, why);
    return status ? status : upload_panels(cuda, weight, panel_rows, why);
}

/**
 * Heads that are walked together are cut into the same tiles. These are the panels to upload. They
 * are the last ones: what room is left is for decoded panels.
 */
enum status kern_cuda_preload_heads(struct kern_backend *b, const struct kern_head *heads,
                                    size_t n_heads, struct status_why *why)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    struct kern_cuda_walk walk = kern_cuda_walk_of(cuda, KERN_CUDA_WALK_ROWS, heads, n_heads);
    enum status status = STATUS_OK;
    for (size_t h = 0; !status && h < n_heads; h++) {
        struct kern_cuda_walk_head walk_head = {.head = &heads[h]};
        if (!heads[h].matrix)
            continue;
        status = kern_cuda_walk_prepare(&walk, &walk_head, why);
        if (!status)
            status = upload_panels(cuda, heads[h].matrix, walk.tile_vocab, why);
    }
    return status ? status : kern_cuda_operands_keep(cuda, why);
}

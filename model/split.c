#include "model/split.h"

#include <stdlib.h>

#include "model/state.h"
#include "model/swap.h"

static double bytes_of(const struct kern_weight *weight)
{
    uint64_t row_bytes = weight->row_bytes; /* or less, where rows of others lie between them */
    if (weight->data)
        (void)gguf_row_bytes(gguf_type_info((uint32_t)weight->type), weight->n_cols, &row_bytes);
    return weight->data ? (double)weight->n_rows * (double)row_bytes +
                              (double)gguf_scales_bytes(&weight->scales, weight->n_rows)
                        : 0;
}

/** below[i] = bytes of the tensors of layers 0 .. i - 1, for i <= L. */
static void add_up(const struct model *m, double *below)
{
    size_t n_layers = m->hparams.n_layers;
    for (size_t i = 0; i <= n_layers; i++)
        below[i] = 0;
    for (size_t i = 0; i < gguf_n_tensors(m->file); i++) {
        struct model_in_force tensor = model_in_force(m, i);
        size_t block = model_block_of(m->tensors[i].source->name);
        if (block < n_layers && !tensor.unused)
            below[block + 1] += (double)(tensor.n_bytes + tensor.n_scale_bytes);
    }
    for (size_t i = 0; i < n_layers; i++)
        below[i + 1] += below[i];
}

/** What a range has beside its layers. The further inputs of layers are made of the embeddings. */
static double ends(const struct model *m, struct model_layer_range range)
{
    bool inputs = m->hparams.per_layer_width > 0, embeds = range.from == 0 || inputs;
    double sum = embeds ? bytes_of(&m->embedding) : 0;
    if (inputs)
        sum += bytes_of(&m->per_layer_embedding) + bytes_of(&m->per_layer_project);
    sum += range.from == 0 ? bytes_of(&m->stream_in.weight) : 0;
    if (range.to == m->hparams.n_layers)
        sum += bytes_of(&m->stream_out.weight) + bytes_of(&m->output_mixer.product.weight) +
               bytes_of(&m->output_mixer.up.weight);
    if (range.to == m->hparams.n_layers && !(embeds && m->head.weight.data == m->embedding.data))
        sum += bytes_of(&m->head.weight);
    return sum;
}

double model_split_bytes(const struct model *m, struct model_layer_range range)
{
    double *below = malloc((m->hparams.n_layers + 1) * sizeof *below), sum = ends(m, range);
    if (below) {
        add_up(m, below);
        sum += below[range.to] - below[range.from];
    }
    free(below);
    return sum;
}

/** Whether layers i and later are without the keys and choices of earlier ones. */
static bool can_cut(const struct model *m, size_t i)
{
    for (size_t l = i; l < m->hparams.n_layers; l++)
        if (model_layer_needs(&m->hparams.layers[l]) < i)
            return false;
    return true;
}

/** The best way to divide layers 0 .. to - 1: where its last share begins. */
struct best {
    double squares; /* of the shares' bytes, summed; negative: there is no way */
    size_t from;
};

/** best[to] for each number of layers in s + 1 shares, from `before`, that for s. */
static void add_share(const struct model *m, const double *below, const struct best *before,
                      struct best *best)
{
    for (size_t to = 0; to <= m->hparams.n_layers; to++) {
        best[to] = (struct best){.squares = -1};
        if (to > 0 && to < m->hparams.n_layers && !can_cut(m, to))
            continue;
        for (size_t from = 0; from < to; from++) {
            if (before ? before[from].squares < 0 : from > 0)
                continue;
            double share = below[to] - below[from] + ends(m, (struct model_layer_range){from, to});
            double squares = (before ? before[from].squares : 0) + share * share;
            if (best[to].squares < 0 || squares < best[to].squares)
                best[to] = (struct best){squares, from};
        }
    }
}

enum status model_split(const struct model *m, size_t n, size_t i, struct model_layer_range *out,
                        struct status_why *why)
{
    size_t n_layers = m->hparams.n_layers, row = n_layers + 1;
    *out = (struct model_layer_range){0, n_layers};
    if (n == 1)
        return STATUS_OK;
    size_t n_rows = n <= n_layers ? n : 1; /* more shares than layers: refused below */
    double *below = malloc(row * sizeof *below);
    struct best *best = calloc(n_rows * row, sizeof *best);
    enum status status = STATUS_OK;
    if (!below || !best)
        status = status_fail(why, STATUS_MEMORY, "no memory to divide %zu layers", n_layers);
    else
        add_up(m, below);
    for (size_t s = 0; s < n_rows && !status; s++)
        add_share(m, below, s ? best + (s - 1) * row : NULL, best + s * row);
    if (!status && (n > n_layers || best[n * row - 1].squares < 0))
        status = status_fail(
            why, STATUS_USAGE, "%s: its %zu layers cannot be divided among %zu processes%s",
            gguf_path(m->file), n_layers, n, n > n_layers ? "" : ": some use the keys of others");
    for (size_t s = n, to = n_layers; s-- > i && !status; to = out->from)
        *out = (struct model_layer_range){best[s * row + to].from, to};
    free(below);
    free(best);
    return status;
}

#include "kernels/cpu/gemm.h"

#include <assert.h>

enum {
    SLAB_K = 512,    /* columns per tile: a multiple of every block size */
    ROW_GRAIN = 8,   /* tiles have a multiple of this many rows */
    ROUNDS = 4,      /* tiles per thread, so that a thread that is late costs little */
    ENOUGH_ROWS = 48 /* with fewer rows per tile, reading x again and again would cost more */
};

static size_t div_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit;
}

static size_t round_up(size_t n, size_t unit)
{
    return div_up(n, unit) * unit;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

struct kern_gemm_plan kern_gemm_plan(const struct kern_cpu *cpu, const struct kern_weight *w,
                                     size_t rows)
{
    struct kern_gemm_plan plan;
    plan.n_k = smaller(w->n_cols, SLAB_K);
    /* One cache line more than a row: rows at a power of two would share a cache set. */
    plan.tile_stride = round_up(plan.n_k, 16) + 16;
    size_t n_threads = kern_pool_n_threads(cpu->pool);
    size_t most_rows = cpu->l2_bytes / 2 / sizeof(float) / plan.tile_stride;
    size_t rounds = ROUNDS;
    while (rounds > 1 && rows / (n_threads * rounds) < ENOUGH_ROWS)
        rounds--;
    /* Whole rounds, so that all threads have something to do in the last one too. */
    if (rounds * n_threads * most_rows < rows)
        rounds = div_up(rows, n_threads * most_rows);
    plan.n_rows = round_up(div_up(rows, n_threads * rounds), ROW_GRAIN);
    plan.tile_floats = plan.n_rows * plan.tile_stride;
    return plan;
}

size_t kern_panel_count(size_t n_tokens)
{
    return (n_tokens + KERN_PANEL - 1) / KERN_PANEL;
}

struct packing {
    const struct kern_cpu *cpu;
    const float *x;
    size_t n_tokens, n_k;
    float *out;
};

static void pack_one(void *context, size_t index, unsigned thread)
{
    (void)thread;
    const struct packing *p = context;
    uint64_t begun = kern_clock_now();
    size_t token = index * KERN_PANEL;
    p->cpu->table.panel_pack(p->x + token * p->n_k, p->n_k,
                             smaller(p->n_tokens - token, KERN_PANEL), p->n_k,
                             p->out + token * p->n_k);
    kern_clock_count(p->cpu->base.clock, KERN_PHASE_PACK, begun);
}

enum status kern_panels_pack(struct kern_cpu *cpu, const float *x, size_t n_tokens, size_t n_k,
                             float *out)
{
    struct packing p = {.cpu = cpu, .x = x, .n_tokens = n_tokens, .n_k = n_k, .out = out};
    return kern_cpu_run(cpu, kern_panel_count(n_tokens), pack_one, &p);
}

/** Decode columns [k, k + n_k) of the rows into the tile. */
static void decode_tile(const struct kern_gemm_rows *g, size_t k, size_t n_k)
{
    const struct kern_weight *w = g->weight;
    const struct gguf_type_info *info = gguf_type_info(w->type);
    kern_decode_fn *decode = g->cpu->table.decode[w->type];
    uint64_t begun = kern_clock_now();
    size_t offset = k / info->block_elems * info->block_bytes;
    for (size_t r = 0; r < g->n_rows; r++) {
        const unsigned char *row = (const unsigned char *)w->data + (g->row + r) * w->row_bytes;
        decode(row + offset, g->tile + r * g->plan->tile_stride, n_k);
    }
    kern_clock_count(g->cpu->base.clock, KERN_PHASE_DECODE, begun);
}

/** Columns [k, k + n_k), decoded in the tile, times all panels. */
static void multiply_slab(const struct kern_gemm_rows *g, size_t k, size_t n_k)
{
    size_t n_cols = g->weight->n_cols;
    for (size_t p = 0; p < g->n_panels && !kern_cpu_cancelled(g->cpu); p++) {
        const float *x = g->x + (p * n_cols + k) * KERN_PANEL;
        float *acc = g->acc + p * g->acc_stride;
        g->cpu->table.fma_tile(&(struct kern_fma_tile){
            .w = g->tile,
            .w_row = g->plan->tile_stride,
            .w_col = 1,
            .x = x,
            .acc = acc,
            .n_rows = g->n_rows,
            .n_k = n_k,
            .resume = k > 0,
            .next_x = p + 1 < g->n_panels ? x + n_cols * KERN_PANEL : NULL,
        });
        if (k + n_k == n_cols)
            g->done(g->context, p, g->row, g->n_rows, acc);
    }
}

void kern_gemm_run(const struct kern_gemm_rows *g)
{
    assert(g->n_rows <= g->plan->n_rows);
    for (size_t k = 0; k < g->weight->n_cols; k += g->plan->n_k) {
        size_t n_k = smaller(g->weight->n_cols - k, g->plan->n_k);
        decode_tile(g, k, n_k);
        multiply_slab(g, k, n_k);
    }
}

void kern_weight_decode_row(const struct kern_cpu *cpu, const struct kern_weight *w, size_t r,
                            float *y)
{
    cpu->table.decode[w->type]((const unsigned char *)w->data + r * w->row_bytes, y, w->n_cols);
}

#include "kernels/cpu/gemm/gemm.h"

#include <assert.h>
#include <string.h>

#include "base/arithmetic.h"
#include "kernels/quant/rows.h"

enum {
    ROW_GRAIN = 8,    /* tiles have a multiple of this many rows */
    ROUNDS = 4,       /* tiles per thread, so that a thread that is late costs little */
    ENOUGH_ROWS = 48, /* with fewer rows per tile, reading x again and again would cost more */
    ENOUGH_PANELS = 8 /* with fewer panels per tile, decoding would */
};

/** Rows per tile for a number of tasks, whole rounds of all threads. */
static size_t choose_rows(size_t rows, size_t n_threads, size_t most_rows)
{
    size_t rounds = ROUNDS;
    while (rounds > 1 && rows / (n_threads * rounds) < ENOUGH_ROWS)
        rounds--;
    if (rounds * n_threads * most_rows < rows)
        rounds = base_div_up(rows, n_threads * most_rows);
    return base_div_up(rows, n_threads * rounds);
}

struct kern_gemm_plan kern_gemm_plan(const struct kern_cpu *cpu, const struct kern_product *product,
                                     const struct kern_weight *w, size_t rows, size_t n_panels)
{
    struct kern_gemm_plan plan = {.product = product, .n_panels = n_panels};
    if (kern_product_is_integer(product))
        plan.format = kern_integers_find(w->type, kern_product_bits(product));
    plan.n_k = base_min(w->n_cols, product->slab_k);
    plan.row_floats = kern_product_row_floats(product, plan.n_k);
    size_t n_threads = base_pool_n_threads(cpu->pool);
    size_t most_rows = cpu->l2_bytes / 2 / sizeof(float) / plan.row_floats;
    size_t n_rows = choose_rows(rows, n_threads, most_rows);
    if (n_rows < ENOUGH_ROWS && n_panels >= 2 * ENOUGH_PANELS) {
        /* Many threads for few rows: share out the panels too. */
        n_rows = base_min(base_min(ENOUGH_ROWS, rows), most_rows);
        size_t n_ranges = base_div_up(ROUNDS * n_threads, base_div_up(rows, n_rows));
        n_ranges = base_min(n_ranges, n_panels / ENOUGH_PANELS);
        plan.n_panels = base_div_up(n_panels, n_ranges);
        n_rows = base_min(n_rows, base_div_up(rows * n_ranges, n_threads));
    }
    plan.n_rows = base_round_up(n_rows, base_max(ROW_GRAIN, product->row_grain));
    plan.tile_floats = plan.n_rows * plan.row_floats + kern_product_work_floats(product);
    return plan;
}

size_t kern_gemm_n_tasks(const struct kern_gemm_plan *plan, size_t rows, size_t n_panels)
{
    return base_div_up(rows, plan->n_rows) * base_div_up(n_panels, plan->n_panels);
}

size_t kern_panel_count(size_t n_tokens)
{
    return base_div_up(n_tokens, KERN_PANEL);
}

struct packing {
    const struct kern_cpu *cpu;
    const struct kern_product *product;
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
    kern_product_pack(p->product, &p->cpu->kernels,
                      (struct kern_panel_pack){
                          .x = p->x + token * p->n_k,
                          .x_stride = p->n_k,
                          .n_lanes = base_min(p->n_tokens - token, KERN_PANEL),
                          .n_k = p->n_k,
                          .out = p->out + index * kern_product_panel_floats(p->product, p->n_k),
                      });
    kern_clock_count(p->cpu->base.clock, KERN_PHASE_PACK, kern_clock_now() - begun);
}

enum status kern_panels_pack(struct kern_cpu *cpu, const struct kern_product *product,
                             const float *x, size_t n_tokens, size_t n_k, float *out)
{
    struct packing p = {
        .cpu = cpu, .product = product, .x = x, .n_tokens = n_tokens, .n_k = n_k, .out = out};
    return kern_cpu_run(cpu, kern_panel_count(n_tokens), pack_one, &p);
}

enum { MOST_BLOCKS = 512 / KERN_INT16_BLOCK }; /* of a slab */

/** The sums of squares of a slab's blocks: of a row, or the largest of some. */
struct squares {
    float of_block[MOST_BLOCKS];
};

/** The largest of a panel's tokens; x: its chunks of the slab. Their bits are compared, which have
 * the order of numbers that are not below 0: compilers make vectors of that. */
static struct squares squares_of_panel(const float *x, size_t n_blocks)
{
    const struct kern_int16_chunk *chunk = (const void *)x;
    struct squares most = {{0}};
    assert(n_blocks <= MOST_BLOCKS);
    for (size_t i = 0; i < n_blocks; i++, chunk += KERN_INT16_BLOCK / KERN_ROUNDED_COLUMNS) {
        int32_t bits[KERN_PANEL], largest = 0;
        memcpy(bits, chunk->squares, sizeof bits);
        for (size_t lane = 0; lane < KERN_PANEL; lane++)
            largest = bits[lane] > largest ? bits[lane] : largest;
        memcpy(&most.of_block[i], &largest, sizeof largest);
    }
    return most;
}

/** The largest of rows [row, row + n_rows) of the tile. */
static struct squares squares_of_rows(const struct kern_gemm_rows *g, size_t row, size_t n_rows,
                                      size_t n_blocks)
{
    struct squares most = {{0}};
    for (size_t r = row; r < row + n_rows; r++) {
        const float *of_row = g->tile + (r + 1) * g->plan->row_floats - n_blocks;
        for (size_t i = 0; i < n_blocks; i++)
            most.of_block[i] = of_row[i] > most.of_block[i] ? of_row[i] : most.of_block[i];
    }
    return most;
}

/** Whether a sum of products may be beyond 32 bits, by the squares of both factors. */
static bool may_overflow(const struct squares *w, const struct squares *x, size_t n_blocks)
{
    /* Squares and their product are rounded by less than 2^-17 of themselves. */
    const float nearly = 0x1.fffp61f;
    for (size_t i = 0; i < n_blocks; i++)
        if (w->of_block[i] * x->of_block[i] >= nearly)
            return true;
    return false;
}

/** Multiply a panel by rows of a long format, of which `most` are the squares. Rows whose sums may
 * be beyond 32 bits are multiplied apart from the others. */
static void multiply_long(const struct kern_gemm_rows *g, const struct kern_fma_tile *op,
                          const struct squares *most)
{
    size_t n_blocks = op->n_k / KERN_INT16_BLOCK;
    struct squares x = squares_of_panel(op->x, n_blocks);
    if (!may_overflow(most, &x, n_blocks)) {
        g->plan->product->multiply(op);
        return;
    }
    bool now = false, next = false;
    for (size_t row = 0, end = 0; end <= op->n_rows; end++, now = next) {
        if (end < op->n_rows) {
            struct squares one = squares_of_rows(g, end, 1, n_blocks);
            next = may_overflow(&one, &x, n_blocks);
        }
        if (end < op->n_rows && next == now)
            continue;
        struct kern_fma_tile part = *op;
        part.w += row * op->w_row;
        part.acc += row * KERN_PANEL;
        part.n_rows = end - row;
        part.exactly = now;
        g->plan->product->multiply(&part);
        row = end;
    }
}

/** Columns [k, k + n_k), decoded in the tile, times all panels of the task. */
static void multiply_slab(const struct kern_gemm_rows *g, size_t k, size_t n_k)
{
    const struct kern_cpu *cpu = g->cpu;
    const struct kern_product *product = g->plan->product;
    const struct kern_integers *format = g->plan->format;
    bool is_long = format && product->kind == KERN_PRODUCTS_INT16 && format->is_long;
    size_t n_cols = g->weight->n_cols, stride = kern_product_panel_floats(product, n_cols);
    const float *x = g->x + g->first_panel * stride + kern_product_panel_floats(product, k);
    float *acc = g->acc;
    struct squares most;
    if (is_long)
        most = squares_of_rows(g, 0, g->n_rows, n_k / KERN_INT16_BLOCK);
    for (size_t p = 0; p < g->n_panels && !kern_cpu_cancelled(cpu); p++) {
        size_t panel = g->first_panel + p;
        const struct kern_fma_tile op = {
            .w = g->tile,
            .w_row = g->plan->row_floats,
            .w_col = 1,
            .x = x,
            .acc = acc,
            .n_rows = g->n_rows,
            .n_k = n_k,
            .resume = k > 0,
            .narrow = g->n_tokens - panel * KERN_PANEL <= KERN_NARROW,
            .next_x = p + 1 < g->n_panels ? x + stride : NULL,
            .format = format,
        };
        if (is_long)
            multiply_long(g, &op, &most);
        else
            product->multiply(&op);
        if (k + n_k == n_cols)
            g->done(g->context, panel, g->row, g->n_rows, acc);
        x += stride;
        acc += g->acc_stride;
    }
}

void kern_gemm_task(struct kern_gemm_rows *g, size_t rows, size_t index)
{
    const struct kern_gemm_plan *plan = g->plan;
    size_t n_row_ranges = base_div_up(rows, plan->n_rows);
    g->row = index % n_row_ranges * plan->n_rows;
    g->n_rows = base_min(rows - g->row, plan->n_rows);
    g->first_panel = index / n_row_ranges * plan->n_panels;
    g->n_panels = base_min(kern_panel_count(g->n_tokens) - g->first_panel, plan->n_panels);
}

void kern_gemm_run(const struct kern_gemm_rows *g)
{
    assert(g->n_rows <= g->plan->n_rows);
    for (size_t k = 0; k < g->weight->n_cols; k += g->plan->n_k) {
        size_t n_k = base_min(g->weight->n_cols - k, g->plan->n_k);
        kern_gemm_decode(g, k, n_k);
        multiply_slab(g, k, n_k);
    }
}

void kern_weight_decode_row(const struct kern_cpu *cpu, const struct kern_weight *w, size_t r,
                            float *y)
{
    const struct kern_rows rows = {w->type, w->data, w->row_bytes, w->rows, w->scales, w->col_step};
    kern_rows_decode(&rows, cpu->kernels.decode[w->type], r, 0, w->n_cols, y);
}

void kern_weight_take_row(const struct kern_cpu *cpu, const struct kern_weight *w, size_t r,
                          float *y)
{
    kern_weight_decode_row(cpu, w, r, y);
    for (size_t i = 0; w->scale != 1.0f && i < w->n_cols; i++)
        y[i] *= w->scale;
}

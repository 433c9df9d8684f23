/* How rows fell on the experts of a mixture: a heat map of blocks by experts, and a table. */
#include <math.h>
#include <stdint.h>

#include "base/arithmetic.h"
#include "clients/documents/report/heatmap.h"
#include "clients/documents/report/html.h"
#include "clients/documents/report/report.h"

enum {
    CELL_H = 16,
    LEFT = 60,
    TOP = 30,
    MAP_WIDTH = 900,
    KEY_STEPS = 32,
    MOST_CELLS = 1 << 17,
    MOST_MAPS = 4096 /* of categories; no file has more */
};
static const double shades = 4; /* from an even share divided by 2^4 to one multiplied by it */

/** The most experts of a block, and the cells of all. Returns why there is no picture, or NULL. */
static const char *measure(struct base_field blocks, size_t *n_wide)
{
    struct base_field block = {0};
    size_t n_cells = 0, n;
    *n_wide = 0;
    while (base_field_next(blocks, &block)) {
        (void)doc_list(&n, block, "rows");
        *n_wide = n > *n_wide ? n : *n_wide;
        n_cells += n;
        if (n_cells > MOST_CELLS)
            return "it has more experts than a page can show";
    }
    return n_cells ? NULL : "it has no experts, or no counts of their rows";
}

enum { WHOLE = -1 };

/** Number `category` of a block's categories, or the block itself. False: it has no such one. */
static bool find_part(struct base_field *part, struct base_field block, int category)
{
    *part = block;
    if (category == WHOLE)
        return true;
    part->json = cJSON_GetArrayItem(base_field_find(block, "categories").json, category);
    return part->json;
}

/** A row of cells, with their figures where the pointer is on them. */
static void draw_block(struct base_file *file, struct base_field block, size_t place, double width)
{
    size_t n, y = TOP + place * CELL_H;
    double even = base_field_real_or_null(block, "even");
    struct base_field list = doc_list(&n, block, "rows"), item = {0};
    doc_html(file, "<text x=\"%d\" y=\"%zu\" text-anchor=\"end\">%.4g</text>\n", LEFT - 8,
             y + CELL_H - 5, base_field_real_or_null(block, "block"));
    while (base_field_next(list, &item)) {
        double rows = cJSON_IsNumber(item.json) ? item.json->valuedouble : (double)NAN;
        double ratio = rows / even;
        char fill[8];
        doc_heat_colour(0.5 + log2(ratio) / (2 * shades), fill);
        doc_html(file, "<rect x=\"%.2f\" y=\"%zu\" width=\"%.2f\" height=\"%d\" %s=\"%s\">",
                 LEFT + (double)item.index * width, y, 0.92 * width, CELL_H - 2,
                 rows > 0 ? "fill" : "class", rows > 0 ? fill : "n");
        doc_html(
            file,
            "<title>layer %.4g, expert %zu: %.17g rows, %.3g of an even share</title></rect>\n",
            base_field_real_or_null(block, "block"), item.index, rows, ratio);
    }
}

/** What the colours mean. */
static void draw_key(struct base_file *file, size_t y)
{
    for (int i = 0; i < KEY_STEPS; i++) {
        char fill[8];
        doc_heat_colour((double)i / (KEY_STEPS - 1), fill);
        doc_html(file, "<rect x=\"%d\" y=\"%zu\" width=\"8\" height=\"12\" fill=\"%s\"/>\n",
                 LEFT + 8 * i, y, fill);
    }
    doc_html(file,
             "<text x=\"%d\" y=\"%zu\">1/16</text><text x=\"%d\" y=\"%zu\" "
             "text-anchor=\"end\">16 even shares</text>\n",
             LEFT, y + 26, LEFT + 8 * KEY_STEPS, y + 26);
}

static void draw(struct base_file *file, struct base_field blocks, size_t n_blocks, size_t n_wide,
                 int category)
{
    double width = fmin(MAP_WIDTH / (double)n_wide, 26);
    size_t height = TOP + n_blocks * CELL_H + 50;
    struct base_field block = {0}, part;
    doc_html(file,
             "<svg class=\"chart heat\" role=\"img\" aria-label=\"Rows of each expert\" "
             "xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %zu\" width=\"%d\" "
             "height=\"%zu\">\n<text x=\"%d\" y=\"%d\">experts, from 0</text>\n",
             LEFT + MAP_WIDTH + 10, height, LEFT + MAP_WIDTH + 10, height, LEFT, TOP - 10);
    while (base_field_next(blocks, &block))
        if (find_part(&part, block, category))
            draw_block(file, part, block.index, width);
    draw_key(file, height - 40);
    doc_html(file, "</svg>\n");
}

static void put_table(struct base_file *file, struct base_field blocks)
{
    static const char *const heads[] = {"matrices",     "experts",  "fewest rows", "most rows",
                                        "without rows", "with few", "entropy",     "norm %",
                                        "so many",      NULL};
    static const char *const counts[] = {"least", "most", "n_none", "n_few"};
    struct doc_table t = {.file = file, .heads = heads};
    struct base_field block = {0};
    doc_table_begin(&t, "sortable", "Use of experts", 1);
    while (base_field_next(blocks, &block)) {
        size_t n;
        (void)doc_list(&n, block, "rows");
        doc_table_row(&t, "", base_field_text(block, "name"));
        doc_table_number(&t, (double)n, 0);
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            doc_table_number(&t, base_field_real_or_null(block, counts[i]), 0);
        doc_table_number(&t, base_field_real_or_null(block, "entropy"), 3);
        doc_table_number(&t, 100 * base_field_real_or_null(block, "entropy_norm"), 2);
        doc_table_number(&t, base_field_real_or_null(block, "effective"), 1);
        doc_table_row_end(&t);
    }
    doc_table_end(&t);
}

/** A map for each category of documents, as long as there is room for its cells. */
static void put_categories(struct doc_report *r, struct base_field blocks, size_t n_blocks,
                           size_t n_wide)
{
    struct base_field block = {0}, part;
    size_t n_maps = base_min(MOST_MAPS, MOST_CELLS / (n_blocks * n_wide));
    if (!base_field_next(blocks, &block))
        return;
    for (int i = 0; (size_t)i < n_maps && find_part(&part, block, i); i++) {
        const char *name = base_field_text(part, "category");
        doc_html(r->file,
                 "<figure><figcaption>The same of documents of the category "
                 "<bdi>%s</bdi>.</figcaption>",
                 *name ? name : "(none)");
        draw(r->file, blocks, n_blocks, n_wide, i);
        doc_html(r->file, "</figure>\n");
    }
}

static void put_matrix(struct doc_report *r, struct base_field root)
{
    size_t n_blocks, n_wide;
    struct base_field blocks = doc_list(&n_blocks, root, "experts");
    doc_html(r->file, "<h3><bdi>%s</bdi>: experts in <bdi>%s</bdi></h3>\n", root.reader->file,
             base_field_text(root, "file"));
    const char *missing = measure(blocks, &n_wide);
    if (missing) {
        doc_html(r->file, "<p class=\"missing\">No map of experts: %s.</p>\n", missing);
        return;
    }
    doc_html(r->file, "<figure>");
    draw(r->file, blocks, n_blocks, n_wide, WHOLE);
    doc_html(r->file,
             "<figcaption>A row is a layer, a column an expert. The colour is how many rows it has "
             "against an even share, on a logarithmic scale. Where the border is dashed, an expert "
             "has no rows at all.</figcaption></figure>\n"
             "<p>The entropy is of the shares of rows, in bits; norm is the same against that of "
             "an even use, and so many experts that are used alike have the same. An expert with "
             "few rows has less than 1 %% of an even share.</p>\n");
    put_table(r->file, blocks);
    put_categories(r, blocks, n_blocks, n_wide);
}

void doc_report_experts(struct doc_report *r)
{
    bool any = false;
    for (size_t i = 0; i < r->results->n; i++) {
        struct base_field root = doc_root(&r->results->documents[i]);
        if (!root.json || doc_of(root)->kind != DOC_IMATRIX)
            continue;
        put_matrix(r, root);
        any = true;
    }
    if (!any)
        doc_report_missing(r,
                           "No use of experts: none of the results is of assay info --json of an "
                           "importance matrix.");
}

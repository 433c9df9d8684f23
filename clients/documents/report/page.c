/* The page: page/page.html with a part at each mark, without the sections that have nothing. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "clients/documents/report/html.h"
#include "clients/documents/report/parts.h"
#include "clients/documents/report/report.h"

static void put_style(struct doc_report *r)
{
    base_file_write(r->file, doc_part_chart_css.data, doc_part_chart_css.n_bytes);
    base_file_write(r->file, doc_part_page_css.data, doc_part_page_css.n_bytes);
}

static void put_script(struct doc_report *r)
{
    base_file_write(r->file, doc_part_page_js.data, doc_part_page_js.n_bytes);
}

/* The page allows no script and no style but its own: 'sha256-...' of the bytes in the element. */
static void put_hash(struct doc_report *r, const struct base_string *first,
                     const struct base_string *second)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint8_t bytes[BASE_SHA256_BYTES + 1] = {0};
    char text[4 * (BASE_SHA256_BYTES / 3 + 1) + 1];
    struct base_digest *digest = base_digest_open();
    base_digest_add(digest, first->data, first->n_bytes);
    base_digest_add(digest, second->data, second->n_bytes);
    r->no_memory |= base_digest_close_bytes(digest, bytes, NULL);
    char *at = text;
    for (size_t i = 0; i < sizeof bytes; i += 3) {
        unsigned three = (unsigned)bytes[i] << 16 | (unsigned)bytes[i + 1] << 8 | bytes[i + 2];
        for (int shift = 18; shift >= 0; shift -= 6)
            *at++ = digits[three >> shift & 63];
    }
    at[-1] = '=';
    *at = '\0';
    doc_html(r->file, "sha256-%s", text);
}

static void put_style_hash(struct doc_report *r)
{
    put_hash(r, &doc_part_chart_css, &doc_part_page_css);
}

static void put_script_hash(struct doc_report *r)
{
    put_hash(r, &doc_part_page_js, &(struct base_string){"", 0});
}

static void put_links(struct doc_report *r);

/* What stands at a mark of the template. */
static const struct part {
    const char *mark;
    void (*put)(struct doc_report *report);
    const char *link; /* a section's, of the mark's name; it is left out where nothing is in it */
} parts[] = {
    {"style-hash", put_style_hash, NULL},
    {"script-hash", put_script_hash, NULL},
    {"style", put_style, NULL},
    {"title", doc_report_title, NULL},
    {"answer", doc_report_answer, NULL},
    {"notes", doc_report_notes, NULL},
    {"links", put_links, NULL},
    {"scoreboard", doc_report_board, "Scoreboard"},
    {"size", doc_report_sizes, "Size"},
    {"speed", doc_report_speeds, "Speed"},
    {"distributions", doc_report_spreads, "Distributions"},
    {"position", doc_report_positions, "Position"},
    {"confidence", doc_report_confidence, "Confidence"},
    {"categories", doc_report_categories, "Categories"},
    {"worst", doc_report_worst, "Worst tokens"},
    {"pairs", doc_report_pairs, "Paired tests"},
    {"tasks", doc_report_tasks, "Tasks"},
    {"sweeps", doc_report_sweeps, "Sweeps"},
    {"experts", doc_report_experts, "Experts"},
    {"missing", doc_report_put_missing, "Not here"}, /* after those that say what they lack */
    {"provenance", doc_report_provenance, "Provenance"},
    {"script", put_script, NULL},
};
enum { N_PARTS = sizeof parts / sizeof *parts };
static_assert((int)N_PARTS <= (int)DOC_MOST_PARTS, "a page has room for its parts");

static void put_links(struct doc_report *r)
{
    for (size_t i = 0; i < N_PARTS; i++)
        if (r->sections[i].n_bytes)
            doc_html(r->file, "<a href=\"#%s\">%s</a>\n", parts[i].mark, parts[i].link);
}

/* Sections are made first: whether one has a link depends on whether anything is in it. */
static void make_sections(struct doc_report *r)
{
    struct base_file *page = r->file;
    for (size_t i = 0; i < N_PARTS && !r->no_memory; i++) {
        if (!parts[i].link)
            continue;
        r->file = base_file_in_memory();
        if (r->file) {
            parts[i].put(r);
            r->sections[i].bytes = base_file_take(r->file, &r->sections[i].n_bytes);
        }
        r->no_memory |= !r->sections[i].bytes;
    }
    r->file = page;
}

/* The part whose mark {{name}} is at `at`. */
static size_t part_at(const char *at)
{
    size_t i = 0, n = strcspn(at + 2, "}");
    while (strlen(parts[i].mark) != n || memcmp(parts[i].mark, at + 2, n) != 0) {
        i++;
        assert(i < N_PARTS);
    }
    return i;
}

/*
 * Put what stands before a mark, and the part at it; of a section without anything in it neither.
 * Returns what follows.
 */
static const char *put_part(struct doc_report *r, const char *at, const char *mark)
{
    static const char section[] = "<section", end[] = "</section>\n";
    size_t i = part_at(mark), n = (size_t)(mark - at);
    const char *after = strstr(mark, "}}") + 2;
    bool left_out = parts[i].link && !r->sections[i].n_bytes;
    if (left_out) {
        n = (size_t)((const char *)memmem(at, n, section, strlen(section)) - at);
        after = strstr(mark, end) + strlen(end);
    }
    base_file_write(r->file, at, n);
    if (parts[i].link)
        base_file_write(r->file, r->sections[i].bytes, r->sections[i].n_bytes);
    else
        parts[i].put(r);
    return after;
}

static void put_page(struct doc_report *r)
{
    const char *at = doc_part_page_html.data, *end = at + doc_part_page_html.n_bytes;
    make_sections(r);
    while (at < end && !r->no_memory) {
        const char *mark = memmem(at, (size_t)(end - at), "{{", 2);
        if (!mark)
            base_file_write(r->file, at, (size_t)(end - at));
        at = mark ? put_part(r, at, mark) : end;
    }
    for (size_t i = 0; i < N_PARTS; i++)
        free(r->sections[i].bytes);
}

enum status doc_report_write(struct doc_report *r, struct status_why *why)
{
    doc_scoreboard_sort(&r->results->of_texts);
    doc_scoreboard_sort(&r->results->of_tasks);
    doc_runs_number(&r->results->of_texts, NULL);
    doc_runs_number(&r->results->of_tasks, &r->results->of_texts);
    r->unit = doc_unit_of(&r->results->of_texts, &r->results->of_tasks);
    put_page(r);
    if (r->no_memory)
        return status_fail(why, STATUS_MEMORY, "no memory for a report of %zu results",
                           r->results->n);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < r->results->n && !status; i++)
        status = doc_status(&r->results->documents[i], why);
    return status;
}

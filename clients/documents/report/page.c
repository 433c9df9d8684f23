/* The page: page/page.html with a part at each mark. */
#include <assert.h>
#include <string.h>

#include "base/digest.h"
#include "clients/documents/report/html.h"
#include "clients/documents/report/parts.h"
#include "clients/documents/report/report.h"

static void put_style(struct doc_report *r)
{
    base_file_write(r->file, doc_part_chart_css.bytes, doc_part_chart_css.n_bytes);
    base_file_write(r->file, doc_part_page_css.bytes, doc_part_page_css.n_bytes);
}

static void put_script(struct doc_report *r)
{
    base_file_write(r->file, doc_part_page_js.bytes, doc_part_page_js.n_bytes);
}

/* The page allows no script and no style but its own: 'sha256-...' of the bytes in the element. */
static void put_hash(struct doc_report *r, const struct doc_part *first,
                     const struct doc_part *second)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint8_t bytes[BASE_SHA256_BYTES + 1] = {0};
    char text[4 * (BASE_SHA256_BYTES / 3 + 1) + 1];
    struct base_digest *digest = base_digest_open();
    base_digest_add(digest, first->bytes, first->n_bytes);
    base_digest_add(digest, second->bytes, second->n_bytes);
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
    put_hash(r, &doc_part_page_js, &(struct doc_part){"", 0});
}

static const struct {
    const char *mark;
    void (*put)(struct doc_report *report);
} parts[] = {
    {"style-hash", put_style_hash},
    {"script-hash", put_script_hash},
    {"style", put_style},
    {"title", doc_report_title},
    {"summary", doc_report_summary},
    {"verdict", doc_report_verdict},
    {"board", doc_report_board},
    {"sizes", doc_report_sizes},
    {"spreads", doc_report_spreads},
    {"positions", doc_report_positions},
    {"confidence", doc_report_confidence},
    {"categories", doc_report_categories},
    {"worst", doc_report_worst},
    {"pairs", doc_report_pairs},
    {"tasks", doc_report_tasks},
    {"sweeps", doc_report_sweeps},
    {"experts", doc_report_experts},
    {"provenance", doc_report_provenance},
    {"script", put_script},
};

/* Put the part of the mark {{name}}; returns what follows it. */
static const char *put_part(struct doc_report *r, const char *at)
{
    size_t i = 0, n = strcspn(at + 2, "}");
    while (strlen(parts[i].mark) != n || memcmp(parts[i].mark, at + 2, n) != 0) {
        i++;
        assert(i < sizeof parts / sizeof *parts);
    }
    parts[i].put(r);
    return at + n + 4;
}

enum status doc_report_write(struct doc_report *r, struct status_why *why)
{
    const char *at = doc_part_page_html.bytes, *end = at + doc_part_page_html.n_bytes;
    doc_scoreboard_sort(&r->results->of_texts);
    doc_scoreboard_sort(&r->results->of_tasks);
    doc_runs_number(&r->results->of_texts, NULL);
    doc_runs_number(&r->results->of_tasks, &r->results->of_texts);
    r->unit = doc_unit_of(&r->results->of_texts, &r->results->of_tasks);
    while (at < end && !r->no_memory) {
        const char *mark = memmem(at, (size_t)(end - at), "{{", 2);
        base_file_write(r->file, at, (size_t)((mark ? mark : end) - at));
        at = mark ? put_part(r, mark) : end;
    }
    if (r->no_memory)
        return status_fail(why, STATUS_MEMORY, "no memory for a report of %zu results",
                           r->results->n);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < r->results->n && !status; i++)
        status = doc_status(&r->results->documents[i], why);
    return status;
}

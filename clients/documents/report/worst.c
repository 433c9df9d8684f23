/* The tokens of the largest divergence, with the text before them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/utf8.h"
#include "clients/documents/report/html.h"
#include "clients/documents/report/report.h"

enum { MOST_SHOWN = 100 };

static int digit_of(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Undo what the document escaped (base/text/escape.h), but for a NUL. Returns how many bytes. */
static size_t unescape(char *out, const char *text)
{
    static const char escapes[] = "n\nt\tr\r\\\\";
    size_t n = 0;
    while (*text) {
        int high = *text == '\\' && text[1] == 'x' ? digit_of(text[2]) : -1;
        int low = high >= 0 ? digit_of(text[3]) : -1;
        const char *escape = NULL;
        for (size_t i = 0; *text == '\\' && i + 1 < sizeof escapes; i += 2)
            escape = text[1] == escapes[i] ? escapes + i : escape;
        if (low >= 0 && (high || low)) {
            out[n++] = (char)(16 * high + low);
            text += 4;
        } else if (escape) {
            out[n++] = escape[1];
            text += 2;
        } else {
            out[n++] = *text++;
        }
    }
    return n;
}

static bool continues(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* The bytes of whole characters, the white space among them shown. A tail that is no character is
 * the beginning of one, which the next token ends. */
static void put_characters(struct base_file *file, const char *bytes, size_t n)
{
    bool blank = true;
    for (size_t i = 0; i < n; i++)
        blank &= bytes[i] == ' ';
    for (size_t i = 0; i < n;) {
        size_t length = base_utf8_decode(bytes + i, n - i, NULL);
        char text[8] = "";
        memcpy(text, bytes + i, length ? length : 1);
        if (!length && (unsigned char)bytes[i] >= 0xc0) {
            doc_html(file, "<span class=\"faint\">▯</span>");
            for (i++; i < n && continues(bytes[i]);)
                i++;
            continue;
        }
        doc_html(file, "%s",
                 *text == '\n'           ? "↵"
                 : *text == '\t'         ? "⇥"
                 : *text == ' ' && blank ? "␣"
                                         : text);
        i += length ? length : 1;
    }
}

/* The text before a token, and the token; a character that both have a part of is the token's. */
static void put_text(struct doc_report *r, struct base_field token)
{
    const char *before = base_field_text(token, "context"), *text = base_field_text(token, "token");
    char *bytes = malloc(strlen(before) + strlen(text) + 1);
    r->no_memory |= !bytes;
    if (!bytes)
        return;
    size_t begin = 0, split = unescape(bytes, before), n = split + unescape(bytes + split, text);
    while (begin < split && begin < 3 && continues(bytes[begin]))
        begin++; /* the end of a character that began further in front */
    if (split < n && continues(bytes[split])) {
        size_t lead = split;
        while (lead > begin && split - lead < 3 && continues(bytes[lead]))
            lead--;
        split = (unsigned char)bytes[lead] >= 0xc0 ? lead : split;
    }
    doc_html(r->file, "<span class=\"faint\">…</span>");
    put_characters(r->file, bytes + begin, split - begin);
    doc_html(r->file, "<mark>");
    put_characters(r->file, bytes + split, n - split);
    doc_html(r->file, "</mark>");
    free(bytes);
}

/* A probability, which may be tiny, in per cent. */
static void put_probability(struct doc_table *t, double log_p)
{
    doc_table_cell(t, "", 100 * exp(log_p));
    doc_html(t->file, "%.3g", 100 * exp(log_p));
    doc_table_cell_end(t);
}

static void put_token(struct doc_report *r, struct doc_table *t, struct base_field token)
{
    t->column = 1;
    doc_html(r->file, "<tr><th scope=\"row\" class=\"text\"><bdi>");
    put_text(r, token);
    doc_html(r->file, "</bdi></th>");
    doc_table_number(t, base_field_real_or_null(token, "kld"), 4);
    put_probability(t, base_field_real_or_null(token, "base_logprob"));
    put_probability(t, base_field_real_or_null(token, "logprob"));
    doc_table_number(t, (double)doc_count(token, "window"), 0);
    doc_table_number(t, (double)doc_count(token, "position"), 0);
    doc_table_row_end(t);
}

/* Returns whether the run has such tokens. */
static bool put_run(struct doc_report *r, const struct doc_scoreboard_run *run, bool open)
{
    static const char *const heads[] = {
        "text", "KLD", "p of the base, %", "p of the model, %", "window", "position", NULL};
    struct doc_table t = {.file = r->file, .heads = heads};
    if (!doc_run_diverges(run))
        return false;
    struct base_field list = base_field_list_or_none(run->from, "worst"), item = {0};
    size_t n = base_field_count(list);
    if (n == 0)
        return false;
    doc_html(r->file, "<details");
    if (open)
        doc_html(r->file, " open");
    doc_html(r->file, "><summary><bdi>%s</bdi> (<bdi>%s</bdi>)</summary>\n", run->label,
             run->quantisation);
    doc_table_begin(&t, "sortable tokens", "Tokens of the largest divergence", 1);
    while (base_field_next(list, &item) && item.index < MOST_SHOWN)
        put_token(r, &t, item);
    doc_table_end(&t);
    if (n > MOST_SHOWN)
        doc_html(r->file, "<p class=\"note\">%zu of %zu are shown.</p>\n", (size_t)MOST_SHOWN, n);
    doc_html(r->file, "</details>\n");
    return true;
}

void doc_report_worst(struct doc_report *r)
{
    const struct doc_scoreboard *board = &r->results->of_texts;
    bool any = false;
    for (size_t i = 0; i < board->n; i++)
        any |= put_run(r, &board->runs[i], !any);
    if (!any)
        doc_report_missing(
            r, "No tokens: none of the results is of assay kld with --worst N, which adds them.");
}

/*
 * assay report of any text: a page of the program's own tags, which nest, or a sentence. What a
 * document says may be text in the page, and nothing else.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clients/documents/card/card.h"
#include "clients/documents/report/report.h"
#include "clients/documents/schema.h"
#include "tests/fuzz/fuzz.h"

static const char *const tags[] = {
    "html",    "head",       "title",   "style",  "body",    "a",     "header", "nav",
    "main",    "h1",         "section", "h2",     "h3",      "p",     "strong", "bdi",
    "span",    "mark",       "div",     "figure", "details", "table", "thead",  "summary",
    "caption", "figcaption", "tbody",   "tr",     "th",      "td",    "svg",    "path",
    "text",    "circle",     "rect",    "script", "ul",      "li",    "g",
};
enum { N_TAGS = sizeof tags / sizeof *tags, MOST_OPEN = 64 };

static bool is_name(const char *at, size_t n, const char *name)
{
    return strlen(name) == n && memcmp(at, name, n) == 0;
}

/* One of the program's tags: its number. */
static size_t tag_at(const char *at, size_t n)
{
    size_t i = 0;
    while (i < N_TAGS && !is_name(at, n, tags[i]))
        i++;
    require(i < N_TAGS);
    return i;
}

/* Attributes up to the end of a tag: name="value", no event handlers. Returns after the tag. */
static const char *skip_attributes(const char *at, bool *is_closed)
{
    while (*at == ' ' || *at == '\n') {
        at++;
        size_t n = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-");
        require(n > 0 && strncmp(at, "on", 2) != 0);
        at += n;
        if (*at != '=')
            continue; /* open */
        require(at[1] == '"');
        at = strchr(at + 2, '"');
        require(at != NULL);
        at++;
    }
    *is_closed = *at == '/';
    at += *is_closed;
    require(*at == '>');
    return at + 1;
}

static void check_page(const char *at)
{
    size_t open[MOST_OPEN], n_open = 0;
    while ((at = strchr(at, '<'))) {
        bool closes = at[1] == '/', is_closed;
        at += 1 + closes;
        size_t n = strcspn(at, " \n/>");
        if (is_name(at, n, "!DOCTYPE") || is_name(at, n, "meta")) {
            at += n;
            continue;
        }
        size_t tag = tag_at(at, n);
        at = skip_attributes(at + n, &is_closed);
        if (closes) {
            require(n_open > 0 && open[--n_open] == tag);
        } else if (!is_closed) {
            require(n_open < MOST_OPEN);
            open[n_open++] = tag;
        }
        if (!closes && (is_name(tags[tag], strlen(tags[tag]), "style") ||
                        is_name(tags[tag], strlen(tags[tag]), "script")))
            at = strstr(at, "</");
        require(at != NULL);
    }
    require(n_open == 0);
}

/* A card has two fences for each block, and nothing of a document begins another one. */
static void check_card(const char *at)
{
    size_t n = 0;
    for (; (at = strstr(at, "\n```")); at++)
        n++;
    require(n > 0 && n % 2 == 0);
}

/* The page of results, or the card, read back from memory. */
static void make_page(struct doc_results *results, bool card)
{
    struct status_why why = {""};
    char path[40];
    int memory = memfd_create("report", 0);
    require(memory >= 0);
    snprintf(path, sizeof path, "/dev/fd/%d", memory);
    struct doc_report report = {.results = results, .n_resamples = 3, .seed = 1, .n_context = 4096};
    require(base_file_create(&report.file, path, NULL, &why) == STATUS_OK);
    enum status status = card ? doc_card_write(report.file, results, "a chart.svg", &why)
                              : doc_report_write(&report, &why);
    require((status == STATUS_OK) == !*why.text);
    require(base_file_commit(report.file, &why) == STATUS_OK);
    off_t n_bytes = lseek(memory, 0, SEEK_END);
    char *page = calloc(1, (size_t)n_bytes + 1);
    require(page != NULL && pread(memory, page, (size_t)n_bytes, 0) == n_bytes);
    if (status == STATUS_OK && card)
        check_card(page);
    else if (status == STATUS_OK)
        check_page(page);
    free(page);
    close(memory);
}

static void make_pages(struct doc_results *results)
{
    make_page(results, false);
    make_page(results, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct status_why why = {""};
    struct doc_document documents[2] = {0};
    struct status_why notes[2] = {{""}};
    struct doc_results results = {.documents = documents, .n = 2, .notes = notes};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < 2 && !status; i++) {
        status = doc_parse_as(
            &documents[i], i ? "b\"<&'" : "a", (struct base_string){(const char *)data, n_bytes},
            "assay-perplexity assay-tasks assay-kld " DOC_SWEEP_SCHEMA " " DOC_IMATRIX_SCHEMA,
            &why);
        struct doc_scoreboard *board =
            documents[i].kind == DOC_TASKS ? &results.of_tasks : &results.of_texts;
        if (!status && documents[i].kind >= DOC_SWEEP)
            results.n_drawn++;
        else if (!status)
            status = doc_scoreboard_add(board, &documents[i], &why);
    }
    if (!status)
        status = doc_scoreboard_label(&results.of_texts, &why);
    if (!status)
        status = doc_scoreboard_label(&results.of_tasks, &why);
    if (!status)
        make_pages(&results);
    doc_scoreboard_free(&results.of_texts);
    doc_scoreboard_free(&results.of_tasks);
    for (size_t i = 0; i < 2; i++)
        doc_free(&documents[i]);
    return 0;
}

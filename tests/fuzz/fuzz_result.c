/*
 * Result documents: any text. Whatever can be read is compared with itself, which must be told
 * to differ by nothing, and makes a table, or is refused in a sentence.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cli/results/results.h"
#include "clients/documents/compare/compare.h"
#include "clients/documents/results/scoreboard.h"
#include "tests/fuzz/fuzz.h"

static void check(enum status status, const struct status_why *why)
{
    require((status == STATUS_OK) == !*why->text);
}

static void compare_with_itself(const char *bytes, size_t n_bytes)
{
    struct doc_compare c = {.settings = {.candidates = {"1", "1"}, .n_resamples = 3, .seed = 1}};
    struct status_why why = {""};
    enum status status = STATUS_OK;
    for (size_t side = 0; side < 2 && status == STATUS_OK; side++) {
        status = doc_parse_as(&c.sides[side].document, "input",
                              (struct base_string){bytes, n_bytes}, NULL, &why);
        check(status, &why);
        if (status == STATUS_OK && c.sides[side].document.kind != DOC_KLD)
            c.settings.candidates[side] = 0;
    }
    if (status == STATUS_OK)
        check(doc_compare_make(&c, &why), &why);
    for (size_t s = 0; s < DOC_N_TASK_SCORES; s++)
        require(!c.counts[s].only_a && !c.counts[s].only_b);
    for (size_t k = 0; k < DOC_MAX_FIGURES; k++)
        require(!(c.values[k].low < 0) && !(c.values[k].high > 0));
    doc_compare_close(&c);
}

static void make_tables(const char *bytes, size_t n_bytes)
{
    static FILE *nowhere;
    if (!nowhere)
        nowhere = freopen("/dev/null", "w", stdout);
    require(nowhere != NULL);
    struct doc_document result;
    struct doc_scoreboard table = {0};
    struct status_why why = {""};
    enum status status =
        doc_parse_as(&result, "input", (struct base_string){bytes, n_bytes}, NULL, &why);
    for (int twice = 0; twice < 2 && status == STATUS_OK; twice++)
        status = doc_scoreboard_add(&table, &result, &why);
    if (!status)
        status = doc_scoreboard_label(&table, &why);
    check(status, &why);
    doc_scoreboard_sort(&table);
    for (int form = 0; form < 4 && status == STATUS_OK; form++)
        check(cli_scoreboard_print(&table, form & 1, form & 2, &why), &why);
    doc_scoreboard_free(&table);
    doc_free(&result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    make_tables((const char *)data, n_bytes);
    compare_with_itself((const char *)data, n_bytes);
    return 0;
}

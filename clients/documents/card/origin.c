#include "clients/documents/card/origin.h"

#include <ctype.h>
#include <string.h>

#include "base/text/printable.h"

void doc_card_code(struct base_file *file, const char *text)
{
    char shown[BASE_PATH_BYTES];
    base_file_printf(file, "%s", base_markdown_code(shown, sizeof shown, text));
}

void doc_card_address(struct base_file *file, const char *text, const char *but)
{
    for (const char *c = text; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr(but, *c))
            base_file_printf(file, "%%%02X", (unsigned)(unsigned char)*c);
        else
            base_file_write(file, c, 1);
}

/* A link, or the text alone where the address is not one of the web. */
static void put_link(struct base_file *file, const char *text, const char *address)
{
    char shown[BASE_PATH_BYTES];
    bool web = strncmp(address, "https://", 8) == 0 || strncmp(address, "http://", 7) == 0;
    if (!web) {
        doc_card_code(file, text);
        return;
    }
    base_file_printf(file, "[%s](", base_markdown(shown, sizeof shown, text));
    doc_card_address(file, address, "-._~:/?#@!$&+,;=%");
    base_file_printf(file, ")");
}

/* Whether two objects have the same texts at `members`, a list that ends with NULL. */
static bool same_texts(struct base_field a, struct base_field b, const char *const *members)
{
    bool same = true;
    for (size_t i = 0; members[i]; i++)
        same = same && strcmp(base_field_text_or(a, members[i], ""),
                              base_field_text_or(b, members[i], "")) == 0;
    return same;
}

/* Whether a run before this one names the same origin, or this one did. */
static bool is_told(const struct doc_scoreboard *board, const struct doc_scoreboard_run *run,
                    struct base_field origin)
{
    for (const struct doc_scoreboard_run *k = board->runs; k <= run; k++) {
        struct base_field item = {0}, list = base_field_list_or_none(k->model, "origins");
        while (doc_run_is_of(k, doc_of(run->from)) && base_field_next(list, &item)) {
            if (k == run && item.index == origin.index)
                break;
            if (same_texts(item, origin, (const char *const[]){"of", "name", "url", NULL}))
                return true;
        }
    }
    return false;
}

void doc_card_origins(struct base_file *file, const struct doc_scoreboard *board,
                      struct doc_document *document)
{
    for (const struct doc_scoreboard_run *run = board->runs; run < board->runs + board->n; run++) {
        struct base_field item = {0}, list = base_field_list_or_none(run->model, "origins");
        while (doc_run_is_of(run, document) && base_field_next(list, &item)) {
            const char *url = base_field_text_or(item, "url", "");
            if (is_told(board, run, item))
                continue;
            base_file_printf(file, "- **%s:** ",
                             base_field_word(item, "of", "parent source") ? "Source"
                                                                          : "Parent model");
            put_link(file, base_field_text_or(item, "name", url), url);
            base_file_printf(file, "\n");
        }
    }
}

static bool has_imatrix(const struct doc_scoreboard_run *run, struct doc_document *document)
{
    return doc_run_is_of(run, document) && !run->is_base && strcmp(run->imatrix, "none") != 0;
}

/* The matrix, with the text that it was made from where the file says both. */
static void put_matrix(struct base_file *file, const struct doc_scoreboard_run *run)
{
    const char *name = base_field_text_or(run->model, "imatrix_file", run->imatrix);
    base_file_printf(file, "- **Importance matrix** ");
    put_link(file, base_file_name(name), name);
    if (base_field_find(run->model, "imatrix_file").json &&
        base_field_find(run->model, "imatrix_dataset").json) {
        base_file_printf(file, " of the text ");
        doc_card_code(file, run->imatrix);
    }
}

static bool same_matrix(const struct doc_scoreboard_run *a, const struct doc_scoreboard_run *b)
{
    static const char *const members[] = {"imatrix_file", "imatrix_dataset", NULL};
    return same_texts(a->model, b->model, members);
}

void doc_card_matrices(struct base_file *file, const struct doc_scoreboard *board,
                       struct doc_document *document)
{
    const struct doc_scoreboard_run *runs = board->runs;
    bool any = false;
    for (size_t i = 0; i < board->n; i++) {
        bool said = !has_imatrix(&runs[i], document);
        for (size_t k = 0; k < i && !said; k++)
            said = has_imatrix(&runs[k], document) && same_matrix(&runs[k], &runs[i]);
        if (said)
            continue;
        any = true;
        put_matrix(file, &runs[i]);
        for (size_t k = i; k < board->n; k++) {
            if (!has_imatrix(&runs[k], document) || !same_matrix(&runs[k], &runs[i]))
                continue;
            base_file_printf(file, k == i ? ": " : ", ");
            doc_card_code(file, runs[k].file);
        }
        base_file_printf(file, "\n");
    }
    if (!any)
        base_file_printf(file, "- **Importance matrix:** none that a file names\n");
}

#include "clients/documents/card/card.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/text/printable.h"
#include "clients/documents/card/command_line.h"
#include "clients/documents/card/origin.h"
#include "clients/documents/card/which.h"
#include "clients/documents/report/shared/models.h"
#include "clients/documents/report/shared/table.h"
#include "clients/documents/results/texts.h"

/* A block: the models of one document on the board. */
struct block {
    struct base_file *file;
    const struct doc_scoreboard *board;
    struct doc_document *document;
    struct doc_unit unit;
    bool diverges;
};

/* A column of figures: its key in the scoreboard, and how it is shown. */
static const struct {
    const char *head, *key;
    int n_decimals;
    enum { ALWAYS, OF_DIVERGENCE, OF_SPEED } when;
} columns[] = {
    {"PPL", "ppl", 4, ALWAYS},
    {"PPL ratio", "ppl_ratio", 5, OF_DIVERGENCE},
    {"KLD", "kld", 6, OF_DIVERGENCE},
    {"KLD 99.9 %", "kld_p99_9", 6, OF_DIVERGENCE},
    {"same top %", "same_top_percent", 2, OF_DIVERGENCE},
    {"prompt t/s", "prompt_tokens_per_second", 1, OF_SPEED},
    {"generation t/s", "generation_tokens_per_second", 1, OF_SPEED},
};
enum { N_COLUMNS = sizeof columns / sizeof *columns };

static bool is_shown(const struct block *b, size_t column)
{
    return columns[column].when == ALWAYS ||
           (columns[column].when == OF_SPEED ? b->board->has_speeds : b->diverges);
}

static void put_figure(const struct block *b, const struct doc_scoreboard_run *run, size_t column)
{
    size_t n, i = doc_scoreboard_find(b->board, columns[column].key);
    const struct doc_metric *m = &doc_scoreboard_metrics(&n, b->board)[i];
    const struct doc_metric_value *v = &run->values[i];
    char text[DOC_NUMBER_TEXT];
    int n_decimals = columns[column].n_decimals;
    if (!v->known) {
        base_file_printf(b->file, " - |");
        return;
    }
    base_file_printf(b->file, " %s", doc_number(text, m->as->scale * v->value, n_decimals));
    if (m->kind != DOC_REAL && !isnan(v->error))
        base_file_printf(b->file, " ± %s", doc_number(text, m->as->scale * v->error, n_decimals));
    base_file_printf(b->file, " |");
}

static void put_table(const struct block *b)
{
    char text[DOC_NUMBER_TEXT];
    base_file_printf(b->file, "| file | quantisation | size %s | bpw |", b->unit.name);
    for (size_t i = 0; i < N_COLUMNS; i++)
        if (is_shown(b, i))
            base_file_printf(b->file, " %s |", columns[i].head);
    base_file_printf(b->file, "\n| --- | --- | ---: | ---: |");
    for (size_t i = 0; i < N_COLUMNS; i++)
        if (is_shown(b, i))
            base_file_printf(b->file, " ---: |");
    base_file_printf(b->file, "\n");
    for (size_t k = 0; k < b->board->n; k++) {
        const struct doc_scoreboard_run *run = &b->board->runs[k];
        if (!doc_run_is_of(run, b->document))
            continue;
        base_file_printf(b->file, "| ");
        doc_card_code(b->file, run->file);
        base_file_printf(b->file, " | ");
        doc_card_code(b->file, run->quantisation);
        base_file_printf(b->file, " | %s |",
                         doc_number(text, run->n_bytes / b->unit.bytes, b->unit.n_decimals));
        base_file_printf(b->file, " %s |", doc_number(text, run->bits_per_weight, 4));
        for (size_t i = 0; i < N_COLUMNS; i++)
            if (is_shown(b, i))
                put_figure(b, run, i);
        base_file_printf(b->file, "\n");
    }
}

/* The share of the weights of each type of a model that has a thousandth of them. */
static void put_types(const struct block *b, const struct doc_scoreboard_run *run)
{
    size_t n, put = 0;
    struct base_field item = {0}, list = doc_list(&n, run->model, "types");
    double n_weights = base_field_real_or_null(run->model, "n_weights");
    base_file_printf(b->file, "  - ");
    doc_card_code(b->file, run->file);
    while (base_field_next(list, &item)) {
        const char *type = base_field_text(item, "type");
        double percent = 100 * base_field_real_or_null(item, "n_weights") / n_weights;
        if (percent < 0.1)
            continue;
        base_file_printf(b->file, put++ ? ", " : ": ");
        doc_card_code(b->file, type);
        base_file_printf(b->file, " %.3g %%", percent);
    }
    base_file_printf(b->file, "\n");
}

static void put_mixtures(const struct block *b)
{
    bool any = false;
    for (size_t i = 0; i < b->board->n; i++) {
        const struct doc_scoreboard_run *run = &b->board->runs[i];
        if (!doc_run_is_of(run, b->document) || run->is_base ||
            !base_field_find(run->model, "types").json)
            continue;
        if (!any)
            base_file_printf(b->file, "- **Types**, as shares of the weights, from 0.1 %% on:\n");
        any = true;
        put_types(b, run);
    }
}

static void put_text(const struct block *b)
{
    char name[DOC_TEXT_NAME];
    struct base_field root = doc_root(b->document);
    const struct doc_known_text *known = NULL;
    bool hashed = base_field_find(root, "text.sha256").json;
    if (hashed)
        known = doc_known_text(base_field_text(root, "text.sha256"));
    base_file_printf(b->file, "- **Text:** ");
    if (known)
        base_file_printf(b->file, "%s: %s", known->name, known->about);
    else
        doc_card_code(b->file, doc_text_name(name, b->document));
    if (hashed) {
        base_file_printf(b->file, "; SHA-256 ");
        doc_card_code(b->file, base_field_text(root, "text.sha256"));
    }
    base_file_printf(b->file, "; %zu tokens scored in %zu windows",
                     doc_count(root, "result.n_tokens"), doc_count(root, "result.n_windows"));
    if (base_field_find(root, "windows.n_tokens").json)
        base_file_printf(b->file, " of %zu", doc_count(root, "windows.n_tokens"));
    base_file_printf(b->file, ".\n");
    if (doc_scoreboard_is_of_race(b->board, b->document))
        base_file_printf(b->file, "- **A race**: figures of files that left it early are of fewer "
                                  "windows than others.\n");
    if (!base_field_flag_or(root, "result.complete", true))
        base_file_printf(b->file,
                         "- **The run was interrupted**: the figures cover a part of the text.\n");
}

static void put_measures(const struct block *b)
{
    base_file_printf(b->file,
                     "- **Measures:** PPL is the perplexity; the number after ± is the "
                     "standard error, over windows or documents where there are 11 or more.");
    if (b->diverges)
        base_file_printf(b->file,
                         " PPL ratio is PPL over that of the base. KLD is the mean KL divergence "
                         "from the base in nats, and its 99.9 %% quantile over tokens; same top is "
                         "the share of tokens after which both have the same most likely one. "
                         "With a KLD of D at most sqrt(D/2) of the tokens that are drawn at "
                         "temperature 1 are others than the base's (Pinsker's inequality).");
    char about[4 * DOC_SPEEDS_TEXT];
    if (b->board->has_speeds)
        base_file_printf(b->file,
                         " Speeds, in tokens per second, are %s; after ± stands the standard "
                         "deviation of its repetitions.",
                         base_markdown(about, sizeof about, b->board->speeds_about));
    base_file_printf(b->file, "\n");
}

static void put_command(const struct block *b)
{
    struct base_field root = doc_root(b->document);
    base_file_printf(b->file, "- **Command**");
    if (base_field_find(root, "run.versions.assay").json) {
        base_file_printf(b->file, " of assay ");
        doc_card_code(b->file, base_field_text(root, "run.versions.assay"));
    }
    if (base_field_string(root, "run.versions.commit")) {
        base_file_printf(b->file, ", commit ");
        doc_card_code(b->file, base_field_string(root, "run.versions.commit"));
    }
    base_file_printf(b->file, ":\n\n```sh\n");
    doc_command_line(b->file, b->document);
    base_file_printf(b->file, "```\n");
}

static void put_block(const struct block *b, const char *chart)
{
    base_file_printf(b->file, "## %s\n\n", b->diverges ? "What quantisation did" : "Perplexity");
    put_table(b);
    base_file_printf(b->file, "\n");
    if (chart) {
        base_file_printf(b->file, "![%s against size](",
                         b->diverges ? "Mean KL divergence" : "Perplexity");
        doc_card_address(b->file, base_file_name(chart), "-._~");
        base_file_printf(b->file, ")\n\n");
    }
    if (b->diverges)
        doc_card_which(b->file, b->board, b->document);
    doc_card_origins(b->file, b->board, b->document);
    put_text(b);
    doc_card_matrices(b->file, b->board, b->document);
    put_measures(b);
    base_file_printf(b->file, "\n<details><summary>Types of the tensors, and the command</summary>"
                              "\n\n");
    put_mixtures(b);
    put_command(b);
    base_file_printf(b->file, "\n</details>\n");
}

enum status doc_card_write(struct base_file *file, struct doc_results *results, const char *chart,
                           struct status_why *why)
{
    struct doc_scoreboard *board = &results->of_texts;
    doc_scoreboard_sort(board);
    struct block b = {.file = file, .board = board, .unit = doc_unit_of(board, NULL)};
    size_t n = 0;
    for (size_t i = 0; i < results->n; i++) {
        b.document = &results->documents[i];
        b.diverges = b.document->kind == DOC_KLD;
        if (!b.document->json.root || (!b.diverges && b.document->kind != DOC_PERPLEXITY))
            continue;
        base_file_printf(file, n ? "\n" : "");
        put_block(&b, n ? NULL : chart);
        n++;
        enum status status = doc_status(b.document, why);
        if (status)
            return status;
    }
    return n ? STATUS_OK
             : status_fail(why, STATUS_USAGE,
                           "none of the results is of a text: a card shows what assay kld or "
                           "perplexity wrote with --json");
}

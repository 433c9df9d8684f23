/* The page of assay best: that of assay report, with the verdict at its head. */
#include <stdlib.h>

#include "cli/best/best.h"
#include "cli/output/json_parts.h"
#include "clients/documents/report/report.h"

enum { RESAMPLES = 10000, SEED = 1 };

/** What assay kld would write of the same windows, and the verdict. */
static void fill(const struct cli_best *b, struct base_json *json)
{
    const struct cli_members *members = &cli_kld_members;
    doc_json_begin(json, cli_best_members.schema);
    cli_best_add_verdict(b, json);
    members->result(&b->k, json);
    members->description(&b->k, json, false);
    cli_json_add_remarks(json, json->root, b->k.e.remarks);
    cJSON *run = cli_json_add_run(json, &b->k.e);
    members->files(&b->k, json, run);
}

static enum status write(struct doc_report *report, struct doc_speeds *speeds,
                         struct status_why *why)
{
    struct doc_results *results = report->results;
    enum status status = doc_scoreboard_add(&results->of_texts, &results->documents[0], why);
    if (!status)
        status = doc_scoreboard_label(&results->of_texts, why);
    if (!status)
        status = doc_speeds_put(speeds, &results->of_texts, why);
    return status ? status : doc_report_write(report, why);
}

enum status cli_best_write_report(const void *self, struct base_file *file, struct status_why *why)
{
    const struct cli_best *b = self;
    struct doc_speeds speeds = {0};
    struct base_json json;
    struct doc_document document = {.json.file = "assay best", .kind = DOC_KLD};
    struct doc_results results = {.documents = &document, .n = 1};
    struct doc_report report = {
        .file = file, .results = &results, .n_resamples = RESAMPLES, .seed = SEED};
    fill(b, &json);
    document.json.root = json.root;
    enum status status = json.failed ? status_fail(why, STATUS_MEMORY, "no memory for a page")
                                     : doc_speeds_open(&speeds, b->benches, b->n_benches, why);
    if (!status)
        status = write(&report, &speeds, why);
    doc_speeds_close(&speeds);
    doc_scoreboard_free(&results.of_texts);
    base_json_free(&json);
    return status;
}

/*
 * What llama-bench is said to have printed, any text: a speed that it gives to a file is a number
 * above 0, and what it says of its rows is a sentence; or it is refused in one.
 */
#include <math.h>

#include "clients/documents/results/speeds/bench.h"
#include "clients/documents/results/speeds/speeds.h"
#include "tests/fuzz/fuzz.h"

static const struct doc_measured files[] = {
    {.file = "tiny.F16.gguf", .n_bytes = 8397824, .n_weights = 4196608},
    {.file = "tiny.Q4_K_M.gguf", .n_bytes = 2621952, .n_weights = 4196608, .k = "Q8_0"}};

static enum status give(struct doc_speeds *speeds, struct status_why *why)
{
    struct doc_metric_value values[DOC_N_SPEEDS];
    enum status status = STATUS_OK;
    for (size_t i = 0; i < 2 && !status; i++) {
        status = doc_speeds_of(speeds, values, &files[i], why);
        for (size_t kind = 0; kind < DOC_N_SPEEDS && !status; kind++)
            require(!values[kind].known ||
                    (values[kind].value > 0 && isfinite(values[kind].value)));
    }
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct doc_document document;
    struct doc_speeds speeds = {0};
    struct status_why why = {""}, notes[DOC_MOST_SPEED_NOTES];
    size_t n_notes = 0;
    enum status status =
        doc_parse_as(&document, "input", (struct base_string){(const char *)data, n_bytes},
                     DOC_BENCH_SCHEMA, &why);
    if (!status)
        status = doc_speeds_open(&speeds, &document, 1, &why);
    if (!status)
        status = give(&speeds, &why);
    require((status == STATUS_OK) == !*why.text);
    if (!status)
        doc_speeds_note(&speeds, notes, &n_notes);
    for (size_t i = 0; i < n_notes; i++)
        require(*notes[i].text != '\0');
    doc_speeds_close(&speeds);
    doc_free(&document);
    return 0;
}

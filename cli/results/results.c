#include "cli/results/results.h"

#include "cli/process/say.h"

enum status cli_results_read(struct doc_results *out, const struct cli_list *files, bool with_drawn,
                             struct status_why *why)
{
    enum status status =
        doc_results_read(out, (const char *const *)files->items, files->n, with_drawn, why);
    for (size_t i = 0; i < out->n_notes; i++)
        cli_say("assay: note: %s\n", out->notes[i].text);
    return status;
}

/** assay draft: a model's block for the token after the next, over the windows of a text. */
#ifndef CLI_DRAFT_DRAFT_COMMAND_H
#define CLI_DRAFT_DRAFT_COMMAND_H

#include "cli/input/windows.h"
#include "cli/server/phase.h"
#include "cli/session/backends.h"
#include "cli/session/models.h"
#include "clients/draft/figures.h"

struct cli_draft_settings {
    const char *model;
    struct cli_text_settings text;
    struct cli_window_settings windows;
    struct cli_machine_settings machine;
    struct cli_model_settings load;
    const char *json_file;
    bool llama_compat, force;
};

struct cli_draft {
    const struct cli_draft_settings *settings;
    struct cli_model model;
    struct cli_windows windows;
    struct cli_backends backends;
    struct base_pool *pool;
    struct draft_session *session;
    struct draft_sums sums;
    struct draft_figures figures;
    struct cli_phase phase;
};

/** The figures, on standard output. */
void cli_draft_print(const struct cli_draft *d);
/** The document. Fails: as doc_json_end. */
enum status cli_draft_write(const struct cli_draft *d, struct base_file *file,
                            struct status_why *why);

#endif

/** assay check --url and --logprobs: whether a server computes what the file says. */
#ifndef CLI_CHECK_SERVER_SERVER_H
#define CLI_CHECK_SERVER_SERVER_H

#include "base/content/text.h"
#include "cli/server/connection.h"
#include "cli/server/phase.h"
#include "cli/session/models.h"
#include "clients/probe/ask/plan.h"
#include "clients/probe/ask/records.h"
#include "clients/probe/compare.h"

struct cli_server_settings {
    const char *url, *records; /* --logprobs */
    const char *text_file;
    struct cli_chat_settings chat; /* of conversations in it */
    struct cli_connection_settings connection;
    struct cli_list lengths;
    struct cli_list others;    /* the models of --or; borrowed */
    int64_t n_passes, n_times; /* the latter of --repeat */
    double max_rms, max_kld;   /* NaN: no limit; the latter is the check's */
    bool strict;
};
extern const struct cli_option cli_server_options[];
void cli_server_defaults(struct cli_server_settings *settings);

/** What a check has in hand. */
struct cli_server_check {
    const struct cli_server_settings *settings;
    const struct cli_evaluate_settings *evaluate;
    struct cli_model model;
    struct cli_model *others; /* [settings->others.n] */
    struct base_text text;
    bool has_documents; /* it is JSON objects, such as conversations */
    struct probe_names *names;
    struct cli_connection connection;
    struct probe_questions questions;
    struct probe_records *records; /* NULL: a server is asked */
    struct probe_material material;
    struct probe_comparison comparison;
    struct cli_phase phase;
};

/** The lists that are judged. */
static inline const struct probe_lists *cli_server_lists(const struct cli_server_check *c)
{
    return c->records ? &c->records->lists : &c->questions.lists;
}

/**
 * The whole of it. Prints the verdict; that it differs is STATUS_EXCEEDED, that there is none
 * STATUS_FORMAT.
 */
enum status cli_server_check(const char *model, const struct cli_server_settings *settings,
                             const struct cli_evaluate_settings *evaluate, struct status_why *why);

/* The parts of it. */

/** Ask the server of --url: the lists are in `questions`. */
enum status cli_server_ask(struct cli_server_check *check, struct status_why *why);
/** Another file, template or tokens by what the server says of itself: that is the verdict.
 * Fails: as model_chat_compare. */
enum status cli_server_judge_said(struct cli_server_check *check, struct status_why *why);
void cli_server_print_said(const struct cli_server_check *check);
/** The object `said` of the document. */
void cli_server_add_said(struct base_json *json, const struct cli_server_check *check);
void cli_server_print(const struct cli_server_check *check);
enum status cli_server_write(const struct cli_server_check *check, struct base_file *file,
                             struct status_why *why);
/** The text where -f gives none. */
extern const char cli_server_text[];

#endif

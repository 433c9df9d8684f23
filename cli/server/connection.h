/** A server of another program that a command asks: options, opening, what it is and can. */
#ifndef CLI_SERVER_CONNECTION_H
#define CLI_SERVER_CONNECTION_H

#include "base/content/text.h"
#include "base/json/build.h"
#include "cli/options/common.h"
#include "clients/probe/ask/plan.h"
#include "clients/probe/ask/records.h"
#include "clients/probe/ask/server.h"

struct cli_connection_settings {
    int api; /* index into PROBE_API_NAMES; -1: found out */
    const char *key_file;
    int64_t seconds;                 /* for each request */
    int64_t concurrency, n_requests; /* the command's own options */
};
/** --api, --api-key-file, --timeout. */
extern const struct cli_option cli_connection_options[];
void cli_connection_defaults(struct cli_connection_settings *settings);

/**
 * One process asks, and answers cost what they cost once. Fails: STATUS_USAGE (mpirun started
 * several), as cli_cluster_join.
 */
enum status cli_connection_alone(const struct cli_machine_settings *machine,
                                 struct status_why *why);

enum { CLI_ABOUT_THE_SERVER = 8 }; /* requests that no prompt is asked by */

/** Zero-initialise; release with cli_connection_close. */
struct cli_connection {
    struct probe_server server;
    char described[512]; /* the server, in a line */
    size_t n_resumed;    /* answers that --state had */
    double said;         /* when a line last said that the server is waited for; 0: never */
};

/**
 * Open it; nothing is asked yet. plain: as in struct probe_server.
 * Fails: as probe_http_open; STATUS_IO, STATUS_FORMAT (the key's file).
 */
enum status cli_connection_open(struct cli_connection *c, const char *url,
                                const struct cli_connection_settings *settings, int32_t plain,
                                struct status_why *why);
/**
 * Keep answers in a file, and take those that it has. path NULL: nothing. of: what else than the
 * address they belong to.   Fails: as probe_journal_open.
 */
enum status cli_connection_keep(struct cli_connection *c, const char *path, const char *of,
                                struct status_why *why);
/** Find out who answers. Fails: as probe_server_identify. */
enum status cli_connection_identify(struct cli_connection *c,
                                    const struct cli_connection_settings *settings,
                                    struct status_why *why);
/** And what it can, with a beginning of a window. Fails: as probe_server_try. */
enum status cli_connection_try(struct cli_connection *c, const struct probe_window *window,
                               size_t length, struct status_why *why);
void cli_connection_close(struct cli_connection *c);

/** The object `server` of a document. asked: false with recorded answers. */
void cli_connection_add_json(struct base_json *json, const struct cli_connection *c, bool asked);

/** A sentence about prompts that became other tokens; "" where none is known to. */
void cli_connection_tokens(char *out, size_t capacity, const struct probe_lists *lists);

/** Print that the server is not deterministic, where it is not. */
void cli_connection_print_noise(const struct probe_questions *questions);

/** Read recorded answers into zeroed records. Fails: as probe_records_read, base_text_read. */
enum status cli_connection_read(struct probe_records *out, struct base_text *text, const char *path,
                                const struct model_tokenizer *tokenizer,
                                const struct probe_names *names, struct status_why *why);

#endif

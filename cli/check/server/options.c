#include <math.h>

#include "cli/check/server/server.h"

enum { REQUESTS = 60, PASSES = 2 };

void cli_server_defaults(struct cli_server_settings *s)
{
    *s = (struct cli_server_settings){.chat = cli_chat_defaults,
                                      .n_passes = PASSES,
                                      .n_times = 1,
                                      .max_rms = (double)NAN,
                                      .max_kld = (double)NAN};
    cli_connection_defaults(&s->connection);
    s->connection.n_requests = REQUESTS;
}

#define AT(member) offsetof(struct cli_server_settings, member)

const struct cli_option cli_server_options[] = {
    {.type = CLI_HEADING, .help = "A running server, instead of a file (docs/server-check.md)"},
    {"--url", CLI_TEXT, "URL",
     "ask the server at http://HOST:PORT for its log-probabilities, and say whether it computes "
     "what the file says",
     AT(url)},
    {"--logprobs", CLI_TEXT, "FILE",
     "judge recorded requests and responses (JSON lines) in the same way; no server is asked",
     AT(records)},
    {"-f --file", CLI_TEXT, "FILE",
     "the text that is asked about, or conversations as JSON objects (default: a short text of its "
     "own)",
     AT(text_file), .usual = true},
    {"--chat-template", CLI_TEXT, "FILE|NAME",
     "render conversations in the text with this template instead of the model's own; a server "
     "must take token ids then",
     AT(chat.chat_template)},
    {.type = CLI_GROUP, .group = cli_connection_options, .offset = AT(connection)},
    {"--lengths", CLI_LIST, "N,...",
     "tokens of the prompts (default: " PROBE_LENGTHS ", and more between)", AT(lengths)},
    {"--concurrency", CLI_COUNT, "N", "also ask N prompts at the same time (default: 1, do not)",
     AT(connection.concurrency), 1, 64},
    {"--requests", CLI_COUNT, "N", "ask about N prompts at most, 8 or more (default: 60)",
     AT(connection.n_requests), 8, 10000},
    {"--repeat", CLI_COUNT, "N",
     "ask each prompt N times, and say how far its answers are apart and whether they may come "
     "from "
     "a cache; there are as many fewer prompts (default: 1)",
     AT(n_times), 1, 50},
    {"--passes", CLI_COUNT, "N",
     "evaluate N times with each kind of rounding that such a server may have, to know what error "
     "to expect (default: 2)",
     AT(n_passes), 1, 100},
    {"--max-rms", CLI_NUMBER, "X",
     "say that a server agrees coarsely while its log-probabilities are off by X at most in the "
     "root mean square, and those of a list by twice as much (default: what the coarsest "
     "arithmetic makes)",
     AT(max_rms)},
    {"--strict", CLI_ON, NULL,
     "end with exit code 1 also where a server agrees only coarsely; a recording must agree",
     AT(strict)},
    {0},
};

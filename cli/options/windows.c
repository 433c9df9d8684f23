/* The options of runs over the windows of a text: which windows, and what is kept of them. */
#include <math.h>

#include "cli/options/common.h"

enum { ANY = INT32_MAX, MOST_WORST = 100000 };

#define WINDOWS(member)    offsetof(struct cli_window_settings, member)
#define CURVE(member)      offsetof(struct cli_curve_settings, member)
#define DIVERGENCE(member) offsetof(struct cli_divergence_settings, member)

void cli_window_defaults(struct cli_window_settings *settings)
{
    *settings = (struct cli_window_settings){
        .n_ctx = {.value = -1}, .n_chunks = -1, .stop_se = (double)NAN};
}

enum status cli_window_check(const struct cli_window_settings *s, bool several,
                             struct status_why *why)
{
    if (s->n_chunks == 0)
        return status_fail(why, STATUS_USAGE, "--chunks: 0 leaves nothing to evaluate; -1 is all");
    if (s->n_ctx.more && !several)
        return status_fail(why, STATUS_USAGE,
                           "-c: expected one number here; several are for assay perplexity and "
                           "assay kld on a text");
    if (s->stop_se <= 0)
        return status_fail(why, STATUS_USAGE,
                           "--stop-when-se: %g is no standard error to be reached; expected a "
                           "number above 0, in nats",
                           s->stop_se);
    return STATUS_OK;
}

const struct cli_option cli_window_options[] = {
    {"-c --ctx-size", CLI_COUNTS, "N", "tokens per window (0: as the model was trained)",
     WINDOWS(n_ctx), 0, ANY, .env = "LLAMA_ARG_CTX_SIZE", .usual = true},
    {"--chunks", CLI_COUNT, "N", "evaluate the first N windows only (default: -1, all)",
     WINDOWS(n_chunks), -1, ANY, .usual = true},
    {0},
};

const struct cli_option cli_chunk_from_options[] = {
    {"--chunk-from", CLI_COUNT, "N", "leave out the first N windows (default: 0)",
     WINDOWS(chunk_from), 0, ANY},
    {0},
};

const struct cli_option cli_stop_options[] = {
    {"--stop-when-se", CLI_NUMBER, "X",
     "end as soon as the standard error of the mean NLL is X nats or less, over windows or "
     "documents, after 16 windows at least. In comparisons it is the paired one of "
     "ln(PPL(Q)/PPL(base)), of every model. With --state the same command goes on with a smaller X",
     WINDOWS(stop_se)},
    {0},
};

const struct cli_option cli_per_token_options[] = {
    {"--per-token", CLI_TEXT, "FILE", "write a table (TSV) with a line for each scored token"},
    {0},
};

const struct cli_option cli_curve_options[] = {
    {"--context-curve", CLI_ON, NULL,
     "print the figures by position in the window, in bins; --json has them for each position",
     CURVE(wanted)},
    {"--context-bins", CLI_COUNT, "N", "the number of bins of --context-curve (default: 16)",
     CURVE(n_bins), 1, ANY},
    {0},
};

const struct cli_option cli_divergence_options[] = {
    {.type = CLI_GROUP, .group = cli_curve_options, .offset = DIVERGENCE(curve)},
    {"--worst", CLI_COUNT, "N",
     "print the N tokens of the largest divergence, with the text before them (default: 0)",
     DIVERGENCE(n_worst), 0, MOST_WORST},
    {0},
};

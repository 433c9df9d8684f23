/* Options of a run that goes on while tensors are replaced; ik_llama.cpp has variables for it. */
#include <stdlib.h>

#include "base/text/size.h"
#include "cli/options/common.h"

#define WATCH(member) offsetof(struct cli_watch_settings, member)

const struct cli_option cli_watch_options[] = {
    {.type = CLI_HEADING, .help = "Replacing tensors (docs/hot-swap.md)"},
    {"--watch", CLI_TEXT, "FILE",
     "keep the model open, evaluate it, and again on each command that is put into FILE: reload "
     "(tensors whose files have changed), compute, exit",
     WATCH(control)},
    {"--watch-status", CLI_TEXT, "FILE",
     "write into this file how far it is: computing, done, reload_failed or exiting",
     WATCH(status)},
    {"--watch-script", CLI_TEXT, "COMMAND",
     "evaluate, run COMMAND by a shell, reload what it replaced, and so on until it replaces "
     "nothing",
     WATCH(script)},
    {"--cache", CLI_TEXT, "SIZE",
     "while tensors are replaced: keep up to SIZE (4GiB, 500MB) of what enters layers; an "
     "evaluation then begins with the first layer that has changed, with the same bits",
     WATCH(cache)},
    {"--cache-file", CLI_TEXT, "FILE",
     "keep what --cache keeps in this file, not in memory; it is deleted at the end",
     WATCH(cache_file)},
    {0},
};

/* "" is as good as none. */
static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static enum status read_environment(struct cli_watch_settings *s, struct status_why *why)
{
    if (!getenv("LLAMA_HOTSWAP_ENABLED"))
        return STATUS_OK;
    s->wanted = true;
    s->control = variable("LLAMA_HOTSWAP_CONTROL_FILE");
    s->status = s->control ? variable("LLAMA_HOTSWAP_STATUS_FILE") : NULL;
    s->script = s->control ? NULL : variable("LLAMA_PERPLEXITY_PRE_RELOAD_SCRIPT");
    if (s->control && !s->status)
        return status_fail(why, STATUS_USAGE,
                           "LLAMA_HOTSWAP_CONTROL_FILE goes with LLAMA_HOTSWAP_STATUS_FILE, which "
                           "is not set");
    return STATUS_OK;
}

enum status cli_watch_check(struct cli_evaluate_settings *settings, struct status_why *why)
{
    struct cli_watch_settings *s = &settings->watch;
    if (settings->host) /* which has the models */
        return STATUS_OK;
    if (s->cache && !base_size_parse(s->cache, &s->cache_bytes))
        return status_fail(why, STATUS_USAGE,
                           "--cache: expected a size such as 4GiB or 500MB, found '%s'", s->cache);
    s->wanted = s->control || s->script;
    enum status status = s->wanted ? STATUS_OK : read_environment(s, why);
    if (!status && s->cache && !s->wanted)
        return status_fail(why, STATUS_USAGE,
                           "--cache is of use only while tensors are replaced: with --watch");
    if (!status && s->wanted && settings->machine.activations)
        return status_fail(why, STATUS_USAGE,
                           "--activations does not go with replacing tensors: what is rounded is "
                           "told by where weights lie; expected a run for each file");
    if (!status && s->wanted && settings->state_file)
        return status_fail(why, STATUS_USAGE,
                           "--state does not go with replacing tensors: a journal belongs to one "
                           "evaluation");
    return status;
}

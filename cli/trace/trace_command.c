/* assay trace: the tensors of one window, and another program's beside them. */
#include "cli/trace/trace_command.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/npy.h"
#include "cli/commands.h"
#include "cli/session/cluster.h"
#include "cli/session/models.h"
#include "cli/session/outputs.h"
#include "kernels/kernels.h"

enum { DEFAULT_TOKENS = 512, DEFAULT_PASSES = 8, MOST_PASSES = 1000 };

struct trace_run {
    const struct cli_trace_settings *settings;
    struct cli_model model;
    struct kern_backend *backend;
    struct model_tokens tokens;
    struct trace_file other; /* of --compare */
    struct trace trace;
    struct trace_distances distances;
    struct cli_trace_alone alone;
};

static enum status check_settings(const struct cli_trace_settings *s, struct status_why *why)
{
    int n = (s->text_file != NULL) + (s->prompt != NULL) + (s->ids.n > 0);
    if (n > 1 || (n == 0 && !s->compare))
        return status_fail(why, STATUS_USAGE, "expected one text: by -f, -p or --ids%s; found %s",
                           s->compare ? ", or the file's tokens" : "", n ? "several" : "none");
    enum status status = cli_cluster_alone("a trace", why);
    return status ? status : cli_model_check(&s->load, why);
}

static enum status read_ids(struct trace_run *r, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < r->settings->ids.n && !status; i++) {
        char *end;
        long id = strtol(r->settings->ids.items[i], &end, 10);
        if (end == r->settings->ids.items[i] || *end || id < 0 || id > INT32_MAX)
            return status_fail(why, STATUS_USAGE, "--ids: '%s' is not the id of a token",
                               r->settings->ids.items[i]);
        status = model_tokens_add(&r->tokens, (int32_t)id, why);
    }
    return status;
}

static enum status read_text(struct trace_run *r, struct status_why *why)
{
    const struct cli_trace_settings *s = r->settings;
    const struct model_tokenizer *tokenizer = model_tokenizer(r->model.model);
    struct base_text text = {0};
    enum status status = s->prompt ? base_text_copy(&text, s->prompt, strlen(s->prompt), why)
                                   : base_text_read_utf8(&text, s->text_file, BASE_TEXT_MAX_BYTES,
                                                         ", or give its tokens by --ids", why);
    if (!status && !s->no_bos)
        status = model_begin_text(tokenizer, &r->tokens, why);
    if (!status)
        status = model_tokenize(tokenizer, text.data, text.n_bytes, true, &r->tokens, why);
    base_text_free(&text);
    return status;
}

/* The log's own list of tokens must be that of the window. */
static enum status check_tokens(const struct trace_run *r, struct status_why *why)
{
    size_t n = r->other.n_tokens;
    if (n == 0 || (n == r->tokens.n &&
                   memcmp(r->other.tokens, r->tokens.ids, n * sizeof *r->tokens.ids) == 0))
        return STATUS_OK;
    return status_fail(why, STATUS_USAGE,
                       "%s is of another text: its %zu tokens are not the %zu of the window (-c "
                       "%" PRId64 ")",
                       r->settings->compare, n, r->tokens.n, r->settings->n_ctx);
}

/* The tokens of the options, or those that the log names. */
static enum status read_tokens(struct trace_run *r, struct status_why *why)
{
    const struct cli_trace_settings *s = r->settings;
    enum status status = STATUS_OK;
    if (s->ids.n)
        status = read_ids(r, why);
    else if (s->prompt || s->text_file)
        status = read_text(r, why);
    else if (r->other.n_tokens == 0)
        return status_fail(why, STATUS_USAGE,
                           "%s names no tokens; give the text by -f, -p or --ids", s->compare);
    else
        for (size_t i = 0; i < r->other.n_tokens && !status; i++)
            status = model_tokens_add(&r->tokens, r->other.tokens[i], why);
    if (!status && r->tokens.n > (size_t)s->n_ctx)
        r->tokens.n = (size_t)s->n_ctx;
    return status ? status : check_tokens(r, why);
}

static const char *arch_of(const struct trace_run *r)
{
    return model_hparams(r->model.model)->architecture;
}

/* Once, although each expert asks. */
static void count_alone(struct cli_trace_alone *alone, enum model_place place, int layer,
                        const char *name)
{
    if (layer != alone->layer)
        memset(alone->seen, 0, sizeof alone->seen);
    alone->layer = layer;
    if (!alone->seen[place] && !alone->n++)
        snprintf(alone->first, sizeof alone->first, "%s", name);
    alone->seen[place] = true;
}

static bool is_wanted(void *user, enum model_place place, int layer, const char *name)
{
    struct trace_run *r = user;
    const struct cli_list *patterns = &r->settings->tensors;
    bool named = patterns->n == 0;
    for (size_t i = 0; i < patterns->n && !named; i++)
        named = fnmatch(patterns->items[i], name, 0) == 0;
    bool there = !r->settings->compare || trace_file_has(&r->other, arch_of(r), place, layer);
    if (named && !there)
        count_alone(&r->alone, place, layer, name);
    return named && there;
}

static enum status evaluate(struct trace_run *r, struct status_why *why)
{
    struct kern_cpu_options machine = {
        .n_threads = r->settings->n_threads > 0 ? (unsigned)r->settings->n_threads : 0,
        .isa_cap = KERN_ISA_COUNT - 1,
        .precision = KERN_PRECISION_EXACT,
    };
    enum status status = kern_cpu_open(&r->backend, &machine, why);
    struct trace_task task = {
        .model = r->model.model,
        .backend = r->backend,
        .tokens = r->tokens.ids,
        .n_tokens = r->tokens.n,
        .n_logits = r->settings->compare ? trace_file_logits(&r->other, r->tokens.n) : 1,
        .n_passes = r->settings->compare ? (size_t)r->settings->n_passes : 0,
        .arithmetic = (enum trace_arithmetic)r->settings->rounding,
        .want = is_wanted,
        .want_user = r,
    };
    return status ? status : trace_run(&r->trace, &task, why);
}

static enum status write_arrays(const struct trace *trace, struct base_file *file,
                                struct status_why *why)
{
    struct base_npz *npz = base_npz_begin(file);
    enum status status = npz ? STATUS_OK : status_fail(why, STATUS_MEMORY, "out of memory");
    for (size_t i = 0; i < trace->n && !status; i++) {
        const struct trace_tensor *t = &trace->items[i];
        char name[TRACE_NAME_BYTES], member[2 * TRACE_NAME_BYTES];
        struct base_string op = trace_place_op(t->place);
        snprintf(member, sizeof member, "%s.%.*s", trace_tensor_name(name, t->place, t->layer),
                 (int)op.n_bytes, op.data);
        const uint64_t shape[] = {t->n_rows, t->n_heads, t->size}, flat[] = {t->n_rows, t->size};
        status = base_npz_add(npz, member, t->n_heads > 1 ? shape : flat, t->n_heads > 1 ? 3 : 2,
                              t->values, why);
    }
    enum status ended = base_npz_end(npz, why);
    return status ? status : ended;
}

static enum status report(struct trace_run *r, struct base_file *file, struct status_why *why)
{
    const struct trace_limits limits = {.rms = 4, .most = 8, .sum = 8};
    enum status status = STATUS_OK;
    if (r->trace.n == 0)
        return status_fail(why, STATUS_USAGE,
                           "no tensor has such a name; assay trace without "
                           "--tensor prints all of them");
    if (file)
        status = write_arrays(&r->trace, file, why);
    if (!status && r->settings->compare)
        status = trace_compare(&r->distances, &r->trace, &r->other, arch_of(r), &limits, why);
    if (status && r->settings->compare)
        status_context(why, "%s", r->settings->compare);
    if (!status && r->settings->compare)
        cli_trace_print_distances(&r->trace, &r->distances, &r->alone);
    for (size_t i = 0; !status && !file && !r->settings->compare && i < r->trace.n; i++)
        cli_trace_print_tensor(&r->trace.items[i]);
    return status;
}

static enum status run_all(struct trace_run *r, struct status_why *why)
{
    const struct cli_trace_settings *s = r->settings;
    const struct cli_named_file output = {"-o", s->output};
    const struct cli_named_file inputs[] = {
        {"-m", s->model}, {"-f", s->text_file}, {"--compare", s->compare}};
    struct cli_evaluate_settings evaluating = {.load = s->load};
    struct base_file *file = NULL;
    enum status status = cli_outputs_check(&output, 1, inputs, 3, why);
    if (!status && s->compare)
        status = trace_file_read(&r->other, s->compare, why);
    if (!status)
        status = cli_model_open(&r->model, s->model, &evaluating, s->llama_compat, why);
    if (!status)
        status = cli_outputs_check_model(&output, 1, "-m", model_file(r->model.model), why);
    if (!status)
        status = read_tokens(r, why);
    if (!status)
        status = cli_output_create(&file, s->output, s->force ? NULL : BASE_NPZ, why);
    if (!status)
        status = evaluate(r, why);
    if (!status)
        status = report(r, file, why);
    if (!status)
        status = gguf_check_unchanged(model_file(r->model.model), why);
    return file ? cli_output_commit(&file, status, why) : status;
}

static enum status run_trace(const void *opaque, const struct cli_args *args,
                             struct status_why *why)
{
    (void)args;
    char sentence[CLI_TRACE_SENTENCE];
    struct trace_run r = {.settings = opaque};
    enum status status = check_settings(r.settings, why);
    if (!status)
        status = run_all(&r, why);
    if (!status && r.distances.first_departure < r.distances.n)
        status = status_fail(
            why, STATUS_EXCEEDED, "%s departs: %s", r.settings->compare,
            cli_trace_departure(sentence, &r.distances.items[r.distances.first_departure]));
    trace_distances_free(&r.distances);
    trace_free(&r.trace);
    kern_close(r.backend);
    free(r.tokens.ids);
    trace_file_free(&r.other);
    cli_model_close(&r.model);
    return status;
}

static void defaults(void *settings)
{
    struct cli_trace_settings *s = settings;
    *s = (struct cli_trace_settings){.n_ctx = DEFAULT_TOKENS, .n_passes = DEFAULT_PASSES};
    cli_model_defaults(&s->load);
}

#define AT(member) offsetof(struct cli_trace_settings, member)

static const struct cli_option options[] = {
    {.type = CLI_HEADING, .help = "Input"},
    {.type = CLI_GROUP, .group = cli_model_file_options, .offset = AT(model)},
    {"-f --file", CLI_TEXT, "FILE", "the text; one final newline is dropped", AT(text_file),
     .usual = true},
    {"-p --prompt", CLI_TEXT, "TEXT", "the text itself", AT(prompt), .usual = true},
    {"--ids", CLI_LIST, "ID,...", "the tokens, by their ids, in place of a text", AT(ids)},
    {"--compare", CLI_TEXT, "FILE",
     "what another program computed: the log of llama-eval-callback, or an .npz or .npy of such "
     "names; the tokens are the file's where it has them",
     AT(compare), .usual = true},
    {"--no-bos", CLI_ON, NULL, "do not begin with BOS, even if the vocabulary asks for it",
     AT(no_bos)},
    {"--llama-compat", CLI_ON, NULL,
     "compute and cut the text as llama.cpp does where it departs from the model's authors",
     AT(llama_compat)},

    {.type = CLI_HEADING, .help = "Evaluation"},
    {"-c --ctx-size", CLI_COUNT, "N", "evaluate the first N tokens (default: 512)", AT(n_ctx), 1,
     INT32_MAX},
    {"--passes", CLI_COUNT, "N",
     "evaluate N times with rounding that the other program may have, to know what error to expect "
     "(default: 8)",
     AT(n_passes), 1, MOST_PASSES},
    {"--rounding", CLI_CHOICE, "NAME",
     "what is rounded there. llama: what llama.cpp rounds on a CPU (default); float32 or bfloat16: "
     "all values, as a program does that keeps them so",
     AT(rounding), .choices = "llama float32 bfloat16"},
    {"-t --threads", CLI_COUNT, "N", "threads (default: 0, one per processor)", AT(n_threads), 0,
     INT16_MAX},
    {.type = CLI_GROUP, .group = cli_model_options, .offset = AT(load)},

    {.type = CLI_HEADING, .help = "Output"},
    {"--tensor", CLI_LIST, "PATTERN,...",
     "tensors of these names; * and ? stand for anything, as in a shell (default: all)",
     AT(tensors)},
    {"-o --output", CLI_TEXT, "OUT.npz", "write whole tensors, and print no table", AT(output),
     .usual = true},
    {.type = CLI_GROUP, .group = cli_force_options, .offset = AT(force)},
    {0},
};

const struct cli_command cli_command_trace = {
    .name = "trace",
    .usage = "[-m] MODEL (-p TEXT | -f TEXT | --ids LIST | --compare FILE) [options]",
    .summary = "Print the tensors of one window, or find where another program departs.",
    .description =
        "One window is evaluated exactly, and its tensors are printed in the form and with the\n"
        "names of llama-eval-callback. With --compare, the command says how far another\n"
        "program's tensors are from the exact ones, in units of the error to expect, and names\n"
        "the first that departs; then the exit code is 1.",
    .examples = "assay trace f16.gguf -p \"some text\" --compare eval-callback.log\n"
                "Where another program goes wrong: the first tensor that departs, its positions "
                "and head; exit code 1 if one does.",
    .options = options,
    .settings_bytes = sizeof(struct cli_trace_settings),
    .defaults = defaults,
    .run = run_trace,
};

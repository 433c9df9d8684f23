/*
 * POST /v1/evaluate: a body becomes the words of a command, so that a request and a command line
 * are read by the same code, and refused with the same sentences.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/quote.h"
#include "base/text/words.h"
#include "cli/commands.h"
#include "cli/kld/kld_evaluator.h"
#include "cli/options/perplexity.h"
#include "cli/options/value.h"
#include "clients/serve/serve.h"

#define PERPLEXITY_SETTINGS                                                                        \
    offsetof(struct cli_perplexity_settings, evaluate),                                            \
        offsetof(struct cli_perplexity_settings, text)

/** `options`: what a request may say, names of the command's; `tasks` stands for that of tasks. */
static const struct kind {
    const char *name;
    const struct cli_command *command;
    const char *chosen_by; /* the option that asks for it; NULL: none is needed */
    const char *tasks;     /* the option that `tasks` stands for, or NULL */
    const char *options;
    size_t evaluate, text; /* where the command's settings have what is common to all */
} kinds[] = {
    {"perplexity", &cli_command_perplexity, NULL, NULL,
     "protocol ctx-size chunks chunk-from ppl-stride split-lines parse-special escape "
     "context-curve mask chat-template",
     PERPLEXITY_SETTINGS},
    {"kld", &cli_command_kld, NULL, NULL,
     "ctx-size chunks chunk-from js parse-special escape context-curve worst mask chat-template",
     offsetof(struct cli_kld_settings, evaluate), offsetof(struct cli_kld_settings, text)},
    {"hellaswag", &cli_command_perplexity, "--hellaswag", "--hellaswag-tasks",
     "parse-special escape", PERPLEXITY_SETTINGS},
    {"winogrande", &cli_command_perplexity, "--winogrande", "--winogrande-tasks",
     "parse-special escape", PERPLEXITY_SETTINGS},
    {"multiple-choice", &cli_command_perplexity, "--multiple-choice", "--multiple-choice-tasks",
     "parse-special escape", PERPLEXITY_SETTINGS},
    {"mc2", &cli_command_perplexity, "--mc2", "--multiple-choice-tasks", "parse-special escape",
     PERPLEXITY_SETTINGS},
};
static const char kind_names[] = "perplexity kld hellaswag winogrande multiple-choice mc2";
static const char common[] = "kind text wait stream";

enum { MAX_WORDS = 64 };

struct serve_request {
    const struct kind *kind;
    char *words[MAX_WORDS]; /* borrowed: of the server, or of `owned` */
    int n_words;
    size_t n_text;    /* bytes of the request's own text; SIZE_MAX: it has none */
    bool has_objects; /* its text is a list of them */
    size_t n_items;   /* documents or tasks of its text, at most */
    struct cli_list owned;
    void *settings; /* of the command */
    struct cli_args args;
};

static void push(struct serve_request *r, const char *word)
{
    if (r->n_words < MAX_WORDS)
        r->words[r->n_words++] = (char *)(uintptr_t)word;
}

/** Keep a copy of a word. NULL: no memory. */
static const char *own(struct serve_request *r, const char *word, struct status_why *why)
{
    return cli_list_append(&r->owned, word, strlen(word), why) ? NULL
                                                               : r->owned.items[r->owned.n - 1];
}

static bool takes_value(const struct cli_command *command, const char *name)
{
    struct cli_rows rows = {.next = command->options};
    const struct cli_option *row;
    while ((row = cli_rows_next(&rows)))
        if (row->names && base_words_index(row->names, name) >= 0)
            break;
    return row && row->value;
}

/** A member as an option and, where it takes one, its value. */
static enum status push_option(struct serve_request *r, const char *name, const cJSON *member,
                               struct status_why *why)
{
    char digits[40];
    bool wants_value = takes_value(r->kind->command, name);
    const char *value = cJSON_GetStringValue(member);
    if (cJSON_IsNumber(member)) {
        snprintf(digits, sizeof digits, "%.17g", member->valuedouble);
        value = digits;
    }
    if (!wants_value && !cJSON_IsBool(member))
        return status_fail(why, STATUS_USAGE, "%s: expected true or false", member->string);
    if (wants_value && !value)
        return status_fail(why, STATUS_USAGE, "%s: expected a number or a string", member->string);
    if (!wants_value && !cJSON_IsTrue(member))
        return STATUS_OK;
    name = own(r, name, why);
    value = name && wants_value ? own(r, value, why) : name;
    if (!value)
        return STATUS_MEMORY;
    push(r, name);
    if (wants_value)
        push(r, value);
    return STATUS_OK;
}

/** "a, b, c" of words that are separated by blanks; - in them becomes _. */
static const char *list_words(char out[512], const char *more, const char *words)
{
    const char *word;
    size_t length;
    snprintf(out, 512, "%s", more);
    while ((words = base_words_next(words, &word, &length))) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)length, word);
        for (char *c = name; *c; c++)
            *c = *c == '-' ? '_' : *c;
        base_list_name(out, 512, name);
    }
    return out;
}

static enum status fail_member(const struct serve_request *r, const char *member,
                               struct status_why *why)
{
    char list[512];
    const char *more =
        r->kind->tasks ? "kind, text, wait, stream, tasks" : "kind, text, wait, stream";
    return status_fail(why, STATUS_USAGE,
                       "a request of the kind %s has no member '%.40s'; its members are %s",
                       r->kind->name, member, list_words(list, more, r->kind->options));
}

/** A request names no file of the server's. */
static enum status check_template(const cJSON *m, struct status_why *why)
{
    const char *value = cJSON_GetStringValue(m);
    return !value || strchr(value, '{') || model_chat_known(value)
               ? STATUS_OK
               : status_fail(why, STATUS_USAGE,
                             "%s: expected a template, a text with a {, or one of: %s", m->string,
                             MODEL_CHAT_KNOWN);
}

static enum status push_members(struct serve_request *r, struct base_field body,
                                struct status_why *why)
{
    enum status status = STATUS_OK;
    for (const cJSON *m = body.json->child; m && !status; m = m->next) {
        char name[64];
        bool is_tasks = strcmp(m->string, "tasks") == 0;
        if (cJSON_IsNull(m) || base_words_index(common, m->string) >= 0)
            continue;
        snprintf(name, sizeof name, "--%s", m->string);
        for (char *c = name; *c; c++)
            *c = *c == '_' ? '-' : *c;
        if (strcmp(name, "--chat-template") == 0)
            status = check_template(m, why);
        if (status)
            break;
        if (is_tasks && r->kind->tasks)
            status = push_option(r, r->kind->tasks, m, why);
        else if (base_words_index(r->kind->options, name + 2) >= 0)
            status = push_option(r, name, m, why);
        else
            status = fail_member(r, m->string, why);
    }
    return status;
}

/** The text of a request: a string, or a list of objects, which are documents or tasks. */
static enum status take_text(struct serve_request *r, const char **text, struct base_field body,
                             struct status_why *why)
{
    const cJSON *item = base_field_get(body, "text").json;
    if (item && !cJSON_IsArray(item) && !cJSON_IsString(item) && !cJSON_IsNull(item))
        return status_fail(why, STATUS_USAGE, "text: expected a string, or a list of objects");
    r->has_objects = cJSON_IsArray(item);
    char *printed = r->has_objects ? cJSON_PrintUnformatted(item) : NULL;
    *text = r->has_objects ? printed : cJSON_GetStringValue(item);
    bool failed = r->has_objects && !printed;
    r->n_items = r->has_objects            ? (size_t)cJSON_GetArraySize(item)
                 : r->kind->tasks && *text ? serve_n_lines(*text)
                                           : 1;
    if (*text)
        failed = !(*text = own(r, *text, why));
    cJSON_free(printed);
    return failed ? status_fail(why, STATUS_MEMORY, "no memory for the text") : STATUS_OK;
}

/** What is evaluated: the text of the request, or the server's, where one is needed. */
static enum status push_text(struct serve_request *r, const struct serve_settings *s,
                             struct base_field body, struct status_why *why)
{
    const char *text = NULL;
    bool is_kld = r->kind->command == &cli_command_kld;
    enum status status = take_text(r, &text, body, why);
    if (status)
        return status;
    if (is_kld && !s->base)
        return status_fail(why, STATUS_USAGE, "kld: the server has no base; start it with --base");
    bool has_rows = is_kld && cli_base_recognise(s->base) != &cli_base_model;
    if (!text && !s->text_file && !has_rows)
        return status_fail(why, STATUS_USAGE,
                           "text: missing, and the server has none; start it with -f");
    if (text || !has_rows) {
        push(r, text ? "-p" : "-f");
        push(r, text ? text : s->text_file);
    }
    r->n_text = text ? strlen(text) : SIZE_MAX;
    return STATUS_OK;
}

static enum status push_all(struct serve_request *r, const struct serve_settings *s,
                            struct base_field body, struct status_why *why)
{
    int index = base_field_word_or(body, "kind", kind_names, 0);
    enum status status = base_json_status(body.reader, why);
    if (status)
        return status;
    r->kind = &kinds[index];
    push(r, r->kind->command->name);
    push(r, "-m");
    push(r, s->model);
    if (r->kind->command == &cli_command_kld && s->base) {
        push(r, "--base");
        push(r, s->base);
    }
    if (r->kind->chosen_by)
        push(r, r->kind->chosen_by);
    status = push_text(r, s, body, why);
    return status ? status : push_members(r, body, why);
}

static enum status parse(struct serve_request *r, struct status_why *why)
{
    const struct cli_command *command = r->kind->command;
    r->settings = calloc(1, command->settings_bytes);
    if (!r->settings)
        return status_fail(why, STATUS_MEMORY, "no memory for a request");
    command->defaults(r->settings);
    enum status status = cli_args_parse(command, r->n_words, r->words, r->settings, &r->args, why);
    ((struct cli_text_settings *)(void *)((char *)r->settings + r->kind->text))->lines =
        r->has_objects;
    return status;
}

static void fill(void *request, const struct serve *serve, struct base_field body)
{
    struct serve_request *r = request;
    struct status_why why = {""};
    enum status status = push_all(r, serve->settings, body, &why);
    if (!status)
        status = parse(r, &why);
    base_json_keep(body.reader, status, &why);
}

/** The kind of /perplexity, whose evaluation is always the same one. */
static void fill_addition(void *request, const struct serve *serve, struct base_field body)
{
    if (base_field_get(body, "kind").json)
        base_field_fail(body, STATUS_USAGE, "kind: goes with /v1/evaluate only");
    fill(request, serve, body);
}

static void free_request(void *request)
{
    struct serve_request *r = request;
    if (r->settings)
        cli_args_release(r->kind->command, r->settings);
    free(r->settings);
    cli_list_clear(&r->owned);
    free(r);
}

static enum status run(void *server, struct serve_job *job, struct status_why *why)
{
    struct serve *serve = server;
    const struct serve_request *r = job->input;
    struct cli_evaluate_settings *settings = (void *)((char *)r->settings + r->kind->evaluate);
    const struct cli_evaluate_settings parsed = *settings;
    *settings = serve->settings->evaluate; /* the server's machine, the server's models */
    struct serve_turn turn;
    serve_turn_begin(&turn, &serve->resident, serve->jobs, job);
    struct serve_resident_host host = {.resident = &serve->resident,
                                       .backends = turn.backends,
                                       .crew = turn.with,
                                       .cancel = &job->cancel,
                                       .progress = serve_turn_progress,
                                       .user = &turn};
    serve_resident_host_make(&host);
    settings->host = &host.host;
    enum status status = r->kind->command->run(r->settings, &r->args, why);
    *settings = parsed; /* whose lists are the request's */
    job->result = host.document;
    return status;
}

/** The text's windows are added to the state, which must be of this model. */
static enum status run_addition(void *server, struct serve_job *job, struct status_why *why)
{
    enum status status = serve_perplexity_check(server, why);
    if (!status)
        status = run(server, job, why);
    return status ? status : serve_perplexity_add(server, job, why);
}

/** Plain windows have those of the text that came with the request: a byte is one at most. */
static size_t n_tokens(const void *request)
{
    const struct serve_request *r = request;
    bool is_plain = !r->kind->chosen_by;
    for (int i = 0; i < r->n_words; i++)
        is_plain = is_plain && base_words_index("--ppl-stride --protocol", r->words[i]) < 0;
    return is_plain ? r->n_text : SIZE_MAX;
}

/** An item has its tokens, its scores, and a dozen members in the document. */
static size_t n_bytes(const void *request)
{
    enum { OF_ITEM = 4096, OF_BYTE = 16 };
    const struct serve_request *r = request;
    return r->n_items * OF_ITEM + (r->n_text == SIZE_MAX ? 0 : r->n_text * OF_BYTE);
}

const struct serve_post serve_evaluating = {{"evaluate", run, free_request, .n_tokens = n_tokens},
                                            sizeof(struct serve_request),
                                            fill,
                                            .waits = true,
                                            .n_bytes = n_bytes};
const struct serve_post serve_adding = {{"perplexity", run_addition, free_request},
                                        sizeof(struct serve_request),
                                        fill_addition,
                                        .waits = true,
                                        .n_bytes = n_bytes};

/*
 * POST /v1/evaluate: a body becomes the words of a command, so that a request and a command line
 * are read by the same code, and refused with the same sentences.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/words.h"
#include "cli/commands.h"
#include "cli/kld/evaluator.h"
#include "cli/options/perplexity.h"
#include "cli/options/value.h"
#include "serve/serve.h"

/** `options`: what a request may say, names of the command's; `tasks` stands for that of tasks. */
static const struct kind {
    const char *name;
    const struct cli_command *command;
    const char *chosen_by; /* the option that asks for it; NULL: none is needed */
    const char *tasks;     /* the option that `tasks` stands for, or NULL */
    const char *options;
} kinds[] = {
    {"perplexity", &cli_command_perplexity, NULL, NULL,
     "protocol ctx-size chunks chunk-from ppl-stride split-lines parse-special escape "
     "context-curve"},
    {"kld", &cli_command_kld, NULL, NULL,
     "ctx-size chunks chunk-from js parse-special escape context-curve worst"},
    {"hellaswag", &cli_command_perplexity, "--hellaswag", "--hellaswag-tasks",
     "parse-special escape"},
    {"winogrande", &cli_command_perplexity, "--winogrande", "--winogrande-tasks",
     "parse-special escape"},
    {"multiple-choice", &cli_command_perplexity, "--multiple-choice", "--multiple-choice-tasks",
     "parse-special escape"},
};
static const char kind_names[] = "perplexity kld hellaswag winogrande multiple-choice";
static const char common[] = "kind text wait stream";

enum { MAX_WORDS = 64 };

struct cli_request {
    const struct kind *kind;
    char *words[MAX_WORDS]; /* borrowed: of the server, or of `owned` */
    int n_words;
    struct cli_list owned;
    void *settings; /* of the command */
    struct cli_args args;
};

static void push(struct cli_request *r, const char *word)
{
    if (r->n_words < MAX_WORDS)
        r->words[r->n_words++] = (char *)(uintptr_t)word;
}

/** Keep a copy of a word. NULL: no memory. */
static const char *own(struct cli_request *r, const char *word, struct status_why *why)
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
static enum status push_option(struct cli_request *r, const char *name, const cJSON *member,
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

static enum status fail_member(const struct cli_request *r, const char *member,
                               struct status_why *why)
{
    return status_fail(why, STATUS_USAGE,
                       "'%.40s' is no member of a request of the kind %s, whose members are %s%s "
                       "%s; give one of these, with - or _ between words, or leave it out",
                       member, r->kind->name, common, r->kind->tasks ? " tasks" : "",
                       r->kind->options);
}

static enum status push_members(struct cli_request *r, const cJSON *body, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (const cJSON *m = body->child; m && !status; m = m->next) {
        char name[64];
        bool is_tasks = strcmp(m->string, "tasks") == 0;
        if (cJSON_IsNull(m) || base_words_index(common, m->string) >= 0)
            continue;
        snprintf(name, sizeof name, "--%s", m->string);
        for (char *c = name; *c; c++)
            *c = *c == '_' ? '-' : *c;
        if (is_tasks && r->kind->tasks)
            status = push_option(r, r->kind->tasks, m, why);
        else if (base_words_index(r->kind->options, name + 2) >= 0)
            status = push_option(r, name, m, why);
        else
            status = fail_member(r, m->string, why);
    }
    return status;
}

/** What is evaluated: the text of the request, or the server's, where one is needed. */
static enum status push_text(struct cli_request *r, const struct serve_settings *s,
                             const cJSON *body, struct status_why *why)
{
    const char *text = NULL;
    bool is_kld = r->kind->command == &cli_command_kld;
    enum status status = serve_body_text(&text, body, "text", why);
    if (status)
        return status;
    if (is_kld && !s->base)
        return status_fail(why, STATUS_USAGE, "kld: the server has no base; start it with --base");
    bool has_rows = is_kld && cli_base_recognise(s->base) != &cli_base_model;
    if (!text && !s->text_file && !has_rows)
        return status_fail(why, STATUS_USAGE,
                           "text: missing, and the server has none; start it with -f");
    if (text && !(text = own(r, text, why)))
        return STATUS_MEMORY;
    if (text || !has_rows) {
        push(r, text ? "-p" : "-f");
        push(r, text ? text : s->text_file);
    }
    return STATUS_OK;
}

static enum status push_all(struct cli_request *r, const struct serve_settings *s,
                            const cJSON *body, struct status_why *why)
{
    const char *name = kinds[0].name;
    enum status status = serve_body_text(&name, body, "kind", why);
    int index = status ? 0 : base_words_index(kind_names, name);
    if (index < 0)
        status =
            status_fail(why, STATUS_USAGE, "kind: '%.40s' is not one of: %s", name, kind_names);
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

static enum status fill(void *request, const struct serve *serve, const cJSON *body,
                        struct status_why *why)
{
    struct cli_request *r = request;
    enum status status = push_all(r, serve->settings, body, why);
    if (status)
        return status;
    const struct cli_command *command = r->kind->command;
    r->settings = calloc(1, command->settings_bytes);
    if (!r->settings)
        return status_fail(why, STATUS_MEMORY, "no memory for a request");
    command->defaults(r->settings);
    return cli_args_parse(command, r->n_words, r->words, r->settings, &r->args, why);
}

/** Of /perplexity: the evaluation is always the same one. */
static enum status fill_addition(void *request, const struct serve *serve, const cJSON *body,
                                 struct status_why *why)
{
    if (cJSON_HasObjectItem(body, "kind"))
        return status_fail(why, STATUS_USAGE, "kind: goes with /v1/evaluate only");
    return fill(request, serve, body, why);
}

static void free_request(void *request)
{
    struct cli_request *r = request;
    if (r->settings)
        cli_args_release(r->kind->command, r->settings);
    free(r->settings);
    cli_list_clear(&r->owned);
    free(r);
}

enum status serve_request_run(struct serve *serve, const struct cli_request *r,
                              struct serve_job *job, struct status_why *why)
{
    struct cli_evaluate_settings *settings =
        (void *)((char *)r->settings + r->kind->command->evaluate);
    const struct cli_evaluate_settings parsed = *settings;
    *settings = serve->settings->evaluate; /* the server's machine, the server's models */
    settings->host = &serve->resident.host;
    serve_run(serve, job);
    enum status status = r->kind->command->run(r->settings, &r->args, why);
    *settings = parsed; /* whose lists are the request's */
    job->result = serve->resident.document;
    serve->resident.document = NULL;
    return status;
}

static enum status run(void *server, struct serve_job *job, struct status_why *why)
{
    return serve_request_run(server, job->input, job, why);
}

const struct serve_post serve_evaluating = {
    {"evaluate", run, free_request}, sizeof(struct cli_request), fill, .waits = true};
const struct serve_post serve_adding = {{"perplexity", serve_perplexity_add, free_request},
                                        sizeof(struct cli_request),
                                        fill_addition,
                                        .waits = true};

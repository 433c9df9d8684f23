/* assay tokenize: a text as the ids that a model sees. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/content/text.h"
#include "cli/commands.h"
#include "cli/input/documents.h"
#include "cli/input/input_text.h"
#include "cli/options/common.h"
#include "eval/input.h"
#include "model/model.h"

struct settings {
    const char *model, *text_file, *prompt, *tokenizer_pre;
    bool ids, documents, no_bos, no_parse_special, llama_compat;
    struct cli_chat_settings chat;
};

/* "[1, 2, 3]" */
static void print_ids(const int32_t *ids, size_t n)
{
    putchar('[');
    for (size_t i = 0; i < n; i++)
        printf("%s%" PRId32, i ? ", " : "", ids[i]);
    putchar(']');
}

/* A line for each token: its id, and the bytes that it stands for. scored: those that are get a
 * star; NULL: there is no such column. */
static enum status print_tokens(const struct model_tokenizer *tokenizer, const int32_t *ids,
                                size_t n, const uint8_t *scored, struct status_why *why)
{
    struct eval_spelling spelling = {0};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < n && !status; i++) {
        status = eval_spell(&spelling, tokenizer, ids[i], why);
        if (!status)
            printf("%s%6" PRId32 " -> '%s'\n",
                   !scored     ? ""
                   : scored[i] ? "* "
                               : "  ",
                   ids[i], spelling.escaped);
    }
    eval_spelling_free(&spelling);
    return status;
}

static void print_flags(const uint8_t *flags, size_t n)
{
    for (size_t i = 0; i < n; i++)
        printf("%s%d", i ? ", " : "", flags[i]);
}

/* A document: its tokens, those that are scored with a star; or, with --ids, a line that can be
   read as a document again. */
static enum status print_document(const struct model_tokenizer *tokenizer,
                                  const struct eval_documents *d, size_t i, bool as_ids,
                                  struct status_why *why)
{
    const struct eval_document *item = &d->items[i];
    const int32_t *ids = d->stream.ids + item->first;
    const uint8_t *scored = d->scored + item->first;
    if (as_ids) {
        printf("{\"ids\": ");
        print_ids(ids, item->n_tokens);
        printf(", \"mask\": [");
        print_flags(scored, item->n_tokens);
        puts("]}");
        return STATUS_OK;
    }
    printf("line %zu: %zu tokens, %zu scored\n", item->line, item->n_tokens, item->n_scored);
    return print_tokens(tokenizer, ids, item->n_tokens, scored, why);
}

static enum status run_documents(const struct settings *s, const struct model_tokenizer *tokenizer,
                                 struct status_why *why)
{
    const struct cli_text_settings text = {
        .texts = {(char *[]){(char *)(uintptr_t)s->text_file}, 1},
        .parse_special = !s->no_parse_special,
        .lines = true,
        .chat = s->chat};
    struct eval_documents d;
    enum status status = cli_documents_read(&d, &text, NULL, tokenizer, MODEL_CHAT_ASSISTANT, why);
    for (size_t i = 0; i < d.n && !status; i++)
        status = print_document(tokenizer, &d, i, s->ids, why);
    eval_documents_free(&d);
    return status;
}

static enum status check_settings(const struct settings *s, struct status_why *why)
{
    if (!s->text_file == !s->prompt)
        return status_fail(why, STATUS_USAGE, "expected one text, by -f or by -p; found %s",
                           s->prompt ? "both" : "none");
    if (s->documents && (s->prompt || s->no_bos))
        return status_fail(why, STATUS_USAGE, "--documents takes -f, and no %s",
                           s->prompt ? "-p" : "--no-bos");
    return s->documents ? STATUS_OK : cli_chat_check(&s->chat, 0, why);
}

static void defaults(void *settings)
{
    *(struct settings *)settings = (struct settings){.chat = cli_chat_defaults};
}

static enum status read_text(struct base_text *text, const struct settings *s,
                             struct status_why *why)
{
    if (s->prompt)
        return base_text_copy(text, s->prompt, strlen(s->prompt), why);
    enum status status = base_text_read_any(text, s->text_file, BASE_TEXT_MAX_BYTES, why);
    cli_text_note(text, s->text_file);
    return status;
}

static enum status run_text(const struct settings *s, const struct model_tokenizer *tokenizer,
                            struct status_why *why)
{
    struct base_text text = {0};
    struct model_tokens tokens = {0};
    enum status status = read_text(&text, s, why);
    if (!status && !s->no_bos)
        status = model_begin_text(tokenizer, &tokens, why);
    if (!status)
        status =
            model_tokenize(tokenizer, text.data, text.n_bytes, !s->no_parse_special, &tokens, why);
    if (!status && s->ids) {
        print_ids(tokens.ids, tokens.n);
        putchar('\n');
    } else if (!status) {
        status = print_tokens(tokenizer, tokens.ids, tokens.n, NULL, why);
    }
    free(tokens.ids);
    base_text_free(&text);
    return status;
}

static enum status run_tokenize(const void *opaque, const struct cli_args *args,
                                struct status_why *why)
{
    (void)args;
    const struct settings *settings = opaque;
    struct gguf_file *file = NULL;
    struct model_tokenizer *tokenizer = NULL;
    enum status status = check_settings(settings, why);
    if (!status)
        status = model_tokens_open(&file, settings->model, 0, why);
    if (!status)
        status = model_tokenizer_open(&tokenizer, file, settings->tokenizer_pre,
                                      settings->llama_compat, why);
    if (!status)
        status = settings->documents ? run_documents(settings, tokenizer, why)
                                     : run_text(settings, tokenizer, why);
    if (!status)
        status = gguf_check_unchanged(file, why);
    model_tokenizer_close(tokenizer);
    gguf_close(file);
    return status;
}

static const struct cli_option options[] = {
    {.type = CLI_GROUP,
     .group = cli_model_file_options,
     .offset = offsetof(struct settings, model),
     .help = "; tensors are not needed"},
    {"-f --file", CLI_TEXT, "FILE",
     "the text, its last newline too; UTF-16 becomes UTF-8; - reads standard input",
     offsetof(struct settings, text_file)},
    {"-p --prompt", CLI_TEXT, "TEXT", "the text itself", offsetof(struct settings, prompt)},
    {"--ids", CLI_ON, NULL, "print the ids as one list: [1, 2, 3] (default: a line for each token)",
     offsetof(struct settings, ids)},
    {"--documents", CLI_ON, NULL,
     "the file has JSON objects, as perplexity reads them: print each document, a star before the "
     "tokens that are scored; with --ids as {\"ids\": [...], \"mask\": [...]}",
     offsetof(struct settings, documents)},
    {.type = CLI_GROUP, .group = cli_chat_options, .offset = offsetof(struct settings, chat)},
    {"--no-bos", CLI_ON, NULL, "do not begin with BOS, even if the vocabulary asks for it",
     offsetof(struct settings, no_bos)},
    {"--no-parse-special", CLI_ON, NULL, "take names of control tokens in the text as plain text",
     offsetof(struct settings, no_parse_special)},
    {"--llama-compat", CLI_ON, NULL,
     "cut the text as llama.cpp does where it departs from the model's authors",
     offsetof(struct settings, llama_compat)},
    {.type = CLI_GROUP,
     .group = cli_pretokenizer_options,
     .offset = offsetof(struct settings, tokenizer_pre)},
    {0},
};

const struct cli_command cli_command_tokenize = {
    .name = "tokenize",
    .usage = "[-m] MODEL (-f FILE | -p TEXT) [options]",
    .summary = "Print the token ids of a text.",
    .description =
        "Each token is a line with its id and its text, unless --ids or --documents says\n"
        "otherwise. Only the vocabulary is read, so a file without tensors will do.",
    .examples = "assay tokenize model.gguf -f text --ids\n"
                "The tokens of a text.",
    .options = options,
    .settings_bytes = sizeof(struct settings),
    .defaults = defaults,
    .run = run_tokenize,
};

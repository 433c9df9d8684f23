#include "cli/input/input_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/content/kind.h"
#include "cli/process/say.h"
#include "eval/input.h"

const char cli_text_remedy[] = ", or say --force-text or --binary-file";

enum status cli_doubt(bool strict, struct status_why *why, const char *format, ...)
{
    struct status_why doubt;
    va_list values;
    va_start(values, format);
    vsnprintf(doubt.text, sizeof doubt.text, format, values);
    va_end(values);
    if (strict)
        return status_fail(why, STATUS_USAGE, "--strict: %s", doubt.text);
    cli_say("assay: note: %s\n", doubt.text);
    return STATUS_OK;
}

void cli_text_note(const struct base_text *text, const char *path)
{
    if (text->converted_from)
        cli_say("assay: note: %s: is %s; its text is evaluated as UTF-8\n", path,
                text->converted_from);
}

enum status cli_text_recognise(bool *documents, const struct base_text *text, const char *path,
                               const struct cli_text_settings *s, struct status_why *why)
{
    static const char *const options[] = {[EVAL_HELLASWAG] = "--hellaswag",
                                          [EVAL_WINOGRANDE] = "--winogrande",
                                          [EVAL_MULTIPLE_CHOICE] = "--multiple-choice"};
    enum eval_json json = EVAL_JSON_NONE;
    enum eval_choice_kind kind;
    bool is_tasks = false;
    bool is_lines = cli_text_is_lines(path) && !s->undivided;
    *documents = is_lines;
    enum status status = eval_documents_recognise(&json, text->data, text->n_bytes, why);
    if (status)
        status_context(why, "%s", path);
    else if (json != EVAL_JSON_DOCUMENTS)
        status = eval_dataset_recognise(&kind, &is_tasks, text->data, text->n_bytes, why);
    if (is_tasks && is_lines)
        return status_fail(why, STATUS_USAGE,
                           "%s: seems to be tasks; assay perplexity %s scores them", path,
                           options[kind]);
    if (is_tasks)
        return cli_doubt(s->strict, why,
                         "%s: seems to be tasks, and is evaluated as a text; assay perplexity %s "
                         "scores them",
                         path, options[kind]);
    if (status || is_lines || json == EVAL_JSON_NONE)
        return status;
    *documents = json == EVAL_JSON_DOCUMENTS && !s->undivided;
    if (*documents)
        return STATUS_OK;
    return cli_doubt(s->strict, why,
                     json == EVAL_JSON_OTHER
                         ? "%s: has JSON objects of no form of docs/chats.md (\"text\", "
                           "\"messages\", ...), and is evaluated as it stands"
                         : "%s: has JSON documents, and is evaluated as it stands, as "
                           "llama-perplexity does; assay perplexity reads documents",
                     path);
}

/* What nobody sees of a text and what changes a perplexity; or that it is a page of the web. */
static enum status doubt_bytes(const struct base_text *text, const char *path, bool strict,
                               struct status_why *why)
{
    const struct base_file_kind *kind =
        base_file_kind((struct base_string){text->data, text->n_bytes});
    size_t n_crlf = base_count_crlf(text->data, text->n_bytes);
    enum status status = STATUS_OK;
    if (kind)
        status = cli_doubt(strict, why, "%s: is %s and is evaluated as it stands; %s", path,
                           kind->name, kind->remedy);
    if (!status && base_text_has_mark(text))
        status = cli_doubt(strict, why,
                           "%s: begins with a byte-order mark, which is evaluated as a character "
                           "and changes the perplexity; take its 3 bytes out",
                           path);
    if (!status && n_crlf)
        status = cli_doubt(strict, why,
                           "%s: %zu of its line ends %s CR and LF; the CR is evaluated as a "
                           "character and changes the perplexity; take it out (tr -d '\\r')",
                           path, n_crlf, n_crlf == 1 ? "is" : "are");
    return status;
}

bool cli_text_is_doubtful(const struct cli_text_settings *s)
{
    return !s->prompt && !s->binary_file && !s->force_text;
}

enum status cli_text_read(struct base_text *out, const struct cli_text_settings *s,
                          struct status_why *why)
{
    if (s->prompt)
        return base_text_copy(out, s->prompt, strlen(s->prompt), why);
    if (s->binary_file)
        return base_text_read_whole(out, s->binary_file, BASE_TEXT_MAX_BYTES, why);
    if (s->force_text)
        return base_text_read(out, s->text_file, BASE_TEXT_MAX_BYTES, why);
    return base_text_read_utf8(out, s->text_file, BASE_TEXT_MAX_BYTES, cli_text_remedy, why);
}

enum status cli_text_prepare(struct base_text *text, const struct cli_text_settings *s,
                             struct status_why *why)
{
    enum status status = STATUS_OK;
    cli_text_note(text, s->text_file);
    if (cli_text_is_doubtful(s))
        status = doubt_bytes(text, s->text_file, s->strict, why);
    if (!status && s->escape)
        base_text_unescape(text);
    return status;
}

enum status cli_text_open(struct base_text *out, const struct cli_text_settings *s,
                          struct status_why *why)
{
    enum status status = cli_text_read(out, s, why);
    return status ? status : cli_text_prepare(out, s, why);
}

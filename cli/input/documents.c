#include "cli/input/documents.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/content/kind.h"
#include "base/file/folder.h"
#include "base/text/quote.h"
#include "cli/process/say.h"

enum { MAX_TEMPLATE_BYTES = 16 << 20, CHAT_SECONDS = 600 };

static enum status add_objects(struct eval_documents *d, const char *path, struct base_text *text,
                               const struct cli_text_settings *s, struct status_why *why)
{
    if (s->escape)
        return status_fail(why, STATUS_USAGE,
                           "-e: %s has JSON, which has escapes of its own; leave -e out", path);
    if (!s->lines && !cli_text_is_lines(path))
        cli_say("assay: note: %s: has JSON objects, each of which is a document; --force-text "
                "evaluates it as it stands\n",
                path);
    enum status status = eval_documents_begin_file(d, path, text, why);
    if (!status)
        status = eval_documents_add_objects(d, text->data, text->n_bytes, why);
    if (!status && d->refused.n_of_file) {
        char lines[256];
        eval_refused_lines(lines, sizeof lines, &d->refused);
        cli_say("assay: note: %s: %zu conversation%s left out, which the chat template refuses, in "
                "line%s %s; line %zu: %s\n",
                path, d->refused.n_of_file, d->refused.n_of_file == 1 ? " is" : "s are",
                status_plural(d->refused.n_of_file), lines, d->refused.lines[0],
                d->refused.why.text);
    }
    return status;
}

static enum status add_text(struct eval_documents *d, const char *path, struct base_text *text,
                            const struct cli_text_settings *s, struct status_why *why)
{
    enum status status = eval_documents_begin_file(d, path, text, why);
    if (!status && s->escape)
        base_text_unescape(text);
    return status ? status
                  : eval_documents_add_text(d, &(struct eval_document_head){0},
                                            (struct base_string){text->data, text->n_bytes}, why);
}

static enum status add_file(struct eval_documents *d, const char *path,
                            const struct cli_text_settings *s, struct status_why *why)
{
    struct base_text text;
    enum status status = base_text_read_document(&text, path, BASE_TEXT_MAX_BYTES,
                                                 s->force_text ? NULL : cli_text_remedy, why);
    if (status)
        return status;
    cli_text_note(&text, path);
    bool objects = s->lines;
    if (!objects && !s->force_text)
        status = cli_text_recognise(&objects, &text, path, s, why);
    if (!status)
        status = (objects ? add_objects : add_text)(d, path, &text, s, why);
    base_text_free(&text);
    return status;
}

static enum status add_folder(struct eval_documents *d, const char *path,
                              const struct cli_text_settings *s, struct status_why *why)
{
    struct base_folder folder;
    enum status status = base_folder_list(&folder, path, why);
    if (status)
        return status;
    if (folder.n == 0)
        status = status_fail(why, STATUS_FORMAT,
                             "%s: the folder has no files (%zu folders and others; hidden ones and "
                             "those of folders in it are not read)",
                             path, folder.n_others);
    else if (folder.n_others)
        cli_say("assay: note: %s: %zu of its entries %s no file%s, and left out\n", path,
                folder.n_others, folder.n_others == 1 ? "is" : "are",
                status_plural(folder.n_others));
    for (size_t i = 0; i < folder.n && !status; i++)
        status = add_file(d, folder.paths[i], s, why);
    base_folder_free(&folder);
    return status;
}

/* The note counts all files together: a folder may have thousands. */
static enum status doubt_texts(const struct eval_documents *d, bool strict, struct status_why *why)
{
    size_t n_crlf = 0, n_marks = 0, n_pages = 0, n = 0, first = 0;
    for (size_t i = d->n_files; i-- > 0;) {
        const struct eval_document_file *file = &d->files[i];
        n_crlf += file->n_crlf;
        n_marks += file->n_marks;
        n_pages += file->is_page;
        if (file->n_crlf || file->n_marks || file->is_page) {
            first = i;
            n++;
        }
    }
    return n ? cli_doubt(strict, why,
                         "%zu of %zu file%s, %s first, %s what changes the perplexity: CRs of %zu "
                         "line end%s, %zu byte-order mark%s, %zu HTML page%s; all are evaluated as "
                         "they stand",
                         n, d->n_files, status_plural(d->n_files), d->paths[first],
                         n == 1 ? "has" : "have", n_crlf, status_plural(n_crlf), n_marks,
                         status_plural(n_marks), n_pages, status_plural(n_pages))
             : STATUS_OK;
}

static enum status doubt_template(const struct eval_documents *d, bool strict,
                                  struct status_why *why)
{
    char list[512] = "", name[128];
    for (size_t i = 0; i < d->markers.names.n; i++) {
        const struct base_string *s = &d->markers.names.strings[i];
        if (!d->markers.items[i].missing)
            continue;
        snprintf(name, sizeof name, "%.*s (%zu tokens)", (int)s->n_bytes, s->data,
                 d->markers.items[i].n_tokens);
        base_list_name(list, sizeof list, name);
    }
    return *list ? cli_doubt(strict, why,
                             "the chat template writes what the vocabulary has no token for, and "
                             "it is evaluated as plain text: %s; is it the template of this model?",
                             list)
                 : STATUS_OK;
}

/* Prompts with completions are conversations without a template. */
static enum status check_chats(const struct eval_documents *d, const struct cli_chat_settings *s,
                               struct status_why *why)
{
    if (s->chat_template && d->n_conversations && !*d->template_sha256)
        return status_fail(why, STATUS_USAGE,
                           "--chat-template: texts \"prompt\" and \"completion\" are evaluated as "
                           "they stand, and there are no other conversations; leave it out");
    return cli_chat_check(s, d->n_conversations + d->refused.n, why);
}

static enum status finish(struct eval_documents *d, const struct cli_text_settings *s,
                          struct status_why *why)
{
    size_t n = 0;
    enum status status = eval_documents_end(d, why);
    if (!status)
        status = check_chats(d, &s->chat, why);
    if (!status && !s->force_text)
        status = doubt_texts(d, s->strict, why);
    if (!status)
        status = doubt_template(d, s->strict, why);
    if (!status && *d->odd_role)
        status = cli_doubt(s->strict, why,
                           "line %zu has a message of the role '%s', which most templates write "
                           "as it stands; expected system, user, assistant or tool",
                           d->odd_line, d->odd_role);
    for (size_t i = 0; i < d->n && !status; i++)
        n += d->items[i].n_scored == 0;
    if (n)
        cli_say("assay: note: %zu of %zu document%s %s no token that is scored\n", n, d->n,
                status_plural(d->n), n == 1 ? "has" : "have");
    return status;
}

enum status cli_chat_template_read(struct base_text *out, const struct cli_chat_settings *s,
                                   struct status_why *why)
{
    *out = (struct base_text){0};
    if (!s->chat_template)
        return STATUS_OK;
    const char *known = model_chat_known(s->chat_template);
    if (!known && strchr(s->chat_template, '{'))
        known = s->chat_template;
    if (known)
        return base_text_copy(out, known, strlen(known), why);
    enum status status = base_text_read_whole(out, s->chat_template, MAX_TEMPLATE_BYTES, why);
    if (status && access(s->chat_template, F_OK) != 0)
        status = status_fail(why, STATUS_USAGE,
                             "--chat-template: %s is no file, and no template that is known: %s",
                             s->chat_template, MODEL_CHAT_KNOWN);
    if (status)
        return status;
    status =
        base_file_check_kind((struct base_string){out->data, out->n_bytes}, "a chat template", why);
    if (status)
        status_context(why, "%s", s->chat_template);
    return status;
}

static enum status add_all(struct eval_documents *d, const struct cli_text_settings *s,
                           struct status_why *why)
{
    bool standard_input = false;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < s->texts.n && !status; i++) {
        const char *path = s->texts.items[i];
        bool is_input = strcmp(path, "-") == 0;
        if (is_input && standard_input)
            return status_fail(why, STATUS_USAGE, "-f -: standard input can be read once only");
        standard_input |= is_input;
        status = base_is_folder(path) ? add_folder(d, path, s, why) : add_file(d, path, s, why);
    }
    return status;
}

enum status cli_documents_read(struct eval_documents *out, const struct cli_text_settings *s,
                               struct base_text *text, const struct model_tokenizer *tokenizer,
                               enum model_chat_mask usual, struct status_why *why)
{
    struct base_text template;
    enum status status = cli_chat_template_read(&template, &s->chat, why);
    const struct eval_document_rules rules = {
        .tokenizer = tokenizer,
        .parse_special = s->parse_special,
        .chat_template = {template.data, template.n_bytes},
        .skip_refused = s->chat.skip_refused,
        .mask = s->chat.mask < 0 ? usual : (enum model_chat_mask)s->chat.mask,
        .chat_seconds = CHAT_SECONDS};
    *out = (struct eval_documents){.rules = &rules};
    if (!status)
        status = text ? add_objects(out, s->prompt ? "text" : s->text_file, text, s, why)
                      : add_all(out, s, why);
    if (!status)
        status = finish(out, s, why);
    out->rules = NULL;
    base_text_free(&template);
    return status;
}

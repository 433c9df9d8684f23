#include "cli/session/documents.h"

#include <string.h>

#include "base/file/folder.h"
#include "cli/output/say.h"

enum { MAX_TEMPLATE_BYTES = 16 << 20, CHAT_SECONDS = 600 };

const char cli_text_remedy[] = ", or say --force-text or --binary-file";

void cli_text_note(const struct eval_text *text, const char *path)
{
    if (text->converted_from)
        cli_say("assay: note: %s: is %s; its text is evaluated as UTF-8\n", path,
                text->converted_from);
}

static enum status add_file(struct eval_documents *d, const char *path,
                            const struct cli_text_settings *s, struct status_why *why)
{
    struct eval_text text;
    bool lines = s->lines || (!s->force_text && cli_text_is_lines(path));
    if (lines && s->escape)
        return status_fail(why, STATUS_USAGE,
                           "-e: %s is JSON lines, which have escapes of their own; leave -e out",
                           path);
    enum status status = eval_text_read_document(&text, path, EVAL_TEXT_MAX_BYTES,
                                                 s->force_text ? NULL : cli_text_remedy, why);
    if (status)
        return status;
    cli_text_note(&text, path);
    if (s->escape)
        eval_text_unescape(&text);
    status = eval_documents_begin_file(d, path, &text, why);
    if (!status && lines)
        status = eval_documents_add_lines(d, text.data, text.n_bytes, why);
    else if (!status)
        status = eval_documents_add_text(d, &(struct eval_document_head){0},
                                         (struct base_string){text.data, text.n_bytes}, why);
    eval_text_free(&text);
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

static void print_notes(const struct eval_documents *d, const struct cli_chat_settings *s)
{
    const char *given = s->chat_template ? "--chat-template" : s->mask ? "--mask" : NULL;
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++)
        n += d->items[i].n_scored == 0;
    if (n)
        cli_say("assay: note: %zu of %zu document%s %s no token that is scored\n", n, d->n,
                status_plural(d->n), n == 1 ? "has" : "have");
    if (given && !d->n_conversations)
        cli_say("assay: note: %s is for conversations, and the text has none\n", given);
}

enum status cli_chat_template_read(struct eval_text *out, const struct cli_chat_settings *s,
                                   struct status_why *why)
{
    *out = (struct eval_text){0};
    if (!s->chat_template)
        return STATUS_OK;
    return strchr(s->chat_template, '{')
               ? eval_text_copy(out, s->chat_template, strlen(s->chat_template), why)
               : eval_text_read_whole(out, s->chat_template, MAX_TEMPLATE_BYTES, why);
}

enum status cli_documents_read(struct eval_documents *out, const struct cli_text_settings *s,
                               const struct model_tokenizer *tokenizer, struct status_why *why)
{
    struct eval_text template;
    enum status status = cli_chat_template_read(&template, &s->chat, why);
    const struct eval_document_rules rules = {.tokenizer = tokenizer,
                                              .parse_special = s->parse_special,
                                              .chat_template = {template.data, template.n_bytes},
                                              .mask = (enum model_chat_mask)s->chat.mask,
                                              .chat_seconds = CHAT_SECONDS};
    *out = (struct eval_documents){.rules = &rules};
    bool standard_input = false;
    for (size_t i = 0; i < s->texts.n && !status; i++) {
        const char *path = s->texts.items[i];
        bool is_input = strcmp(path, "-") == 0;
        if (is_input && standard_input)
            status = status_fail(why, STATUS_USAGE, "-f -: standard input can be read once only");
        standard_input |= is_input;
        if (status)
            break;
        status = base_is_folder(path) ? add_folder(out, path, s, why) : add_file(out, path, s, why);
    }
    if (!status)
        status = eval_documents_end(out, why);
    if (!status)
        print_notes(out, &s->chat);
    out->rules = NULL;
    eval_text_free(&template);
    return status;
}

#include "cli/input/tokens.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/process/say.h"
#include "model/model.h"

/** What two lists of tokens of one text do not share: those at another place, or with another id.
 */
struct differing {
    size_t n, first, byte; /* of the first list; which is the first, and where in the text */
};

/** Both lists begin after BOS. */
static struct differing compare(const struct eval_stream *a, const struct eval_stream *b)
{
    struct differing d = {0};
    size_t i = a->has_bos, k = b->has_bos, at = 0, at_b = 0;
    while (i < a->n) {
        if (k < b->n && at_b < at) { /* the other list lags behind */
            at_b += b->n_text_bytes[k++];
            continue;
        }
        bool same = k < b->n && at == at_b && a->ids[i] == b->ids[k];
        if (!same && d.n++ == 0) {
            d.first = i;
            d.byte = at;
        }
        if (k < b->n && at == at_b)
            at_b += b->n_text_bytes[k++];
        at += a->n_text_bytes[i++];
    }
    return d;
}

static enum status tell(const struct cli_tokens_given *given, const char *folder,
                        const struct model_tokenizer *tokenizer, const struct eval_stream *own,
                        struct status_why *why)
{
    const struct eval_stream *used = &given->windows->stream;
    struct differing d = compare(used, own);
    struct eval_spelling here = {0}, there = {0};
    enum status status = STATUS_OK;
    if (used->has_bos != own->has_bos)
        cli_say("assay: note: texts begin with BOS by %s and not by %s; those of %s are used\n",
                used->has_bos ? given->from : folder, used->has_bos ? folder : given->from,
                given->from);
    if (d.n == 0)
        return STATUS_OK;
    size_t i = d.first - used->has_bos + own->has_bos; /* before the first all are the same */
    status = eval_spell(&here, given->tokenizer, used->ids[d.first], why);
    if (!status && i < own->n)
        status = eval_spell(&there, tokenizer, own->ids[i], why);
    if (!status)
        cli_say("assay: note: %zu of %zu tokens of the text are others by %s itself than "
                "by %s: the first is token %zu, at byte %zu, '%s' there and '%s' here; those of %s "
                "are used\n",
                d.n, used->n, folder, given->from, d.first, d.byte, i < own->n ? there.escaped : "",
                here.escaped, given->from);
    eval_spelling_free(&here);
    eval_spelling_free(&there);
    return status;
}

static bool has_tokens(const char *folder)
{
    static const char *const names[] = {"tokenizer.json", "tokenizer.model"};
    char path[4096];
    bool has = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int n = snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        has |= n > 0 && (size_t)n < sizeof path && access(path, R_OK) == 0;
    }
    return has && model_is_folder(folder);
}

enum status cli_tokens_compare(const struct cli_tokens_given *given, const char *folder,
                               struct status_why *why)
{
    struct gguf_file *file = NULL;
    struct model_tokenizer *tokenizer = NULL;
    struct eval_stream own = {0};
    const struct base_text *text = &given->windows->text;
    struct status_why unread = {""};
    if (text->n_bytes == 0 || !has_tokens(folder))
        return STATUS_OK;
    enum status status = model_tokens_open(&file, folder, model_n_vocab(given->tokenizer), &unread);
    if (!status)
        status = model_tokenizer_open(&tokenizer, file, NULL, false, &unread);
    if (!status)
        status = eval_stream_make(&own, tokenizer, text, given->options, &unread);
    if (!status)
        status = tell(given, folder, tokenizer, &own, why);
    else {
        cli_say("assay: note: the tokens of %s are not compared with its own: %s\n", given->from,
                unread.text);
        status = STATUS_OK;
    }
    eval_stream_free(&own);
    model_tokenizer_close(tokenizer);
    gguf_close(file);
    return status;
}

/* The tokenizers of both: opened, and compared by what they do. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text/quote.h"
#include "clients/conversion/keys.h"

/** Both, and what is told of them. */
struct tokenizers {
    struct conv_result *out;
    struct model_tokenizer *folder, *file;
};

/** The texts of tokens; a row that the folder has no token for may have any name. */
static enum status compare_list(const struct tokenizers *t, struct status_why *why)
{
    static const char key[] = "tokenizer.ggml.tokens";
    char texts[2][CONV_VALUE_BYTES], name[CONV_KEY_BYTES];
    size_t n[2] = {model_n_vocab(t->folder), model_n_vocab(t->file)}, n_other = 0, first = 0;
    enum status status = STATUS_OK;
    for (size_t i = n[0] < n[1] ? n[0] : n[1]; i-- > 0;) {
        struct base_string a = model_token_text(t->folder, (int32_t)i),
                           b = model_token_text(t->file, (int32_t)i);
        if (model_token_type(t->folder, (int32_t)i) == MODEL_TOKEN_UNUSED ||
            (a.n_bytes == b.n_bytes && memcmp(a.data, b.data, a.n_bytes) == 0))
            continue;
        first = i;
        n_other++;
    }
    for (int i = 0; i < 2; i++)
        snprintf(texts[i], sizeof *texts, "%zu entries", n[i]);
    if (n[0] != n[1])
        status = conv_differ_text(t->out, CONV_TOKEN, key, texts[0], texts[1], why);
    if (status || n_other == 0)
        return status;
    int used = snprintf(name, sizeof name, "%s[%zu]", key, first);
    if (n_other > 1)
        snprintf(name + used, sizeof name - (size_t)used, " and %zu more", n_other - 1);
    struct base_quoted quoted[2];
    return conv_differ_text(t->out, CONV_TOKEN, name,
                            base_quote(&quoted[0], model_token_text(t->folder, (int32_t)first)),
                            base_quote(&quoted[1], model_token_text(t->file, (int32_t)first)), why);
}

/** What they make of texts. */
static enum status compare_reading(const struct tokenizers *t, struct status_why *why)
{
    struct model_difference d;
    char text[CONV_KEY_BYTES];
    enum status status = model_tokenizer_compare(&d, t->folder, t->file, why);
    if (!status && *d.key)
        status = conv_differ_text(t->out, CONV_TOKEN, d.key, d.values[0], d.values[1], why);
    if (status || !*d.text)
        return status;
    snprintf(text, sizeof text, "ids of \"%.80s\"", d.text);
    return conv_differ_text(t->out, CONV_TOKEN, text, d.ids[0], d.ids[1], why);
}

static enum status compare_flag(const struct tokenizers *t, const char *key, bool folder, bool file,
                                struct status_why *why)
{
    static const char *const words[] = {"false", "true"};
    return folder == file
               ? STATUS_OK
               : conv_differ_text(t->out, CONV_TOKEN, key, words[folder], words[file], why);
}

static enum status compare(const struct tokenizers *t, struct status_why *why)
{
    enum { COMPARED = 6 }; /* tokens, types, merges or scores, cutting, BOS, EOS */
    t->out->n_tokens += COMPARED;
    enum status status = compare_list(t, why);
    if (!status && model_n_vocab(t->folder) == model_n_vocab(t->file))
        status = compare_reading(t, why);
    if (!status)
        status = compare_flag(t, "tokenizer.ggml.add_bos_token", model_adds_bos(t->folder),
                              model_adds_bos(t->file), why);
    return status ? status
                  : compare_flag(t, "tokenizer.ggml.add_eos_token", model_adds_eos(t->folder),
                                 model_adds_eos(t->file), why);
}

/** A sentence about a file without the path in front, which leaves no room in a line. */
static const char *without_path(const char *sentence, const struct gguf_file *file)
{
    size_t n = strlen(gguf_path(file));
    bool has = strncmp(sentence, gguf_path(file), n) == 0 && strncmp(sentence + n, ": ", 2) == 0;
    return has ? sentence + n + 2 : sentence;
}

enum status conv_compare_tokens(struct conv_result *out, const struct conv_options *options,
                                struct status_why *why)
{
    struct tokenizers t = {.out = out};
    struct status_why reason = {""};
    if (!options->tokens)
        return STATUS_OK;
    enum status status = model_tokenizer_open(&t.folder, options->tokens, NULL, false, why);
    if (!status) {
        status = model_tokenizer_open(&t.file, options->file, NULL, false, &reason);
        if (status == STATUS_MEMORY)
            status = status_fail(why, status, "%s", reason.text);
        else if (status)
            status = conv_differ_text(out, CONV_TOKEN, "tokenizer.ggml", "can be read",
                                      without_path(reason.text, options->file), why);
        else
            status = compare(&t, why);
    }
    model_tokenizer_close(t.folder);
    model_tokenizer_close(t.file);
    return status;
}

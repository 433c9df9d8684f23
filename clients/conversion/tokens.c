/* The tokenizers of both: opened, and compared by what they do. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text/quote.h"
#include "clients/conversion/keys.h"

/** The texts of tokens; a row that the folder has no token for may have any name. */
static void compare_list(struct conv_result *out, const struct conv_tokenizers *t)
{
    static const char key[] = "tokenizer.ggml.tokens";
    char texts[2][CONV_VALUE_BYTES], name[CONV_KEY_BYTES];
    size_t n[2] = {model_n_vocab(t->folder), model_n_vocab(t->file)}, n_other = 0, first = 0;
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
        conv_differ_text(out, CONV_TOKEN, key, texts[0], texts[1]);
    if (n_other == 0)
        return;
    int used = snprintf(name, sizeof name, "%s[%zu]", key, first);
    if (n_other > 1)
        snprintf(name + used, sizeof name - (size_t)used, " and %zu more", n_other - 1);
    struct base_quoted quoted[2];
    conv_differ_text(out, CONV_TOKEN, name,
                     base_quote(&quoted[0], model_token_text(t->folder, (int32_t)first)),
                     base_quote(&quoted[1], model_token_text(t->file, (int32_t)first)));
}

/** What they make of texts. */
static void compare_reading(struct conv_result *out, const struct conv_tokenizers *t)
{
    struct model_difference d;
    struct status_why why;
    char text[CONV_KEY_BYTES];
    enum status status = model_tokenizer_compare(&d, t->folder, t->file, &why);
    if (status) {
        status_keep(&out->kept, status, "%s", why.text);
        return;
    }
    if (*d.key)
        conv_differ_text(out, CONV_TOKEN, d.key, d.values[0], d.values[1]);
    snprintf(text, sizeof text, "ids of \"%.80s\"", d.text);
    if (*d.text)
        conv_differ_text(out, CONV_TOKEN, text, d.ids[0], d.ids[1]);
}

static void compare_flag(struct conv_result *out, const char *key, bool folder, bool file)
{
    static const char *const words[] = {"false", "true"};
    if (folder != file)
        conv_differ_text(out, CONV_TOKEN, key, words[folder], words[file]);
}

/** A sentence about a file without the path in front, which leaves no room in a line. */
static const char *without_path(const char *sentence, const struct gguf_file *file)
{
    size_t n = strlen(gguf_path(file));
    bool has = strncmp(sentence, gguf_path(file), n) == 0 && strncmp(sentence + n, ": ", 2) == 0;
    return has ? sentence + n + 2 : sentence;
}

void conv_tokenizers_open(struct conv_tokenizers *t, struct conv_result *out,
                          const struct conv_options *options)
{
    struct status_why why = {""};
    *t = (struct conv_tokenizers){0};
    enum status status = STATUS_OK;
    if (options->tokens)
        status = model_tokenizer_open(&t->folder, options->tokens, NULL, false, &why);
    if (status)
        status_keep(&out->kept, status, "%s", why.text);
    status = model_tokenizer_open(&t->file, options->file, NULL, false, &why);
    if (status == STATUS_MEMORY)
        status_keep(&out->kept, status, "%s", why.text);
    else if (status && options->tokens)
        conv_differ_text(out, CONV_TOKEN, "tokenizer.ggml", "can be read",
                         without_path(why.text, options->file));
}

void conv_tokenizers_close(struct conv_tokenizers *t)
{
    model_tokenizer_close(t->folder);
    model_tokenizer_close(t->file);
}

void conv_compare_tokens(struct conv_result *out, const struct conv_tokenizers *t)
{
    enum { COMPARED = 6 }; /* tokens, types, merges or scores, cutting, BOS, EOS */
    if (!t->folder || !t->file)
        return;
    out->n_tokens += COMPARED;
    compare_list(out, t);
    if (model_n_vocab(t->folder) == model_n_vocab(t->file))
        compare_reading(out, t);
    compare_flag(out, "tokenizer.ggml.add_bos_token", model_adds_bos(t->folder),
                 model_adds_bos(t->file));
    compare_flag(out, "tokenizer.ggml.add_eos_token", model_adds_eos(t->folder),
                 model_adds_eos(t->file));
}

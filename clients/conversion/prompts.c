/* What both chat templates make of the set of conversations. */
#include <stdio.h>
#include <string.h>

#include "clients/conversion/keys.h"
#include "model/chat/compare.h"

static const char key[] = "tokenizer.chat_template";

/** The two templates, of the folder and of the file. */
struct templates {
    struct base_string texts[2];
    struct model_chat *chats[2]; /* NULL: it cannot be read */
};

static bool is_same(const struct templates *t)
{
    const struct base_string *s = t->texts;
    return s[0].n_bytes == s[1].n_bytes && memcmp(s[0].data, s[1].data, s[0].n_bytes) == 0;
}

/** Where no rendering tells: their texts. */
static void compare_texts(struct conv_result *out, const struct templates *t)
{
    const struct base_string *s = t->texts;
    char at[CONV_KEY_BYTES];
    size_t n = 0;
    if (is_same(t))
        return;
    while (n < s[0].n_bytes && n < s[1].n_bytes && s[0].data[n] == s[1].data[n])
        n++;
    snprintf(at, sizeof at, "%s from byte %zu on", key, n);
    conv_differ(out, CONV_TOKEN, at, (struct base_string){s[0].data + n, s[0].n_bytes - n},
                (struct base_string){s[1].data + n, s[1].n_bytes - n});
}

static void tell(struct conv_result *out, const struct model_chat_difference *d)
{
    char name[CONV_KEY_BYTES];
    snprintf(name, sizeof name, "%s, from byte %zu on", d->name, d->at);
    conv_differ_text(out, CONV_PROMPT, name, d->texts[0], d->texts[1]);
    snprintf(name, sizeof name, "%s, from token %zu on", d->name, d->id_at);
    conv_differ_text(out, CONV_PROMPT, name, d->ids[0], d->ids[1]);
}

static void compare_prompts(struct conv_result *out, const struct templates *t)
{
    struct model_chat_comparison c = {0};
    struct status_why why;
    enum status status = model_chat_compare(&c, t->chats[0], t->chats[1], &why);
    if (status)
        status_keep(&out->kept, status, "%s", why.text);
    out->n_prompts = c.n - c.n_unknown - c.n_refused;
    out->n_prompts_differ = c.n_differ;
    for (size_t i = 0; i < c.n_differ; i++)
        tell(out, &c.items[i]);
    if (c.n_unknown && !c.n_differ)
        compare_texts(out, t);
    model_chat_comparison_free(&c);
}

void conv_compare_prompts(struct conv_result *out, const struct conv_options *options,
                          const struct conv_tokenizers *tokenizers, struct base_string expected)
{
    struct templates t = {.texts = {expected}};
    struct status_why why;
    bool has = false, open = tokenizers->file;
    if (!expected.n_bytes)
        return;
    out->n_tokens++;
    if (gguf_get_string(options->file, key, &t.texts[1], &has, NULL) || !has) {
        conv_differ_text(out, CONV_TOKEN, key, "present", "absent");
        return;
    }
    for (int i = 0; i < 2 && open; i++) {
        const struct model_tokenizer *own = i ? tokenizers->file : tokenizers->folder;
        enum status status = model_chat_open(&t.chats[i], t.texts[i], own ? own : tokenizers->file,
                                             &jinja_default_limits, &why);
        if (status == STATUS_MEMORY)
            status_keep(&out->kept, status, "%s", why.text);
        open = !status;
    }
    if (open) {
        compare_prompts(out, &t);
        conv_note_prompts(out, options->file, t.chats[1], tokenizers->file);
    } else
        compare_texts(out, &t);
    for (int i = 0; i < 2; i++)
        model_chat_close(t.chats[i]);
}

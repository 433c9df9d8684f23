/* The prompts that the chat templates of both make of the set of conversations. */
#include <stdio.h>
#include <string.h>

#include "base/text/printable.h"
#include "clients/conversion/prompts/prompts.h"

static const char key[] = "tokenizer.chat_template";

/** Two templates of one name, of the folder and of the file. */
struct pair {
    const char *name; /* NULL: the one that is used without a name */
    struct base_string texts[2];
};

/** Compare the texts of templates, where prompts do not tell. */
static void compare_texts(struct conv_result *out, const struct pair *pair)
{
    const struct base_string *s = pair->texts;
    char at[CONV_KEY_BYTES];
    size_t n = 0;
    while (n < s[0].n_bytes && n < s[1].n_bytes && s[0].data[n] == s[1].data[n])
        n++;
    if (n == s[0].n_bytes && n == s[1].n_bytes)
        return;
    snprintf(at, sizeof at, "%s%s%.40s from byte %zu on", key, pair->name ? "." : "",
             pair->name ? pair->name : "", n);
    conv_differ(out, CONV_TOKEN, at, (struct base_string){s[0].data + n, s[0].n_bytes - n},
                (struct base_string){s[1].data + n, s[1].n_bytes - n});
}

static void add_row(struct conv_result *out, const struct pair *pair, const char *name,
                    const char *what, size_t at, const char texts[2][MODEL_DIFFERENCE_BYTES])
{
    char row[CONV_KEY_BYTES];
    if (strcmp(texts[0], texts[1]) == 0)
        return;
    snprintf(row, sizeof row, "%s%s%.20s%s, from %s %zu on", name, pair->name ? " (" : "",
             pair->name ? pair->name : "", pair->name ? ")" : "", what, at);
    conv_differ_text(out, CONV_PROMPT, row, texts[0], texts[1]);
}

/** Add what a comparison counted to what those of other names did. */
static void count(struct conv_result *out, const struct model_chat_comparison *c)
{
    const char *why = c->n_unknown ? c->first_unknown.text : c->first_refused.text;
    out->n_prompts += c->n - c->n_unknown - c->n_refused;
    out->n_prompts_differ += c->n_differ;
    out->n_prompts_unknown += c->n_unknown;
    out->n_prompts_refused += c->n_refused;
    if (c->n_unknown + c->n_refused && !*out->prompts_why)
        base_printable_text(out->prompts_why, sizeof out->prompts_why, why);
}

static void compare_prompts(struct conv_result *out, const struct conv_options *options,
                            const struct conv_tokenizers *t, const struct pair *pair)
{
    struct model_chat_comparison c = {0};
    struct status_why why;
    struct conv_prompts_seen seen = {.tokenizer = t->file};
    const struct model_chat_sides sides = {
        .sides = {{pair->texts[0], t->folder ? t->folder : t->file}, {pair->texts[1], t->file}},
        .tools_only = pair->name && strcmp(pair->name, "tool_use") == 0,
        .cancel = options->cancel,
        .look = pair->name ? NULL : conv_see,
        .user = &seen};
    if (!pair->name)
        conv_seen_begin(&seen, options->file);
    enum status status = model_chat_compare(&c, &sides, &why);
    if (status)
        status_keep(&out->kept, status, "%s", why.text);
    count(out, &c);
    for (size_t i = 0; i < c.n_differ; i++) {
        const struct model_chat_difference *d = &c.items[i];
        add_row(out, pair, d->name, "byte", d->at, d->texts);
        add_row(out, pair, d->name, "token", d->id_at, d->ids);
    }
    if (c.n && !c.n_differ && (c.n_unknown || c.n_refused == c.n))
        compare_texts(out, pair);
    if (!status && !pair->name)
        conv_seen_end(&seen, out);
    model_chat_comparison_free(&c);
}

/** Compare the templates that are used without a name. */
static void compare_unnamed(struct conv_result *out, const struct conv_options *options,
                            const struct conv_tokenizers *t, const struct pair *pair)
{
    static const char *const words[] = {"absent", "present"};
    bool has[2] = {pair->texts[0].n_bytes, pair->texts[1].n_bytes};
    bool is_known = gguf_is_folder(options->folder) || t->folder || has[0];
    if (is_known && (has[0] || has[1])) {
        out->n_tokens++;
        if (has[0] != has[1])
            conv_differ_text(out, CONV_TOKEN, key, words[has[0]], words[has[1]]);
    }
    if (has[1] && t->file)
        compare_prompts(out, options, t, pair);
    else if (has[0] && has[1])
        compare_texts(out, pair);
}

/** Compare the templates of one name; one that only one of the two has is noted. */
static void compare_named(struct conv_result *out, const struct conv_options *options,
                          const struct conv_tokenizers *t, const struct pair *pair)
{
    int lacks = pair->texts[0].n_bytes ? 1 : 0;
    char name[64];
    if (!pair->texts[0].n_bytes || !pair->texts[1].n_bytes)
        conv_note(out, "the template '%s' is not compared: %s has none of this name",
                  base_printable_text(name, sizeof name, pair->name),
                  lacks                             ? "the file"
                  : gguf_is_folder(options->folder) ? "the folder"
                                                    : "the base");
    else if (t->file)
        compare_prompts(out, options, t, pair);
    else
        compare_texts(out, pair);
}

void conv_compare_prompts(struct conv_result *out, const struct conv_options *options,
                          const struct conv_tokenizers *tokenizers)
{
    static const struct base_string unnamed = {"default", 7};
    struct conv_templates of[2];
    conv_templates_read(&of[0], out, options->folder);
    conv_templates_read(&of[1], out, options->file);
    const struct pair pair = {
        .texts = {conv_template(&of[0], unnamed), conv_template(&of[1], unnamed)}};
    compare_unnamed(out, options, tokenizers, &pair);
    if (of[0].n && !pair.texts[0].n_bytes)
        conv_note(out, "the templates to compare with have names, and none is 'default'");
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < of[side].n; i++) {
            const char *name = of[side].items[i].name;
            const struct base_string n = {name, strlen(name)};
            const struct pair named = {name, {conv_template(&of[0], n), conv_template(&of[1], n)}};
            bool met = side == 1 && named.texts[0].n_bytes;
            if (!met && strcmp(name, unnamed.data) != 0)
                compare_named(out, options, tokenizers, &named);
        }
    for (int side = 0; side < 2; side++)
        conv_templates_free(&of[side]);
}

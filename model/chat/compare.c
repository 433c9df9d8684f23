#include "model/chat/compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/text/escape.h"

/** A comparison under way. */
struct comparing {
    struct model_chat_comparison *out;
    const struct model_chat *chats[2];
};

/** Bytes that both begin with, down to the beginning of a character. */
static size_t common(const struct model_chat_text *a, const struct model_chat_text *b)
{
    size_t n = base_min(a->n_bytes, b->n_bytes), at = 0;
    while (at < n && a->text[at] == b->text[at])
        at++;
    while (at > 0 && at < n && ((uint8_t)a->text[at] & 0xC0) == 0x80)
        at--;
    return at;
}

static bool is_same(const struct model_chat_prompt p[2])
{
    size_t n = p[0].tokens.n;
    return !p[0].refused && !p[1].refused && p[0].text.n_bytes == p[1].text.n_bytes &&
           common(&p[0].text, &p[1].text) == p[0].text.n_bytes && p[1].tokens.n == n &&
           model_tokens_common(&p[0].tokens, &p[1].tokens) == n;
}

static void show(char out[MODEL_DIFFERENCE_BYTES], const struct model_chat_prompt *p, size_t at)
{
    char why[MODEL_DIFFERENCE_BYTES - 16];
    if (p->refused)
        snprintf(out, MODEL_DIFFERENCE_BYTES, "refused: %s",
                 base_printable(why, sizeof why, p->why.text, strlen(p->why.text)));
    else
        model_difference_show(out, (struct base_string){p->text.text + at, p->text.n_bytes - at});
}

static enum status add(struct model_chat_comparison *out, const char *name,
                       const struct model_chat_prompt p[2], struct status_why *why)
{
    if (base_array_reserve(out->items, out->capacity, out->n_differ + 1, "prompts", why))
        return STATUS_MEMORY;
    struct model_chat_difference *d = &out->items[out->n_differ++];
    *d = (struct model_chat_difference){.at = common(&p[0].text, &p[1].text),
                                        .id_at = model_tokens_common(&p[0].tokens, &p[1].tokens)};
    snprintf(d->name, sizeof d->name, "%s", name);
    for (int i = 0; i < 2; i++) {
        show(d->texts[i], &p[i], d->at);
        model_difference_ids(d->ids[i], &p[i].tokens, d->id_at);
    }
    return STATUS_OK;
}

static enum status compare(void *user, const struct model_chat_case *one, struct status_why *why)
{
    const struct comparing *c = user;
    struct model_chat_comparison *out = c->out;
    struct model_chat_prompt p[2] = {{0}, {0}};
    enum status status = STATUS_OK;
    for (int i = 0; i < 2 && !status; i++)
        status = model_chat_prompt(&p[i], c->chats[i], one, MODEL_CHAT_ALL, why);
    out->n += !status;
    if (!status && (p[0].refused == STATUS_UNSUPPORTED || p[1].refused == STATUS_UNSUPPORTED)) {
        if (out->n_unknown++ == 0)
            out->first_unknown = p[p[0].refused != STATUS_UNSUPPORTED].why;
    } else if (!status && p[0].refused && p[1].refused)
        out->n_refused++;
    else if (!status && !is_same(p))
        status = add(out, one->name, p, why);
    for (int i = 0; i < 2; i++)
        model_chat_prompt_free(&p[i]);
    return status;
}

enum status model_chat_compare(struct model_chat_comparison *out, const struct model_chat *a,
                               const struct model_chat *b, struct status_why *why)
{
    struct comparing c = {out, {a, b}};
    return model_chat_each(compare, &c, why);
}

void model_chat_comparison_free(struct model_chat_comparison *comparison)
{
    free(comparison->items);
    *comparison = (struct model_chat_comparison){0};
}

#include "model/chat/compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/json/read.h"
#include "base/text/escape.h"

/** A comparison under way. */
struct comparing {
    struct model_chat_comparison *out;
    const struct model_chat_sides *of;
    struct model_chat *chats[2];
    struct status_why unread[2]; /* why a template that is there has none of `chats` */
};

/** How many bytes both begin with; a character that they part in does not count. */
static size_t common(struct base_string a, struct base_string b)
{
    size_t n = base_min(a.n_bytes, b.n_bytes), at = 0;
    while (at < n && a.data[at] == b.data[at])
        at++;
    while (at > 0 && at < n && ((uint8_t)a.data[at] & 0xC0) == 0x80)
        at--;
    return at;
}

static struct base_string text_of(const struct model_chat_prompt *p)
{
    return (struct base_string){p->text.text, p->text.n_bytes};
}

/** A prompt without the BOS that its template writes in front. */
static struct base_string without_bos(const struct model_chat_prompt *p,
                                      const struct model_tokenizer *t)
{
    struct base_string s = text_of(p), bos = {NULL, 0};
    if (model_token_bos(t) >= 0)
        bos = model_token_text(t, model_token_bos(t));
    if (bos.n_bytes && bos.n_bytes <= s.n_bytes && memcmp(s.data, bos.data, bos.n_bytes) == 0)
        s = (struct base_string){s.data + bos.n_bytes, s.n_bytes - bos.n_bytes};
    return s;
}

static bool same_text(struct base_string a, struct base_string b)
{
    return a.n_bytes == b.n_bytes && (a.n_bytes == 0 || memcmp(a.data, b.data, a.n_bytes) == 0);
}

static bool is_same(const struct comparing *c, const struct model_chat_prompt p[2])
{
    const struct model_chat_side *s = c->of->sides;
    size_t n = p[0].tokens.n;
    return !p[0].refused && !p[1].refused && p[1].tokens.n == n &&
           model_tokens_common(&p[0].tokens, &p[1].tokens) == n &&
           (same_text(text_of(&p[0]), text_of(&p[1])) ||
            same_text(without_bos(&p[0], s[0].tokenizer), without_bos(&p[1], s[1].tokenizer)));
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
    *d = (struct model_chat_difference){.at = common(text_of(&p[0]), text_of(&p[1])),
                                        .id_at = model_tokens_common(&p[0].tokens, &p[1].tokens)};
    snprintf(d->name, sizeof d->name, "%s", name);
    for (int i = 0; i < 2; i++) {
        d->refused[i] = p[i].refused;
        show(d->texts[i], &p[i], d->at);
        model_difference_ids(d->ids[i], &p[i].tokens, d->id_at);
    }
    return STATUS_OK;
}

/** Count a conversation, and note what differs. */
static enum status judge(struct comparing *c, const char *name, const struct model_chat_prompt p[2],
                         struct status_why *why)
{
    struct model_chat_comparison *out = c->out;
    out->n++;
    if (p[0].refused == STATUS_UNSUPPORTED || p[1].refused == STATUS_UNSUPPORTED) {
        if (out->n_unknown++ == 0)
            out->first_unknown = p[p[0].refused != STATUS_UNSUPPORTED].why;
    } else if (p[0].refused && p[1].refused) {
        if (out->n_refused++ == 0)
            out->first_refused = p[1].why;
    } else if (!is_same(c, p))
        return add(out, name, p, why);
    return STATUS_OK;
}

static enum status make(struct model_chat_prompt *p, const struct comparing *c, int i,
                        const struct model_chat_case *one, struct status_why *why)
{
    if (c->of->sides[i].text.n_bytes == 0)
        return STATUS_OK;
    if (c->chats[i])
        return model_chat_prompt(p, c->chats[i], one, MODEL_CHAT_ALL, why);
    p->refused = STATUS_UNSUPPORTED;
    p->why = c->unread[i];
    return STATUS_OK;
}

static enum status visit(void *user, const struct model_chat_case *one, struct status_why *why)
{
    struct comparing *c = user;
    struct model_chat_prompt p[2] = {{0}, {0}};
    enum status status = STATUS_OK;
    if (c->of->tools_only && !base_json_member(one->object, "tools"))
        return STATUS_OK;
    for (int i = 0; i < 2 && !status; i++)
        status = make(&p[i], c, i, one, why);
    if (!status && c->of->sides[0].text.n_bytes && c->of->sides[1].text.n_bytes)
        status = judge(c, one->name, p, why);
    if (!status && c->of->look && c->of->sides[1].text.n_bytes)
        status = c->of->look(c->of->user, c->chats[1], one, &p[1], why);
    for (int i = 0; i < 2; i++)
        model_chat_prompt_free(&p[i]);
    return status;
}

enum status model_chat_compare(struct model_chat_comparison *out,
                               const struct model_chat_sides *sides, struct status_why *why)
{
    struct comparing c = {.out = out, .of = sides};
    enum status status = STATUS_OK;
    for (int i = 0; i < 2 && !status; i++) {
        const struct model_chat_side *side = &sides->sides[i];
        if (side->text.n_bytes)
            status = model_chat_open(&c.chats[i], side->text, side->tokenizer,
                                     &jinja_default_limits, &c.unread[i]);
        if (status == STATUS_MEMORY)
            *why = c.unread[i];
        else
            status = STATUS_OK; /* it cannot be read */
    }
    if (!status)
        status = model_chat_each(visit, &c, sides->cancel, why);
    for (int i = 0; i < 2; i++)
        model_chat_close(c.chats[i]);
    return status;
}

void model_chat_comparison_free(struct model_chat_comparison *comparison)
{
    free(comparison->items);
    *comparison = (struct model_chat_comparison){0};
}

/* What is odd about the prompts of a file, whatever another one's are. */
#include <stdlib.h>
#include <string.h>

#include "base/json/read.h"
#include "base/text/quote.h"
#include "clients/conversion/prompts/prompts.h"

/** The text of the last message, where the assistant wrote it; empty elsewhere. */
static struct base_string answer_of(const cJSON *object)
{
    const cJSON *messages = base_json_member(object, "messages"), *last = NULL;
    for (const cJSON *m = messages ? messages->child : NULL; m; m = m->next)
        last = m;
    const char *role = cJSON_GetStringValue(base_json_member(last, "role")),
               *content = cJSON_GetStringValue(base_json_member(last, "content"));
    if (!role || strcmp(role, "assistant") != 0 || !content)
        return (struct base_string){NULL, 0};
    size_t blanks = strspn(content, " \n"), n = strlen(content + blanks);
    while (n && strchr(" \n", content[blanks + n - 1]))
        n--;
    return (struct base_string){content + blanks, n};
}

/** What follows the last place of an answer; data NULL: the text does not have it. */
static struct base_string after(const struct model_chat_text *text, struct base_string answer)
{
    struct base_string rest = {NULL, 0};
    const char *from = text->text, *end = text->text + text->n_bytes, *at;
    while (answer.n_bytes &&
           (at = memmem(from, (size_t)(end - from), answer.data, answer.n_bytes))) {
        from = at + answer.n_bytes;
        rest = (struct base_string){from, (size_t)(end - from)};
    }
    return rest;
}

void conv_seen_begin(struct conv_prompts_seen *l, const struct gguf_file *file)
{
    uint32_t eot = 0;
    bool has = false;
    l->eos = model_token_eos(l->tokenizer);
    l->eot = -1;
    if (!gguf_get_u32(file, "tokenizer.ggml.eot_token_id", &eot, &has, NULL) && has)
        l->eot = (int32_t)eot;
}

/** Whether EOS or EOT follows the answer that a conversation ends with. */
static enum status look_at_end(struct conv_prompts_seen *l, const struct model_chat_case *one,
                               const struct model_chat_prompt *p, struct status_why *why)
{
    struct base_string rest = after(&p->text, answer_of(one->object));
    struct model_tokens tokens = {0};
    enum status status = STATUS_OK;
    l->n_answered += rest.data != NULL;
    if (rest.n_bytes)
        status = model_tokenize(l->tokenizer, rest.data, rest.n_bytes, true, &tokens, why);
    for (size_t i = 0; i < tokens.n; i++)
        l->ends_turns |= tokens.ids[i] == l->eos || tokens.ids[i] == l->eot;
    free(tokens.ids);
    return status;
}

enum status conv_see(void *user, const struct model_chat *chat, const struct model_chat_case *one,
                     const struct model_chat_prompt *p, struct status_why *why)
{
    struct conv_prompts_seen *l = user;
    bool asks = false;
    if (p->refused)
        return STATUS_OK;
    enum status status = look_at_end(l, one, p, why);
    l->has_bos_twice |= p->has_bos_twice;
    if (status || !base_json_member(one->object, "add_generation_prompt"))
        return status;
    l->n_asked++;
    if (!l->asks)
        status = model_chat_asks(&asks, chat, one, why);
    l->asks |= asks;
    return status;
}

void conv_seen_end(const struct conv_prompts_seen *l, struct conv_result *out)
{
    struct base_quoted quoted;
    if (l->has_bos_twice)
        conv_note(out, "the chat template writes BOS, and the file says that texts begin with it "
                       "(tokenizer.ggml.add_bos_token): where a program does both, a prompt has it "
                       "twice");
    if (l->n_answered && l->eos >= 0 && !l->ends_turns)
        conv_note(out, "the chat template never writes EOS or EOT after an answer: EOS is %s",
                  base_quote(&quoted, model_token_text(l->tokenizer, l->eos)));
    if (l->n_asked && !l->asks)
        conv_note(out, "the generation prompt (add_generation_prompt) has no effect on the chat "
                       "template");
}

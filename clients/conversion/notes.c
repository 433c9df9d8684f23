/* What is odd about the prompts of a file, whatever another one's are. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json/read.h"
#include "base/text/quote.h"
#include "clients/conversion/keys.h"
#include "model/chat/compare.h"

enum { EOS, EOT, N_ENDS };

/** What the prompts of the set have. */
struct looking {
    const struct model_chat *chat;
    int32_t ends[N_ENDS]; /* the tokens that end a turn; -1: there is none */
    bool ends_turns, has_bos_twice, asks;
    size_t n_answered, n_asked; /* conversations with an answer, and with a generation prompt */
};

static void note(struct conv_result *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void note(struct conv_result *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out->notes[out->n_notes++], CONV_NOTE_BYTES, format, arguments);
    va_end(arguments);
}

static bool has_answer(const cJSON *object)
{
    const cJSON *messages = base_json_member(object, "messages");
    for (const cJSON *m = messages ? messages->child : NULL; m; m = m->next) {
        const char *role = cJSON_GetStringValue(base_json_member(m, "role"));
        if (role && strcmp(role, "assistant") == 0)
            return true;
    }
    return false;
}

static enum status look(void *user, const struct model_chat_case *one, struct status_why *why)
{
    struct looking *l = user;
    struct model_chat_prompt p;
    bool asks = false;
    enum status status = model_chat_prompt(&p, l->chat, one, MODEL_CHAT_ALL, why);
    if (!status && !p.refused && base_json_member(one->object, "add_generation_prompt")) {
        l->n_asked++;
        status = model_chat_asks(&asks, l->chat, one, why);
    }
    l->asks |= asks;
    l->has_bos_twice |= p.has_bos_twice;
    l->n_answered += !p.refused && has_answer(one->object);
    for (size_t i = 0; i < p.tokens.n; i++)
        for (int k = 0; k < N_ENDS; k++)
            l->ends_turns |= p.tokens.ids[i] == l->ends[k];
    model_chat_prompt_free(&p);
    return status;
}

void conv_note_prompts(struct conv_result *out, const struct gguf_file *file,
                       const struct model_chat *chat, const struct model_tokenizer *tokenizer)
{
    struct looking l = {.chat = chat, .ends = {model_token_eos(tokenizer), -1}};
    struct status_why why;
    struct base_quoted quoted;
    uint32_t eot = 0;
    bool has = false;
    if (!gguf_get_u32(file, "tokenizer.ggml.eot_token_id", &eot, &has, NULL) && has)
        l.ends[EOT] = (int32_t)eot;
    enum status status = model_chat_each(look, &l, &why);
    if (status)
        status_keep(&out->kept, status, "%s", why.text);
    if (l.has_bos_twice)
        note(out, "the chat template writes BOS, and the file says that texts begin with it "
                  "(tokenizer.ggml.add_bos_token): where a program does both, a prompt has it "
                  "twice");
    if (l.n_answered && l.ends[EOS] >= 0 && !l.ends_turns)
        note(out, "the chat template never writes a token that ends a turn: EOS is %s",
             base_quote(&quoted, model_token_text(tokenizer, l.ends[EOS])));
    if (l.n_asked && !l.asks)
        note(out, "the generation prompt (add_generation_prompt) has no effect on the chat "
                  "template");
}

/* What the server says of the file that it serves, beside this one. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text/printable.h"
#include "cli/check/server/server.h"
#include "cli/process/signals.h"
#include "model/chat/compare.h"

/** llama-server rewrites templates with these markers before it shows them. */
static bool is_rewritten(struct base_string text)
{
    return memmem(text.data, text.n_bytes, "<|channel|>", 11) ||
           memmem(text.data, text.n_bytes, "[TOOL_CALLS]", 12);
}

struct size {
    uint64_t n_bytes, n_weights;
};

static void add_tensor(struct size *size, const struct gguf_tensor *t)
{
    size->n_bytes += t->n_bytes;
    size->n_weights += t->n_rows * t->ne[0];
}

/** Tensors as they are in the file; a folder is no file that it could serve. */
static bool own_size(const struct cli_server_check *c, struct size *size)
{
    const struct gguf_file *file = model_file(c->model.model);
    *size = (struct size){0, 0};
    for (size_t i = 0; i < gguf_n_tensors(file); i++)
        add_tensor(size, gguf_tensor_at(file, i));
    return !gguf_is_folder(file);
}

/** ik_llama.cpp's server counts an embedding twice that is the head, too. */
static struct size counted_twice(const struct cli_server_check *c)
{
    const struct gguf_file *file = model_file(c->model.model);
    const struct gguf_tensor *embedding = gguf_tensor_find(file, "token_embd.weight");
    struct size size = {0, 0};
    if (c->connection.server.api == &probe_apis[PROBE_API_IK] && embedding &&
        !gguf_tensor_find(file, "output.weight"))
        add_tensor(&size, embedding);
    return size;
}

/** Another number than the file's. */
static bool is_other(int64_t said, uint64_t own, uint64_t twice)
{
    return said >= 0 && (uint64_t)said != own && (uint64_t)said != own + twice;
}

/** Another size, in a sentence; "": the same, or nothing is said. */
static enum status compare_size(char *out, size_t capacity, const struct cli_server_check *c,
                                struct status_why *why)
{
    const struct probe_said *said = &c->connection.server.said;
    struct size own, twice = counted_twice(c);
    char type[96] = "", name[64];
    base_printable_text(name, sizeof name, said->type);
    if (*name)
        snprintf(type, sizeof type, " (%s)", name);
    (void)why;
    if (!own_size(c, &own))
        return STATUS_OK;
    if (is_other(said->n_weights, own.n_weights, twice.n_weights))
        snprintf(out, capacity,
                 "The server says that it serves another file: one of %" PRId64
                 " weights%s, and this one has %" PRIu64 ".",
                 said->n_weights, type, own.n_weights);
    else if (is_other(said->n_bytes, own.n_bytes, twice.n_bytes))
        snprintf(out, capacity,
                 "The server says that it serves another file: its tensors have %" PRId64
                 " bytes%s, and those of this one %" PRIu64 ".",
                 said->n_bytes, type, own.n_bytes);
    return STATUS_OK;
}

enum { SHOWN = 64 };

/** A side of a difference, cut between characters: a prompt in quotes, or its refusal. */
static const char *write_side(char out[SHOWN], const struct model_chat_difference *d, int side)
{
    char text[SHOWN - 16];
    base_printable_text(text, sizeof text, d->texts[side]);
    snprintf(out, SHOWN, d->refused[side] ? "%s" : "\"%s\"", text);
    return out;
}

/** Say which prompts differ; where prompts do not tell, that the texts of the templates do. */
static void say_template(char *out, size_t capacity, const struct model_chat_comparison *found,
                         size_t n_server, size_t n_own)
{
    char sides[2][SHOWN], why[100];
    const struct model_chat_difference *d = found->items;
    size_t n_rendered = found->n - found->n_refused - found->n_unknown;
    if (found->n_differ)
        snprintf(out, capacity,
                 "The server's chat template makes other prompts than the file's of %zu of %zu "
                 "conversations: of '%s' from byte %zu on %s, not %s.",
                 found->n_differ, found->n, d->name, d->at, write_side(sides[0], d, 1),
                 write_side(sides[1], d, 0));
    else if (found->n_unknown || !n_rendered)
        snprintf(out, capacity,
                 "The server has another chat template than the file: one of %zu bytes, and the "
                 "file's has %zu; what they make is not known (%s).",
                 n_server, n_own,
                 base_printable_text(why, sizeof why,
                                     found->n_unknown ? found->first_unknown.text
                                                      : found->first_refused.text));
}

/** Compare by prompts, and by the text of the template where prompts do not tell. */
static enum status compare_template(char *out, size_t capacity, const struct cli_server_check *c,
                                    struct status_why *why)
{
    const struct model_tokenizer *tokenizer = model_tokenizer(c->model.model);
    const char *said = c->connection.server.said.chat_template;
    const struct base_string server = {said, said ? strlen(said) : 0};
    struct base_string own;
    struct model_chat_comparison found = {0};
    struct status_why unread;
    if (!said || model_tokenizer_chat_template(tokenizer, &own, &unread) || !own.n_bytes ||
        is_rewritten(own) ||
        (server.n_bytes == own.n_bytes && memcmp(said, own.data, own.n_bytes) == 0))
        return STATUS_OK;
    const struct model_chat_sides sides = {.sides = {{own, tokenizer}, {server, tokenizer}},
                                           .cancel = cli_interrupt_catch()};
    enum status status = model_chat_compare(&found, &sides, why);
    if (!status)
        say_template(out, capacity, &found, server.n_bytes, own.n_bytes);
    model_chat_comparison_free(&found);
    return status;
}

static enum status compare_texts(char *out, size_t capacity, const struct cli_server_check *c,
                                 struct status_why *why)
{
    const struct probe_said *said = &c->connection.server.said;
    bool bos = model_adds_bos(model_tokenizer(c->model.model));
    (void)why;
    if (said->n_text < 0 || said->n_text == said->n_sent)
        return STATUS_OK;
    snprintf(out, capacity,
             "The server makes other tokens of a text: it counts %" PRId64 ", and by the file it "
             "has %" PRId64 "%s.",
             said->n_text, said->n_sent,
             bos && said->n_text == said->n_sent - 1    ? "; it leaves out BOS"
             : !bos && said->n_text == said->n_sent + 1 ? "; it puts a token before it, such as BOS"
                                                        : "");
    return STATUS_OK;
}

static const struct {
    /* Write a sentence, or leave `out` empty. */
    enum status (*compare)(char *out, size_t capacity, const struct cli_server_check *c,
                           struct status_why *why);
    enum probe_finding finding;
    bool first; /* it is the verdict, whatever the lists say */
} said[] = {
    {compare_size, PROBE_OTHER_FILE, true},
    {compare_template, PROBE_OTHER_TEMPLATE, false},
    {compare_texts, PROBE_TOKENS, false},
};

enum status cli_server_judge_said(struct cli_server_check *c, struct status_why *why)
{
    struct probe_verdict *v = &c->comparison.verdict;
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        char sentence[400] = "", lists[sizeof v->sentence];
        enum status status = said[i].compare(sentence, sizeof sentence, c, why);
        if (status)
            return status;
        if (!*sentence || (!said[i].first && v->outcome == PROBE_DIFFERS))
            continue;
        memcpy(lists, v->sentence, sizeof lists);
        snprintf(v->sentence, sizeof v->sentence, "%s By its log-probabilities: %.*s", sentence,
                 (int)(sizeof v->sentence - sizeof sentence - 32), lists);
        v->outcome = PROBE_DIFFERS;
        v->finding = said[i].finding;
    }
    return STATUS_OK;
}

/** Whether the last parts of two paths are the same. */
static bool same_name(const char *a, const char *b)
{
    const char *x = strrchr(a, '/'), *y = strrchr(b, '/');
    return strcmp(x ? x + 1 : a, y ? y + 1 : b) == 0;
}

void cli_server_print_said(const struct cli_server_check *c)
{
    const struct probe_said *s = &c->connection.server.said;
    char text[512];
    if (c->records || (s->n_bytes < 0 && s->n_weights < 0 && !*s->path))
        return;
    printf("It says of its file:");
    if (s->n_bytes >= 0)
        printf(" %" PRId64 " bytes of tensors,", s->n_bytes);
    if (s->n_weights >= 0)
        printf(" %" PRId64 " weights,", s->n_weights);
    if (*s->type)
        printf(" %s,", base_printable_text(text, sizeof text, s->type));
    printf(" %s", *s->path ? base_printable_text(text, sizeof text, s->path) : "no path");
    puts(*s->path && !same_name(s->path, c->model.path) ? " (another name)" : "");
}

void cli_server_add_said(struct base_json *json, const struct cli_server_check *c)
{
    const struct probe_said *s = &c->connection.server.said;
    cJSON *o = base_json_object(json, json->root, "said");
    bool asked = !c->records;
    base_json_int(json, o, "n_bytes", asked ? s->n_bytes : -1);
    base_json_int(json, o, "n_weights", asked ? s->n_weights : -1);
    base_json_bytes(json, o, "type", s->type, strlen(s->type));
    base_json_bytes(json, o, "path", s->path, strlen(s->path));
    base_json_int(json, o, "n_template_bytes",
                  s->chat_template ? (int64_t)strlen(s->chat_template) : -1);
    base_json_int(json, o, "n_text", asked ? s->n_text : -1);
    base_json_int(json, o, "n_text_expected", asked && s->n_text >= 0 ? s->n_sent : -1);
}

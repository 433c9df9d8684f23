#include "cli/output/passage.h"

#include <stdio.h>
#include <stdlib.h>

#include "eval/input.h"

/* Tokens as the text that they spell; NULL: there is no memory. The caller frees it. */
static char *spelled(const struct cli_passage *p, size_t from, size_t n)
{
    char *text;
    eval_spell_all(&text, p->tokenizer, p->windows->stream.ids + from, n, NULL);
    return text;
}

static void add_spelled(struct base_json *json, cJSON *o, const char *key, char *text)
{
    base_json_text(json, o, key, text);
    json->failed |= !text;
    free(text);
}

size_t cli_passage_position(const struct cli_passage *p)
{
    return eval_plan_position(&p->windows->plan, p->place.window, p->place.index);
}

static size_t target_of(const struct cli_passage *p)
{
    return eval_plan_target(&p->windows->plan, p->place.window, cli_passage_position(p));
}

static char *context_of(const struct cli_passage *p)
{
    size_t target = target_of(p);
    size_t from = eval_plan_context(&p->windows->plan, p->place.window, target);
    return spelled(p, from, target - from);
}

/* Without memory there is no text: the figures beside it say which token it is. */
void cli_print_passage(const struct cli_passage *p)
{
    char *context = context_of(p), *token = spelled(p, target_of(p), 1);
    printf("%s<%s>\n", context ? context : "", token ? token : "");
    free(context);
    free(token);
}

cJSON *cli_json_add_passage(struct base_json *json, cJSON *list, const struct cli_passage *p)
{
    size_t target = target_of(p);
    cJSON *o = base_json_object(json, list, NULL);
    base_json_uint(json, o, "window", p->place.window);
    base_json_uint(json, o, "position", cli_passage_position(p));
    base_json_int(json, o, "token_id", p->windows->stream.ids[target]);
    add_spelled(json, o, "token", spelled(p, target, 1));
    return o;
}

void cli_json_add_context(struct base_json *json, cJSON *o, const struct cli_passage *p)
{
    add_spelled(json, o, "context", context_of(p));
}

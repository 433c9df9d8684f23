#include "cli/passage.h"

#include <stdio.h>

enum { CONTEXT_TOKENS = 12 };

/* Without memory for it a token is left out: the figures beside it say which one it is. */
static void print_token(struct cli_passages *p, size_t i)
{
    struct status_why why;
    if (eval_spell(&p->spelling, p->tokenizer, p->stream->ids[i], &why) == STATUS_OK)
        fputs(p->spelling.escaped, stdout);
}

void cli_print_passage(struct cli_passages *p, size_t w, size_t position)
{
    size_t target = eval_plan_target(p->plan, w, position), first = eval_plan_first(p->plan, w);
    first = target - first > CONTEXT_TOKENS ? target - CONTEXT_TOKENS : first;
    for (; first < target; first++)
        print_token(p, first);
    putchar('<');
    print_token(p, target);
    puts(">");
}

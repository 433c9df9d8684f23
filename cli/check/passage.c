#include "cli/check/passage.h"

#include <stdio.h>

/* Without memory for it a token is left out: the figures beside it say which one it is. */
static void print_token(struct cli_passages *p, size_t i)
{
    struct status_why why;
    if (eval_spell(&p->spelling, p->tokenizer, p->stream->ids[i], &why) == STATUS_OK)
        fputs(p->spelling.escaped, stdout);
}

void cli_print_passage(struct cli_passages *p, size_t w, size_t position)
{
    size_t target = eval_plan_target(p->plan, w, position);
    for (size_t first = eval_plan_context(p->plan, w, target); first < target; first++)
        print_token(p, first);
    putchar('<');
    print_token(p, target);
    puts(">");
}

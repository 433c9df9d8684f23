#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/forms.h"
#include "tests/ptx/parse.h"

static void read_operands(struct ptx_builder *b, struct ptx_statement *s)
{
    struct ptx_text *t = b->text;
    for (;;) {
        ptx_text_skip(t);
        if (*t->at == ';') {
            t->at++;
            return;
        }
        if (strchr(",{}|", *t->at)) {
            if (!*t->at)
                ptx_text_fail(t, "the file ends within an instruction");
            t->at++;
            continue;
        }
        if (s->n_operands == PTX_MAX_OPERANDS)
            ptx_text_fail(t, "more than %d operands", PTX_MAX_OPERANDS);
        struct ptx_operand *o = &s->operands[s->n_operands++];
        o->is_memory = *t->at == '[';
        if (o->is_memory)
            t->at++;
        o->text = ptx_text_word(t, o->is_memory ? "]" : ",{}|;");
        if (o->is_memory && !ptx_text_take(t, "]"))
            ptx_text_fail(t, "no ] behind an address");
    }
}

static void note_branch(struct ptx_builder *b, struct ptx_word name)
{
    b->branches = ptx_grow(b->branches, (b->n_branches + 1) * sizeof *b->branches);
    b->branches[b->n_branches++] =
        (struct ptx_label){name, (uint32_t)b->kernel->n_code, b->text->line};
}

/** What ptx_form_find() knows. */
static void parse_form(struct ptx_builder *b, const struct ptx_statement *s, struct ptx_ins *ins)
{
    char name[96];
    /* A register's two halves to two registers. */
    bool of_two = ptx_word_is(s->name, "mov.b32") && s->n_operands == 3;
    int n = snprintf(name, sizeof name, "%.*s%s", (int)s->name.n, s->name.at, of_two ? " {}" : "");
    if (n < 0 || (size_t)n >= sizeof name)
        ptx_text_fail(b->text, "a long name: %.*s", (int)s->name.n, s->name.at);
    const struct ptx_form *form = ptx_form_find(name);
    if (!form)
        ptx_text_fail(b->text, "unknown instruction %s: see forms.h", name);
    ins->kind = (uint8_t)form->kind;
    ins->alu = form->alu;
    const char *end = strchr(form->operands, '>');
    size_t n_letters = strlen(form->operands) - (end != NULL);
    if (s->n_operands != n_letters)
        ptx_text_fail(b->text, "%s has %zu operands, not %zu", name, s->n_operands, n_letters);
    if (form->kind == PTX_BRANCH) {
        note_branch(b, s->operands[0].text);
        return;
    }
    const char *letter = form->operands;
    for (size_t i = 0; i < s->n_operands; i++, letter++) {
        letter += letter == end;
        ptx_builder_operand(b, ptx_builder_unit(b, s->operands[i].text, *letter));
    }
    ins->n_out = (uint8_t)(end ? end - form->operands : 0);
    ins->n_in = (uint8_t)(n_letters - ins->n_out);
}

void ptx_parse_instruction(struct ptx_builder *b)
{
    struct ptx_statement s = {0};
    struct ptx_kernel *k = b->kernel;
    struct ptx_ins ins = {.line = b->text->line};
    if (ptx_text_take(b->text, "@")) {
        ins.guard_not = ptx_text_take(b->text, "!");
        ins.guard = ptx_builder_unit(b, ptx_text_word(b->text, ""), 'p');
    }
    s.name = ptx_text_word(b->text, ";");
    read_operands(b, &s);
    if (!ptx_parse_memory(b, &s, &ins))
        parse_form(b, &s, &ins);
    if (k->n_code == b->code_capacity) {
        b->code_capacity = 2 * b->code_capacity + 256;
        k->code = ptx_grow(k->code, b->code_capacity * sizeof *k->code);
    }
    k->code[k->n_code++] = ins;
}

struct ptx_ins ptx_parse_change(const struct ptx_program *program, struct ptx_kernel *k, size_t i,
                                const char *text)
{
    struct ptx_text t = {.file = "a change of the kernel", .at = text, .line = k->code[i].line};
    struct ptx_kernel other = *k;
    other.code = NULL;
    other.operands = NULL;
    other.n_code = other.n_operands = 0;
    struct ptx_builder b = {.program = program, .kernel = &other, .text = &t};
    ptx_builder_open(&b);
    other.n_units = k->n_units;
    ptx_text_skip(&t);
    if (*t.at)
        ptx_parse_instruction(&b);
    ptx_builder_close(&b);
    struct ptx_ins ins = {.kind = PTX_BRANCH, .target = (uint32_t)i + 1};
    if (other.n_code > 0)
        ins = other.code[0];
    ins.line = t.line;
    free(other.hits);
    free(other.code);
    k->constants = other.constants;
    k->n_constants = other.n_constants;
    k->n_units = other.n_units;
    return ins;
}

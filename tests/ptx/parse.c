#include "tests/ptx/parse.h"

#include <stdlib.h>
#include <string.h>

/** `.global .align 2 .b8 name[4096] = {0, 0, 2, ...};`: bytes that are left out are 0. */
static void parse_array(struct ptx_program *p, struct ptx_text *t)
{
    struct ptx_word name = {NULL, 0};
    while (!ptx_text_take(t, "[")) {
        if (ptx_word_is(name, ".align"))
            name = ptx_text_word(t, "");
        name = ptx_text_word(t, "[");
        if (*name.at == '.' && !ptx_word_is(name, ".align") && !ptx_word_is(name, ".b8"))
            ptx_text_fail(t, "only arrays of .b8 are known");
    }
    p->arrays = ptx_grow(p->arrays, (p->n_arrays + 1) * sizeof *p->arrays);
    struct ptx_array *a = &p->arrays[p->n_arrays++];
    a->name = ptx_word_copy(name);
    a->n_bytes = strtoull(t->at, NULL, 10);
    void *bytes;
    if (posix_memalign(&bytes, 256, a->n_bytes) != 0)
        abort();
    a->bytes = memset(bytes, 0, a->n_bytes);
    ptx_text_word(t, "]");
    if (!ptx_text_take(t, "]") || !ptx_text_take(t, "=") || !ptx_text_take(t, "{"))
        ptx_text_fail(t, "an array with values is expected");
    for (size_t i = 0; i < a->n_bytes && !ptx_text_take(t, "}"); i++) {
        a->bytes[i] = (uint8_t)strtoul(ptx_text_word(t, ",}").at, NULL, 10);
        ptx_text_take(t, ",");
    }
    ptx_text_take(t, "}");
    if (!ptx_text_take(t, ";"))
        ptx_text_fail(t, "the array does not end");
}

static unsigned register_bytes(const struct ptx_text *t, struct ptx_word type)
{
    static const char *const names[][3] = {[0] = {".pred"},
                                           [2] = {".b16", ".u16", ".s16"},
                                           [4] = {".b32", ".f32", ".u32"},
                                           [8] = {".b64", ".f64", ".u64"}};
    for (unsigned n = 0; n < sizeof names / sizeof *names; n++) {
        for (size_t i = 0; i < 3; i++) {
            if (names[n][i] && ptx_word_is(type, names[n][i]))
                return n;
        }
    }
    ptx_text_fail(t, "registers of type %.*s", (int)type.n, type.at);
}

/** `.reg .b32 %r<9>;` */
static void parse_registers(struct ptx_builder *b)
{
    struct ptx_text *t = b->text;
    struct ptx_kernel *k = b->kernel;
    unsigned n_bytes = register_bytes(t, ptx_text_word(t, ""));
    struct ptx_word prefix = ptx_text_word(t, "<;");
    if (k->n_banks == PTX_MAX_BANKS || prefix.n >= sizeof k->banks->prefix)
        ptx_text_fail(t, "registers %.*s", (int)prefix.n, prefix.at);
    struct ptx_bank *bank = &k->banks[k->n_banks++];
    memcpy(bank->prefix, prefix.at, prefix.n);
    bank->n_bytes = (uint8_t)n_bytes;
    bank->count = *t->at == '<' ? (uint32_t)strtoul(t->at + 1, NULL, 10) : 1;
    bank->unit = k->n_units;
    k->n_units += bank->count * ptx_units_of(n_bytes);
    ptx_text_skip_line(t);
}

/** `.local .align 16 .b8 __local_depot0[64];` */
static void parse_local(struct ptx_builder *b)
{
    struct ptx_text *t = b->text;
    while (!ptx_text_take(t, "["))
        ptx_text_word(t, "[");
    b->kernel->local_bytes = strtoull(t->at, NULL, 10);
    ptx_text_skip_line(t);
}

static void parse_body(struct ptx_builder *b)
{
    struct ptx_text *t = b->text;
    struct ptx_kernel *k = b->kernel;
    for (;;) {
        if (ptx_text_take(t, ".local"))
            parse_local(b);
        else if (ptx_text_take(t, ".reg"))
            parse_registers(b);
        else
            break;
    }
    k->n_register_units = k->n_units;
    for (size_t i = 0; i < PTX_N_SPECIAL; i++) {
        k->specials[i] = k->n_units;
        k->n_units += ptx_units_of(4);
    }
    for (unsigned depth = 1; depth > 0;) {
        ptx_text_skip(t);
        if (ptx_text_take(t, "{")) {
            depth++;
        } else if (ptx_text_take(t, "}")) {
            depth--;
        } else if (ptx_text_take(t, ".pragma") || ptx_text_take(t, ".loc")) {
            ptx_text_skip_line(t);
        } else if (*t->at == '$') {
            struct ptx_word name = ptx_text_word(t, ":");
            t->at++;
            b->labels = ptx_grow(b->labels, (b->n_labels + 1) * sizeof *b->labels);
            b->labels[b->n_labels++] = (struct ptx_label){name, (uint32_t)k->n_code, t->line};
        } else {
            ptx_parse_instruction(b);
        }
    }
}

/** `.entry name( .param .align 8 .b8 name_param_0[40] ) .maxntid 128, 1, 1 {` */
static void parse_kernel(struct ptx_program *p, struct ptx_text *t, struct ptx_word shared)
{
    p->kernels = ptx_grow(p->kernels, (p->n_kernels + 1) * sizeof *p->kernels);
    struct ptx_kernel *k = &p->kernels[p->n_kernels++];
    *k = (struct ptx_kernel){.file = t->file, .line = t->line};
    k->name = ptx_word_copy(ptx_text_word(t, "("));
    struct ptx_builder b = {.program = p, .kernel = k, .text = t, .shared = shared};
    ptx_builder_open(&b);
    while (!ptx_text_take(t, "{")) {
        struct ptx_word w = ptx_text_word(t, "[");
        if (ptx_word_is(w, ".maxntid") || ptx_word_is(w, ".reqntid"))
            k->max_threads = (uint32_t)strtoul(t->at, NULL, 10);
        if (*t->at == '[') {
            k->param_bytes = strtoull(++t->at, NULL, 10);
            ptx_text_word(t, "");
        } else if (!*t->at) {
            ptx_text_fail(t, "the file ends within a kernel");
        }
    }
    parse_body(&b);
    ptx_builder_close(&b);
}

void ptx_parse(struct ptx_program *program, const char *file)
{
    struct ptx_text t;
    ptx_text_open(&t, file);
    struct ptx_word shared = {"", 0};
    for (;;) {
        struct ptx_word w = ptx_text_word(&t, "[(");
        if (w.n == 0 || ptx_word_is(w, ".section")) /* for debuggers: the last */
            break;
        if (ptx_word_is(w, ".global")) {
            parse_array(program, &t);
        } else if (ptx_word_is(w, ".entry")) {
            parse_kernel(program, &t, shared);
        } else if (ptx_word_is(w, ".extern")) {
            while (*t.at != '[')
                shared = ptx_text_word(&t, "[");
            ptx_text_skip_line(&t);
        } else if (ptx_word_is(w, ".version") || ptx_word_is(w, ".target") ||
                   ptx_word_is(w, ".address_size") || ptx_word_is(w, ".file")) {
            ptx_text_skip_line(&t);
        } else if (!ptx_word_is(w, ".visible") && !ptx_word_is(w, ".weak")) {
            ptx_text_fail(&t, "unknown declaration %.*s", (int)w.n, w.at);
        }
    }
    ptx_text_close(&t);
}

void ptx_program_free(struct ptx_program *p)
{
    for (size_t i = 0; i < p->n_kernels; i++) {
        struct ptx_kernel *k = &p->kernels[i];
        free(k->name);
        free(k->code);
        free(k->memory);
        free(k->operands);
        free(k->constants);
        free(k->hits);
    }
    for (size_t i = 0; i < p->n_arrays; i++) {
        free(p->arrays[i].name);
        free(p->arrays[i].bytes);
    }
    free(p->kernels);
    free(p->arrays);
    *p = (struct ptx_program){0};
}

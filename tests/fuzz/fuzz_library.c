/* Calls of include/assay.h, each with arguments that the input's next bytes choose: sizes beyond
 * any memory, tokens and layers that are not there, pointers that are NULL. A call succeeds, or
 * says a sentence; what it writes is within the memory that its arguments speak of. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "include/assay.h"
#include "tests/fuzz/fuzz.h"
#include "tests/harness/temp.h"
#include "tests/harness/tiny_model.h"

enum { MOST = 64, ROOM = MOST * 4096 }; /* results of calls that fit have less */

static struct assay_model *m;
static char folder[64], path[128];

struct input {
    const uint8_t *at;
    size_t left;
};

static unsigned byte(struct input *in)
{
    return in->left ? (in->left--, *in->at++) : 0;
}

/* Numbers below 16 mostly, now and then one that no memory has, so that nothing is between what the
 * arrays here have and what the library must refuse before it reads. */
static size_t number(struct input *in)
{
    unsigned x = byte(in);
    if (x < 240)
        return x % (MOST / 4);
    return x < 248 ? SIZE_MAX - (x - 240) : (SIZE_MAX >> (x - 247)) + 1;
}

static void end(enum assay_status status, const struct assay_why *why)
{
    require(status == ASSAY_OK ||
            (*why->text && strcmp(assay_status_name(status), "unknown") != 0));
    require(!strchr(why->text, '\n') && strlen(why->text) < sizeof why->text);
}

static void remove_model(void)
{
    assay_close(m);
    unlink(path);
    rmdir(folder);
}

static void begin(void)
{
    struct tiny_model model =
        tiny_model_make(&(struct tiny_model_options){.seed = 1, .n_layers = 1});
    struct assay_options options = ASSAY_OPTIONS;
    options.n_threads = 1;
    temp_make(folder);
    temp_write(temp_path(path, folder, "tiny.gguf"), model.data, model.n_bytes);
    free(model.data);
    require(assay_open(&m, path, &options, NULL) == ASSAY_OK);
    atexit(remove_model);
}

static void evaluate(struct input *in, void *out)
{
    struct assay_why why = {""};
    static int32_t tokens[MOST * MOST], targets[MOST * MOST];
    struct assay_windows w = {tokens, number(in), number(in), number(in), number(in)};
    unsigned choice = byte(in);
    int with_targets = byte(in) % 2;
    for (size_t i = 0; i < MOST; i++) {
        unsigned id = byte(in);
        tokens[i] = id < 250 ? (int32_t)id : (int32_t)(id << 24 | id);
        targets[MOST - 1 - i] = tokens[i];
    }
    if (choice % 16 == 15)
        w.tokens = NULL;
    const int32_t *asked = with_targets ? targets : NULL;
    enum assay_status status = ASSAY_OK;
    switch (choice / 16 % 5) {
    case 0:
        status = assay_log_probs(m, &w, asked, out, &why);
        break;
    case 1:
        status = assay_top(m, &w, number(in), out, &why);
        break;
    case 2:
        status = assay_rows(m, &w, number(in), number(in) % 64, out, &why);
        break;
    case 3:
        status = assay_hidden(m, &w, (int)byte(in) - 2, out, &why);
        break;
    case 4:
        status = assay_diverge(m, m, &w, asked, out, &why);
        break;
    }
    end(status, &why);
}

static void formats(struct input *in, void *out)
{
    struct assay_why why = {""};
    struct assay_type type;
    static const float x[MOST * MOST];
    struct assay_options options = {.size = sizeof options - byte(in) % 2,
                                    .precision = (enum assay_precision)(byte(in) % 4),
                                    .n_threads = 1,
                                    .isa = byte(in) % 4 ? NULL : "scalar"};
    size_t i = byte(in);
    enum assay_status status = assay_type_at(i, &type, &why);
    end(status, &why);
    struct assay_matrix w = {.n_rows = number(in), .n_cols = number(in), .type = (uint32_t)i};
    if (status == ASSAY_OK) {
        w.type = type.id;
        w.n_rows = w.n_rows < MOST ? w.n_rows * type.bundle_rows % MOST : w.n_rows;
        w.n_cols = w.n_cols < MOST ? type.block_elems * (w.n_cols % 3) : w.n_cols;
        w.n_bytes = w.n_rows * (type.row_prefix + w.n_cols / type.block_elems * type.block_bytes) +
                    type.tail_bytes;
    }
    w.n_bytes = w.n_rows < MOST && w.n_cols < 1024 ? w.n_bytes : 16;
    uint8_t *bytes = malloc(w.n_bytes + 1);
    require(bytes != NULL);
    for (size_t k = 0; k < w.n_bytes; k++)
        bytes[k] = (uint8_t)byte(in);
    w.bytes = bytes;
    end(assay_decode(&w, out, &why), &why);
    why = (struct assay_why){""};
    end(assay_multiply(&options, &w, x, number(in) % 4, out, &why), &why);
    free(bytes);
}

static void ask(struct input *in, void *out)
{
    struct assay_why why = {""};
    struct assay_tensor t;
    struct assay_description d = {.size = sizeof d + byte(in) % 2};
    char text[MOST];
    size_t n = 0, n_text = byte(in) % MOST;
    for (size_t i = 0; i < n_text; i++)
        text[i] = (char)byte(in);
    end(assay_describe(m, &d, &why), &why);
    why = (struct assay_why){""};
    end(assay_tokenize(m, text, n_text, byte(in) % 5, out, ROOM / 4, &n, &why), &why);
    require(n <= 2 * MOST + 2);
    why = (struct assay_why){""};
    end(assay_token_bytes(m, (int32_t)number(in), out, number(in) % ROOM, &n, &why), &why);
    size_t i = number(in);
    why = (struct assay_why){""};
    enum assay_status status = assay_tensor_at(m, i, &t, &why);
    end(status, &why);
    if (status == ASSAY_OK)
        end(assay_tensor_rows(m, i, number(in), number(in) % 64, out, &why), &why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct input in = {data, n_bytes};
    if (!m)
        begin();
    void *out = malloc(ROOM * sizeof(double));
    require(out != NULL);
    for (int i = 0; i < 8 && in.left; i++)
        switch (byte(&in) % 3) {
        case 0:
            evaluate(&in, out);
            break;
        case 1:
            formats(&in, out);
            break;
        case 2:
            ask(&in, out);
            break;
        }
    free(out);
    return 0;
}

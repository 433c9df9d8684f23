/** MiniCPM 1, 2 and 4: LLaMA with three scales, and lists of RoPE factors in the newer ones. */
#include <math.h>

#include "model/arch.h"
#include "model/folder/state.h"

enum { BASE_WIDTH = 256 };

/** Older files lack the scales. llama.cpp's logits grow then where the authors' shrink. */
static void read(struct model_hparams *h, const struct model_reading *r)
{
    static const char suffix[] = "logit_scale";
    float usual = (float)h->n_embd / BASE_WIDTH;
    bool given = model_key_f32(&r->keys, suffix, 0) != 0;
    h->residual_scale =
        model_key_positive(&r->keys, "residual_scale", (float)(1.4 / sqrt((double)h->n_layers)));
    h->logit_scale =
        model_key_inverse(&r->keys, suffix, model_key_positive(&r->keys, suffix, usual));
    if (!given && r->options->llama_compat)
        h->logit_scale = usual;
    if (!given)
        model_remark(r->remarks, "key %s.%s is missing: logits are %s", r->keys.prefix, suffix,
                     r->options->llama_compat
                         ? "multiplied by width / 256, as llama.cpp does"
                         : "divided by width / 256, as the authors do; llama.cpp multiplies them");
}

static const struct model_arch_key keys[] = {
    {"embedding_scale", MODEL_OPTIONAL, .absent = 12, .from = "scale_emb"},
    {0},
};

static void write(struct model_folder *f)
{
    double depth = model_config_f32(f, "scale_depth"), base = model_config_f32(f, "dim_model_base");
    (void)model_config_f32(f, "scale_emb");
    if (!(depth > 0 && base > 0))
        model_config_fail(f, STATUS_FORMAT,
                          "members 'scale_depth' and 'dim_model_base' are %g and %g, expected "
                          "numbers above 0",
                          depth, base);
    if (f->json.status)
        return;
    model_write_f32(f, "residual_scale", depth / sqrt((double)f->n_layers));
    model_write_f32(f, "logit_scale", f->n_embd / base);
}

static const struct model_folder_map folder = {
    .classes = {"MiniCPMForCausalLM"},
    .turned = true,
    .write = write,
};

/** What a branch adds is scaled in the next node; here its weight has the scale. */
static const struct model_node nodes[] = {
    {MODEL_AT_EMBEDDING, "embd", "GET_ROWS", .other = true},
    {MODEL_AT_ATTN_OUT, "", .other = true},
    {MODEL_AT_FFN_OUT, "", .other = true},
    {0},
};

const struct model_arch model_arch_minicpm = {
    .name = "minicpm",
    .folder = &folder,
    .nodes = nodes,
    .keys = {keys},
    .needs = {{"embedding_scale", MODEL_WHEN_EVER, "the embedding is multiplied by 12"},
              {"residual_scale", MODEL_WHEN_EVER, "branches are multiplied by 1.4 / sqrt(layers)"}},
    .read = read,
};

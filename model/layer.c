#include "model/layer.h"

#include "model/state.h"

/** Where the walk tells. */
struct walk {
    model_weight_fn *tell;
    void *user;
};

static void tell(const struct walk *to, const struct kern_weight *weight, double share)
{
    if (weight->data)
        to->tell(to->user, weight, share);
}

/** Matrices of heads. */
static void tell_stack(const struct walk *to, struct kern_weight stack, size_t n, size_t step)
{
    stack.n_rows /= step > 0 ? n : 1;
    for (size_t i = 0; i < (step > 0 ? n : 1); i++) {
        tell(to, &stack, 1);
        stack.data = stack.data ? (const char *)stack.data + step : NULL;
    }
}

static void tell_mixer(const struct walk *to, const struct model_stream_mixer *mixer)
{
    tell(to, &mixer->product.weight, 1);
    tell(to, &mixer->inject.weight, 1);
    tell(to, &mixer->up.weight, 1);
}

static void tell_ffn(const struct walk *to, const struct model_ffn *ffn, double share)
{
    tell(to, &ffn->gate.weight, share);
    tell(to, &ffn->up.weight, share);
    tell(to, &ffn->down.weight, share);
}

static void tell_experts(const struct walk *to, const struct model_experts *x,
                         const struct model_layer_shape *shape)
{
    tell(to, &x->router.weight, 1);
    tell(to, &x->narrow.weight, 1);
    for (uint32_t e = 0; x->each && e < shape->n_experts; e++)
        tell_ffn(to, &x->each[e], (double)shape->n_experts_used / shape->n_experts);
    tell(to, &x->widen.weight, 1);
    tell_ffn(to, &x->shared, 1);
    tell(to, &x->shared_gate.weight, 1);
}

void model_layer_walk(const struct model *m, size_t i, model_weight_fn *fn, void *user)
{
    const struct walk to = {fn, user};
    const struct model_layer *l = &m->layers[i];
    if (i == m->hparams.n_layers)
        tell(&to, &m->nextn.join.weight, 1);
    tell(&to, &l->ngrams.key.weight, 1);
    tell(&to, &l->ngrams.value.weight, 1);
    tell_mixer(&to, &l->attn_mixer);
    const struct kern_weight *const mixers[] = {
        &l->indexer.k.weight,
        &l->latent.q_down.weight,
        &l->indexer.q.weight,
        &l->indexer.weights.weight,
        &l->q.weight,
        &l->gate.weight,
        &l->k.weight,
        &l->v.weight,
        &l->latent.kv_down.weight,
        &l->latent.kv_up.weight,
        &l->compressor.kv.weight,
        &l->compressor.gate.weight,
        &l->index_compressor.kv.weight,
        &l->index_compressor.gate.weight,
        &l->output_groups,
        &l->recurrent.in.weight,
        &l->recurrent.gate_low.weight,
        &l->recurrent.gate.weight,
        &l->recurrent.joined.weight,
        &l->recurrent.beta.weight,
        &l->recurrent.alpha_low.weight,
        &l->recurrent.alpha.weight,
        &l->recurrent.beta_alpha.weight,
        &l->recurrent.out.weight,
        &l->output.weight,
    };
    for (size_t k = 0; k < sizeof mixers / sizeof *mixers; k++)
        tell(&to, mixers[k], 1);
    tell_stack(&to, l->latent.k_up, m->hparams.layers[i].n_heads, l->latent.step);
    tell_stack(&to, l->latent.v_up, m->hparams.layers[i].n_heads, l->latent.step);
    tell_mixer(&to, &l->ffn_mixer);
    tell_ffn(&to, &l->ffn, 1);
    tell_experts(&to, &l->experts, &m->hparams.layers[i]);
    const struct kern_weight *const streams[] = {
        &l->altup.router.weight,
        &l->altup.predict.weight,
        &l->altup.low.weight,
        &l->altup.high.weight,
        &l->altup.correct.weight,
        i == 0 ? &m->stream_in.weight : NULL,
        i + 1 == m->hparams.n_layers ? &m->stream_out.weight : NULL,
        i + 1 == m->hparams.n_layers ? &m->output_mixer.product.weight : NULL,
        i + 1 == m->hparams.n_layers ? &m->output_mixer.up.weight : NULL,
    };
    for (size_t k = 0; k < sizeof streams / sizeof *streams; k++)
        if (streams[k])
            tell(&to, streams[k], 1);
    tell(&to, &l->input.project.weight, 1);
    tell(&to, &l->input.gate.weight, 1);
    tell(&to, &l->input.out.weight, 1);
}

/* Sizes of the layers that keep a state instead of keys. */
#include "model/hparams/read.h"

static void must_divide(const struct model_reading *r, const char *suffix, uint32_t divisor,
                        const char *of, uint32_t number)
{
    if (number % divisor != 0)
        model_key_fail(&r->keys, STATUS_FORMAT, suffix,
                       "is %u, expected a divisor of %u (key '%s.%s')", divisor, number,
                       r->keys.prefix, of);
}

void model_recurrent_read(struct model_hparams *h, const struct model_reading *r)
{
    static const char inner[] = "ssm.inner_size";
    static const char heads[] = "ssm.time_step_rank";
    static const char groups[] = "ssm.group_count";
    struct model_recurrent_hparams *n = &h->recurrent;
    static const struct model_arch_key keys[] = {{"ssm.conv_kernel", MODEL_REQUIRED},
                                                 {inner, MODEL_REQUIRED},
                                                 {"ssm.state_size", MODEL_REQUIRED},
                                                 {heads, MODEL_REQUIRED},
                                                 {groups, MODEL_REQUIRED},
                                                 {0}};
    model_hparams_read_keys(h, r, keys);
    must_divide(r, heads, n->n_heads, inner, n->n_inner);
    must_divide(r, groups, n->n_groups, heads, n->n_heads);
}

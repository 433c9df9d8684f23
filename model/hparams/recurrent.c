/* Sizes of the layers that keep a state instead of keys. */
#include "model/hparams/read.h"

static enum status must_divide(const struct model_reading *r, const char *suffix, uint32_t divisor,
                               const char *of, uint32_t number, struct status_why *why)
{
    if (number % divisor == 0)
        return STATUS_OK;
    return status_fail(
        why, STATUS_FORMAT, "%s: key '%s.%s' is %u, expected a divisor of %u (key '%s.%s')",
        gguf_path(r->keys.file), r->keys.prefix, suffix, divisor, number, r->keys.prefix, of);
}

enum status model_recurrent_read(struct model_hparams *h, const struct model_reading *r,
                                 struct status_why *why)
{
    static const char inner[] = "ssm.inner_size";
    static const char heads[] = "ssm.time_step_rank";
    static const char groups[] = "ssm.group_count";
    struct model_recurrent_hparams *n = &h->recurrent;
    static const struct model_key_read keys[] = {{"ssm.conv_kernel", .required = true},
                                                 {inner, .required = true},
                                                 {"ssm.state_size", .required = true},
                                                 {heads, .required = true},
                                                 {groups, .required = true},
                                                 {0}};
    enum status status = model_hparams_read_keys(h, r, keys, why);
    if (!status)
        status = must_divide(r, heads, n->n_heads, inner, n->n_inner, why);
    if (!status)
        status = must_divide(r, groups, n->n_groups, heads, n->n_heads, why);
    return status;
}

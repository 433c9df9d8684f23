#include "cli/calibrate.h"

#include <stdlib.h>

#include "base/array.h"
#include "clients/activations/calibration.h"
#include "kernels/kernels.h"

static enum status calibrate(const struct cli_evaluation *e, struct cli_model *model,
                             const struct cli_windows *w, struct status_why *why)
{
    struct eval_plan plan = w->plan;
    plan.options.skip_windows = 0;
    size_t n = eval_plan_n_inputs(&plan, 0);
    int32_t *tokens = NULL;
    enum status status = base_array_new(tokens, n, "tokens", why);
    if (!status)
        status =
            base_array_new(model->scales, model_hparams(model->model)->n_layers, "layers", why);
    for (size_t p = 0; p < n && !status; p++)
        tokens[p] = eval_plan_input(&plan, &w->stream, 0, p);
    if (!status)
        status = act_calibrate(model->model, e->backends.items[0], tokens, n, model->scales, why);
    free(tokens);
    return status;
}

enum status cli_calibrate(const struct cli_evaluation *e, struct cli_model *model,
                          const struct cli_windows *windows, struct status_why *why)
{
    const struct model_kv_types *kv = &model_hparams(model->model)->kv;
    if (!model_kv_calibrated(kv) || kv->scales)
        return STATUS_OK;
    if (model->lent || e->settings->machine.split)
        return status_fail(why, STATUS_USAGE,
                           "%s: @calibrated needs the whole model in one process that opens it "
                           "for one text; expected a number after @",
                           model->path);
    kern_set_cancel(e->backends.items[0], cli_evaluation_cancel(e));
    return calibrate(e, model, windows, why);
}

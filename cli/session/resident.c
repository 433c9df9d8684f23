#include "cli/session/resident.h"

#include "cli/session/faults.h"
#include "model/swap.h"

enum status cli_resident_check(const struct cli_resident *resident, struct status_why *why)
{
    for (size_t i = 0; i < resident->n_models; i++) {
        const struct model *model = resident->models[i].model;
        for (size_t t = 0; t < gguf_n_tensors(model_file(model)); t++) {
            struct model_in_force now = model_in_force(model, t);
            if (cli_mapping_lost(now.data, (size_t)now.n_bytes))
                return status_fail(why, STATUS_CHANGED,
                                   "a part of %s that is in use could not be read: its file became "
                                   "shorter, or its disk failed",
                                   gguf_tensor_at(model_file(model), t)->name);
        }
    }
    return STATUS_OK;
}

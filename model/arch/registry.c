#include "model/arch/arch.h"

#include <string.h>

static const struct model_arch *const architectures[] = {
    &model_arch_llama,
};
enum { N_ARCHITECTURES = sizeof architectures / sizeof architectures[0] };

const struct model_arch *model_arch_at(size_t i)
{
    return i < N_ARCHITECTURES ? architectures[i] : NULL;
}

const struct model_arch *model_arch_find(const char *name)
{
    for (size_t i = 0; i < N_ARCHITECTURES; i++)
        if (strcmp(architectures[i]->name, name) == 0)
            return architectures[i];
    return NULL;
}

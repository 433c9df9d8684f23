#include <string.h>

#include "model/arch.h"
#include "model/arch/list.h"

#define DECLARE(name) extern const struct model_arch model_arch_##name;
MODEL_ARCHITECTURES(DECLARE)

#define ENTRY(name) &model_arch_##name,
static const struct model_arch *const architectures[] = {MODEL_ARCHITECTURES(ENTRY)};
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

#include <string.h>

#include "model/arch.h"
#include "model/arch/list.h"

#define DECLARE(name) extern const struct model_arch model_arch_##name;
MODEL_ARCHITECTURES(DECLARE)

#define ENTRY(name) &model_arch_##name,
const struct model_arch *const model_archs[] = {MODEL_ARCHITECTURES(ENTRY) NULL};

const struct model_node *model_arch_nodes(const char *architecture)
{
    const struct model_arch *arch = model_arch_find(architecture);
    return arch ? arch->nodes : NULL;
}

const struct model_arch *model_arch_find(const char *name)
{
    const struct model_arch *const *arch = model_archs;
    while (*arch && strcmp((*arch)->name, name) != 0)
        arch++;
    return *arch;
}

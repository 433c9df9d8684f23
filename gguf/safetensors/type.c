#include "gguf/safetensors/type.h"

#include <string.h>

static const struct {
    const char *name;
    unsigned bits;
} types[] = {
#define ROW(name, bits) {#name, bits},
    SAFETENSORS_TYPES(ROW)
#undef ROW
};

const char *safetensors_type_name(enum safetensors_type type)
{
    return types[type].name;
}

unsigned safetensors_type_bits(enum safetensors_type type)
{
    return types[type].bits;
}

enum safetensors_type safetensors_type_find(const char *name)
{
    unsigned i = 0;
    while (i < SAFETENSORS_N_TYPES && strcmp(types[i].name, name) != 0)
        i++;
    return (enum safetensors_type)i;
}

/* Names of nodes that architectures of several families share. */
#include "model/arch.h"

const struct model_node model_normed_heads_nodes[] = {
    {MODEL_AT_Q_PROJECTED, "Qcur", "MUL", .other = true},
    {MODEL_AT_K_PROJECTED, "Kcur", "MUL", .other = true},
    {MODEL_AT_Q_NORM, "Qcur", "MUL"},
    {MODEL_AT_K_NORM, "Kcur", "MUL"},
    {0},
};

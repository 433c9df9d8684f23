/**
 * The memory of all requests together: what was received, what becomes of it when it is read, and
 * what its job makes. It is reckoned beforehand, and not measured.
 */
#ifndef SERVE_BUDGET_H
#define SERVE_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct serve_budget {
    atomic_size_t used;
    size_t most;
};

/** Any thread. false: others have what is missing, or it is more than the most. */
bool serve_budget_take(struct serve_budget *budget, size_t n_bytes);
/** What was taken is free again; much of it goes back to the system. */
void serve_budget_give(struct serve_budget *budget, size_t n_bytes);

#endif

#include "clients/serve/budget.h"

#include "base/system/system.h"

enum { MUCH = 1 << 20 };

bool serve_budget_take(struct serve_budget *budget, size_t n_bytes)
{
    size_t used = atomic_load(&budget->used);
    do
        if (n_bytes > budget->most - used)
            return false;
    while (!atomic_compare_exchange_weak(&budget->used, &used, used + n_bytes));
    return true;
}

void serve_budget_give(struct serve_budget *budget, size_t n_bytes)
{
    atomic_fetch_sub(&budget->used, n_bytes);
    if (n_bytes >= MUCH)
        base_system_return_memory();
}

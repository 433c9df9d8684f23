#include "base/condition.h"

#include "base/clock.h"
#include "base/system/system.h"

void base_condition_init(pthread_cond_t *condition)
{
    base_system_condition_init(condition);
}

bool base_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, double deadline)
{
    const struct timespec until = base_system_condition_time(deadline);
    return pthread_cond_timedwait(condition, lock, &until) == 0 || base_clock_seconds() < deadline;
}

#include "base/condition.h"

#include <math.h>
#include <time.h>

void base_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

bool base_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, double deadline)
{
    double whole = floor(fmax(deadline, 0));
    const struct timespec until = {.tv_sec = (time_t)whole,
                                   .tv_nsec = (long)(1e9 * (fmax(deadline, 0) - whole))};
    return pthread_cond_timedwait(condition, lock, &until) == 0;
}

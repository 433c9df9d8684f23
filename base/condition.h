/** Condition variables whose deadlines do not move when the system's clock is set. */
#ifndef BASE_CONDITION_H
#define BASE_CONDITION_H

#include <pthread.h>
#include <stdbool.h>

/** Instead of pthread_cond_init. Released with pthread_cond_destroy. */
void base_condition_init(pthread_cond_t *condition);

/**
 * Wait under the lock until the condition is signalled, or the deadline has passed.
 * condition: of base_condition_init.   deadline: on the clock of base_clock_seconds().
 * Returns false when the deadline has passed. Like every wait it may also return true for no
 * reason: the caller looks at what it waits for.
 */
bool base_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, double deadline);

#endif

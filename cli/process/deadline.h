/**
 * A time limit for calls that cannot be told to end, such as MPI's: they wait for other processes,
 * however long these take.
 */
#ifndef CLI_PROCESS_DEADLINE_H
#define CLI_PROCESS_DEADLINE_H

#include <pthread.h>
#include <stdint.h>

#include "base/status.h"

struct cli_deadline {
    char sentence[512];
    int64_t seconds;
    int end[2]; /* a pipe; a byte in it tells the thread to end */
    pthread_t thread;
};

/**
 * Unless cli_deadline_end comes before, the process ends after so many seconds, in which it is not
 * stopped: with the sentence on standard error, and CLI_EXIT_DEVICE. sentence: copied.
 * Fails: STATUS_MEMORY; then there is no limit, and nothing to end.
 */
enum status cli_deadline_begin(struct cli_deadline *deadline, int64_t seconds, const char *sentence,
                               struct status_why *why);
void cli_deadline_end(struct cli_deadline *deadline);

#endif

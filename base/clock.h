/** Elapsed time, for rates and ETA; time that a thread spent, for limits. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

/** Seconds on a clock that never jumps; only differences mean something. */
double base_clock_seconds(void);

/** Seconds of processor time of the calling thread: it stands still while others run. */
double base_clock_thread_seconds(void);
/** Seconds of processor time of all threads of the process, also of those that ended. */
double base_clock_process_seconds(void);

#endif

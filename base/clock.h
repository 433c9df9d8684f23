/** Elapsed time, for rates and ETA. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

/** Seconds on a clock that never jumps; only differences mean something. */
double base_clock_seconds(void);

#endif

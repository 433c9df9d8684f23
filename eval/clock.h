/** Elapsed time, for rates and ETA. */
#ifndef EVAL_CLOCK_H
#define EVAL_CLOCK_H

/** Seconds on a clock that never jumps; only differences mean something. */
double eval_clock_seconds(void);

#endif

/** Figures: pure functions of the scores. */
#ifndef EVAL_METRICS_H
#define EVAL_METRICS_H

#include "eval/metrics/against.h"
#include "eval/metrics/check.h"
#include "eval/metrics/curve.h"
#include "eval/metrics/groups.h"
#include "eval/metrics/kld.h"
#include "eval/metrics/per_token.h"
#include "eval/metrics/perplexity.h"
#include "eval/metrics/runs/noise.h"
#include "eval/metrics/stop.h"
#include "eval/metrics/table.h"
#include "eval/race/race.h"

#endif

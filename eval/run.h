/** The runner: its settings, its journal, and what a worker and its rows are to it. */
#ifndef EVAL_RUN_H
#define EVAL_RUN_H

#include "eval/run/difference.h"
#include "eval/run/journal.h"
#include "eval/run/local.h"
#include "eval/run/memory.h"
#include "eval/run/run.h"
#include "eval/run/worker.h"
#include "eval/scorer/cost.h"
#include "eval/scorer/row_flow.h"

#endif

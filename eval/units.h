/** The kinds of units that the runner takes. */
#ifndef EVAL_UNITS_H
#define EVAL_UNITS_H

#include "eval/units/choice.h"
#include "eval/units/prompts.h"
#include "eval/units/requests.h"
#include "eval/units/sequences.h"
#include "eval/units/texts.h"
#include "eval/units/trials.h"
#include "eval/units/windows.h"

#endif

/** What is evaluated: texts, documents, requests, and the windows over them. */
#ifndef EVAL_INPUT_H
#define EVAL_INPUT_H

#include "eval/input/documents.h"
#include "eval/input/draw.h"
#include "eval/input/requests.h"
#include "eval/input/spelling.h"
#include "eval/input/stream.h"
#include "eval/input/window.h"
#include "eval/tasks/dataset.h"

#endif

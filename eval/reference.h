/** Rows of a base in a file: reading and recording them. */
#ifndef EVAL_REFERENCE_H
#define EVAL_REFERENCE_H

#include "eval/reference/compact_file.h"
#include "eval/reference/compact_rows.h"
#include "eval/reference/compact_source.h"
#include "eval/reference/compact_writer.h"
#include "eval/reference/logits_file.h"
#include "eval/reference/logits_source.h"
#include "eval/reference/logits_writer.h"
#include "eval/reference/writer.h"
#include "eval/scorer/reference_rows.h"

#endif

/* The log of another program's tensors: any text. Records must be consistent with their numbers. */
#include <stdlib.h>

#include "clients/trace/file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/trace_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    trace_check(data, n_bytes, false);
    return 0;
}

/* An .npz or .npy: any bytes. Every value of every array must lie in them. */
#include <stdlib.h>

#include "clients/trace/file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/trace_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    trace_check(data, n_bytes, true);
    return 0;
}

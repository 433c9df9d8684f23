/* The GGUF reader: any bytes are refused with a sentence or opened, and then hold together. */
#include "tests/fuzz/fuzz.h"
#include "tests/gguf/walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct status_why why;
    walk_bytes(data, n_bytes, &why);
    return 0;
}

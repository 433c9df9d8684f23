/* tokenizer.json, up to the first zero byte, and a text after it: any bytes are refused with a
 * sentence, or cut the text, whose tokens are then in range. */
#include "tests/fuzz/tokenizer_folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    const uint8_t *end = n_bytes ? memchr(data, 0, n_bytes) : NULL;
    size_t n = end ? (size_t)(end - data) : n_bytes, n_text = end ? n_bytes - n - 1 : 0;
    try_folder("tokenizer.json", data, n, data + n_bytes - n_text, n_text);
    return 0;
}

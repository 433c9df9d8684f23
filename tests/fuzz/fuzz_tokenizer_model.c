/* tokenizer.model of SentencePiece: any bytes are refused with a sentence, or cut the text that
 * they are themselves, whose tokens are then in range. */
#include "tests/fuzz/tokenizer_folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    try_folder("tokenizer.model", data, n_bytes, data, n_bytes);
    return 0;
}

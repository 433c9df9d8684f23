/* UTF-16 to UTF-8, either way round: any bytes; what comes out is UTF-8, as long as it was said. */
#include <stdlib.h>

#include "base/text/utf8.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    char *text = fuzz_copy(data, n_bytes);
    for (int big_endian = 0; big_endian < 2; big_endian++) {
        size_t n, n_written;
        size_t read = base_utf8_from_utf16(text, n_bytes, big_endian, NULL, &n);
        require(read <= n_bytes && read % 2 == (read == n_bytes ? n_bytes % 2 : 0));
        require(n <= read / 2 * 3);
        char *out = malloc(n + 1);
        require(out != NULL);
        require(base_utf8_from_utf16(text, n_bytes, big_endian, out, &n_written) == read);
        require(n_written == n && base_utf8_first_bad(out, n) == n);
        free(out);
    }
    free(text);
    return 0;
}

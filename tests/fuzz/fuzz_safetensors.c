/* Headers of safetensors files (first byte even), and the index of a folder (odd): any bytes are
 * refused with a sentence or read, and then every tensor lies within them. */
#include <stdlib.h>

#include "gguf/safetensors/header.h"
#include "gguf/safetensors/index.h"
#include "tests/fuzz/fuzz.h"

static void read_header(const uint8_t *bytes, size_t n)
{
    struct safetensors_header h;
    struct status_why why = {""};
    enum status status = safetensors_header_read(&h, bytes, n, &why);
    require(!status == !*why.text);
    uint64_t sum = h.data_offset;
    for (size_t i = 0; !status && i < h.names.n; i++) {
        const struct safetensors_tensor *t = &h.tensors[i];
        require(t->offset >= h.data_offset && t->offset <= n && t->n_bytes <= n - t->offset);
        require((const uint8_t *)t->data == bytes + t->offset && *t->name);
        sum += t->n_bytes;
    }
    require(status || sum == n);
    safetensors_header_free(&h);
}

static void read_index(const char *text, size_t n)
{
    struct safetensors_index index;
    struct status_why why = {""};
    enum status status = safetensors_index_read(&index, text, n, &why);
    require(!status == !*why.text);
    for (size_t i = 0; !status && i < index.names.n; i++) {
        require(index.file_of[i] >= 0 && (size_t)index.file_of[i] < index.files.n);
        struct base_string file = index.files.strings[index.file_of[i]];
        require(!memchr(file.data, '/', file.n_bytes) && file.data[0] != '.');
    }
    safetensors_index_free(&index);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    if (n_bytes == 0)
        return 0;
    void *copy = fuzz_copy(data + 1, n_bytes - 1);
    if (data[0] % 2)
        read_index(copy, n_bytes - 1);
    else
        read_header(copy, n_bytes - 1);
    free(copy);
    return 0;
}

/*
 * The GGUF reader: any bytes are refused with a sentence or opened, and then hold together.
 * What opens goes through the writer once, and must open again with the same content.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/gguf/walk.h"
#include "tests/harness/gguf_bytes.h"
#include "tests/harness/gguf_writer.h"

static void write_again(const struct gguf_file *file, void **data, size_t *n_bytes)
{
    struct gguf_writer *w;
    struct status_why why;
    require(gguf_writer_new(&w, &why) == STATUS_OK);
    for (size_t i = 0; i < gguf_n_kv(file); i++)
        gguf_writer_copy(w, gguf_kv_at(file, i));
    for (size_t i = 0; i < gguf_n_tensors(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        gguf_writer_tensor(w, t->name, t->type->type, t->ne, t->n_dims, t->data);
    }
    require(gguf_writer_finish_memory(w, data, n_bytes, &why) == STATUS_OK);
}

static void compare(const struct gguf_file *a, const struct gguf_file *b)
{
    require(gguf_n_kv(a) == gguf_n_kv(b) && gguf_n_tensors(a) == gguf_n_tensors(b));
    for (size_t i = 0; i < gguf_n_kv(a); i++) {
        const struct gguf_kv *x = gguf_kv_at(a, i), *y = gguf_kv_at(b, i);
        require(x->type == y->type && x->element_type == y->element_type && x->count == y->count);
        require(x->key.n_bytes == y->key.n_bytes &&
                memcmp(x->key.data, y->key.data, x->key.n_bytes) == 0);
    }
    for (size_t i = 0; i < gguf_n_tensors(a); i++) {
        const struct gguf_tensor *x = gguf_tensor_at(a, i), *y = gguf_tensor_at(b, i);
        require(strcmp(x->name, y->name) == 0 && x->type == y->type && x->n_dims == y->n_dims);
        require(memcmp(x->ne, y->ne, sizeof x->ne) == 0 && x->n_bytes == y->n_bytes);
        require(memcmp(x->data, y->data, x->n_bytes) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct status_why why;
    struct gguf_file *file, *again;
    if (walk_bytes(data, n_bytes, &why) != STATUS_OK)
        return 0;
    void *copy;
    size_t n_copy;
    require(gguf_bytes_open(&file, data, n_bytes, "input", &why) == STATUS_OK);
    write_again(file, &copy, &n_copy);
    require(gguf_bytes_open(&again, copy, n_copy, "copy", &why) == STATUS_OK);
    compare(file, again);
    gguf_close(again);
    gguf_close(file);
    free(copy);
    return 0;
}

/*
 * Copy a GGUF file with other values for some of its keys; the tensors are copied as they are.
 * usage: rewrite_keys IN OUT KEY=TYPE:VALUE...      (TYPE: int, float, bool, str)
 */
#include <stdio.h>
#include <stdlib.h>

#include "model/overrides.h"
#include "tests/harness/gguf_writer.h"

static void must(enum status status, const struct status_why *why)
{
    if (status == STATUS_OK)
        return;
    fprintf(stderr, "rewrite_keys: %s\n", why->text);
    exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
    struct gguf_file *file;
    struct gguf_writer *w;
    struct status_why why = {0};
    struct model_remarks remarks = {0};
    if (argc < 3) {
        fprintf(stderr, "usage: rewrite_keys IN OUT KEY=TYPE:VALUE...\n");
        return EXIT_FAILURE;
    }
    must(gguf_open(&file, argv[1], &why), &why);
    struct model_options options = {.overrides = (const char *const *)argv + 3,
                                    .n_overrides = (size_t)argc - 3};
    must(model_overrides_apply(file, &options, &remarks, &why), &why);
    if (remarks.lines.data)
        fputs(remarks.lines.data, stderr);
    if (gguf_n_shards(file) > 1)
        must(status_fail(&why, STATUS_USAGE, "%s: is split", argv[1]), &why);
    must(gguf_writer_new(&w, &why), &why);
    for (size_t i = 0; i < gguf_n_kv(file); i++)
        gguf_writer_copy(w, gguf_kv_at(file, i));
    for (size_t i = 0; i < gguf_n_tensors(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        gguf_writer_tensor(w, t->name, t->type->type, t->ne, t->n_dims, t->data);
    }
    must(gguf_writer_finish(w, argv[2], &why), &why);
    base_buffer_free(&remarks.lines);
    gguf_close(file);
    return EXIT_SUCCESS;
}

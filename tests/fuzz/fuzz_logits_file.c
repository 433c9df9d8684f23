/* Base-logits files: any bytes; what is said to be there must lie in them. */
#include <stdlib.h>

#include "eval/reference/logits_file.h"
#include "tests/fuzz/fuzz.h"

static void check_file(const struct eval_logits_file *file, size_t n_bytes)
{
    const struct eval_logits_shape *shape = &file->shape;
    uint64_t n_head = eval_logits_head_bytes(shape);
    require(shape->n_ctx >= 3 && shape->n_vocab > 0 && shape->n_chunks > 0);
    require(n_head <= n_bytes && file->n_whole <= shape->n_chunks);
    require(file->n_whole <= (n_bytes - n_head) / eval_logits_chunk_bytes(shape));
    require((file->n_whole == shape->n_chunks) == (eval_logits_file_bytes(shape) == n_bytes));
    for (size_t i = 0; i < shape->n_chunks * shape->n_ctx; i++)
        require(file->ids[i] >= 0 && (size_t)file->ids[i] < shape->n_vocab);
    struct status_why why;
    char id[BASE_HEX];
    require(eval_logits_id(id, file, &why) == STATUS_OK);
    for (size_t first = 0; first < 3; first++)
        for (size_t n = 1; n < 3; n++)
            require((eval_logits_check_chunks(file, first, n, &why) == STATUS_OK) ==
                    (first + n <= file->n_whole));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    void *bytes = fuzz_copy(data, n_bytes);
    struct eval_logits_file file;
    struct status_why why = {""};
    enum status status = eval_logits_view(&file, "input", bytes, n_bytes, &why);
    require((status == STATUS_OK) == (why.text[0] == '\0'));
    if (status == STATUS_OK)
        check_file(&file, n_bytes);
    free(bytes);
    return 0;
}

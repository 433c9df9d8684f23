/* Winogrande: any text, read both ways; what is read must lie in it. */
#include <stdlib.h>

#include "eval/tasks/dataset.h"
#include "tests/fuzz/dataset_check.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    for (int llama_compat = 0; llama_compat < 2; llama_compat++) {
        char *text = fuzz_copy(data, n_bytes);
        struct eval_dataset dataset;
        struct status_why why = {""};
        enum status status = eval_dataset_winogrande(&dataset, text, n_bytes, llama_compat, &why);
        dataset_check(&dataset, status, &why, text, n_bytes);
        free(text);
    }
    return 0;
}

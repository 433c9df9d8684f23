/* Tasks as JSON or CSV, of each kind: any text; what is read must lie in it. */
#include <stdlib.h>

#include "eval/tasks/dataset.h"
#include "tests/fuzz/dataset_check.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    for (int kind = EVAL_HELLASWAG; kind <= EVAL_MC2; kind++) {
        char *text = fuzz_copy(data, n_bytes);
        struct eval_dataset dataset;
        struct status_why why = {""};
        const struct eval_dataset_options options = {
            .kind = (enum eval_choice_kind)kind,
            .labels = {n_bytes % 2 ? "0\n1\n2" : NULL, n_bytes % 2 ? 5 : 0}};
        enum status status = eval_dataset_read(&dataset, &options, text, n_bytes, &why);
        dataset_check(&dataset, status, &why, text, n_bytes);
        free(text);
    }
    return 0;
}

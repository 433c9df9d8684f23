/* Tasks as JSON lines, of each kind: any text; what is read must lie in it. */
#include <stdlib.h>

#include "eval/tasks/dataset.h"
#include "tests/fuzz/dataset_check.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    eval_dataset_is_jsonl((const char *)data, n_bytes);
    for (int kind = EVAL_HELLASWAG; kind <= EVAL_MULTIPLE_CHOICE; kind++) {
        char *text = fuzz_copy(data, n_bytes);
        struct eval_dataset dataset;
        struct status_why why = {""};
        enum status status =
            eval_dataset_jsonl(&dataset, (enum eval_choice_kind)kind, text, n_bytes, &why);
        dataset_check(&dataset, status, &why, text, n_bytes);
        free(text);
    }
    return 0;
}

/* Multiple choice: any bytes; what is read must lie in them. */
#include <stdlib.h>

#include "eval/tasks/dataset.h"
#include "tests/fuzz/dataset_check.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct eval_dataset dataset;
    struct status_why why = {""};
    enum status status = eval_dataset_multiple_choice(&dataset, (const char *)data, n_bytes, &why);
    dataset_check(&dataset, status, &why, (const char *)data, n_bytes);
    return 0;
}

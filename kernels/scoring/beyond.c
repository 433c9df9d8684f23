#include "kernels/scoring/beyond.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"

/** ln of the sum of the exponentials of a row's logits. */
static double total_of(const struct kern_row_score *row)
{
    return row->max_logit + row->log_sum;
}

/** The shares of head h, whose further rows have been scored. */
static void fill(const struct kern_score *op, size_t h, const struct kern_row_score *others)
{
    struct kern_row_score *rows = op->rows + h * op->n_rows;
    for (size_t i = 0; i < op->n_rows; i++)
        rows[i].beyond = 1 / (1 + exp(total_of(&rows[i]) - total_of(&others[i])));
}

enum status kern_score_beyond(struct kern_backend *b, const struct kern_score *op,
                              kern_score_fn *score, struct status_why *why)
{
    struct kern_row_score *others = NULL;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < op->n_heads * op->n_rows; i++)
        op->rows[i].beyond = 0;
    for (size_t h = 0; h < op->n_heads && !status; h++) {
        if (!op->heads[h].beyond)
            continue;
        struct kern_head head = *op->heads[h].beyond;
        head.hidden = op->heads[h].hidden;
        if (!others)
            status = base_array_new(others, op->n_rows, "rows", why);
        const struct kern_score alone = {
            .n_heads = 1, .heads = &head, .n_rows = op->n_rows, .rows = others};
        if (!status)
            status = score(b, &alone, why);
        if (!status)
            fill(op, h, others);
    }
    free(others);
    return status;
}

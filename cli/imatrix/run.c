/* What lines, document and evaluator ask of a run. */
#include "cli/imatrix/imatrix_command.h"

size_t cli_imatrix_n_windows(const struct cli_imatrix *im)
{
    size_t n_enough = im->e.units->n_enough;
    return n_enough ? n_enough : im->e.units->n_finished;
}

struct imat_llama cli_imatrix_llama(const struct cli_imatrix_settings *s)
{
    size_t batch = s->evaluate.machine.n_batch ? (size_t)s->evaluate.machine.n_batch : 2048;
    size_t ubatch = s->n_ubatch ? (size_t)s->n_ubatch : 512;
    return s->llama_compat ? (struct imat_llama){batch, ubatch} : (struct imat_llama){0};
}

uint64_t cli_imatrix_few_rows(const struct cli_imatrix *im)
{
    int64_t wanted = im->settings->stop_rows;
    return wanted ? (uint64_t)wanted : CLI_IMATRIX_FEW_ROWS;
}

struct cli_imatrix_rows cli_imatrix_rows(const struct imat_entry *entry, uint64_t few)
{
    struct cli_imatrix_rows rows = {.least = UINT64_MAX};
    for (size_t i = 0; i < entry->n_matrices; i++) {
        uint64_t n = entry->counts[i];
        rows.least = n < rows.least ? n : rows.least;
        rows.most = n > rows.most ? n : rows.most;
        rows.n_few += n < few;
        rows.n_none += n == 0;
    }
    return rows;
}

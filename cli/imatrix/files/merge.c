#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/imatrix/files/files.h"
#include "cli/process/say.h"
#include "cli/session/outputs.h"
#include "clients/imatrix/add.h"
#include "clients/imatrix/file/read.h"
#include "clients/imatrix/file/write.h"

bool cli_imatrix_is(const char *path)
{
    enum imat_kind kind = imat_kind_of(path);
    struct gguf_file *file;
    if (kind != IMAT_GGUF || gguf_list_part(&file, path, NULL))
        return kind != IMAT_OTHER;
    bool is = imat_is_matrix(file);
    gguf_close(file);
    return is;
}

enum status cli_imatrix_refuse(const char *path, struct status_why *why)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return status_fail(why, STATUS_IO, "%s: cannot be opened: %s", path, strerror(errno));
    fclose(file);
    return status_fail(why, STATUS_USAGE,
                       "%s: is no importance matrix, as another file is; these are taken together "
                       "with their like only",
                       path);
}

enum status cli_imatrix_merge(const struct cli_list *paths, const char *out_file, bool force,
                              struct status_why *why)
{
    struct imat_part *parts = NULL;
    struct imat_matrix sum = {0};
    struct base_buffer notes = {0};
    struct base_file *file = NULL;
    bool all_old = true;
    for (size_t i = 0; i < paths->n; i++)
        all_old &= imat_kind_of(paths->items[i]) == IMAT_DAT;
    const char *kind = force ? NULL : all_old ? BASE_MATRIX_DAT : BASE_MATRIX;
    enum status status = cli_output_create(&file, out_file, kind, why);
    if (!status)
        status = base_array_new(parts, paths->n, "files", why);
    for (size_t i = 0; i < paths->n && !status; i++) {
        parts[i].path = paths->items[i];
        status = imat_read(&parts[i].matrix, parts[i].path, why);
    }
    if (!status)
        status = imat_add(&sum, parts, paths->n, &notes, why);
    if (!status && notes.n)
        cli_print_notes(notes.data);
    if (!status)
        status = all_old ? imat_write_dat(&sum, file, why) : imat_write_gguf(&sum, file, why);
    if (file)
        status = cli_output_commit(&file, status, why);
    if (!status)
        cli_say("assay: %s: %zu matrices of %zu file%s, %" PRIu64 " chunks%s\n", out_file, sum.n,
                paths->n, status_plural(paths->n), sum.n_chunks,
                sum.exact ? "; the sums are exact" : "");
    for (size_t i = 0; parts && i < paths->n; i++)
        imat_free(&parts[i].matrix);
    free(parts);
    base_buffer_free(&notes);
    imat_free(&sum);
    return status;
}

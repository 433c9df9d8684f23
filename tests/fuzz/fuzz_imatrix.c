/* Files of importance matrices, of both formats: any bytes are refused with a sentence, or read;
 * then they can be added to themselves, compared, described and written. */
#include <math.h>
#include <stdlib.h>

#include "clients/imatrix/add.h"
#include "clients/imatrix/compare.h"
#include "clients/imatrix/file/read.h"
#include "clients/imatrix/file/write.h"
#include "clients/imatrix/statistics.h"
#include "tests/fuzz/fuzz.h"
#include "tests/harness/gguf_bytes.h"

static enum status read_bytes(struct imat_matrix *out, const void *data, size_t n_bytes)
{
    struct gguf_file *file = NULL;
    struct status_why why = {""};
    enum status status;
    if (n_bytes < 4 || memcmp(data, "GGUF", 4) != 0) {
        status = imat_read_dat(out, data, n_bytes, "input", &why);
    } else {
        status = gguf_bytes_list(&file, data, n_bytes, "input", &why);
        if (!status)
            status = imat_read_gguf(out, file, &why);
    }
    gguf_close(file);
    require(!status == !*why.text && !strchr(why.text, '\n'));
    return status;
}

static void describe(const struct imat_matrix *m)
{
    for (size_t i = 0; i < m->n; i++) {
        const struct imat_entry *e = &m->entries[i], *before = imat_one_earlier(m, e);
        struct imat_statistics s = imat_statistics_of(e);
        require(s.n <= e->n_matrices * e->n_columns && s.min <= s.max && s.outlying <= 1);
        require(imat_find(m, e->name) == e);
        require(!i || strcmp(m->entries[i - 1].name, e->name) < 0);
        if (before)
            (void)imat_cosine(e, before, true);
    }
}

static void put(const struct imat_matrix *m, bool old)
{
    struct base_file *file;
    struct status_why why = {""};
    require(!base_file_create(&file, "/dev/null", NULL, &why));
    enum status status = old ? imat_write_dat(m, file, &why) : imat_write_gguf(m, file, &why);
    require(!status == !*why.text);
    base_file_abandon(file);
}

static void add(const struct imat_part *parts)
{
    struct imat_matrix sum = {0};
    struct base_buffer notes = {0};
    struct status_why why = {""};
    enum status status = imat_add(&sum, parts, 2, &notes, &why);
    require(!status == !*why.text);
    if (!status) {
        require(sum.n == parts[0].matrix.n && sum.exact == parts[0].matrix.exact);
        put(&sum, false);
        put(&sum, true);
    }
    base_buffer_free(&notes);
    imat_free(&sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    void *copy = fuzz_copy(data, n_bytes);
    struct imat_part parts[2] = {{.path = "a"}, {.path = "b"}};
    struct imat_comparison c = {0};
    if (!read_bytes(&parts[0].matrix, copy, n_bytes)) {
        require(!read_bytes(&parts[1].matrix, copy, n_bytes));
        describe(&parts[0].matrix);
        if (parts[1].matrix.n_ranges) /* as another part of the text */
            parts[1].matrix.n_ranges = 0;
        add(parts);
        for (size_t i = 0; i < 2; i++) {
            c.sides[i] = parts[i].matrix;
            parts[i].matrix = (struct imat_matrix){0};
        }
        require(!imat_compare(&c, NULL) && c.same && !c.worst);
    }
    imat_comparison_free(&c);
    imat_free(&parts[0].matrix);
    imat_free(&parts[1].matrix);
    free(copy);
    return 0;
}

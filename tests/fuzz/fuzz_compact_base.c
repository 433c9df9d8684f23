/*
 * The reader of compact bases: any bytes are refused with a sentence, or opened, and then every
 * row that the header promises can be read. The checksums are made right first, or nothing
 * after them would ever be reached.
 */
#include <stdlib.h>
#include <string.h>

#include "eval/reference/compact_source.h"
#include "tests/eval/compact_fixture.h"
#include "tests/fuzz/fuzz.h"

static void read_rows(struct eval_compact_file *file)
{
    struct eval_compact_reading reading;
    struct eval_row_source source;
    struct status_why why = {""};
    if (eval_compact_source_open(&source, &reading, file, 0, &why) != STATUS_OK)
        return;
    for (size_t w = 0; w < file->layout.n_windows; w++) {
        const void *rows;
        size_t first = (size_t)eval_compact_first_row(file, w);
        size_t n_scored = (size_t)eval_compact_first_row(file, w + 1) - first;
        require(n_scored > 0 && eval_compact_window_of(file, first + n_scored - 1) == w);
        size_t n = source.max_rows && source.max_rows < n_scored ? source.max_rows : n_scored;
        enum status status = source.rows(source.user, first, n, &rows, &why);
        require((status == STATUS_OK) == (rows != NULL));
        float last;
        if (rows)
            memcpy(&last, (const float *)rows + n * file->layout.width - 1, sizeof last);
        require(status == STATUS_OK || why.text[0]);
    }
    eval_compact_source_close(&reading);
}

static void read_documents(const struct eval_compact_file *file)
{
    struct eval_documents d;
    struct status_why why = {""};
    require(eval_compact_documents(&d, file, &why) == STATUS_OK);
    require(d.n == file->layout.n_documents && d.n_files == file->layout.n_files);
    require(d.stream.n == file->layout.n_tokens && d.n_scored >= file->layout.n_scored);
    for (size_t i = 0; i < d.n; i++)
        require(d.items[i].file < d.n_files && d.items[i].category < (int32_t)d.categories.n);
    eval_documents_free(&d);
}

static void use(struct eval_compact_file *file)
{
    struct eval_stream stream;
    struct status_why why = {""};
    if (eval_compact_stream(&stream, file, &why) == STATUS_OK) {
        for (size_t i = 0; i < stream.n; i++)
            require(stream.ids[i] >= 0 && (size_t)stream.ids[i] < file->layout.n_vocab);
        eval_stream_free(&stream);
    }
    const uint8_t *head = file->head.data;
    unsigned sum = 0;
    for (size_t i = 0; head && i < file->head.n_rows * file->head.row_bytes; i++)
        sum += head[i];
    const uint8_t *bias = file->bias.data;
    for (size_t i = 0; bias && i < file->bias.row_bytes; i++)
        sum += bias[i];
    require(sum != UINT32_MAX);
    if (file->layout.n_documents)
        read_documents(file);
    read_rows(file);
}

static void try(const uint8_t *data, size_t n_bytes)
{
    struct eval_compact_file file;
    struct status_why why = {""};
    enum status status = eval_compact_view(&file, "input", data, n_bytes, &why);
    require(status == STATUS_OK || why.text[0]);
    if (status == STATUS_OK)
        use(&file);
    eval_compact_close(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    uint8_t *copy = aligned_alloc(EVAL_COMPACT_ALIGN, (n_bytes / 64 + 1) * 64);
    if (!copy)
        return 0;
    memcpy(copy, data, n_bytes);
    try(copy, n_bytes);
    if (n_bytes >= EVAL_COMPACT_HEADER_BYTES) {
        memcpy(copy, EVAL_COMPACT_MAGIC, 8);
        compact_seal_parts(copy, n_bytes);
        try(copy, n_bytes);
    }
    free(copy);
    return 0;
}

/** What holds of the records of any file, refused or not. */
#ifndef TESTS_FUZZ_TRACE_CHECK_H
#define TESTS_FUZZ_TRACE_CHECK_H

#include "clients/trace/file.h"
#include "tests/fuzz/fuzz.h"

static inline void trace_check_record(const struct trace_file *file, const struct trace_record *r)
{
    enum { LOOKED_AT = 1000 };
    uint64_t elements = trace_record_elements(r);
    require(r->n_values <= elements || !r->whole);
    require(memchr(r->name, '\0', sizeof r->name) != NULL);
    double sum = 0;
    for (size_t i = 0; i < r->n_values && i < LOOKED_AT; i++) {
        require(trace_record_index(r, i) < elements);
        sum += trace_record_value(file, r, i);
        sum += trace_record_value(file, r, r->n_values - 1 - i);
    }
    volatile double kept = sum;
    (void)kept;
}

static inline void trace_check(const uint8_t *data, size_t n_bytes, bool arrays)
{
    struct status_why why = {""};
    /* Memory of its own, with a fence after its last byte. */
    struct trace_file file = {.text = {.data = fuzz_copy(data, n_bytes), .n_bytes = n_bytes}};
    struct base_string name = {"a.npy", 5};
    enum status status =
        arrays ? trace_file_arrays(&file, name, &why) : trace_file_log(&file, &why);
    require((status == STATUS_OK) == (why.text[0] == '\0'));
    /* The last record of a refused file may be half read. */
    size_t n = status && file.n ? file.n - 1 : file.n;
    for (size_t i = 0; i < n; i++)
        trace_check_record(&file, &file.records[i]);
    require(file.n_tokens == 0 || file.tokens);
    trace_file_free(&file);
}

#endif

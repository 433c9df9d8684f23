/** What holds of the records of any file, refused or not. */
#ifndef TESTS_FUZZ_TRACE_CHECK_H
#define TESTS_FUZZ_TRACE_CHECK_H

#include "eval/trace/file.h"
#include "tests/fuzz/fuzz.h"

static inline void trace_check_record(const struct eval_traced *file, const struct eval_record *r)
{
    enum { LOOKED_AT = 1000 };
    uint64_t elements = eval_record_elements(r);
    require(r->n_values <= elements || !r->whole);
    require(memchr(r->name, '\0', sizeof r->name) != NULL);
    double sum = 0;
    for (size_t i = 0; i < r->n_values && i < LOOKED_AT; i++) {
        require(eval_record_index(r, i) < elements);
        sum += eval_record_value(file, r, i);
        sum += eval_record_value(file, r, r->n_values - 1 - i);
    }
    volatile double kept = sum;
    (void)kept;
}

static inline void trace_check(const uint8_t *data, size_t n_bytes, bool arrays)
{
    struct status_why why = {""};
    /* Memory of its own, with a fence behind its last byte. */
    struct eval_traced file = {.text = {.data = fuzz_copy(data, n_bytes), .n_bytes = n_bytes}};
    struct base_string name = {"a.npy", 5};
    enum status status =
        arrays ? eval_traced_arrays(&file, name, &why) : eval_traced_log(&file, &why);
    require((status == STATUS_OK) == (why.text[0] == '\0'));
    /* The last record of a refused file may be half read. */
    size_t n = status && file.n ? file.n - 1 : file.n;
    for (size_t i = 0; i < n; i++)
        trace_check_record(&file, &file.records[i]);
    require(file.n_tokens == 0 || file.tokens);
    eval_traced_free(&file);
}

#endif

/** A small valid GGUF file in memory: what the tests copy and then break. */
#ifndef TESTS_GGUF_SAMPLE_H
#define TESTS_GGUF_SAMPLE_H

#include "tests/harness/gguf_writer.h"

/** Bytes that the owner may change; release with free(data). */
struct sample {
    uint8_t *data;
    size_t n_bytes;
};

/**
 * Pairs: general.architecture = "sample", general.alignment = 32, one t.<type> for each value type,
 * arrays t.strings = {"one", "", "three"}, t.i32s = {1, -2, 3}, t.bools = {true, false}, t.none =
 * {}. Tensors: a.weight F32 {8, 2}, b.weight Q4_0 {32, 3}, c.weight F16 {4, 2, 2}, d.bias F32 {3};
 * byte i of each one's data is (uint8_t)(i + its first letter).
 * Fails the running test where the writer does.
 */
struct sample sample_make(void);

/** A file as a block of exactly its size, so that sanitizers see a read beyond it. */
struct sample sample_read(const char *path);

/** Open bytes under the name "sample"; fails the running test if that fails. */
struct gguf_file *sample_open(const struct sample *sample);

/** Offset just after the first occurrence of `text`; fails the running test without one. */
size_t sample_after(const struct sample *sample, const char *text);

#endif

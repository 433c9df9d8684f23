/** Bytes of a safetensors file with any header. */
#ifndef TESTS_SAFETENSORS_BYTES_H
#define TESTS_SAFETENSORS_BYTES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** Length, header, n_data bytes 0, 1, 2, ...; free(). */
static inline uint8_t *safetensors_bytes(const char *header, size_t n_data, size_t *n_bytes)
{
    uint64_t n = strlen(header);
    *n_bytes = 8 + n + n_data;
    uint8_t *bytes = malloc(*n_bytes);
    for (int i = 0; bytes && i < 8; i++)
        bytes[i] = (uint8_t)(n >> 8 * i);
    for (size_t i = 0; bytes && i < n + n_data; i++)
        bytes[8 + i] = i < n ? (uint8_t)header[i] : (uint8_t)(i - n);
    return bytes;
}

#endif

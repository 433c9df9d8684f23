#include "base/file/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

enum {
    ALIGNMENT = 64,   /* of the data in the file, as NumPy writes it */
    PREFIX_BYTES = 10 /* magic, version and length of the header */
};

/* Format 1.0: magic, version, length, and a Python dictionary that is filled up with blanks. */
size_t base_npy_header(char out[BASE_NPY_HEADER_BYTES], const uint64_t *dims, size_t n_dims)
{
    char shape[96] = "";
    size_t used = 0;
    for (size_t d = 0; d < n_dims; d++)
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%" PRIu64 ",%s", dims[d],
                                 d + 1 < n_dims ? " " : "");
    if (n_dims > 1)
        shape[used - 1] = '\0'; /* only a single axis keeps its comma */

    char *text = out + PREFIX_BYTES;
    int n = snprintf(text, BASE_NPY_HEADER_BYTES - PREFIX_BYTES,
                     "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }", shape);
    size_t total = PREFIX_BYTES + (size_t)n + 1;
    size_t padding = (ALIGNMENT - total % ALIGNMENT) % ALIGNMENT;
    memset(text + n, ' ', padding);
    text[(size_t)n + padding] = '\n';
    memcpy(out, "\x93NUMPY\x01", 8); /* and a version's second byte, 0 */
    size_t header_bytes = (size_t)n + padding + 1;
    out[8] = (char)(header_bytes & 0xff);
    out[9] = (char)(header_bytes >> 8);
    return total + padding;
}

/* Zip, by PKWARE's APPNOTE.TXT; sizes always in the extra field of 64 bits. */
enum { MOST_MEMBERS = 65535, STORED_VERSION = 45, EXTRA_ZIP64 = 1, DATE_1980 = 0x21 };

struct base_npz {
    struct base_file *file;
    uint64_t at; /* bytes written */
    size_t n_members;
    struct base_buffer directory;
};

/** Bytes of a part of the file, put together before they are written. */
struct bytes {
    unsigned char data[64 + 32];
    size_t n;
};

static void put(struct bytes *b, uint64_t value, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++)
        b->data[b->n++] = i < 8 ? (unsigned char)(value >> 8 * i) : 0;
}

struct base_npz *base_npz_begin(struct base_file *file)
{
    struct base_npz *npz = calloc(1, sizeof *npz);
    if (npz)
        npz->file = file;
    return npz;
}

static void write_bytes(struct base_npz *npz, const void *bytes, size_t n)
{
    base_file_write(npz->file, bytes, n);
    npz->at += n;
}

/** CRC-32 of ISO 3309, the polynomial reversed; 4 bits at a time. */
static uint32_t crc32_add(uint32_t crc, const void *bytes, size_t n)
{
    uint32_t table[16];
    for (uint32_t i = 0; i < 16; i++) {
        table[i] = i;
        for (int bit = 0; bit < 4; bit++)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? UINT32_C(0xedb88320) : 0);
    }
    const unsigned char *at = bytes;
    for (size_t i = 0; i < n; i++) {
        crc ^= at[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return crc;
}

/** What the local header and the directory have in common, up to the length of the name. */
static void put_common(struct bytes *b, uint32_t crc, size_t name_bytes)
{
    put(b, STORED_VERSION, 2);
    put(b, 0, 2 + 2 + 2); /* flags, method: stored, time */
    put(b, DATE_1980, 2);
    put(b, crc, 4);
    put(b, UINT32_MAX, 4); /* sizes: in the extra field */
    put(b, UINT32_MAX, 4);
    put(b, name_bytes, 2);
}

enum status base_npz_add(struct base_npz *npz, const char *name, const uint64_t *shape,
                         size_t n_dims, const float *values, struct status_why *why)
{
    char header[BASE_NPY_HEADER_BYTES];
    size_t header_bytes = base_npy_header(header, shape, n_dims), n_values = 1;
    for (size_t d = 0; d < n_dims; d++)
        n_values *= shape[d];
    size_t value_bytes = n_values * sizeof *values, name_bytes = strlen(name) + 4;
    uint32_t crc = crc32_add(UINT32_MAX, header, header_bytes);
    crc = ~crc32_add(crc, values, value_bytes);

    struct bytes local = {.n = 0}, entry = {.n = 0}, extra = {.n = 0};
    put(&extra, EXTRA_ZIP64, 2);
    put(&extra, 2 * 8, 2);
    put(&extra, header_bytes + value_bytes, 8);
    put(&extra, header_bytes + value_bytes, 8);
    put(&local, 0x04034b50, 4);
    put_common(&local, crc, name_bytes);
    put(&local, extra.n, 2);

    put(&entry, 0x02014b50, 4);
    put(&entry, STORED_VERSION, 2);
    put_common(&entry, crc, name_bytes);
    put(&entry, extra.n + 8, 2);
    put(&entry, 0, 2 + 2 + 2 + 4); /* comment, disk, attributes of two kinds */
    put(&entry, UINT32_MAX, 4);    /* where it begins: in the extra field */
    uint64_t begin = npz->at;
    write_bytes(npz, local.data, local.n);
    write_bytes(npz, name, name_bytes - 4);
    write_bytes(npz, ".npy", 4);
    write_bytes(npz, extra.data, extra.n);
    write_bytes(npz, header, header_bytes);
    write_bytes(npz, values, value_bytes);
    extra.data[2] = 3 * 8;
    put(&extra, begin, 8);
    npz->n_members++;
    base_buffer_add(&npz->directory, entry.data, entry.n);
    base_buffer_format(&npz->directory, "%s.npy", name);
    base_buffer_add(&npz->directory, extra.data, extra.n);
    return base_buffer_check(&npz->directory, "the names of arrays", why);
}

enum status base_npz_end(struct base_npz *npz, struct status_why *why)
{
    if (!npz)
        return STATUS_OK;
    enum status status = STATUS_OK;
    if (npz->n_members > MOST_MEMBERS)
        status = status_fail(why, STATUS_UNSUPPORTED, "%zu arrays in one .npz, expected at most %d",
                             npz->n_members, MOST_MEMBERS);
    uint64_t begin = npz->at;
    if (npz->directory.n)
        write_bytes(npz, npz->directory.data, npz->directory.n);
    struct bytes end = {.n = 0};
    uint64_t directory_end = npz->at;
    put(&end, 0x06064b50, 4);
    put(&end, 44, 8); /* of what follows */
    put(&end, STORED_VERSION, 2);
    put(&end, STORED_VERSION, 2);
    put(&end, 0, 4 + 4); /* disks */
    put(&end, npz->n_members, 8);
    put(&end, npz->n_members, 8);
    put(&end, npz->directory.n, 8);
    put(&end, begin, 8);
    write_bytes(npz, end.data, end.n);
    end.n = 0;
    put(&end, 0x07064b50, 4);
    put(&end, 0, 4);
    put(&end, directory_end, 8);
    put(&end, 1, 4);
    put(&end, 0x06054b50, 4);
    put(&end, 0, 4);
    put(&end, npz->n_members, 2);
    put(&end, npz->n_members, 2);
    put(&end, UINT32_MAX, 4);
    put(&end, UINT32_MAX, 4);
    put(&end, 0, 2);
    write_bytes(npz, end.data, end.n);
    base_buffer_free(&npz->directory);
    free(npz);
    return status;
}

/* The file beside a journal: the sums, as struct imat_units has them. docs/imatrix.md. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/content/text.h"
#include "base/content/written.h"
#include "base/digest.h"
#include "base/file/atomic_file.h"
#include "clients/imatrix/windows/units.h"

enum { VERSION = 2, N_ID = BASE_HEX - 1 };

/** What such a file begins with. Sums, half and a checksum follow, N_ID digits. */
struct head {
    char magic[8];
    uint64_t version;
    char id[N_ID];
    uint64_t n_windows, n_half; /* of the sums, and of those that the next change is from */
    uint64_t n_sums_bytes, n_half_bytes;
    double last_change; /* of struct imat_stop */
};

static const char magic[8] = BASE_SUMS_MAGIC;

enum status imat_units_save(const struct imat_units *u, const char *path, const char *id,
                            struct status_why *why)
{
    struct base_buffer sums = {0};
    struct base_file *file = NULL;
    char hex[BASE_HEX] = "";
    enum status status = imat_collector_pack(u->collector, &sums, why);
    struct head head = {.version = VERSION,
                        .n_windows = u->n_merged,
                        .n_half = u->stop.n_half,
                        .n_sums_bytes = sums.n,
                        .n_half_bytes = u->stop.half.n,
                        .last_change = u->stop.last_change};
    memcpy(head.magic, magic, sizeof magic);
    memcpy(head.id, id, N_ID);
    struct base_digest *digest = status ? NULL : base_digest_open();
    base_digest_add(digest, &head, sizeof head);
    base_digest_add(digest, sums.data, sums.n);
    base_digest_add(digest, u->stop.half.data, u->stop.half.n);
    if (!status)
        status = base_digest_close(digest, hex, why);
    if (!status)
        status = base_file_create(&file, path, BASE_SUMS, why);
    if (!status) {
        base_file_write(file, &head, sizeof head);
        base_file_write(file, sums.data, sums.n);
        base_file_write(file, u->stop.half.data, u->stop.half.n);
        base_file_write(file, hex, N_ID);
        status = base_file_commit(file, why);
    }
    base_buffer_free(&sums);
    return status;
}

static enum status check(const struct head *head, const struct base_text *text, const char *id,
                         struct status_why *why)
{
    char hex[BASE_HEX];
    size_t n = text->n_bytes, rest = n - sizeof *head - N_ID;
    if (n < sizeof *head + N_ID || memcmp(head->magic, magic, sizeof magic) != 0 ||
        head->version != VERSION || head->n_sums_bytes > rest ||
        head->n_half_bytes != rest - head->n_sums_bytes)
        return status_fail(why, STATUS_FORMAT,
                           "has %zu bytes that are no sums of this program, or not all of them", n);
    if (memcmp(head->id, id, N_ID) != 0)
        return status_fail(why, STATUS_FORMAT, "has sums of another run");
    enum status status = base_sha256(hex, text->data, n - N_ID, why);
    if (!status && memcmp(hex, text->data + n - N_ID, N_ID) != 0)
        status = status_fail(why, STATUS_FORMAT, "is damaged: its checksum is another one");
    return status;
}

static enum status take(struct imat_units *u, const struct head *head, const char *bytes,
                        struct status_why *why)
{
    struct base_string sums = {bytes, (size_t)head->n_sums_bytes};
    enum status status = imat_collector_unpack(u->collector, sums, why);
    if (!status && head->n_half_bytes)
        base_buffer_add(&u->stop.half, bytes + head->n_sums_bytes, (size_t)head->n_half_bytes);
    if (!status)
        status = base_buffer_check(&u->stop.half, "sums", why);
    if (status) {
        imat_collector_clear(u->collector);
        base_buffer_free(&u->stop.half);
        return status;
    }
    u->stop.n_half = (size_t)head->n_half;
    u->stop.last_change = head->last_change;
    u->n_restorable = u->n_merged = (size_t)head->n_windows;
    return STATUS_OK;
}

enum status imat_units_load(struct imat_units *u, const char *path, const char *id,
                            struct status_why *why)
{
    struct base_text text = {0};
    struct head head = {.version = 0};
    u->n_restorable = 0;
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return STATUS_OK;
    enum status status = base_written_check(path, BASE_SUMS, why);
    if (!status)
        status = base_text_read_whole(&text, path, SIZE_MAX / 2, why);
    if (status)
        return status;
    if (text.n_bytes >= sizeof head)
        memcpy(&head, text.data, sizeof head);
    status = check(&head, &text, id, why);
    if (!status)
        status = take(u, &head, text.data + sizeof head, why);
    if (status)
        status_context(why, "%s", path);
    base_text_free(&text);
    return status;
}

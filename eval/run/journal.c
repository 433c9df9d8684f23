#include "eval/run/journal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/content/written.h"
#include "base/digest.h"
#include "base/file/folder.h"
#include "base/file/name.h"
#include "eval/run/difference.h"

static const char magic[8] = BASE_JOURNAL_MAGIC;

enum {
    VERSION = 1,
    CHECKSUM = BASE_HEX - 1, /* bytes: SHA-256 in hexadecimal digits */
    MAX_SETTINGS = 1 << 20
};
static const double sync_interval = 1; /* seconds */

/** What a file begins with: this, the settings, a checksum of both. */
struct head {
    char magic[sizeof magic];
    uint32_t version;
    uint32_t n_settings; /* bytes */
};

/** What an entry begins with: this, the values, a checksum of the one before and of both. */
struct entry {
    uint64_t index; /* of the unit, from 0 */
    uint64_t n_values;
};

struct eval_journal {
    char *path;
    int fd;
    struct base_file *file;    /* of eval_journal_begin; NULL: the descriptor is written to */
    uint64_t n;                /* entries read and appended */
    uint64_t at, n_bytes;      /* offset of the next entry; of the file */
    char chain[BASE_HEX];      /* checksum of what ends at `at` */
    uint64_t read_at;          /* offset of the entry that was read last, and */
    char read_chain[BASE_HEX]; /* the checksum before it */
    unsigned char *buffer;     /* an entry */
    size_t capacity;
    double synced; /* when, by the clock */
};

static enum status fail_io(const struct eval_journal *j, const char *what, struct status_why *why)
{
    return status_fail(why, STATUS_IO, "%s: %s: %s", j->path, what, strerror(errno));
}

/** Read up to n bytes, fewer only at the end of the file. */
static enum status read_at(const struct eval_journal *j, uint64_t at, void *bytes, size_t n,
                           size_t *n_read, struct status_why *why)
{
    for (*n_read = 0; *n_read < n;) {
        ssize_t got = pread(j->fd, (char *)bytes + *n_read, n - *n_read, (off_t)(at + *n_read));
        if (got == 0)
            break;
        if (got < 0 && errno != EINTR)
            return fail_io(j, "reading failed", why);
        if (got > 0)
            *n_read += (size_t)got;
    }
    return STATUS_OK;
}

static enum status write_at(struct eval_journal *j, const void *bytes, size_t n,
                            struct status_why *why)
{
    if (j->file)
        base_file_write(j->file, bytes, n);
    for (size_t done = 0; done < n && !j->file;) {
        ssize_t put = pwrite(j->fd, (const char *)bytes + done, n - done, (off_t)(j->at + done));
        if (put < 0 && errno != EINTR)
            return fail_io(j, "writing failed", why);
        if (put > 0)
            done += (size_t)put;
    }
    j->at += n;
    j->n_bytes = j->n_bytes > j->at ? j->n_bytes : j->at;
    return STATUS_OK;
}

/** The checksum of n bytes that follow what the chain stands for. */
static enum status checksum(const struct eval_journal *j, char hex[BASE_HEX], const void *bytes,
                            size_t n, struct status_why *why)
{
    struct base_digest *digest = base_digest_open();
    base_digest_add(digest, j->chain, strlen(j->chain));
    base_digest_add(digest, bytes, n);
    return base_digest_close(digest, hex, why);
}

enum status eval_journal_sync(struct eval_journal *j, struct status_why *why)
{
    if (fsync(j->fd) != 0)
        return fail_io(j, "writing failed", why);
    if (!base_file_is_at(j->fd, j->path))
        return status_fail(why, STATUS_IO,
                           "%s: the journal was removed or renamed while it was written; the run "
                           "could not be continued",
                           j->path);
    j->synced = base_clock_seconds();
    return STATUS_OK;
}

static enum status open_file(struct eval_journal *j, bool to_read, struct status_why *why)
{
    int flags = to_read ? O_RDONLY : O_RDWR | O_CREAT;
    /* O_NONBLOCK: a pipe must not hang; files ignore it. */
    j->fd = open(j->path, flags | O_CLOEXEC | O_NONBLOCK, 0666);
    if (j->fd < 0)
        return fail_io(j, to_read ? "cannot be opened" : "the journal cannot be opened for writing",
                       why);
    struct stat about;
    if (fstat(j->fd, &about) != 0)
        return fail_io(j, "cannot be examined", why);
    if (!S_ISREG(about.st_mode))
        return status_fail(why, STATUS_IO, "%s: is not a regular file, expected a journal",
                           j->path);
    if (flock(j->fd, (to_read ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0)
        return errno == EWOULDBLOCK
                   ? status_fail(why, STATUS_IO, "%s: the journal is in use by another run",
                                 j->path)
                   : fail_io(j, "cannot be locked", why);
    if (fstat(j->fd, &about) != 0) /* again: another run may have ended in between */
        return fail_io(j, "cannot be examined", why);
    if (about.st_nlink == 0)
        return status_fail(why, STATUS_IO, "%s: the journal was removed by another run", j->path);
    j->n_bytes = (uint64_t)about.st_size;
    return STATUS_OK;
}

/** The head that belongs to the settings, checksum included, into the buffer. */
static enum status make_head(struct eval_journal *j, const char *settings, size_t *n_bytes,
                             struct status_why *why)
{
    size_t n = strlen(settings);
    if (n > MAX_SETTINGS)
        return status_fail(why, STATUS_USAGE,
                           "%s: settings of %zu bytes are too many for a journal", j->path, n);
    struct head head = {.version = VERSION, .n_settings = (uint32_t)n};
    memcpy(head.magic, magic, sizeof magic);
    *n_bytes = sizeof head + n + CHECKSUM;
    enum status status = base_array_reserve(j->buffer, j->capacity, *n_bytes, "bytes", why);
    if (status)
        return status;
    memcpy(j->buffer, &head, sizeof head);
    memcpy(j->buffer + sizeof head, settings, n);
    status = checksum(j, j->chain, j->buffer, sizeof head + n, why);
    memcpy(j->buffer + sizeof head + n, j->chain, CHECKSUM);
    return status;
}

/** Whether what a file begins with is a whole head; its settings then end with a NUL. */
static enum status check_head(struct eval_journal *j, char *found, size_t n_found,
                              struct status_why *why)
{
    struct head head;
    if (n_found < sizeof head || memcmp(found, magic, sizeof magic) != 0)
        return status_fail(why, STATUS_FORMAT,
                           "%s: is not a journal of assay; it was left as it is", j->path);
    memcpy(&head, found, sizeof head);
    if (head.version != VERSION)
        return status_fail(why, STATUS_UNSUPPORTED, "%s: is a journal of version %u, expected %d",
                           j->path, head.version, VERSION);
    size_t n = head.n_settings;
    j->chain[0] = '\0';
    char hex[BASE_HEX];
    bool fits = n <= MAX_SETTINGS && sizeof head + n + CHECKSUM <= n_found;
    enum status status = fits ? checksum(j, hex, found, sizeof head + n, why) : STATUS_OK;
    if (status)
        return status;
    if (!fits || memcmp(hex, found + sizeof head + n, CHECKSUM) != 0)
        return status_fail(why, STATUS_FORMAT,
                           "%s: the journal's head is damaged or cut off; remove it to begin anew",
                           j->path);
    memcpy(j->chain, hex, sizeof hex);
    j->at = sizeof head + n + CHECKSUM;
    found[sizeof head + n] = '\0'; /* where the checksum began */
    return STATUS_OK;
}

/** Say what is wrong with a head that is not the expected one. */
static enum status refuse_head(struct eval_journal *j, char *found, size_t n_found,
                               const char *settings, struct status_why *why)
{
    struct eval_difference d = {0};
    enum status status = check_head(j, found, n_found, why);
    if (status)
        return status;
    status = eval_difference_find(&d, found + sizeof(struct head), settings, why);
    if (status) {
        status_context(why, "%s", j->path);
        return status;
    }
    return status_fail(why, STATUS_USAGE,
                       "%s was made with %s %s, this run has %s; repeat those settings or give "
                       "another journal",
                       j->path, *d.name ? d.name : "other settings", d.first, d.second);
}

/** Write the head that is in the buffer: the file is new, or a run was killed here. */
static enum status write_head(struct eval_journal *j, size_t n_bytes, struct status_why *why)
{
    bool is_new = j->n_bytes == 0;
    enum status status = write_at(j, j->buffer, n_bytes, why);
    if (!status)
        status = eval_journal_sync(j, why);
    if (status && is_new && base_file_is_at(j->fd, j->path))
        unlink(j->path); /* half a head is of no use */
    base_folder_sync(j->path);
    return status;
}

/** What the file begins with, as much as a head may have; freed by the caller. */
static enum status read_head(struct eval_journal *j, char **found, size_t *n_found,
                             struct status_why *why)
{
    size_t n_most = sizeof(struct head) + MAX_SETTINGS + CHECKSUM;
    n_most = n_most < j->n_bytes ? n_most : (size_t)j->n_bytes;
    *found = malloc(n_most + 1);
    if (!*found)
        return status_fail(why, STATUS_MEMORY, "%s: out of memory", j->path);
    return read_at(j, 0, *found, n_most, n_found, why);
}

/** Compare the file's head with the expected one, or write it. */
static enum status open_head(struct eval_journal *j, const char *settings, struct status_why *why)
{
    size_t n_head = 0, n_found = 0;
    char *found = NULL;
    enum status status = make_head(j, settings, &n_head, why);
    if (!status)
        status = read_head(j, &found, &n_found, why);
    if (!status) {
        size_t n = n_found < n_head ? n_found : n_head;
        if (memcmp(found, j->buffer, n) != 0)
            status = refuse_head(j, found, n_found, settings, why);
        else if (n == n_head)
            j->at = n_head;
        else
            status = write_head(j, n_head, why);
    }
    free(found);
    return status;
}

/** A journal without its file. */
static enum status allocate(struct eval_journal **out, const char *path, struct status_why *why)
{
    struct eval_journal *j = *out = calloc(1, sizeof *j);
    if (j) {
        j->fd = -1;
        j->path = strdup(path);
    }
    return j && j->path ? STATUS_OK : status_fail(why, STATUS_MEMORY, "%s: out of memory", path);
}

/** A journal without its head. to_read: nothing is written. */
static enum status open_path(struct eval_journal **out, const char *path, bool to_read,
                             struct status_why *why)
{
    enum status status = allocate(out, path, why);
    return status ? status : open_file(*out, to_read, why);
}

enum status eval_journal_open(struct eval_journal **out, const char *path, const char *settings,
                              struct status_why *why)
{
    enum status status = open_path(out, path, false, why);
    if (!status)
        status = open_head(*out, settings, why);
    if (status) {
        eval_journal_close(*out);
        *out = NULL;
    }
    return status;
}

enum status eval_journal_begin(struct eval_journal **out, struct base_file *file,
                               const char *settings, struct status_why *why)
{
    size_t n_head;
    enum status status = allocate(out, "the journal", why);
    if (!status) {
        (*out)->file = file;
        status = make_head(*out, settings, &n_head, why);
    }
    if (!status)
        return write_at(*out, (*out)->buffer, n_head, why);
    eval_journal_close(*out);
    *out = NULL;
    return status;
}

enum status eval_journal_look(struct eval_journal **out, const char *path, char **settings,
                              struct status_why *why)
{
    size_t n_found = 0;
    char *found = NULL;
    *settings = NULL;
    enum status status = open_path(out, path, true, why);
    if (!status)
        status = read_head(*out, &found, &n_found, why);
    if (!status)
        status = check_head(*out, found, n_found, why);
    if (!status && !(*settings = strdup(found + sizeof(struct head))))
        status = status_fail(why, STATUS_MEMORY, "%s: out of memory", path);
    free(found);
    if (status) {
        eval_journal_close(*out);
        *out = NULL;
    }
    return status;
}

/** Room for an entry; *n_covered: its bytes before the checksum. */
static enum status reserve_entry(struct eval_journal *j, size_t n_values, size_t *n_covered,
                                 struct status_why *why)
{
    const size_t rest = sizeof(struct entry) + CHECKSUM;
    if (n_values > (SSIZE_MAX - rest) / sizeof(double))
        return status_fail(why, STATUS_MEMORY, "%s: no memory for %zu numbers", j->path, n_values);
    *n_covered = sizeof(struct entry) + n_values * sizeof(double);
    return base_array_reserve(j->buffer, j->capacity, *n_covered + CHECKSUM, "bytes", why);
}

enum status eval_journal_read(struct eval_journal *j, double *values, size_t n_values, bool *found,
                              struct status_why *why)
{
    *found = false;
    size_t n_covered = 0, n_read = 0;
    enum status status = reserve_entry(j, n_values, &n_covered, why);
    if (!status)
        status = read_at(j, j->at, j->buffer, n_covered + CHECKSUM, &n_read, why);
    if (status || n_read < n_covered + CHECKSUM)
        return status;
    struct entry entry;
    memcpy(&entry, j->buffer, sizeof entry);
    if (entry.index != j->n || entry.n_values != n_values)
        return STATUS_OK;
    char hex[BASE_HEX];
    status = checksum(j, hex, j->buffer, n_covered, why);
    if (status || memcmp(hex, j->buffer + n_covered, CHECKSUM) != 0)
        return status;
    memcpy(values, j->buffer + sizeof entry, n_values * sizeof *values);
    j->read_at = j->at;
    memcpy(j->read_chain, j->chain, sizeof hex);
    memcpy(j->chain, hex, sizeof hex);
    j->at += n_covered + CHECKSUM;
    j->n++;
    *found = true;
    return STATUS_OK;
}

enum status eval_journal_next(struct eval_journal *j, double **values, size_t *n_values,
                              struct status_why *why)
{
    struct entry entry;
    size_t n_read;
    bool found = false;
    *values = NULL;
    enum status status = read_at(j, j->at, &entry, sizeof entry, &n_read, why);
    if (status || n_read < sizeof entry || entry.n_values > j->n_bytes / sizeof(double))
        return status; /* the file cannot have so many numbers */
    *n_values = (size_t)entry.n_values;
    if (base_array_new(*values, *n_values + 1, "numbers", why))
        return STATUS_MEMORY;
    status = eval_journal_read(j, *values, *n_values, &found, why);
    if (status || !found) {
        free(*values);
        *values = NULL;
    }
    return status;
}

void eval_journal_unread(struct eval_journal *j)
{
    assert(j->n && j->read_at);
    j->at = j->read_at;
    memcpy(j->chain, j->read_chain, sizeof j->chain);
    j->read_at = 0;
    j->n--;
}

enum status eval_journal_append(struct eval_journal *j, const double *values, size_t n_values,
                                struct status_why *why)
{
    size_t n_covered = 0;
    enum status status = reserve_entry(j, n_values, &n_covered, why);
    if (status)
        return status;
    struct entry entry = {.index = j->n, .n_values = n_values};
    memcpy(j->buffer, &entry, sizeof entry);
    memcpy(j->buffer + sizeof entry, values, n_values * sizeof *values);
    char hex[BASE_HEX];
    status = checksum(j, hex, j->buffer, n_covered, why);
    if (status)
        return status;
    memcpy(j->buffer + n_covered, hex, CHECKSUM);
    if (j->n_bytes > j->at && ftruncate(j->fd, (off_t)j->at) != 0)
        return fail_io(j, "writing failed", why);
    j->n_bytes = j->at;
    status = write_at(j, j->buffer, n_covered + CHECKSUM, why);
    if (status)
        return status;
    memcpy(j->chain, hex, sizeof hex);
    j->n++;
    bool soon = j->file || base_clock_seconds() - j->synced < sync_interval;
    return soon ? STATUS_OK : eval_journal_sync(j, why);
}

uint64_t eval_journal_head_bytes(size_t n_settings)
{
    return sizeof(struct head) + n_settings + CHECKSUM;
}

uint64_t eval_journal_entry_bytes(size_t n_values)
{
    return sizeof(struct entry) + n_values * sizeof(double) + CHECKSUM;
}

uint64_t eval_journal_n(const struct eval_journal *j)
{
    return j->n;
}

uint64_t eval_journal_n_behind(const struct eval_journal *j)
{
    return j->n_bytes - j->at;
}

const char *eval_journal_path(const struct eval_journal *j)
{
    return j->path;
}

void eval_journal_close(struct eval_journal *j)
{
    if (!j)
        return;
    if (j->fd >= 0)
        close(j->fd);
    free(j->path);
    free(j->buffer);
    free(j);
}

/*
 * Journals: a file of any bytes, and, where the first byte says so, any bytes as the settings of a
 * well-formed one. What is read must be there again when it was gone on with.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"
#include "eval/run/journal.h"
#include "tests/fuzz/fuzz.h"

enum { N_VALUES = 3, MAX_RECORDS = 100 };
static const char settings[] = "{\"n_ctx\": 512, \"files\": [\"a\", {\"id\": null}]}";

static void put(int fd, const void *bytes, size_t n)
{
    require(write(fd, bytes, n) == (ssize_t)n);
}

/** The head of a journal with these settings. */
static void put_head(int fd, const uint8_t *text, size_t n)
{
    uint32_t version = 1, n_text = (uint32_t)n;
    char hex[BASE_HEX];
    struct base_digest *digest = base_digest_open();
    base_digest_add(digest, "ASSAYJNL", 8);
    base_digest_add(digest, &version, sizeof version);
    base_digest_add(digest, &n_text, sizeof n_text);
    base_digest_add(digest, text, n);
    require(base_digest_close(digest, hex, NULL) == STATUS_OK);
    put(fd, "ASSAYJNL", 8);
    put(fd, &version, sizeof version);
    put(fd, &n_text, sizeof n_text);
    put(fd, text, n);
    put(fd, hex, BASE_HEX - 1);
}

/** Open and read to the end. NULL: refused, with a sentence. */
static struct eval_journal *open_and_read(const char *path)
{
    struct eval_journal *journal;
    struct status_why why = {""};
    enum status status = eval_journal_open(&journal, path, settings, &why);
    require((status == STATUS_OK) == (journal != NULL));
    require(journal || strstr(why.text, path));
    require(status != STATUS_IO); /* then no input would be read */
    bool found = journal != NULL;
    double values[N_VALUES];
    while (found && eval_journal_n(journal) < MAX_RECORDS)
        require(eval_journal_read(journal, values, N_VALUES, &found, &why) == STATUS_OK);
    return journal;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    char path[] = "/dev/shm/assay-fuzz-XXXXXX"; /* a name, which a journal must have, in memory */
    int fd = mkostemp(path, O_CLOEXEC);
    require(fd >= 0);
    if (n_bytes && data[0] == '{')
        put_head(fd, data, n_bytes);
    else
        put(fd, data, n_bytes);
    struct eval_journal *journal = open_and_read(path);
    if (journal) {
        double values[N_VALUES] = {1, 2, 3};
        uint64_t n = eval_journal_n(journal);
        require(eval_journal_append(journal, values, N_VALUES, NULL) == STATUS_OK);
        eval_journal_close(journal);
        journal = open_and_read(path);
        require(journal && (eval_journal_n(journal) == n + 1 || n == MAX_RECORDS));
        require(n == MAX_RECORDS || eval_journal_n_behind(journal) == 0);
    }
    eval_journal_close(journal);
    close(fd);
    unlink(path);
    return 0;
}

/*
 * The journal of --state: any bytes. A file that is taken is appended to, and has all it had and
 * the new answer when it is opened again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clients/probe/ask/journal.h"
#include "tests/fuzz/fuzz.h"

static char path[64];

static enum status open_it(struct probe_journal **out)
{
    struct status_why why = {""};
    enum status status = probe_journal_open(out, path, "s", &why);
    require(!status == (*out != NULL) && (!status || *why.text));
    return status;
}

/** How many answers to a request there are. */
static size_t answers_to(struct probe_journal *journal, const char *request)
{
    for (size_t n = 0;; n++) {
        struct probe_exchange e = {.path = "/p", .body = request};
        require(!probe_journal_find(journal, &e, NULL));
        if (!e.bytes)
            return n;
        require(e.code == 200 && strlen(e.bytes) == e.n_bytes && n < probe_journal_n(journal));
        free(e.bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static const char request[] = "{\"a\":1}";
    char response[] = "{\n\"b\":2}";
    struct probe_exchange e = {.path = "/p",
                               .body = request,
                               .code = 200,
                               .bytes = response,
                               .n_bytes = sizeof response - 1};
    struct probe_journal *journal;
    int fd = memfd_create("journal", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data, n_bytes) == (ssize_t)n_bytes);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (!open_it(&journal)) {
        size_t n = probe_journal_n(journal), had = answers_to(journal, request);
        answers_to(journal, NULL);
        require(!probe_journal_add(journal, &e, NULL));
        probe_journal_close(journal);
        require(!open_it(&journal) && probe_journal_n(journal) == n + 1);
        require(answers_to(journal, request) == had + 1);
        probe_journal_close(journal);
    }
    close(fd);
    return 0;
}

#include "cli/watch/watch_command.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/atomic_file.h"

/* C's isspace in the "C" locale, and the end of a string: a word has neither. */
static bool is_blank(char c)
{
    return c == '\0' || c == ' ' || (c >= '\t' && c <= '\r');
}

/* Digits with a sign or none; -1: no integer from 0 on. */
static int64_t parse_number(const char *bytes, size_t n_bytes)
{
    size_t i = n_bytes && bytes[0] == '+';
    int64_t value = -1;
    for (; i < n_bytes && bytes[i] >= '0' && bytes[i] <= '9'; i++) {
        int digit = bytes[i] - '0';
        value = value < 0 ? 0 : value;
        if (value > (INT64_MAX - digit) / 10)
            return -1;
        value = 10 * value + digit;
    }
    return value;
}

bool cli_watch_parse(struct cli_watch_command *out, const char *bytes, size_t n_bytes)
{
    *out = (struct cli_watch_command){.number = -1};
    if (n_bytes == 0 || !memchr(bytes, '\n', n_bytes))
        return false;
    size_t begin = 0;
    while (begin < n_bytes && is_blank(bytes[begin]))
        begin++;
    size_t end = begin;
    while (end < n_bytes && !is_blank(bytes[end]))
        end++;
    if (end == begin)
        return false;
    size_t n = end - begin < sizeof out->word - 1 ? end - begin : sizeof out->word - 1;
    memcpy(out->word, bytes + begin, n);
    while (end < n_bytes && is_blank(bytes[end]))
        end++;
    out->number = parse_number(bytes + end, n_bytes - end);
    return true;
}

bool cli_watch_take(struct cli_watch_command *out, const char *path, bool *removed)
{
    char bytes[CLI_COMMAND_MAX_BYTES];
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    size_t n_bytes = 0;
    ssize_t n = fstat(fd, &about) == 0 && S_ISREG(about.st_mode) ? 1 : 0;
    while (n > 0 && n_bytes < sizeof bytes) {
        n = read(fd, bytes + n_bytes, sizeof bytes - n_bytes);
        n_bytes += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    if (n < 0 || !cli_watch_parse(out, bytes, n_bytes))
        return false;
    *removed = unlink(path) == 0 || errno == ENOENT;
    return true;
}

enum status cli_watch_tell(const char *path, const char *state, uint64_t iteration, int64_t number,
                           struct status_why *why)
{
    char line[96];
    int n = snprintf(line, sizeof line, "%s %" PRIu64 " %" PRId64 "\n", state, iteration, number);
    struct base_file *file = NULL;
    enum status status = base_file_create(&file, path, NULL, why);
    if (status)
        return status;
    base_file_write(file, line, (size_t)n);
    return base_file_commit(file, why);
}

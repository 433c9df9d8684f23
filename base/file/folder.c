#include "base/file/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

void base_folder_sync(const char *path)
{
    int before = errno;
    char copy[PATH_MAX]; /* dirname writes into it; a path that was opened fits */
    snprintf(copy, sizeof copy, "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!fsync(fd);
        close(fd);
    }
    errno = before;
}

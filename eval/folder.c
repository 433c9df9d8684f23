#include "eval/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void eval_folder_sync(const char *path)
{
    int before = errno;
    char *copy = strdup(path); /* dirname writes into it */
    int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)!fsync(fd);
        close(fd);
    }
    free(copy);
    errno = before;
}

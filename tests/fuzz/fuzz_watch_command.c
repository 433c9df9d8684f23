/*
 * The file by which a run is given commands: any bytes. What is read of it is a word of it and a
 * number; and as long as the newline is missing, whatever is there of it is no command.
 */
#include <ctype.h>
#include <stdlib.h>

#include "cli/watch/watch_command.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    char *bytes = fuzz_copy(data, n_bytes);
    const char *newline = n_bytes ? memchr(bytes, '\n', n_bytes) : NULL;
    struct cli_watch_command command, begun;
    bool found = cli_watch_parse(&command, bytes, n_bytes);
    require(command.number >= -1);
    require(found == (command.word[0] != '\0'));
    require(!found || newline);
    require(memchr(command.word, '\0', sizeof command.word) != NULL);
    for (const char *c = command.word; *c; c++)
        require(!isspace((unsigned char)*c) && memchr(bytes, *c, n_bytes));
    if (newline)
        require(!cli_watch_parse(&begun, bytes, (size_t)(newline - bytes)));
    free(bytes);
    return 0;
}

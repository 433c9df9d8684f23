/**
 * The two files by which another program drives a run: it puts commands into one, and reads how
 * far the run is in the other. The protocol is ik_llama.cpp's; docs/hot-swap.md describes it.
 */
#ifndef CLI_WATCH_WATCH_COMMAND_H
#define CLI_WATCH_WATCH_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/** Only the first bytes of a longer file are looked at. */
enum { CLI_COMMAND_MAX_BYTES = 4096 };

/** A word, and a number that grows with each command. */
struct cli_watch_command {
    char word[32];  /* cut, if it is longer: then no command is known by it */
    int64_t number; /* -1: none was given */
};

/**
 * Read a command: blanks, a word, blanks, an integer (negative ones and those beyond int64_t count
 * as none); the rest is not looked at. Returns false where there is none: without a newline it is
 * still being written; and where there is nothing but blanks.
 */
bool cli_watch_parse(struct cli_watch_command *out, const char *bytes, size_t n_bytes);

/**
 * Take the command out of the file: parse it, and remove the file. Returns false where there is no
 * file, no regular one, or no command in it. removed: whether it could be; it stays a command else.
 */
bool cli_watch_take(struct cli_watch_command *out, const char *path, bool *removed);

/**
 * Write "STATE ITERATION NUMBER" under another name, and rename that to PATH: a reader sees the old
 * line or the new one.   Fails: as base_file_create and base_file_commit.
 */
enum status cli_watch_tell(const char *path, const char *state, uint64_t iteration, int64_t number,
                           struct status_why *why);

#endif

/** Versions of the program and of what it is built with, for `version` and for results. */
#ifndef CLI_PROCESS_VERSION_H
#define CLI_PROCESS_VERSION_H

/** The commit that the program was built from, with `-dirty` where files differed; "" if unknown.
 */
extern const char cli_commit[];

struct cli_versions {
    const char *assay;
    const char *commit; /* cli_commit */
    const char *compiler;
    const char *build; /* CMake's build type */
    char pcre2[64];
    const char *cjson;
    const char *openssl;
    char openblas[128]; /* "" where it is not loaded */
};

void cli_versions_read(struct cli_versions *versions);

#endif

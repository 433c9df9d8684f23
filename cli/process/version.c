#include "cli/process/version.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <cjson/cJSON.h>
#include <openssl/crypto.h>
#include <pcre2.h>
#include <stdio.h>

#include "kernels/kernels.h"

void cli_versions_read(struct cli_versions *versions)
{
    *versions = (struct cli_versions){0};
    versions->assay = ASSAY_VERSION;
    versions->commit = cli_commit;
#ifdef __clang__
    versions->compiler = __VERSION__; /* begins with "Clang" or the vendor's name */
#else
    versions->compiler = "gcc " __VERSION__;
#endif
    versions->build = ASSAY_BUILD_TYPE;
    pcre2_config(PCRE2_CONFIG_VERSION, versions->pcre2); /* needs 24 bytes */
    versions->cjson = cJSON_Version();
    versions->openssl = OpenSSL_version(OPENSSL_VERSION_STRING);
    snprintf(versions->openblas, sizeof versions->openblas, "%s", kern_openblas_version());
}

/* The program was built without libcurl: cmake did not find it. */
#include "clients/probe/http/http.h"

enum status probe_http_open(struct probe_http **out, const char *url,
                            const struct probe_http_options *options, struct status_why *why)
{
    (void)url, (void)options;
    *out = NULL;
    return status_fail(why, STATUS_UNSUPPORTED,
                       "this program was built without libcurl, which asks servers; install its "
                       "development files and build again, or record answers (--logprobs, --base)");
}

void probe_http_close(struct probe_http *http)
{
    (void)http;
}

const char *probe_http_base(const struct probe_http *http)
{
    (void)http;
    return "";
}

enum status probe_http_send(struct probe_http *http, struct probe_exchange *exchanges, size_t n,
                            struct status_why *why)
{
    (void)http, (void)exchanges, (void)n;
    return status_fail(why, STATUS_UNSUPPORTED, "this program was built without libcurl");
}

enum status probe_http_wait(const struct probe_http *http, double seconds, struct status_why *why)
{
    (void)http, (void)seconds;
    return status_fail(why, STATUS_UNSUPPORTED, "this program was built without libcurl");
}

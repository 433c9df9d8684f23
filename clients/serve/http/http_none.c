/* The program was built without libmicrohttpd: cmake did not find it. */

#include "clients/serve/http/http.h"

enum status serve_http_open(struct serve_http **out, const struct serve_http_options *options,
                            struct status_why *why)
{
    (void)options;
    *out = NULL;
    return status_fail(why, STATUS_UNSUPPORTED,
                       "this program was built without libmicrohttpd, which assay serve needs; "
                       "install its development files and build again");
}

const char *serve_http_header(const struct serve_http_request *request, const char *name)
{
    (void)request, (void)name;
    return NULL;
}

bool serve_http_is_gone(const struct serve_http_request *request)
{
    (void)request;
    return true;
}

void serve_http_client(const struct serve_http_request *request, char out[SERVE_CLIENT_BYTES])
{
    (void)request;
    out[0] = '\0';
}

bool serve_http_take_place(const struct serve_http_request *request)
{
    (void)request;
    return false;
}

const char *serve_http_address(const struct serve_http *http)
{
    (void)http;
    return "";
}

void serve_http_drain(struct serve_http *http, double seconds)
{
    (void)http, (void)seconds;
}

void serve_http_close(struct serve_http *http)
{
    (void)http;
}

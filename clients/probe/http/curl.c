/* The transport on libcurl, which is loaded when it is needed. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CURL_DISABLE_TYPECHECK /* options are set through a pointer */
#include <curl/curl.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/system/system.h"
#include "clients/probe/http/http.h"

#define FUNCTIONS(X)                                                                               \
    X(global_init)                                                                                 \
    X(easy_init)                                                                                   \
    X(easy_setopt)                                                                                 \
    X(easy_getinfo)                                                                                \
    X(easy_strerror)                                                                               \
    X(easy_cleanup)                                                                                \
    X(slist_append)                                                                                \
    X(slist_free_all)                                                                              \
    X(multi_init)                                                                                  \
    X(multi_add_handle)                                                                            \
    X(multi_remove_handle)                                                                         \
    X(multi_perform)                                                                               \
    X(multi_poll)                                                                                  \
    X(multi_info_read)                                                                             \
    X(multi_strerror)                                                                              \
    X(multi_cleanup)

/* The header makes macros of these. */
#undef curl_easy_setopt
#undef curl_easy_getinfo
#define MEMBER(name) __typeof__(curl_##name) *(name);
static struct {
    void *handle;
    FUNCTIONS(MEMBER)
} curl;

struct probe_http {
    char *base;
    struct probe_http_options options;
    struct curl_slist *headers;
    CURLM *multi;
};

/** One request on its way. */
struct transfer {
    struct probe_http *http;
    struct probe_exchange *exchange;
    CURL *easy;
    char *url;
    size_t capacity;
    bool too_long, no_memory;
};

#define LIBCURL BASE_SYSTEM_LIBRARY("curl", "4")

static enum status load(struct status_why *why)
{
    if (curl.handle)
        return STATUS_OK;
    void *handle = dlopen(LIBCURL, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "asking a server needs libcurl, which cannot be loaded (%s); install "
                           "it (Debian and Ubuntu: apt install libcurl4)",
                           dlerror());
    bool found = true;
    void *symbol;
#define FIND(name)                                                                                 \
    symbol = dlsym(handle, "curl_" #name);                                                         \
    memcpy(&curl.name, &symbol, sizeof symbol);                                                    \
    found = found && symbol;
    FUNCTIONS(FIND)
    if (!found || curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return status_fail(why, STATUS_UNSUPPORTED, LIBCURL " is too old or cannot begin");
    curl.handle = handle;
    return STATUS_OK;
}

static enum status add_header(struct probe_http *http, const char *line, struct status_why *why)
{
    struct curl_slist *more = curl.slist_append(http->headers, line);
    if (!more)
        return status_fail(why, STATUS_MEMORY, "no memory for a request");
    http->headers = more;
    return STATUS_OK;
}

static enum status add_headers(struct probe_http *http, struct status_why *why)
{
    enum status status = add_header(http, "Content-Type: application/json", why);
    if (!status) /* no waiting for a "100 Continue" */
        status = add_header(http, "Expect:", why);
    if (status || !http->options.api_key)
        return status;
    size_t n = strlen(http->options.api_key) + 32;
    char *line = malloc(n);
    if (!line)
        return status_fail(why, STATUS_MEMORY, "no memory for a request");
    snprintf(line, n, "Authorization: Bearer %s", http->options.api_key);
    status = add_header(http, line, why);
    free(line);
    return status;
}

enum status probe_http_open(struct probe_http **out, const char *url,
                            const struct probe_http_options *options, struct status_why *why)
{
    *out = NULL;
    struct probe_http *http = calloc(1, sizeof *http);
    if (!http)
        return status_fail(why, STATUS_MEMORY, "no memory for a client");
    http->options = *options;
    enum status status = probe_address(&http->base, url, why);
    if (!status)
        status = load(why);
    if (!status)
        status = add_headers(http, why);
    http->options.api_key = NULL;
    if (!status && !(http->multi = curl.multi_init()))
        status = status_fail(why, STATUS_MEMORY, "no memory for a client");
    if (status)
        probe_http_close(http);
    else
        *out = http;
    return status;
}

void probe_http_close(struct probe_http *http)
{
    if (!http)
        return;
    if (http->multi)
        curl.multi_cleanup(http->multi);
    if (http->headers)
        curl.slist_free_all(http->headers);
    free(http->base);
    free(http);
}

const char *probe_http_base(const struct probe_http *http)
{
    return http->base;
}

static size_t on_bytes(char *bytes, size_t size, size_t n, void *user)
{
    struct transfer *t = user;
    struct probe_exchange *e = t->exchange;
    size_t more = size * n;
    if (more > t->http->options.max_bytes - e->n_bytes) {
        t->too_long = true;
        return 0;
    }
    if (base_array_reserve(e->bytes, t->capacity, e->n_bytes + more + 1, "answer", NULL)) {
        t->no_memory = true;
        return 0;
    }
    memcpy(e->bytes + e->n_bytes, bytes, more);
    e->n_bytes += more;
    e->bytes[e->n_bytes] = '\0';
    return more;
}

static void set_options(struct transfer *t)
{
    const struct probe_http *http = t->http;
    long milliseconds = (long)(http->options.seconds * 1000);
    curl.easy_setopt(t->easy, CURLOPT_URL, t->url);
    curl.easy_setopt(t->easy, CURLOPT_NOSIGNAL, 1L);
    curl.easy_setopt(t->easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl.easy_setopt(t->easy, CURLOPT_PROXY, "");
    curl.easy_setopt(t->easy, CURLOPT_TIMEOUT_MS, milliseconds);
    curl.easy_setopt(t->easy, CURLOPT_CONNECTTIMEOUT_MS,
                     milliseconds < 10000 ? milliseconds : 10000L);
    curl.easy_setopt(t->easy, CURLOPT_HTTPHEADER, http->headers);
    curl.easy_setopt(t->easy, CURLOPT_USERAGENT, "assay");
    curl.easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, on_bytes);
    curl.easy_setopt(t->easy, CURLOPT_WRITEDATA, t);
    curl.easy_setopt(t->easy, CURLOPT_PRIVATE, t);
    if (t->exchange->body) {
        curl.easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                         (curl_off_t)strlen(t->exchange->body));
        curl.easy_setopt(t->easy, CURLOPT_POSTFIELDS, t->exchange->body);
    }
}

static enum status begin(struct transfer *t, struct probe_http *http,
                         struct probe_exchange *exchange, struct status_why *why)
{
    size_t n = strlen(http->base) + strlen(exchange->path) + 1;
    probe_exchange_free(exchange);
    *exchange = (struct probe_exchange){
        .path = exchange->path, .body = exchange->body, .key = exchange->key, .retry_after = -1};
    *t = (struct transfer){.http = http, .exchange = exchange};
    t->url = malloc(n);
    t->easy = t->url ? curl.easy_init() : NULL;
    if (!t->easy)
        return status_fail(why, STATUS_MEMORY, "no memory for a request");
    snprintf(t->url, n, "%s%s", http->base, exchange->path);
    set_options(t);
    return curl.multi_add_handle(http->multi, t->easy) == CURLM_OK
               ? STATUS_OK
               : status_fail(why, STATUS_DEVICE, "libcurl refuses a request");
}

static void end(struct transfer *t)
{
    if (t->easy) {
        curl.multi_remove_handle(t->http->multi, t->easy);
        curl.easy_cleanup(t->easy);
    }
    free(t->url);
}

/** A transfer is over. */
static void note_end(struct transfer *t, CURLcode result)
{
    struct probe_exchange *e = t->exchange;
    curl_off_t wait = -1;
    e->is_final = t->too_long || t->no_memory || result == CURLE_OPERATION_TIMEDOUT ||
                  result == CURLE_COULDNT_CONNECT || result == CURLE_COULDNT_RESOLVE_HOST;
    if (result == CURLE_OK) {
        curl.easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &e->code);
        curl.easy_getinfo(t->easy, CURLINFO_RETRY_AFTER, &wait);
        e->retry_after = wait > 0 ? (double)wait : -1;
    } else if (t->too_long)
        snprintf(e->failure, sizeof e->failure, "the answer has more than %zu bytes",
                 t->http->options.max_bytes);
    else if (t->no_memory)
        snprintf(e->failure, sizeof e->failure, "no memory for the answer");
    else if (result == CURLE_OPERATION_TIMEDOUT)
        snprintf(e->failure, sizeof e->failure, "no whole answer within %g s (--timeout)",
                 t->http->options.seconds);
    else
        snprintf(e->failure, sizeof e->failure, "%s", curl.easy_strerror(result));
}

static bool is_cancelled(const struct probe_http *http)
{
    return http->options.cancel && atomic_load(http->options.cancel);
}

static enum status wait_for_all(struct probe_http *http, size_t n, struct status_why *why)
{
    while (n > 0) {
        int running, left;
        CURLMcode code = curl.multi_perform(http->multi, &running);
        for (CURLMsg *m; (m = curl.multi_info_read(http->multi, &left)) != NULL;)
            if (m->msg == CURLMSG_DONE) {
                struct transfer *t = NULL;
                CURLcode result = m->data.result;
                curl.easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &t);
                note_end(t, result);
                n--;
            }
        if (n > 0 && code == CURLM_OK)
            code = curl.multi_poll(http->multi, NULL, 0, 100, NULL);
        if (code != CURLM_OK)
            return status_fail(why, STATUS_DEVICE, "libcurl: %s", curl.multi_strerror(code));
        if (is_cancelled(http))
            return status_fail(why, STATUS_CANCELLED, "%s", "");
    }
    return STATUS_OK;
}

enum status probe_http_send(struct probe_http *http, struct probe_exchange *exchanges, size_t n,
                            struct status_why *why)
{
    struct transfer *transfers;
    enum status status = base_array_new(transfers, n, "requests", why);
    size_t begun = 0;
    while (!status && begun < n) {
        status = begin(&transfers[begun], http, &exchanges[begun], why);
        begun++;
    }
    if (!status)
        status = wait_for_all(http, n, why);
    for (size_t i = 0; i < begun; i++)
        end(&transfers[i]);
    free(transfers);
    return status;
}

enum status probe_http_wait(const struct probe_http *http, double seconds, struct status_why *why)
{
    const struct timespec step = {.tv_nsec = 50 * 1000 * 1000};
    double until = base_clock_seconds() + seconds;
    while (base_clock_seconds() < until) {
        if (is_cancelled(http))
            return status_fail(why, STATUS_CANCELLED, "%s", "");
        nanosleep(&step, NULL);
    }
    return STATUS_OK;
}

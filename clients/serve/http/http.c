#include "clients/serve/http/http.h"

#include <dlfcn.h>
#include <microhttpd.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/system/system.h"
#include "clients/serve/http/connections.h"
#include "clients/serve/http/heads.h"
#include "clients/serve/http/listen.h"

/* Loaded, not linked: the library brings a dozen others with it, which no other command needs. */
#define FUNCTIONS(X)                                                                               \
    X(start_daemon)                                                                                \
    X(stop_daemon)                                                                                 \
    X(quiesce_daemon)                                                                              \
    X(create_response_from_buffer)                                                                 \
    X(create_response_from_callback)                                                               \
    X(add_response_header)                                                                         \
    X(queue_response)                                                                              \
    X(destroy_response)                                                                            \
    X(get_connection_values)                                                                       \
    X(lookup_connection_value)                                                                     \
    X(get_connection_info)

#define MEMBER(name) __typeof__(MHD_##name) *(name);
static struct {
    void *handle;
    FUNCTIONS(MEMBER)
} mhd;

enum { THREAD_STACK = 512 << 10, PIECE_BYTES = 16 << 10 };
/* Connections without a place, for each place. Some of those that are cut are not closed yet:
 * beyond its own limit the library turns clients away. */
enum { CONNECTIONS_OF_PLACE = 4, LIMIT_OF_PLACE = 8 };
static const double reply_bytes_per_second = 1e4, refusal_seconds = 2, patience_seconds = 0.25;

/** A request on its way. */
struct exchange {
    struct serve_http_request request;
    struct serve_http_reply reply;
    bool is_refused; /* before its body */
    struct base_buffer body;
    size_t n_taken; /* of the budget */
    enum serve_http_body kept;
};

struct serve_http {
    struct serve_http_options options;
    char address[SERVE_ADDRESS_BYTES];
    int fd; /* that is listened on; -1: no more */
    struct MHD_Daemon *daemon;
    struct serve_connections *connections;

    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t changed;
    size_t n_exchanges;
};

static enum status load(struct status_why *why)
{
    if (!mhd.handle)
        mhd.handle =
            dlopen(BASE_SYSTEM_LIBRARY("microhttpd", "12"), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!mhd.handle)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "assay serve needs libmicrohttpd, which cannot be loaded (%s); install "
                           "it (Debian and Ubuntu: apt install libmicrohttpd12)",
                           dlerror());
    bool found = true;
    void *symbol;
#define FIND(name)                                                                                 \
    symbol = dlsym(mhd.handle, "MHD_" #name);                                                      \
    memcpy(&mhd.name, &symbol, sizeof symbol);                                                     \
    found = found && symbol;
    FUNCTIONS(FIND)
    return found ? STATUS_OK
                 : status_fail(why, STATUS_UNSUPPORTED, "libmicrohttpd cannot be used: %s",
                               dlerror());
}

const char *serve_http_header(const struct serve_http_request *r, const char *name)
{
    return mhd.lookup_connection_value(r->connection->now, MHD_HEADER_KIND, name);
}

bool serve_http_is_gone(const struct serve_http_request *r)
{
    return base_system_hung_up(r->connection->fd);
}

void serve_http_client(const struct serve_http_request *r, char out[SERVE_CLIENT_BYTES])
{
    struct sockaddr_storage peer;
    socklen_t n = sizeof peer;
    if (getpeername(r->connection->fd, (struct sockaddr *)&peer, &n) != 0 ||
        getnameinfo((struct sockaddr *)&peer, n, out, SERVE_CLIENT_BYTES, NULL, 0,
                    NI_NUMERICHOST) != 0)
        snprintf(out, SERVE_CLIENT_BYTES, "?");
}

bool serve_http_take_place(const struct serve_http_request *r)
{
    return serve_connection_take_place(r->connection);
}

static void on_connection(void *user, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct serve_http *http = user;
    if (code != MHD_CONNECTION_NOTIFY_STARTED) {
        serve_connection_leave(*socket_context);
        return;
    }
    int fd = mhd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    *socket_context = serve_connection_enter(http->connections, fd); /* NULL: see begin() */
}

/** What a stream needs to know of its connection. */
struct piped {
    struct serve_http *http;
    struct serve_http_connection *connection;
    struct serve_http_stream stream;
};

static ssize_t read_stream(void *user, uint64_t at, char *out, size_t capacity)
{
    (void)at;
    struct piped *p = user;
    serve_connection_limit(p->connection, 0);
    size_t n = p->stream.read(p->stream.user, out, capacity);
    serve_connection_limit(p->connection, p->http->options.seconds);
    return n ? (ssize_t)n : MHD_CONTENT_READER_END_OF_STREAM;
}

static void end_stream(void *user)
{
    struct piped *p = user;
    p->stream.end(p->stream.user);
    free(p);
}

static struct MHD_Response *make_response(struct serve_http *http, struct exchange *x)
{
    struct serve_http_reply *reply = &x->reply;
    if (!reply->stream.read) {
        char *body = reply->body;
        reply->body = NULL;
        struct MHD_Response *response = mhd.create_response_from_buffer(
            body ? reply->n_body : 0, body, body ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
        if (!response)
            free(body);
        return response;
    }
    struct piped *p = malloc(sizeof *p);
    if (!p) {
        reply->stream.end(reply->stream.user);
        return NULL;
    }
    *p = (struct piped){http, x->request.connection, reply->stream};
    struct MHD_Response *response = mhd.create_response_from_callback(MHD_SIZE_UNKNOWN, PIECE_BYTES,
                                                                      read_stream, p, end_stream);
    if (!response)
        end_stream(p);
    return response;
}

static enum MHD_Result send_reply(struct serve_http *http, struct exchange *x,
                                  struct MHD_Connection *connection)
{
    const struct serve_http_reply *reply = &x->reply;
    double bound = x->is_refused ? refusal_seconds : http->options.seconds;
    serve_connection_limit(x->request.connection,
                           bound + (double)reply->n_body / reply_bytes_per_second);
    struct MHD_Response *response = make_response(http, x);
    if (!response)
        return MHD_NO;
    char seconds[16];
    snprintf(seconds, sizeof seconds, "%u", reply->retry_after);
    mhd.add_response_header(response, "Content-Type",
                            reply->type ? reply->type : "application/json");
    mhd.add_response_header(response, "Cache-Control", "no-store");
    mhd.add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (reply->allow)
        mhd.add_response_header(response, "Allow", reply->allow);
    if (reply->retry_after)
        mhd.add_response_header(response, "Retry-After", seconds);
    if (*reply->location)
        mhd.add_response_header(response, "Location", reply->location);
    if (x->is_refused)
        mhd.add_response_header(response, "Connection", "close");
    if (reply->code == MHD_HTTP_UNAUTHORIZED)
        mhd.add_response_header(response, "WWW-Authenticate", "Bearer");
    enum MHD_Result queued = mhd.queue_response(connection, reply->code, response);
    mhd.destroy_response(response);
    return queued;
}

static enum MHD_Result look_at(void *heads, enum MHD_ValueKind kind, const char *name,
                               const char *value)
{
    (void)kind;
    serve_heads_add(heads, name, value);
    return MHD_YES;
}

/** The head of a request. */
static enum MHD_Result begin(struct serve_http *http, struct MHD_Connection *connection,
                             const struct serve_http_request *head, void **context)
{
    struct serve_http_connection *c =
        mhd.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    struct exchange *x = calloc(1, sizeof *x);
    if (!x || !c) {
        free(x);
        return MHD_NO;
    }
    *context = x;
    struct serve_heads heads = {0};
    mhd.get_connection_values(connection, MHD_HEADER_KIND, look_at, &heads);
    serve_heads_end(&heads);
    x->request = *head;
    x->request.fault = heads.fault;
    x->request.budget = http->options.budget;
    x->request.connection = c;
    c->now = connection;
    pthread_mutex_lock(&http->lock);
    http->n_exchanges++;
    pthread_mutex_unlock(&http->lock);
    const char *length = serve_http_header(&x->request, "Content-Length");
    x->request.n_announced = length ? strtoull(length, NULL, 10) : 0;
    x->request.has_body =
        x->request.n_announced || serve_http_header(&x->request, "Transfer-Encoding");
    x->is_refused = http->options.refuse(http->options.user, &x->request, &x->reply);
    return x->is_refused ? send_reply(http, x, connection) : MHD_YES;
}

static void let_go(struct serve_http *http, struct exchange *x)
{
    base_buffer_free(&x->body);
    serve_budget_give(http->options.budget, x->n_taken);
    x->n_taken = 0;
}

static void keep(struct serve_http *http, struct exchange *x, const char *bytes, size_t n)
{
    if (x->is_refused || x->kept != SERVE_BODY_KEPT)
        return;
    if (n > http->options.max_body - x->body.n)
        x->kept = SERVE_BODY_TOO_LONG;
    else if (!serve_budget_take(http->options.budget, n))
        x->kept = SERVE_BODY_NO_ROOM;
    else {
        x->n_taken += n;
        base_buffer_add(&x->body, bytes, n);
        if (x->body.failed)
            x->kept = SERVE_BODY_NO_ROOM;
    }
    if (x->kept != SERVE_BODY_KEPT)
        let_go(http, x);
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *n_bytes, void **context)
{
    (void)version;
    struct serve_http *http = user;
    struct exchange *x = *context;
    const struct serve_http_request head = {.method = method, .path = path};
    if (!x)
        return begin(http, connection, &head, context);
    if (*n_bytes) {
        keep(http, x, bytes, *n_bytes);
        *n_bytes = 0;
        return MHD_YES;
    }
    serve_connection_limit(x->request.connection, 0);
    x->request.method = method;
    x->request.path = path;
    x->request.body = x->body.data;
    x->request.kept = x->kept;
    x->request.n_body = x->body.n;
    http->options.answer(http->options.user, &x->request, &x->reply);
    return send_reply(http, x, connection);
}

static void on_completed(void *user, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode code)
{
    (void)connection, (void)code;
    struct serve_http *http = user;
    struct exchange *x = *context;
    if (!x)
        return;
    struct serve_http_connection *c = x->request.connection;
    bool is_unread = x->is_refused && x->request.has_body;
    free(x->reply.body);
    let_go(http, x);
    free(x);
    *context = NULL;
    pthread_mutex_lock(&http->lock);
    http->n_exchanges--;
    pthread_cond_broadcast(&http->changed);
    pthread_mutex_unlock(&http->lock);
    if (is_unread)
        serve_connection_finish(c, refusal_seconds);
    serve_connection_wait(c);
}

static enum status start(struct serve_http *http, struct status_why *why)
{
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
                     MHD_USE_POLL | MHD_USE_ITC;
    http->daemon = mhd.start_daemon(
        flags, 0, NULL, NULL, on_request, http, MHD_OPTION_LISTEN_SOCKET, http->fd,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, http, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, http, MHD_OPTION_CONNECTION_LIMIT, http->options.places * LIMIT_OF_PLACE,
        MHD_OPTION_THREAD_STACK_SIZE, (size_t)THREAD_STACK, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_END);
    return http->daemon
               ? STATUS_OK
               : status_fail(why, STATUS_IO, "%s: libmicrohttpd cannot serve there", http->address);
}

enum status serve_http_open(struct serve_http **out, const struct serve_http_options *options,
                            struct status_why *why)
{
    *out = NULL;
    enum status status = load(why);
    struct serve_http *http = status ? NULL : calloc(1, sizeof *http);
    if (!http)
        return status ? status : status_fail(why, STATUS_MEMORY, "no memory for a server");
    http->options = *options;
    http->fd = -1;
    pthread_mutex_init(&http->lock, NULL);
    base_condition_init(&http->changed);
    const struct serve_connections_options rules = {.n_places = options->places,
                                                    .n_most =
                                                        options->places * CONNECTIONS_OF_PLACE,
                                                    .seconds = options->seconds,
                                                    .patience = patience_seconds};
    status = serve_connections_open(&http->connections, &rules, why);
    if (!status)
        status = serve_listen(&http->fd, http->address, options->host, options->port, why);
    if (!status)
        status = start(http, why);
    if (status)
        serve_http_close(http);
    else
        *out = http;
    return status;
}

const char *serve_http_address(const struct serve_http *http)
{
    return http->address;
}

static void stop_listening(struct serve_http *http)
{
    if (http->daemon && http->fd >= 0)
        mhd.quiesce_daemon(http->daemon); /* the socket is ours again */
    if (http->fd >= 0)
        close(http->fd);
    http->fd = -1;
}

void serve_http_drain(struct serve_http *http, double seconds)
{
    stop_listening(http);
    double until = base_clock_seconds() + seconds;
    pthread_mutex_lock(&http->lock);
    while (http->n_exchanges && base_condition_wait(&http->changed, &http->lock, until))
        ;
    pthread_mutex_unlock(&http->lock);
}

void serve_http_close(struct serve_http *http)
{
    if (!http)
        return;
    stop_listening(http);
    if (http->daemon)
        mhd.stop_daemon(http->daemon);
    serve_connections_close(http->connections);
    pthread_cond_destroy(&http->changed);
    pthread_mutex_destroy(&http->lock);
    free(http);
}

#include "clients/cluster/link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/system/system.h"

enum {
    LOOK_MS = 250,        /* between two looks at the cancel flags */
    MAX_TEXT = (1 << 20), /* bytes of settings, as of a journal */
};

void cluster_link_open(struct cluster_link *link, int fd, const char *name)
{
    *link = (struct cluster_link){.fd = fd};
    snprintf(link->name, sizeof link->name, "%s", name);
}

void cluster_link_close(struct cluster_link *link)
{
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
}

static bool is_cancelled(const struct cluster_link *link)
{
    for (size_t i = 0; i < 2; i++)
        if (link->cancel[i] && atomic_load(link->cancel[i]))
            return true;
    return false;
}

static enum status lost(struct cluster_link *link, struct status_why *why)
{
    link->lost = true;
    return status_fail(why, STATUS_DEVICE, "%s is gone", link->name);
}

/** Wait until the socket can be read, or written to. */
static enum status await(struct cluster_link *link, short events, struct status_why *why)
{
    struct pollfd about = {.fd = link->fd, .events = events};
    for (;;) {
        int n = poll(&about, 1, LOOK_MS);
        if (n > 0)
            return STATUS_OK;
        if (n < 0 && errno != EINTR)
            return lost(link, why);
        if (is_cancelled(link))
            return status_fail(why, STATUS_CANCELLED, "%s", "");
        if (link->until > 0 && base_clock_seconds() > link->until)
            return status_fail(why, STATUS_DEVICE, "%s does not answer", link->name);
    }
}

static enum status send_all(struct cluster_link *link, struct cluster_part part,
                            struct status_why *why)
{
    for (size_t done = 0; done < part.n_bytes;) {
        ssize_t n =
            base_system_send(link->fd, (const char *)part.bytes + done, part.n_bytes - done);
        if (n > 0) {
            done += (size_t)n;
        } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            enum status status = await(link, POLLOUT, why);
            if (status)
                return status;
        } else if (n < 0 && errno != EINTR) {
            return lost(link, why);
        }
    }
    return STATUS_OK;
}

enum status cluster_link_send(struct cluster_link *link, enum cluster_message_kind kind,
                              enum status status, const struct cluster_part *parts, size_t n_parts,
                              struct status_why *why)
{
    struct cluster_message head = {.kind = kind, .status = status};
    for (size_t i = 0; i < n_parts; i++)
        head.n_bytes += parts[i].n_bytes;
    enum status sent = send_all(link, (struct cluster_part){&head, sizeof head}, why);
    for (size_t i = 0; i < n_parts && !sent; i++)
        sent = send_all(link, parts[i], why);
    return sent;
}

enum status cluster_link_read(struct cluster_link *link, void *bytes, size_t n_bytes,
                              struct status_why *why)
{
    for (size_t done = 0; done < n_bytes;) {
        ssize_t n = recv(link->fd, (char *)bytes + done, n_bytes - done, MSG_DONTWAIT);
        if (n > 0) {
            done += (size_t)n;
        } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            enum status status = await(link, POLLIN, why);
            if (status)
                return status;
        } else if (n == 0 || errno != EINTR) {
            return lost(link, why);
        }
    }
    return STATUS_OK;
}

enum status cluster_link_receive(struct cluster_link *link, struct cluster_message *message,
                                 struct status_why *why)
{
    return cluster_link_read(link, message, sizeof *message, why);
}

enum status cluster_link_read_text(struct cluster_link *link, const struct cluster_message *message,
                                   char **text, struct status_why *why)
{
    *text = NULL;
    if (message->n_bytes > MAX_TEXT)
        return cluster_link_unexpected(link, message, why);
    size_t n = (size_t)message->n_bytes;
    *text = calloc(n + 1, 1);
    if (!*text)
        return status_fail(why, STATUS_MEMORY, "no memory for a message of %zu bytes", n);
    return cluster_link_read(link, *text, n, why);
}

bool cluster_link_pending(const struct cluster_link *link)
{
    struct pollfd about = {.fd = link->fd, .events = POLLIN};
    return poll(&about, 1, 0) > 0;
}

bool cluster_link_has_ended(const struct cluster_link *link)
{
    struct cluster_message message;
    ssize_t n = recv(link->fd, &message, sizeof message, MSG_PEEK | MSG_DONTWAIT);
    return n == (ssize_t)sizeof message && message.kind == CLUSTER_MESSAGE_END;
}

enum status cluster_link_unexpected(const struct cluster_link *link,
                                    const struct cluster_message *message, struct status_why *why)
{
    return status_fail(why, STATUS_DEVICE,
                       "%s sent a message of kind %u with %llu bytes, which is not expected here",
                       link->name, message->kind, (unsigned long long)message->n_bytes);
}

enum status cluster_link_failure(struct cluster_link *link, const struct cluster_message *message,
                                 struct status_why *why)
{
    char *text;
    enum status status = cluster_link_read_text(link, message, &text, why);
    if (!status && message->status == STATUS_CANCELLED)
        status = status_fail(why, STATUS_CANCELLED, "%s", "");
    else if (!status)
        status = status_fail(why, (enum status)message->status, "%s: %s", link->name, text);
    free(text);
    return status;
}

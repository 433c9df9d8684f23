#include "clients/probe/ask/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/content/text.h"
#include "base/content/written.h"
#include "base/json/build.h"
#include "base/json/lines.h"
#include "base/json/read.h"

/** An answer of the file. */
struct kept {
    char *path, *request, *response;
    bool taken;
};

struct probe_journal {
    char *file;
    int fd;
    struct kept *items;
    size_t n, capacity;
    const char *settings; /* while it is read */
    bool begun;           /* the file has its first line */
};

static const char form[] = "assay-answers 1";

static char *copy_of(const cJSON *value)
{
    return cJSON_IsString(value) ? strdup(value->valuestring) : NULL;
}

/* The members as they are written. Within a text of JSON the quotes would be escaped. */
static const char request_key[] = ",\"request\":", response_key[] = ",\"response\":";

/** The text of a member, to the last bit of its numbers: from its key to the next, or the end. */
static char *member(const struct base_json_line *line, const char *key, const char *next)
{
    size_t n = (size_t)(line->end - line->from);
    const char *from = memmem(line->from, n, key, strlen(key));
    if (!from)
        return next ? strdup("") : NULL;
    from += strlen(key);
    n = (size_t)(line->end - from);
    const char *end = next ? memmem(from, n, next, strlen(next)) : NULL;
    for (; !next && !end && n > 0; n--) /* white space may follow the object */
        end = from[n - 1] == '}' ? from + n - 1 : NULL;
    return end ? strndup(from, (size_t)(end - from)) : NULL;
}

/** A line: the first says whose the file is. */
static enum status read_line(void *user, const struct base_json_line *line, const cJSON *object,
                             struct status_why *why)
{
    struct probe_journal *j = user;
    const cJSON *about = base_json_member(object, "form");
    if (!j->begun) {
        const cJSON *settings = base_json_member(object, "settings");
        if (!cJSON_IsString(about) || strcmp(about->valuestring, form) != 0)
            return status_fail(why, STATUS_FORMAT, "line %zu: not a file of answers", line->number);
        if (!cJSON_IsString(settings) || strcmp(settings->valuestring, j->settings) != 0)
            return status_fail(why, STATUS_USAGE,
                               "it has answers of another server, model or text; give another "
                               "name, or remove it");
        j->begun = true;
        return STATUS_OK;
    }
    if (base_array_reserve(j->items, j->capacity, j->n + 1, "answers", why))
        return STATUS_MEMORY;
    struct kept *k = &j->items[j->n++];
    *k = (struct kept){.path = copy_of(base_json_member(object, "path")),
                       .request = member(line, request_key, response_key),
                       .response = member(line, response_key, NULL)};
    if (k->path && k->request && k->response)
        return STATUS_OK;
    return status_fail(why, STATUS_FORMAT, "line %zu: expected a path and a response",
                       line->number);
}

/** Cut off what the last run did not finish, and read the rest. */
static enum status read_file(struct probe_journal *j, struct status_why *why)
{
    struct base_text text = {0};
    enum status status = base_text_read_document(&text, j->file, BASE_TEXT_MAX_BYTES, NULL, why);
    if (status || text.n_bytes == 0) {
        base_text_free(&text);
        return status;
    }
    size_t n = text.n_bytes;
    if (!text.newline_dropped) {
        while (n > 0 && text.data[n - 1] != '\n')
            n--;
        if (ftruncate(j->fd, (off_t)n) != 0)
            status = status_fail(why, STATUS_IO, "%s: %s", j->file, strerror(errno));
    }
    if (!status)
        status = base_json_lines_read(text.data, n, read_line, j, why);
    if (status)
        status_context(why, "--state: %s", j->file);
    base_text_free(&text);
    return status;
}

/** Append a line. text: without its newline, with room for one. */
static enum status append(struct probe_journal *j, char *text, struct status_why *why)
{
    size_t n = strlen(text), done = 0;
    for (size_t i = 0; i < n; i++) /* between the tokens of JSON any blank is as good */
        if (text[i] == '\n' || text[i] == '\r')
            text[i] = ' ';
    text[n] = '\n'; /* in the place of the NUL */
    while (done < n + 1) {
        ssize_t written = write(j->fd, text + done, n + 1 - done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            break;
        done += (size_t)written;
    }
    return done == n + 1 ? STATUS_OK
                         : status_fail(why, STATUS_IO, "%s: %s", j->file, strerror(errno));
}

static enum status line_of(const struct base_json *json, char **out, struct status_why *why)
{
    *out = json->failed ? NULL : cJSON_PrintUnformatted(json->root);
    return *out ? STATUS_OK : status_fail(why, STATUS_MEMORY, "no memory for a line");
}

static enum status begin_file(struct probe_journal *j, struct status_why *why)
{
    struct base_json json;
    base_json_begin(&json);
    base_json_text(&json, json.root, "form", form);
    base_json_text(&json, json.root, "settings", j->settings);
    char *text = NULL;
    enum status status = line_of(&json, &text, why);
    if (!status)
        status = append(j, text, why);
    cJSON_free(text);
    base_json_free(&json);
    j->begun = true;
    return status;
}

/** Only a file of answers is written to, or cut. */
static enum status open_file(struct probe_journal *j, struct status_why *why)
{
    struct stat about;
    if (!j->file)
        return status_fail(why, STATUS_MEMORY, "no memory for the name of a file");
    if (stat(j->file, &about) == 0 && !S_ISREG(about.st_mode))
        return status_fail(why, STATUS_IO, "--state: %s: is not a regular file", j->file);
    char found[BASE_WRITTEN_NAME];
    const char *name = base_written_name(found, j->file);
    if (name && strcmp(name, BASE_ANSWERS) != 0)
        return status_fail(why, STATUS_FORMAT,
                           "--state: %s: is %s, expected %s or a new file; it was left as it is",
                           j->file, name, BASE_ANSWERS);
    j->fd = open(j->file, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    return j->fd >= 0 ? STATUS_OK
                      : status_fail(why, STATUS_IO, "--state: %s: %s", j->file, strerror(errno));
}

enum status probe_journal_open(struct probe_journal **out, const char *path, const char *settings,
                               struct status_why *why)
{
    *out = NULL;
    struct probe_journal *j = calloc(1, sizeof *j);
    if (!j)
        return status_fail(why, STATUS_MEMORY, "no memory for %s", path);
    j->settings = settings;
    j->fd = -1;
    j->file = strdup(path);
    enum status status = open_file(j, why);
    if (!status)
        status = read_file(j, why);
    if (!status && !j->begun)
        status = begin_file(j, why);
    j->settings = NULL;
    if (status)
        probe_journal_close(j);
    else
        *out = j;
    return status;
}

void probe_journal_close(struct probe_journal *j)
{
    if (!j)
        return;
    for (size_t i = 0; i < j->n; i++) {
        free(j->items[i].path);
        free(j->items[i].request);
        free(j->items[i].response);
    }
    if (j->fd >= 0)
        close(j->fd);
    free(j->items);
    free(j->file);
    free(j);
}

size_t probe_journal_n(const struct probe_journal *j)
{
    return j->n;
}

static const char *request_of(const struct probe_exchange *e)
{
    return e->key ? e->key : e->body;
}

enum status probe_journal_find(struct probe_journal *j, struct probe_exchange *e,
                               struct status_why *why)
{
    const char *request = request_of(e) ? request_of(e) : "";
    for (size_t i = 0; i < j->n; i++) {
        struct kept *k = &j->items[i];
        if (k->taken || strcmp(k->path, e->path) != 0 || strcmp(k->request, request) != 0)
            continue;
        e->bytes = strdup(k->response);
        if (!e->bytes)
            return status_fail(why, STATUS_MEMORY, "no memory for an answer");
        e->n_bytes = strlen(e->bytes);
        e->code = 200;
        k->taken = true;
        return STATUS_OK;
    }
    return STATUS_OK;
}

enum status probe_journal_add(struct probe_journal *j, const struct probe_exchange *e,
                              struct status_why *why)
{
    cJSON *response = e->bytes ? cJSON_ParseWithLength(e->bytes, e->n_bytes) : NULL;
    if (!response || memchr(e->bytes, '\0', e->n_bytes)) { /* it is asked for again */
        cJSON_Delete(response);
        return STATUS_OK;
    }
    cJSON_Delete(response);
    char *text = NULL;
    const char *request = request_of(e);
    int n = asprintf(&text, "{\"path\":\"%s\"%s%s%s%s}", e->path, request ? request_key : "",
                     request ? request : "", response_key, e->bytes);
    if (n < 0)
        return status_fail(why, STATUS_MEMORY, "no memory for an answer");
    enum status status = append(j, text, why);
    free(text);
    return status;
}

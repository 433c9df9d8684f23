/* The chat templates of a file or of a folder, by name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file/folder.h"
#include "base/json/read.h"
#include "base/text/printable.h"
#include "clients/conversion/prompts/prompts.h"

static const char key[] = "tokenizer.chat_template", unnamed[] = "default";

/** Copy a template under a name. */
static void add(struct conv_templates *t, struct conv_result *out, struct base_string name,
                struct base_string text)
{
    struct status_why why;
    if (!text.n_bytes || conv_template(t, name).n_bytes)
        return;
    char *copy = malloc(name.n_bytes + 1 + text.n_bytes);
    if (!copy || base_array_reserve(t->items, t->capacity, t->n + 1, "templates", &why)) {
        status_keep(&out->kept, STATUS_MEMORY, "no memory for a template of %zu bytes",
                    text.n_bytes);
        free(copy);
        return;
    }
    memcpy(copy, name.data, name.n_bytes);
    copy[name.n_bytes] = '\0';
    memcpy(copy + name.n_bytes + 1, text.data, text.n_bytes);
    t->items[t->n++] = (struct conv_template){copy, {copy + name.n_bytes + 1, text.n_bytes}};
}

static struct base_string string(const char *text)
{
    return (struct base_string){text, strlen(text)};
}

static void read_gguf(struct conv_templates *t, struct conv_result *out,
                      const struct gguf_file *file)
{
    const size_t n_key = sizeof key - 1;
    for (size_t i = 0; i < gguf_n_kv(file); i++) {
        struct base_string name = gguf_kv_at(file, i)->key, text = {NULL, 0};
        char whole[CONV_KEY_BYTES];
        bool has = false;
        if (name.n_bytes < n_key || name.n_bytes >= sizeof whole ||
            memcmp(name.data, key, n_key) != 0 || (name.n_bytes > n_key && name.data[n_key] != '.'))
            continue;
        snprintf(whole, sizeof whole, "%.*s", (int)name.n_bytes, name.data);
        if (gguf_get_string(file, whole, &text, &has, NULL) || !has)
            continue;
        if (name.n_bytes == n_key)
            name = string(unnamed);
        else
            name = (struct base_string){name.data + n_key + 1, name.n_bytes - n_key - 1};
        add(t, out, name, text);
    }
}

static void add_file(struct conv_templates *t, struct conv_result *out,
                     const struct gguf_file *folder, struct base_string name, const char *path)
{
    struct base_text text = conv_read_file(out, folder, path);
    add(t, out, name, (struct base_string){text.data, text.n_bytes});
    base_text_free(&text);
}

/** The files of additional_chat_templates/, whose names are the templates'. */
static void read_more(struct conv_templates *t, struct conv_result *out,
                      const struct gguf_file *folder)
{
    static const char more[] = "additional_chat_templates", end[] = ".jinja";
    char path[BASE_PATH_BYTES];
    struct base_folder files = {0};
    struct status_why why;
    snprintf(path, sizeof path, "%s/%s", gguf_path(folder), more);
    enum status status = base_is_folder(path) ? base_folder_list(&files, path, &why) : STATUS_OK;
    if (status)
        status_keep(&out->kept, status, "%s", why.text);
    for (size_t i = 0; i < files.n; i++) {
        const char *file = strrchr(files.paths[i], '/') + 1;
        size_t n = strlen(file), n_end = sizeof end - 1;
        snprintf(path, sizeof path, "%s/%s", more, file);
        if (n > n_end && strcmp(file + n - n_end, end) == 0)
            add_file(t, out, folder, (struct base_string){file, n - n_end}, path);
    }
    base_folder_free(&files);
}

/** Files of templates count before what tokenizer_config.json has. */
static void read_folder(struct conv_templates *t, struct conv_result *out,
                        const struct gguf_file *folder)
{
    add_file(t, out, folder, string(unnamed), "chat_template.jinja");
    read_more(t, out, folder);
    cJSON *config = conv_read_json(out, folder, "tokenizer_config.json");
    const cJSON *said = base_json_member(config, "chat_template");
    if (cJSON_IsString(said))
        add(t, out, string(unnamed), string(said->valuestring));
    for (const cJSON *item = cJSON_IsArray(said) ? said->child : NULL; item; item = item->next) {
        const char *name = cJSON_GetStringValue(base_json_member(item, "name")),
                   *text = cJSON_GetStringValue(base_json_member(item, "template"));
        if (name && text)
            add(t, out, string(name), string(text));
    }
    cJSON_Delete(config);
}

void conv_templates_read(struct conv_templates *t, struct conv_result *out,
                         const struct gguf_file *file)
{
    *t = (struct conv_templates){0};
    if (gguf_is_folder(file))
        read_folder(t, out, file);
    else
        read_gguf(t, out, file);
}

struct base_string conv_template(const struct conv_templates *t, struct base_string name)
{
    for (size_t i = 0; i < t->n; i++)
        if (strlen(t->items[i].name) == name.n_bytes &&
            memcmp(t->items[i].name, name.data, name.n_bytes) == 0)
            return t->items[i].text;
    return (struct base_string){NULL, 0};
}

void conv_templates_free(struct conv_templates *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->items[i].name);
    free(t->items);
    *t = (struct conv_templates){0};
}

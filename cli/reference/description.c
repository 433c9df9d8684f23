#include "cli/reference/description.h"

#include <math.h>
#include <stdio.h>

#include "base/json/parse.h"
#include "base/json/read.h"

enum status cli_description_parse(struct cli_description *out, const char *bytes, size_t n,
                                  struct status_why *why)
{
    enum status status = base_json_parse(&out->root, bytes, n, NULL, why);
    if ((status && status != STATUS_FORMAT) || cJSON_IsObject(out->root))
        return status;
    cli_description_free(out);
    return status_fail(why, STATUS_FORMAT, "the description is not a JSON object");
}

void cli_description_free(struct cli_description *description)
{
    cJSON_Delete(description->root);
    *description = (struct cli_description){0};
}

/** A member that was not written by us can be of any kind: NULL where it is not of this one. */
static const cJSON *object_of(const struct cli_description *description, const char *key)
{
    const cJSON *o = base_json_member(description->root, key);
    return cJSON_IsObject(o) ? o : NULL;
}

static const char *text_of(const cJSON *object, const char *key)
{
    return cJSON_GetStringValue(base_json_member(object, key));
}

/** A count, 0 where there is none. */
static uint64_t count_of(const cJSON *object, const char *key)
{
    const cJSON *item = base_json_member(object, key);
    bool is_count = cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble < 0x1p53;
    return is_count ? (uint64_t)item->valuedouble : 0;
}

struct base_text cli_description_text(const struct cli_description *description)
{
    const cJSON *o = object_of(description, "text");
    const char *sha256 = text_of(o, "sha256");
    struct base_text text = {.file_bytes = (size_t)count_of(o, "n_bytes")};
    text.newline_dropped = cJSON_IsTrue(base_json_member(o, "newline_dropped"));
    if (sha256)
        snprintf(text.sha256, sizeof text.sha256, "%s", sha256);
    return text;
}

void cli_description_conversations(const struct cli_description *description,
                                   struct eval_documents *d)
{
    const cJSON *of = base_json_member(object_of(description, "tokens"), "documents");
    const cJSON *o = base_json_member(of, "conversations");
    const char *mask = text_of(o, "mask"), *sha256 = text_of(o, "template_sha256");
    if (sha256)
        snprintf(d->template_sha256, sizeof d->template_sha256, "%s", sha256);
    for (int i = 0; mask && i <= MODEL_CHAT_ALL; i++)
        if (strcmp(mask, cli_mask_name((enum model_chat_mask)i)) == 0)
            d->mask = (enum model_chat_mask)i;
    d->n_conversations = mask ? (size_t)count_of(o, "n") : 0;
    d->refused.n = mask ? (size_t)count_of(o, "n_refused") : 0;
}

struct cli_model_size cli_description_size(const struct cli_description *description)
{
    const cJSON *o = object_of(description, "base");
    struct cli_model_size size = {.n_weights = count_of(o, "n_weights"),
                                  .n_bytes = count_of(o, "n_bytes")};
    if (size.n_weights)
        size.bits_per_weight = 8 * (double)size.n_bytes / (double)size.n_weights;
    return size;
}

const char *cli_description_precision(const struct cli_description *description)
{
    return text_of(object_of(description, "settings"), "precision");
}

static void add_count(struct base_json *json, cJSON *o, const cJSON *from, const char *key)
{
    if (cJSON_IsNumber(base_json_member(from, key)))
        base_json_uint(json, o, key, count_of(from, key));
    else
        base_json_text(json, o, key, NULL);
}

void cli_description_add_model(struct base_json *json, cJSON *parent,
                               const struct cli_description *description)
{
    const cJSON *from = object_of(description, "base");
    struct cli_model_size size = cli_description_size(description);
    cJSON *o = base_json_object(json, parent, "model");
    base_json_text(json, o, "id", text_of(from, "id"));
    base_json_text(json, o, "sha256", text_of(from, "sha256"));
    base_json_text(json, o, "architecture", text_of(from, "architecture"));
    base_json_text(json, o, "name", text_of(from, "name"));
    add_count(json, o, from, "n_weights");
    add_count(json, o, from, "n_bytes");
    base_json_real(json, o, "bits_per_weight", size.n_weights ? size.bits_per_weight : (double)NAN);
    add_count(json, o, from, "n_vocab");
    cJSON *remarks = base_json_list(json, o, "remarks");
    const cJSON *remark;
    cJSON_ArrayForEach(remark, base_json_member(from, "remarks"))
    {
        if (cJSON_IsString(remark))
            base_json_text(json, remarks, NULL, remark->valuestring);
    }
}

#include "clients/documents/card/command_line.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text/printable.h"
#include "base/text/words.h"

/* How a setting becomes an option. */
enum form {
    ALWAYS,       /* a number, always */
    NUMBER,       /* a number, or null: not given */
    NOT_NEGATIVE, /* a number, below 0: not given */
    NOT_ZERO,     /* a number, 0: not given */
    TEXT,         /* a text, or null: not given */
    FLAG,         /* true: given */
    FLAG_OFF,     /* false: given */
    LIST,         /* texts with commas between them */
    TYPES,        /* the same in small letters */
    NOTHING       /* it follows from the others */
};

static const struct {
    const char *setting, *option;
    enum form form;
    const char *by_default; /* texts that are not given, blanks between them */
} settings[] = {
    {"n_ctx", "-c", ALWAYS, NULL},
    {"chunks", "--chunks", NOT_NEGATIVE, NULL},
    {"chunk_from", "--chunk-from", NOT_ZERO, NULL},
    {"protocol", "--protocol", TEXT, "default strided documents"},
    {"stride", "--ppl-stride", NOT_ZERO, NULL},
    {"split_lines", "--split-lines", FLAG, NULL},
    {"parse_special", "--parse-special", FLAG, NULL},
    {"escape", "-e", FLAG, NULL},
    {"js", "--js", FLAG, NULL},
    {"llama_compat", "--llama-compat", FLAG, NULL},
    {"cache_type_k", "-ctk", TYPES, NULL},
    {"cache_type_v", "-ctv", TYPES, NULL},
    {"kv_rotation", "--no-kv-rotation", FLAG_OFF, NULL},
    {"tokenizer_pre", "--tokenizer-pre", TEXT, ""},
    {"tokenizer", "--tokenizer", TEXT, ""},
    {"allow_unknown", "--allow-unknown", FLAG, NULL},
    {"override_kv", "--override-kv", LIST, NULL},
    {"rope_scaling", "--rope-scaling", TEXT, ""},
    {"rope_scale", "--rope-scale", NUMBER, NULL},
    {"rope_freq_base", "--rope-freq-base", NUMBER, NULL},
    {"rope_freq_scale", "--rope-freq-scale", NUMBER, NULL},
    {"yarn_orig_ctx", "--yarn-orig-ctx", NUMBER, NULL},
    {"yarn_ext_factor", "--yarn-ext-factor", NUMBER, NULL},
    {"yarn_attn_factor", "--yarn-attn-factor", NUMBER, NULL},
    {"yarn_beta_fast", "--yarn-beta-fast", NUMBER, NULL},
    {"yarn_beta_slow", "--yarn-beta-slow", NUMBER, NULL},
    {"precision", "--precision", TEXT, "high"},
    {"gemm", "--gemm", TEXT, "own"},
    {"memory", "--memory", NUMBER, NULL},
    {"size", "--size", NUMBER, NULL},
    {"context", "--context", NOT_ZERO, NULL},
    {"speed", "--speed", NUMBER, NULL},
    {"prompt_speed", "--prompt-speed", NUMBER, NULL},
    {"margin", NULL, NOTHING, NULL},
    {"margin_share", NULL, NOTHING, NULL},
    {"alpha", NULL, NOTHING, NULL},
    {"products", NULL, NOTHING, NULL},
    {"bit_stable", NULL, NOTHING, NULL},
};
enum { N_SETTINGS = sizeof settings / sizeof *settings };

/* A word for a shell, in single quotes unless it has only letters that need none. */
static void put_word(struct base_file *file, const char *word)
{
    char text[BASE_PATH_BYTES];
    base_printable_text(text, sizeof text, word);
    bool plain = *text && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789._-+=:,/@%") == strlen(text);
    if (plain) {
        base_file_printf(file, " %s", text);
        return;
    }
    base_file_printf(file, " '");
    for (const char *c = text; *c; c++)
        if (*c == '\'')
            base_file_printf(file, "'\\''");
        else
            base_file_write(file, c, 1);
    base_file_printf(file, "'");
}

static void put_file(struct base_file *file, const char *option, const char *path)
{
    base_file_printf(file, " %s", option);
    put_word(file, base_file_name(path));
}

static void put_list(struct base_file *file, const cJSON *list, bool small)
{
    char text[1024] = "";
    size_t n = 0;
    for (const cJSON *item = list->child; item; item = item->next)
        if (cJSON_IsString(item) && n < sizeof text)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? "," : "",
                                  item->valuestring);
    for (char *c = text; small && n && *c; c++)
        *c = (char)tolower((unsigned char)*c);
    put_word(file, text);
}

/* One setting, unless it has its default. */
static void put_setting(struct base_file *file, size_t i, const cJSON *value)
{
    enum form form = settings[i].form;
    const char *option = settings[i].option;
    double number = cJSON_IsNumber(value) ? value->valuedouble : -1;
    bool given = form == ALWAYS || (form == NUMBER && cJSON_IsNumber(value)) ||
                 (form == NOT_NEGATIVE && number >= 0) || (form == NOT_ZERO && number > 0);
    if (given)
        base_file_printf(file, " %s %.17g", option, number);
    if ((form == FLAG && cJSON_IsTrue(value)) || (form == FLAG_OFF && cJSON_IsFalse(value)))
        base_file_printf(file, " %s", option);
    if (form == TEXT && cJSON_IsString(value) &&
        base_words_index(settings[i].by_default, value->valuestring) < 0) {
        base_file_printf(file, " %s", option);
        put_word(file, value->valuestring);
    }
    if ((form == LIST || form == TYPES) && cJSON_IsArray(value) && value->child) {
        base_file_printf(file, " %s", option);
        put_list(file, value, form == TYPES);
    }
}

/* Models once each: one that is rounded in several ways is several candidates. */
static void put_models(struct base_file *file, struct base_field root)
{
    size_t n;
    struct base_field item = {0}, list = doc_list(&n, root, "candidates");
    while (base_field_next(list, &item)) {
        struct base_field model = base_field_need(item, "model"), other = {0};
        const char *name = doc_model_file_in(model);
        bool first = true;
        while (base_field_next(list, &other) && other.index < item.index && first) {
            struct base_field before = base_field_need(other, "model");
            first = strcmp(base_field_text(before, "id"), base_field_text(model, "id")) != 0;
        }
        if (first)
            put_file(file, "-m", name);
    }
}

static void put_base(struct base_file *file, struct base_field root)
{
    if (base_field_find(root, "base.file").json)
        put_file(file, "--base", base_field_text(root, "base.file"));
    else if (base_field_find(root, "run.base_file").json)
        put_file(file, "--base", base_field_text(root, "run.base_file"));
}

static void put_text(struct base_file *file, struct base_field root)
{
    struct base_field files = base_field_find(root, "run.text_files");
    const char *mask = base_field_string(root, "tokens.documents.conversations.mask");
    if (base_field_find(root, "run.text_file").json) {
        put_file(file, "-f", base_field_text(root, "run.text_file"));
    } else if (cJSON_IsArray(files.json)) {
        for (struct base_field item = {0}; base_field_next(files, &item);)
            if (cJSON_IsString(item.json))
                put_file(file, "-f", item.json->valuestring);
    } else if (base_field_find(root, "text").json) {
        base_file_printf(file, " -p TEXT");
    }
    if (mask && strcmp(mask, "assistant") != 0) {
        base_file_printf(file, " --mask");
        put_word(file, mask);
    }
}

static bool is_known(const char *setting)
{
    for (size_t i = 0; i < N_SETTINGS; i++)
        if (strcmp(settings[i].setting, setting) == 0)
            return true;
    return false;
}

/* How a race decides, and what may not be more, where that is not the default. */
static void put_race(struct base_file *file, struct base_field root, struct base_field all)
{
    struct base_field item = {0}, benches = base_field_list_or_none(root, "run.bench_files");
    while (base_field_next(benches, &item))
        put_file(file, "--bench", base_field_text(item, ""));
    double nats = base_field_real_or_null(all, "margin");
    double share = base_field_real_or_null(all, "margin_share");
    double alpha = base_field_real_or_null(all, "alpha");
    if (nats != 0.001 || share != 0.05)
        base_file_printf(file, " --margin %.15g+%.15g%%", nats, 100 * share);
    if (alpha != 0.05)
        base_file_printf(file, " --alpha %.15g", alpha);
}

void doc_command_line(struct base_file *file, struct doc_document *d)
{
    struct base_field root = doc_root(d), all = base_field_need(root, "settings");
    bool race = base_field_is(base_field_get(root, "schema"), "assay-best");
    base_file_printf(file, race                 ? "assay best"
                           : d->kind == DOC_KLD ? "assay kld"
                                                : "assay perplexity");
    if (d->kind == DOC_KLD) {
        put_models(file, root);
        put_base(file, root);
    } else {
        struct base_field model = base_field_need(root, "model");
        put_file(file, "-m", doc_model_file_in(model));
    }
    put_text(file, root);
    for (size_t i = 0; i < N_SETTINGS; i++) {
        struct base_field value = base_field_find(all, settings[i].setting);
        if (value.json)
            put_setting(file, i, value.json);
    }
    if (race)
        put_race(file, root, all);
    const cJSON *wanted = base_field_get(root, "result.stop.wanted").json;
    if (cJSON_IsNumber(wanted))
        base_file_printf(file, " --stop-when-se %.17g", wanted->valuedouble);
    base_file_printf(file, "\n");
    for (const cJSON *item = all.json ? all.json->child : NULL; item; item = item->next)
        if (item->string && !is_known(item->string)) {
            base_file_printf(file, "# another setting:");
            put_word(file, item->string);
            base_file_printf(file, "\n");
        }
}

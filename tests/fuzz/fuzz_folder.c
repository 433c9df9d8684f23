/* A published folder: config.json up to the first zero byte, then a line for each tensor (name,
 * dtype, shape), up to another zero byte, then bytes that the data repeat. Any bytes are refused
 * with a sentence, or opened; then rows lie within the files. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gguf/safetensors/type.h"
#include "kernels/quant/rows.h"
#include "model/model.h"
#include "tests/fuzz/fuzz.h"

enum { MAX_DATA = 1 << 20, MAX_COLS = 4096, N_ROWS = 4 };

static char folder[] = "/tmp/assay-fuzz-XXXXXX", name[sizeof folder + 32];
static const char *const files[] = {"config.json", "model.safetensors", "tokenizer.json"};

static const char *path_of(size_t i)
{
    snprintf(name, sizeof name, "%s/%s", folder, files[i]);
    return name;
}

static void remove_folder(void)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        unlink(path_of(i));
    rmdir(folder);
}

static FILE *begin(size_t i)
{
    FILE *f = fopen(path_of(i), "wb");
    require(f != NULL);
    return f;
}

/* Each id beyond the four becomes a token of the embedding's further rows. */
static void make_folder(void)
{
    static const char tokens[] =
        "{\"model\":{\"type\":\"BPE\",\"byte_fallback\":false,\"merges\":[],"
        "\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"d\":3}},"
        "\"pre_tokenizer\":{\"type\":\"ByteLevel\","
        "\"add_prefix_space\":false,\"use_regex\":false}}";
    require(mkdtemp(folder));
    atexit(remove_folder);
    FILE *f = begin(2);
    require(fputs(tokens, f) >= 0 && fclose(f) == 0);
}

/* The bytes of a tensor of this shape, such as "64 32"; what is not a number ends it. */
static uint64_t measure(const char *type, const char *shape, FILE *json)
{
    enum safetensors_type found = safetensors_type_find(type);
    uint64_t bits = found < SAFETENSORS_N_TYPES ? safetensors_type_bits(found) : 8, n = 1;
    int used = 0, before = 0;
    for (unsigned long axis; sscanf(shape, "%9lu%n", &axis, &used) == 1; shape += used) {
        fprintf(json, "%s%lu", before++ ? "," : "", axis);
        n = axis && n > UINT64_MAX / 64 / axis ? UINT64_MAX / 64 : n * axis;
    }
    return n > UINT64_MAX / 64 / bits ? UINT64_MAX / 64 : (n * bits + 7) / 8;
}

/* Begins the header with a tensor of each line that can be read; returns the bytes of data. */
static uint64_t write_tensors(FILE *json, char *lines)
{
    uint64_t at = 0;
    char *rest = NULL;
    fputs("{\"__metadata__\":{}", json);
    for (char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char stored[256], type[16];
        int used = 0;
        if (sscanf(line, "%255[A-Za-z0-9_.] %15[A-Z0-9a-z_]%n", stored, type, &used) != 2)
            continue;
        fprintf(json, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", stored, type);
        uint64_t n = measure(type, line + used, json);
        n = n < MAX_DATA - at ? n : MAX_DATA - at;
        fprintf(json, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", at, at + n);
        at += n;
    }
    fputc('}', json);
    return at;
}

static void write_safetensors(char *lines, const uint8_t *pattern, size_t n_pattern)
{
    char *json = NULL, *data = NULL;
    size_t n_json = 0;
    FILE *stream = open_memstream(&json, &n_json), *f = begin(1);
    require(stream != NULL);
    size_t n = (size_t)write_tensors(stream, lines);
    require(fclose(stream) == 0 && (data = malloc(n + 1)) != NULL);
    memset(data, 0x3c, n + 1); /* a scale of all types */
    for (size_t i = 0; n_pattern && i < n; i++)
        data[i] = (char)pattern[i % n_pattern];
    uint64_t length = n_json;
    require(fwrite(&length, 1, sizeof length, f) == sizeof length);
    require(fwrite(json, 1, n_json, f) == n_json && fwrite(data, 1, n, f) == n);
    require(fclose(f) == 0);
    free(json);
    free(data);
}

static void decode(const struct gguf_tensor *t, uint64_t row)
{
    const struct kern_quant *quant = kern_quant_find(t->type->type);
    size_t n = (size_t)(t->ne[0] < MAX_COLS ? t->ne[0] : MAX_COLS);
    n -= n % t->type->block_elems;
    struct kern_rows rows = {.type = t->type->type,
                             .data = gguf_tensor_row(t, row),
                             .row_bytes = (size_t)t->row_bytes,
                             .scales = gguf_tensor_scales(t, row),
                             .col_step = t->view ? (size_t)t->view->col_step : 0};
    float *values = malloc(n * sizeof *values + 1);
    require(quant && values);
    if (n)
        kern_rows_decode(&rows, quant->decode, 0, 0, n, values);
    if (n)
        kern_rows_decode(&rows, quant->decode, 0, (size_t)t->ne[0] - n, n, values);
    free(values);
}

/* The first and the last rows of every matrix of a few, and the last one. */
static void walk(const struct gguf_file *file)
{
    for (size_t i = 0; i < gguf_n_tensors(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        require(t->n_rows > 0 && t->n_rows == t->ne[1] * t->ne[2] * t->ne[3]);
        require(gguf_tensor_stored_bytes(t) >= t->n_bytes && gguf_tensor_same(t, t));
        for (uint64_t m = 0; m < t->n_rows / t->ne[1] && m < N_ROWS; m++)
            for (uint64_t row = 0; row < t->ne[1] && row < N_ROWS; row++) {
                decode(t, m * t->ne[1] + row);
                decode(t, t->n_rows - 1 - m * t->ne[1] - row);
            }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    char *text = malloc(n_bytes + 2);
    require(text != NULL);
    memcpy(text, n_bytes ? data : (const uint8_t *)"", n_bytes);
    text[n_bytes] = text[n_bytes + 1] = '\0';
    size_t n_config = strlen(text), n = n_config + 1 + strlen(text + n_config + 1) + 1;
    if (!*name)
        make_folder();
    FILE *f = begin(0);
    require(fwrite(text, 1, n_config, f) == n_config && fclose(f) == 0);
    write_safetensors(text + n_config + 1, data + (n < n_bytes ? n : 0),
                      n < n_bytes ? n_bytes - n : 0);
    struct gguf_file *file;
    struct model *m = NULL;
    struct status_why why = {""};
    struct model_options options = {.allow_unknown = true};
    enum status status = model_file_open(&file, folder, folder, &why);
    require(!status == !*why.text && !strchr(why.text, '\n') && !status == (file != NULL));
    if (!status) {
        walk(file);
        status = model_open(&m, file, &options, &why);
        require(!status == !*why.text && !strchr(why.text, '\n'));
    }
    model_close(m);
    free(text);
    return 0;
}

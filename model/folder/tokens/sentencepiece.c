/*
 * tokenizer.model, the form that the library SentencePiece publishes: a ModelProto of
 * sentencepiece_model.proto. It becomes the keys that a converter to GGUF writes of it.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text/quote.h"
#include "gguf/safetensors/folder.h"
#include "gguf/safetensors/header.h"
#include "model/folder/tokens/state.h"
#include "model/folder/tokens/wire.h"
#include "model/tokenizer/tokenizer.h"

/** The file's own numbers of fields. */
enum {
    PIECES = 1,
    TRAINER = 2,
    NORMALIZER = 3,
    PIECE_TEXT = 1,
    PIECE_SCORE = 2,
    PIECE_TYPE = 3,
    NORMALIZER_MAP = 2
};

/** What an id without a piece gets: nothing is merged to it. */
static const float no_score = -1000;

/** What is known of a member: a number that the file may have, and the one that is computed. */
static const struct member {
    const char *name;
    enum model_sentencepiece_member place;
    uint64_t message, number;
    int64_t absent, wanted; /* wanted -1: any */
} members[] = {
    {"trainer_spec.model_type", MODEL_PIECES_MODEL_TYPE, TRAINER, 3, 1, 2},
    {"trainer_spec.treat_whitespace_as_suffix", MODEL_PIECES_SUFFIX, TRAINER, 24, 0, 0},
    {"trainer_spec.byte_fallback", MODEL_PIECES_BYTES, TRAINER, 35, 0, 1},
    {"trainer_spec.unk_id", MODEL_PIECES_UNKNOWN, TRAINER, 40, 0, -1},
    {"trainer_spec.bos_id", MODEL_PIECES_BOS, TRAINER, 41, 1, -1},
    {"trainer_spec.eos_id", MODEL_PIECES_EOS, TRAINER, 42, 2, -1},
    {"normalizer_spec.add_dummy_prefix", MODEL_PIECES_PREFIX, NORMALIZER, 3, 1, -1},
    {"normalizer_spec.remove_extra_whitespaces", MODEL_PIECES_EXTRA, NORMALIZER, 4, 1, 0},
    {"normalizer_spec.escape_whitespaces", MODEL_PIECES_ESCAPE, NORMALIZER, 5, 1, 1},
};

static enum status malformed(const struct model_folder_tokens *f, const char *what,
                             struct status_why *why)
{
    return model_tokens_fail(f, MODEL_JSON_TOKENIZER, STATUS_FORMAT, why,
                             "%s is malformed, expected a model of SentencePiece", what);
}

static enum status read_piece(struct model_folder_tokens *f, struct base_string message,
                              struct status_why *why)
{
    struct model_wire wire = model_wire_of(message);
    struct model_wire_field field;
    struct base_string text = {"", 0};
    uint64_t type = MODEL_TOKEN_NORMAL;
    uint32_t bits = 0;
    float score;
    size_t i = f->n;
    while (model_wire_next(&wire, &field)) {
        if (model_wire_is(&field, PIECE_TEXT, MODEL_WIRE_BYTES))
            text = field.bytes;
        else if (model_wire_is(&field, PIECE_SCORE, MODEL_WIRE_4))
            bits = (uint32_t)field.value;
        else if (model_wire_is(&field, PIECE_TYPE, MODEL_WIRE_NUMBER))
            type = field.value;
    }
    memcpy(&score, &bits, sizeof score);
    if (wire.at < wire.end || text.n_bytes == 0 || memchr(text.data, 0, text.n_bytes))
        return model_tokens_fail(f, MODEL_JSON_TOKENIZER, STATUS_FORMAT, why,
                                 "pieces[%zu] is malformed, or its text is empty or has U+0000", i);
    if (isnan(score) || type < MODEL_TOKEN_NORMAL || type > MODEL_TOKEN_BYTE ||
        type == MODEL_TOKEN_UNUSED)
        return model_tokens_fail(f, MODEL_JSON_TOKENIZER, STATUS_UNSUPPORTED, why,
                                 "pieces[%zu] has type %" PRIu64 " and score %g, expected 1 to 4 "
                                 "or 6 and a number",
                                 i, type, (double)score);
    char *copy = f->pieces.text + f->pieces.n_text;
    memcpy(copy, text.data, text.n_bytes);
    f->pieces.n_text += text.n_bytes + 1; /* the zero after it is there */
    enum status status = model_tokens_new(f, copy, (int64_t)i, "pieces", why);
    if (!status)
        status = base_array_reserve(f->pieces.score, f->pieces.capacity, f->n, "scores", why);
    if (status)
        return status;
    f->type[i] = (int32_t)type;
    f->pieces.score[i] = score;
    return STATUS_OK;
}

/** A message of options: its numbers, and whether it has a map of characters. */
static enum status read_options(struct model_folder_tokens *f, uint64_t which,
                                struct base_string message, struct status_why *why)
{
    struct model_wire wire = model_wire_of(message);
    struct model_wire_field field;
    while (model_wire_next(&wire, &field)) {
        for (size_t i = 0; i < sizeof members / sizeof *members; i++)
            if (members[i].message == which &&
                model_wire_is(&field, members[i].number, MODEL_WIRE_NUMBER))
                f->pieces.said[members[i].place] = (int32_t)field.value; /* -1 has 64 bits */
        if (which == NORMALIZER && model_wire_is(&field, NORMALIZER_MAP, MODEL_WIRE_BYTES) &&
            field.bytes.n_bytes > 0)
            return model_tokens_fail(
                f, MODEL_JSON_TOKENIZER, STATUS_UNSUPPORTED, why,
                "normalizer_spec.precompiled_charsmap changes characters of the text, which is not "
                "computed; expected none, or --tokenizer FILE.gguf");
    }
    return wire.at < wire.end
               ? malformed(f, which == TRAINER ? "trainer_spec" : "normalizer_spec", why)
               : STATUS_OK;
}

static enum status check_options(const struct model_folder_tokens *f, struct status_why *why)
{
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const struct member *m = &members[i];
        int64_t said = f->pieces.said[m->place];
        if (m->wanted >= 0 && said != m->wanted)
            return model_tokens_fail(
                f, MODEL_JSON_TOKENIZER, STATUS_UNSUPPORTED, why,
                "%s is %" PRId64 "%s, expected %" PRId64 "%s, or --tokenizer FILE.gguf", m->name,
                said, m->place == MODEL_PIECES_MODEL_TYPE && said == 1 ? " (unigram)" : "",
                m->wanted, m->place == MODEL_PIECES_MODEL_TYPE ? " (BPE)" : "");
        if (said >= (int64_t)f->n && m->message == TRAINER && m->wanted < 0)
            return model_tokens_fail(f, MODEL_JSON_TOKENIZER, STATUS_FORMAT, why,
                                     "%s is %" PRId64 ", expected an id below %zu, the pieces",
                                     m->name, said, f->n);
    }
    for (unsigned b = 0; b < 256; b++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", b);
        int32_t id = model_tokens_id(f, name);
        if (id < 0 || f->type[id] != MODEL_TOKEN_BYTE)
            return model_tokens_fail(f, MODEL_JSON_TOKENIZER, STATUS_FORMAT, why,
                                     "pieces has no byte %s, expected one for each", name);
    }
    return STATUS_OK;
}

static enum status read_model(struct model_folder_tokens *f, struct base_string bytes,
                              struct status_why *why)
{
    struct model_wire wire = model_wire_of(bytes);
    struct model_wire_field field;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        f->pieces.said[members[i].place] = members[i].absent;
    while (!status && model_wire_next(&wire, &field)) {
        if (model_wire_is(&field, PIECES, MODEL_WIRE_BYTES))
            status = read_piece(f, field.bytes, why);
        else if (model_wire_is(&field, TRAINER, MODEL_WIRE_BYTES) ||
                 model_wire_is(&field, NORMALIZER, MODEL_WIRE_BYTES))
            status = read_options(f, field.number, field.bytes, why);
    }
    if (!status && (wire.at < wire.end || f->n == 0))
        status = malformed(f, "the file", why);
    return status ? status : check_options(f, why);
}

/** A token that stands beside the pieces, or says of one that it stands for itself in a text. */
static enum status add_token(struct model_folder_tokens *f, const char *text, int64_t id,
                             bool special, const char *place, struct status_why *why)
{
    struct base_quoted shown, other;
    if (f->n_rows && id >= (int64_t)f->n_rows) {
        base_buffer_format(&f->remarks,
                           "%s: %s has id %" PRId64 ", but the embedding has %" PRIu64
                           " rows: it is not recognised\n",
                           place, base_quote(&shown, (struct base_string){text, strlen(text)}), id,
                           f->n_rows);
        return STATUS_OK;
    }
    bool known = id >= 0 && (uint64_t)id < f->n && f->text[id].data;
    if (known && model_tokens_id(f, text) != id)
        return model_tokens_fail(f, MODEL_JSON_TOKENIZER, STATUS_UNSUPPORTED, why,
                                 "%s names id %" PRId64 " %s, which is %s here; expected the same, "
                                 "or --tokenizer FILE.gguf",
                                 place, id,
                                 base_quote(&shown, (struct base_string){text, strlen(text)}),
                                 base_quote(&other, f->text[id]));
    enum status status = known ? STATUS_OK : model_tokens_new(f, text, id, place, why);
    if (!status)
        f->type[id] = special || model_tokens_looks_special(text) ? MODEL_TOKEN_CONTROL
                                                                  : MODEL_TOKEN_USER_DEFINED;
    return status;
}

static enum status read_added(struct model_folder_tokens *f, struct status_why *why)
{
    static const char file[] = "added_tokens.json", member[] = "added_tokens_decoder";
    struct base_field listed = f->json[MODEL_JSON_ADDED], item = {0};
    struct base_field decoder = base_field_get(f->json[MODEL_JSON_TOKENIZER_CONFIG], member);
    enum status status = STATUS_OK;
    while (!status && base_field_next(listed, &item)) {
        const char *text = item.json->string;
        status = *text ? add_token(f, text, model_tokens_number(item), false, file, why)
                       : model_tokens_fail(f, MODEL_JSON_ADDED, STATUS_FORMAT, why,
                                           "has an empty token");
    }
    item.json = NULL;
    while (!status && cJSON_IsObject(decoder.json) && base_field_next(decoder, &item)) {
        const char *content = base_field_string(item, "content"), *number = item.json->string;
        char *end;
        long long id = strtoll(number, &end, 10);
        if (!*number || *end || !content || !*content)
            return model_tokens_fail(f, MODEL_JSON_TOKENIZER_CONFIG, STATUS_FORMAT, why,
                                     "%s has an entry without an id and a content", member);
        status = add_token(f, content, id, model_tokens_flag(item, "special", false), member, why);
    }
    return status;
}

static enum status write_scores(struct model_folder_tokens *f, size_t n_pieces,
                                struct status_why *why)
{
    enum status status =
        base_array_reserve(f->pieces.score, f->pieces.capacity, f->n, "scores", why);
    if (status)
        return status;
    for (size_t i = n_pieces; i < f->n; i++)
        f->pieces.score[i] = no_score;
    model_tokens_array(f, "tokenizer.ggml.scores", GGUF_VALUE_F32, f->pieces.score);
    return STATUS_OK;
}

enum status model_tokens_sentencepiece(struct model_folder_tokens *f, struct status_why *why)
{
    struct gguf_map map;
    size_t n_pieces = 0;
    enum status status = safetensors_map_json(&map, f->path, MODEL_SENTENCEPIECE, NULL, why);
    if (!status && map.n_bytes > SAFETENSORS_MAX_HEADER)
        status = model_tokens_fail(f, MODEL_JSON_TOKENIZER, STATUS_UNSUPPORTED, why,
                                   "has %zu bytes, expected at most 100 MB", (size_t)map.n_bytes);
    /* A piece takes more bytes of the file than its text and a zero. */
    if (!status)
        status = base_array_new(f->pieces.text, (size_t)map.n_bytes + 1, "bytes of tokens", why);
    if (!status)
        status = read_model(f, (struct base_string){map.data, (size_t)map.n_bytes}, why);
    gguf_map_close(&map);
    n_pieces = f->n;
    if (!status)
        status = read_added(f, why);
    if (!status)
        status = model_tokens_write(f, why);
    if (!status)
        status = write_scores(f, n_pieces, why);
    if (!status)
        model_tokens_bool(
            f, "tokenizer.ggml.add_space_prefix",
            f->pieces.said[MODEL_PIECES_PREFIX] &&
                model_tokens_flag(f->json[MODEL_JSON_TOKENIZER_CONFIG], "add_prefix_space", true));
    return status;
}

#include "model/folder/tokens/wire.h"

struct model_wire model_wire_of(struct base_string message)
{
    const uint8_t *at = (const uint8_t *)message.data;
    return (struct model_wire){at, at + message.n_bytes};
}

/** Seven bits a byte, the lowest first; at most ten bytes. */
static bool take_number(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/** The lowest byte comes first. */
static bool take_bits(const uint8_t **at, const uint8_t *end, unsigned n, uint64_t *value)
{
    *value = 0;
    if ((size_t)(end - *at) < n)
        return false;
    for (unsigned i = 0; i < n; i++)
        *value |= (uint64_t) * (*at)++ << 8 * i;
    return true;
}

static bool take_bytes(const uint8_t **at, const uint8_t *end, struct base_string *bytes)
{
    uint64_t n;
    if (!take_number(at, end, &n) || n > (uint64_t)(end - *at))
        return false;
    *bytes = (struct base_string){(const char *)*at, (size_t)n};
    *at += n;
    return true;
}

static bool take_value(const uint8_t **at, const uint8_t *end, struct model_wire_field *field)
{
    switch (field->kind) {
    case MODEL_WIRE_NUMBER:
        return take_number(at, end, &field->value);
    case MODEL_WIRE_8:
        return take_bits(at, end, 8, &field->value);
    case MODEL_WIRE_4:
        return take_bits(at, end, 4, &field->value);
    case MODEL_WIRE_BYTES:
        return take_bytes(at, end, &field->bytes);
    }
    return false;
}

bool model_wire_next(struct model_wire *message, struct model_wire_field *field)
{
    const uint8_t *at = message->at;
    uint64_t tag;
    *field = (struct model_wire_field){0};
    if (at == message->end || !take_number(&at, message->end, &tag))
        return false;
    field->number = tag >> 3;
    field->kind = (enum model_wire_kind)(tag & 7);
    if (!take_value(&at, message->end, field))
        return false;
    message->at = at;
    return true;
}

bool model_wire_is(const struct model_wire_field *field, uint64_t number, enum model_wire_kind kind)
{
    return field->number == number && field->kind == kind;
}

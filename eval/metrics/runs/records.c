#include "eval/metrics/runs/records.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { HEADER_CODES = 4, BYTE = 256 };

/** A record, and its probabilities by the two bytes of a code: exp(scale * code + floor). */
struct record {
    double scale, floor;
    double high[BYTE], low[BYTE];
    const char *codes;
};

static void open_record(struct record *r, const void *bytes)
{
    float scale, floor;
    memcpy(&scale, bytes, sizeof scale);
    memcpy(&floor, (const char *)bytes + sizeof scale, sizeof floor);
    r->scale = (double)scale;
    r->floor = (double)floor;
    r->codes = (const char *)bytes + HEADER_CODES * sizeof(uint16_t);
    for (int i = 0; i < BYTE; i++) {
        r->high[i] = exp(r->scale * BYTE * i);
        r->low[i] = exp(r->scale * i + r->floor);
    }
}

static uint16_t code_at(const struct record *r, size_t i)
{
    uint16_t code;
    memcpy(&code, r->codes + i * sizeof code, sizeof code);
    return code;
}

double eval_records_apart(const void *a, const void *b, size_t n_vocab)
{
    struct record p, q;
    open_record(&p, a);
    open_record(&q, b);
    double p_sum = 0, q_sum = 0, cross = 0;
    for (size_t i = 0; i < n_vocab; i++) {
        uint16_t of_p = code_at(&p, i), of_q = code_at(&q, i);
        double share = p.high[of_p / BYTE] * p.low[of_p % BYTE];
        p_sum += share;
        q_sum += q.high[of_q / BYTE] * q.low[of_q % BYTE];
        cross += share * (p.scale * of_p - q.scale * of_q + (p.floor - q.floor));
    }
    const double rounding = 1e-9; /* what it may leave below 0 */
    double kl = cross / p_sum + log(q_sum) - log(p_sum);
    return kl < 0 && kl >= -rounding ? 0 : kl;
}

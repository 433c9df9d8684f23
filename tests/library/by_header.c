/*
 * By include/assay.h alone: the tables of `assay perplexity --per-token` and `assay kld
 * --per-token`, but for the tokens' texts; and the numbers that `assay dump` writes of a tensor.
 * usage: by_header TEXT N_CTX N_WINDOWS THREADS PRECISION MODEL [CANDIDATE]
 *        by_header MODEL TENSOR [TOKENS]
 */
#include "include/assay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct assay_why why;

static void must(enum assay_status status)
{
    if (status == ASSAY_OK)
        return;
    fprintf(stderr, "by_header: %s: %s\n", assay_status_name(status), why.text);
    exit(1);
}

static void *memory(size_t n_bytes)
{
    void *block = calloc(1, n_bytes);
    if (!block)
        exit(1);
    return block;
}

static char *read_text(const char *path, size_t *n)
{
    enum { MOST = 1 << 20 };
    char *text = memory(MOST);
    FILE *f = fopen(path, "rb");
    if (!f)
        exit(1);
    *n = fread(text, 1, MOST, f);
    fclose(f);
    return text;
}

/* Windows as the program lays them: one after the other, BOS in place of the first token of each.
 */
static int32_t *make_tokens(struct assay_model *m, const char *path, size_t n)
{
    size_t n_text, n_found;
    char *text = read_text(path, &n_text);
    int32_t *tokens = memory(n * sizeof *tokens);
    must(assay_tokenize(m, text, n_text, ASSAY_BOS, tokens, n, &n_found, &why));
    free(text);
    if (n_found < n) {
        fprintf(stderr, "by_header: %zu tokens, expected %zu\n", n_found, n);
        exit(1);
    }
    return tokens;
}

static void put(double value)
{
    if (value != value)
        printf("\tnan");
    else
        printf("\t%.12g", value);
}

static void put_token(const struct assay_windows *w, size_t i)
{
    size_t window = i / w->n_positions, p = w->first + i % w->n_positions;
    printf("%zu\t%zu\t%d", window, p, (int)w->tokens[window * w->n_tokens + p + 1]);
}

static void put_scores(struct assay_model *m, const struct assay_windows *w)
{
    size_t n = w->n_windows * w->n_positions;
    struct assay_score *scores = memory(n * sizeof *scores);
    must(assay_log_probs(m, w, NULL, scores, &why));
    printf("window\tposition\ttoken_id\tlogprob\trank\tentropy\n");
    for (size_t i = 0; i < n; i++) {
        put_token(w, i);
        put(scores[i].log_prob);
        put(scores[i].rank);
        put(scores[i].entropy);
        printf("\n");
    }
    free(scores);
}

static void put_divergences(struct assay_model *m, struct assay_model *candidate,
                            const struct assay_windows *w)
{
    size_t n = w->n_windows * w->n_positions;
    struct assay_divergence *found = memory(n * sizeof *found);
    must(assay_diverge(m, candidate, w, NULL, found, &why));
    printf("window\tposition\ttoken_id\tbase_logprob\tlogprob\tbase_rank\trank\tbase_entropy\t"
           "entropy\tkld\treverse_kld\tjs\ttv\tsame_top\tcommon_5\tcommon_10\n");
    for (size_t i = 0; i < n; i++) {
        const struct assay_divergence *d = &found[i];
        const double values[] = {d->base_log_prob,
                                 d->log_prob,
                                 d->base_rank,
                                 d->rank,
                                 d->base_entropy,
                                 d->entropy,
                                 d->kld,
                                 d->reverse_kld,
                                 d->js,
                                 d->tv,
                                 d->likeliest == d->base_likeliest,
                                 d->common_5,
                                 d->common_10};
        put_token(w, i);
        for (size_t k = 0; k < sizeof values / sizeof *values; k++)
            put(values[k]);
        printf("\n");
    }
    free(found);
}

/* Its rows in two parts. */
static int put_rows(const char *path, const char *name, const char *tokens)
{
    struct assay_options options = ASSAY_OPTIONS;
    struct assay_model *m;
    struct assay_tensor t;
    size_t i;
    options.tokens = tokens;
    must(assay_open(&m, path, &options, &why));
    must(assay_tensor_find(m, name, &i, &why));
    must(assay_tensor_at(m, i, &t, &why));
    float *rows = memory(t.n_rows * t.ne[0] * sizeof *rows);
    uint64_t half = t.n_rows / 2;
    must(assay_tensor_rows(m, i, half, t.n_rows - half, rows + half * t.ne[0], &why));
    must(assay_tensor_rows(m, i, 0, half, rows, &why));
    fwrite(rows, sizeof *rows, t.n_rows * t.ne[0], stdout);
    free(rows);
    assay_close(m);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 || argc == 4)
        return put_rows(argv[1], argv[2], argv[3]);
    if (argc < 7)
        return 2;
    static const char *const names[] = {"high", "exact", "fast"};
    struct assay_options options = ASSAY_OPTIONS;
    struct assay_model *models[2] = {NULL, NULL};
    size_t n_ctx = strtoul(argv[2], NULL, 10), n_windows = strtoul(argv[3], NULL, 10);
    options.n_threads = (unsigned)strtoul(argv[4], NULL, 10);
    while (strcmp(names[options.precision], argv[5]) != 0)
        options.precision++;
    for (int i = 0; i + 6 < argc; i++)
        must(assay_open(&models[i], argv[6 + i], &options, &why));
    struct assay_description about = {.size = sizeof about};
    must(assay_describe(models[0], &about, &why));
    int32_t *tokens = make_tokens(models[0], argv[1], n_ctx * n_windows);
    for (size_t i = 0; about.adds_bos && i < n_windows; i++)
        tokens[i * n_ctx] = about.bos;
    const struct assay_windows windows = {tokens, n_windows, n_ctx, n_ctx / 2,
                                          n_ctx - 1 - n_ctx / 2};
    if (models[1])
        put_divergences(models[0], models[1], &windows);
    else
        put_scores(models[0], &windows);
    free(tokens);
    assay_close(models[0]);
    assay_close(models[1]);
    return 0;
}

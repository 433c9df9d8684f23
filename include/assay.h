/**
 * assay: the exact model, for tests of other programs' numbers.
 *
 * Open a GGUF file or a published folder, and ask what it says: tokens of a text,
 * log-probabilities, hidden states, decoded tensors, products. The results are the program's to the
 * bit: they depend on the file, the tokens and the precision, not on threads, on batches or on the
 * instruction set.
 *
 * Errors. A function that can fail returns a status and takes a `struct assay_why *` as its last
 * parameter, into which it writes one sentence: what was found where, and what was expected. It may
 * be NULL. After a failure, outputs are undefined, but for pointers that are said to be NULL. Every
 * function that can fail may fail with ASSAY_MEMORY, and nothing is leaked then; and with
 * ASSAY_USAGE where a pointer is NULL that is not said to be allowed to.
 *
 * Threads. A model, and what was read from it, is for one thread at a time, except where a function
 * says otherwise. Different models may be used at once. Functions without a model may be called by
 * any thread at any time.
 *
 * Ownership. What a function is given stays the caller's and is read, or written, during the call
 * only. Strings that it gives live as long as the model, or where there is none, for ever. Nothing
 * but models has to be released.
 *
 * There is no global state. Nothing is printed, no environment variable is read, no signal is
 * touched: threads of the library block all of them. Files are mapped: a file that somebody makes
 * shorter while a model of it is open ends the process by SIGBUS, as with any mapping.
 *
 * Shapes are row-major: in [n, width] the rows are the slower axis. Logarithms are natural. Floats
 * and integers have the machine's byte order, which is little-endian.
 */
#ifndef ASSAY_H
#define ASSAY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Raised when a program has to be compiled again; the shared library's soname has the number. */
#define ASSAY_ABI 0

enum assay_status {
    ASSAY_OK = 0,
    ASSAY_USAGE = 1,       /* an argument that makes no sense */
    ASSAY_IO = 2,          /* the operating system refused to open, read or map a file */
    ASSAY_FORMAT = 3,      /* a file says something impossible */
    ASSAY_UNSUPPORTED = 4, /* a file says something that this library does not do */
    ASSAY_CHANGED = 5,     /* a file changed while it was read */
    ASSAY_MEMORY = 6,      /* an allocation failed */
    ASSAY_DEVICE = 7,      /* a device failed or is absent; no thread could be had */
    ASSAY_NONFINITE = 8,   /* a computation met NaN or infinity */
    ASSAY_CANCELLED = 10   /* by assay_cancel() or a progress function */
};

/** The sentence: one line of printable text, NUL-terminated; written where a call fails only. */
struct assay_why {
    char text[1024];
};

/** ASSAY_ABI of the library that is linked or loaded. */
int assay_abi(void);
/** Its version: "0.2.0". */
const char *assay_version(void);
/** A short name: "format"; "unknown" for other numbers. */
const char *assay_status_name(enum assay_status status);

/*
 * Models.
 */

/** How faithful products are; docs/precision.md. */
enum assay_precision {
    ASSAY_HIGH = 0,  /* nearly as faithful as exact ones; with the same bits everywhere but where
                        assay_description.products differs */
    ASSAY_EXACT = 1, /* one chain of float32 fused multiply-adds: the same bits on any machine */
    ASSAY_FAST = 2   /* activations in 8 bits */
};

/**
 * Told during evaluations how much of one is done, 0 to 1, in the thread that called. What it
 * returns but 0 cancels the call, the last report included. It must not use a model but by
 * functions that are for any thread.
 */
typedef int assay_progress(void *user, double fraction);

/**
 * What computes. Set `size` to sizeof (struct assay_options), which tells the library how much the
 * program knows, and the rest to 0; ASSAY_OPTIONS does both.
 */
struct assay_options {
    size_t size;
    enum assay_precision precision;
    unsigned n_threads; /* of the CPU; 0: as many as the processors this process may use. With a
                           card it does nothing */
    const char *device; /* "cpu", "cuda", "cuda:N"; NULL: "cpu" */
    const char *isa;    /* use no instruction set above it: "scalar", "avx2", ...; NULL, "amx": any.
                           Of the CPU only */
    const char *tokens; /* a published folder has the tokens of this GGUF file or folder; NULL: its
                           own. Of folders only */
    assay_progress *progress; /* NULL: nobody is told. Of models only */
    void *user;
};
#define ASSAY_OPTIONS                                                                              \
    {                                                                                              \
        sizeof(struct assay_options), ASSAY_HIGH, 0, NULL, NULL, NULL, NULL, NULL                  \
    }

/** An open model, with the threads that compute it. */
struct assay_model;

/**
 * Open a GGUF file (any part of a split one) or a published folder (config.json, safetensors).
 * options: NULL is as ASSAY_OPTIONS.   *out: NULL after a failure; else assay_close() it.
 * Weights stay in the mapped file: opening takes memory for the vocabulary, not for the weights.
 * Fails: ASSAY_IO, ASSAY_FORMAT, ASSAY_UNSUPPORTED (architecture, type, tokenizer), ASSAY_DEVICE,
 *        ASSAY_USAGE (options).
 */
enum assay_status assay_open(struct assay_model **out, const char *path,
                             const struct assay_options *options, struct assay_why *why);

/** Release a model and its threads. NULL is allowed. */
void assay_close(struct assay_model *model);

/**
 * While `cancel` is not 0, calls that evaluate the model end with ASSAY_CANCELLED, the one at work
 * soon. Any thread, at any time while the model is open; also from a signal's handler.
 */
void assay_cancel(struct assay_model *model, int cancel);

/** What a model is, and what computes it. */
struct assay_description {
    size_t size;              /* set by the caller: sizeof (struct assay_description) */
    const char *path;         /* as it was given */
    const char *architecture; /* general.architecture: "llama" */
    const char *tokenizer;    /* "spm" or "bpe" */
    const char *remarks;      /* what was remarkable about the file, a line each; "" */
    const char *device;       /* "cpu", or a card's name */
    const char *isa;          /* "avx512"; "amx": that and AMX; "cuda" */
    const char *products;     /* what products are made of: "float32", "int16", ...: docs/json.md */
    uint64_t n_weights;       /* elements of all tensors */
    size_t n_tensors;
    size_t n_vocab;  /* tokens that a row of logits has; ids are below it */
    size_t n_layers; /* those that are evaluated */
    size_t width;    /* elements of a hidden state after the output norm */
    size_t streams;  /* hidden states between layers have `streams` times `width`; mostly 1 */
    size_t n_ctx;    /* positions that it was made for */
    unsigned n_threads;
    int32_t bos, eos; /* ids of tokens; -1: there is none */
    int adds_bos;     /* 1: texts begin with BOS */
};

/** Fails: ASSAY_USAGE (size). */
enum assay_status assay_describe(const struct assay_model *model, struct assay_description *out,
                                 struct assay_why *why);

/*
 * Tensors.
 */

/** A tensor as the file has it. */
struct assay_tensor {
    const char *name;
    const char *type; /* "Q4_K" */
    uint64_t ne[4];   /* elements along each dimension, ne[0] fastest; 1 past n_dims */
    uint32_t n_dims;
    uint32_t type_id; /* as GGUF files have it; 400 and more are of folders */
    uint64_t n_rows;  /* ne[1] * ne[2] * ne[3] */
    uint64_t n_bytes; /* as stored, scales included */
    const void *data; /* the stored bytes, read-only; NULL: they do not lie in one piece */
};

/** Tensor i of assay_description.n_tensors, in the file's order. Any thread. Fails: ASSAY_USAGE. */
enum assay_status assay_tensor_at(const struct assay_model *model, size_t i,
                                  struct assay_tensor *out, struct assay_why *why);

/** The number of a tensor. Any thread. Fails: ASSAY_USAGE (no such name; the sentence names the
 * nearest). */
enum assay_status assay_tensor_find(const struct assay_model *model, const char *name, size_t *out,
                                    struct assay_why *why);

/**
 * Decode rows [first, first + n_rows) of tensor i.   out: [n_rows, ne[0]] float32. Any thread.
 * Fails: ASSAY_USAGE (rows that it has not), ASSAY_UNSUPPORTED (a table of whole numbers).
 */
enum assay_status assay_tensor_rows(const struct assay_model *model, size_t i, uint64_t first,
                                    uint64_t n_rows, float *out, struct assay_why *why);

/*
 * Texts and tokens.
 */

enum {
    ASSAY_BOS = 1,    /* begin with what texts begin with: BOS, where the model has it so */
    ASSAY_SPECIAL = 2 /* recognise control tokens in the text */
};

/**
 * Tokens of a text (any bytes; NUL is one of them).   flags: ASSAY_BOS, ASSAY_SPECIAL, or 0.
 * ids: receives the first `capacity`; may be NULL if that is 0.   *n: how many there are. Any
 * thread.   Fails: ASSAY_USAGE (flags).
 */
enum assay_status assay_tokenize(const struct assay_model *model, const char *text, size_t n_bytes,
                                 unsigned flags, int32_t *ids, size_t capacity, size_t *n,
                                 struct assay_why *why);

/**
 * The bytes that a token stands for in a text; a part of a character is possible. bytes: receives
 * the first `capacity`, without NUL; may be NULL if that is 0.   *n: how many there are. Any
 * thread. Fails: ASSAY_USAGE (an id beyond the vocabulary).
 */
enum assay_status assay_token_bytes(const struct assay_model *model, int32_t id, char *bytes,
                                    size_t capacity, size_t *n, struct assay_why *why);

/*
 * Evaluations. A position is a token that predicts the next one.
 */

/**
 * Windows of tokens, each evaluated on its own, from position 0. Tokens are taken as they are: BOS
 * is among them where the caller puts it. Results are wanted of positions [first, first +
 * n_positions) of each window; they lie window by window.
 */
struct assay_windows {
    const int32_t *tokens; /* [n_windows, n_tokens] */
    size_t n_windows;      /* 1 or more */
    size_t n_tokens;       /* of a window */
    size_t first, n_positions;
};

/** What a prediction says of one token. */
struct assay_score {
    double log_prob;   /* of the token */
    double entropy;    /* of the prediction, nats */
    uint32_t rank;     /* of the token; 1: the most likely one. Of equals the lower id is first */
    int32_t likeliest; /* token */
};

/**
 * Score tokens.   targets: [n_windows, n_positions], the token of which each position is asked;
 * NULL: the next of the window, so that first + n_positions < n_tokens.
 * out: [n_windows, n_positions].
 * Fails: ASSAY_USAGE (positions that a window has not, ids beyond the vocabulary), ASSAY_CHANGED,
 *        ASSAY_CANCELLED, ASSAY_DEVICE. Scores that are not finite are no failure.
 */
enum assay_status assay_log_probs(struct assay_model *model, const struct assay_windows *windows,
                                  const int32_t *targets, struct assay_score *out,
                                  struct assay_why *why);

/** assay_top() gives so many at most. */
#define ASSAY_TOP_MAX 20

/** A token and how likely it is. */
struct assay_likely {
    double log_prob;
    int32_t token;  /* -1: the vocabulary has no more */
    int32_t unused; /* 0 */
};

/**
 * The k most likely tokens, the most likely first, of equals the lower id.   k: 1 to ASSAY_TOP_MAX.
 * out: [n_windows, n_positions, k].   Fails: as assay_log_probs.
 */
enum assay_status assay_top(struct assay_model *model, const struct assay_windows *windows,
                            size_t k, struct assay_likely *out, struct assay_why *why);

/**
 * Log-probabilities of the tokens [first_token, first_token + n_tokens) of the vocabulary: whole
 * rows, or slices of them.   out: [n_windows, n_positions, n_tokens], each to the bit what
 * assay_log_probs gives. The windows are evaluated in each call: fewer positions at a time take
 * less memory, fewer tokens of the vocabulary more time.   Fails: as assay_log_probs.
 */
enum assay_status assay_rows(struct assay_model *model, const struct assay_windows *windows,
                             size_t first_token, size_t n_tokens, double *out,
                             struct assay_why *why);

/** In place of a layer: after the last one and the output norm, where the model has one. */
#define ASSAY_NORMED (-1)

/**
 * Hidden states.   layer: the residual stream after this layer, 0 to n_layers - 1; or ASSAY_NORMED.
 * out: [n_windows, n_positions, streams * width] float32; with ASSAY_NORMED [.., width].
 * Fails: as assay_log_probs.
 */
enum assay_status assay_hidden(struct assay_model *model, const struct assay_windows *windows,
                               int layer, float *out, struct assay_why *why);

/**
 * How far a candidate q is from a base p at one position, and what both say of the next token:
 * the figures of `assay kld --per-token`; docs/divergence.md has the formulas.
 */
struct assay_divergence {
    double base_log_prob, log_prob; /* of the target */
    double base_entropy, entropy;
    double kld, reverse_kld; /* KL(p || q), KL(q || p) */
    double js, tv;           /* Jensen-Shannon divergence; total variation */
    uint32_t base_rank, rank;
    int32_t base_likeliest, likeliest;
    uint8_t common_1, common_5, common_10; /* how many of p's most likely tokens are among q's */
    uint8_t unused[5];                     /* 0 */
};

/**
 * Compare two models of the same vocabulary; targets, out: as assay_log_probs. The base's threads,
 * device, precision and progress function serve both; only the base's calls are cancelled. Both are
 * in use. A model may be compared with itself.
 * Fails: as assay_log_probs; ASSAY_FORMAT (another vocabulary; the sentence says where).
 */
enum assay_status assay_diverge(struct assay_model *base, struct assay_model *candidate,
                                const struct assay_windows *windows, const int32_t *targets,
                                struct assay_divergence *out, struct assay_why *why);

/*
 * Without a model: block formats and products.
 */

/** A type of tensors that can be decoded. */
struct assay_type {
    const char *name;     /* "Q4_K" */
    uint32_t id;          /* as GGUF files have it */
    uint32_t block_elems; /* elements packed together: a row has a multiple */
    uint32_t block_bytes; /* bytes of one such block */
    uint32_t row_prefix;  /* bytes that each row begins with */
    uint32_t bundle_rows; /* rows that are stored together: a matrix has a multiple */
    uint32_t tail_bytes;  /* after all rows, of which the first 4 are a scale, float32; mostly 0 */
};

/** Type i of those that files have, from 0 on. Fails: ASSAY_USAGE (there are no more). */
enum assay_status assay_type_at(size_t i, struct assay_type *out, struct assay_why *why);
/** By name, in any case. Fails: ASSAY_USAGE. */
enum assay_status assay_type_find(const char *name, struct assay_type *out, struct assay_why *why);

/** A matrix as files store it, at any alignment: rows one after the other, then the type's tail. */
struct assay_matrix {
    const void *bytes;
    size_t n_bytes; /* n_rows rows of row_prefix + n_cols / block_elems * block_bytes; tail_bytes */
    size_t n_rows, n_cols;
    uint32_t type;   /* id of an assay_type */
    uint32_t unused; /* 0 */
};

/**
 * Decode a matrix by the definition of its type, in float32.   out: [n_rows, n_cols].
 * Fails: ASSAY_USAGE (a type, a shape or a number of bytes that do not go together).
 */
enum assay_status assay_decode(const struct assay_matrix *matrix, float *out,
                               struct assay_why *why);

/**
 * y = W x for n_tokens rows of x, as the model's products are computed.
 * options: precision, n_threads, device and isa count; NULL is as ASSAY_OPTIONS.
 * w: [R, K].   x: [n_tokens, K].   y: [n_tokens, R].
 * With ASSAY_EXACT y[t][r] is fma(w[r][k], x[t][k], sum) for k = 0, 1, ... in float32, from 0 on.
 * Fails: as assay_decode; ASSAY_FORMAT (codes that no number has), ASSAY_DEVICE.
 */
enum assay_status assay_multiply(const struct assay_options *options, const struct assay_matrix *w,
                                 const float *x, size_t n_tokens, float *y, struct assay_why *why);

#ifdef __cplusplus
}
#endif

#endif

/**
 * The options that commands share, in groups: settings with the list that fills them. A
 * command's own list names a group in a row of type CLI_GROUP, so that an option's spelling,
 * variable, range and help stand in one place. Groups of a single option fill what their comment
 * names.
 */
#ifndef CLI_OPTIONS_COMMON_H
#define CLI_OPTIONS_COMMON_H

#include "cli/options/args.h"
#include "clients/documents/results/cache_label.h"
#include "model/model.h"

struct act_rule;

/** Indices into the words of the lists' choices. */
#ifdef __aarch64__
enum cli_isa { CLI_ISA_SCALAR, CLI_ISA_NEON, CLI_ISA_DOTPROD, CLI_ISA_I8MM, CLI_ISA_AUTO };
#define CLI_ISAS       "scalar neon dotprod i8mm auto"
#define CLI_ISAS_NAMED "scalar, neon, dotprod, i8mm or auto (default)"
#else
enum cli_isa { CLI_ISA_SCALAR, CLI_ISA_AVX2, CLI_ISA_AVX512, CLI_ISA_AMX, CLI_ISA_AUTO };
#define CLI_ISAS       "scalar avx2 avx512 amx auto"
#define CLI_ISAS_NAMED "scalar, avx2, avx512, amx or auto (default)"
#endif
enum cli_gemm { CLI_GEMM_OWN, CLI_GEMM_OPENBLAS };
enum cli_precision { CLI_PRECISION_HIGH, CLI_PRECISION_EXACT, CLI_PRECISION_FAST };

/* common.c: rows of "Input" without heading, "Output" without heading, "Machine". */

/** How conversations become tokens. Defaults: cli_chat_defaults. */
struct cli_chat_settings {
    const char *chat_template; /* a file, or, with a '{', the template; NULL: the model's */
    int mask;                  /* enum model_chat_mask; -1: not given */
    int usual;                 /* where it is not: of a command's windows */
    bool skip_refused;         /* those that the template refuses are left out */
};
extern const struct cli_chat_settings cli_chat_defaults;
/** Check that there are conversations if options say how to read them. Fails: STATUS_USAGE. */
enum status cli_chat_check(const struct cli_chat_settings *settings, size_t n_conversations,
                           struct status_why *why);
extern const struct cli_option cli_chat_options[];
extern const struct cli_option cli_template_options[]; /* of them, those but --mask */
#define CLI_MASKS "assistant user all"                 /* the words of --mask */
/** The word of --mask. */
const char *cli_mask_name(int mask);

/** Which text, and how it becomes tokens. Defaults: zero but for `chat`. */
struct cli_text_settings {
    const char *text_file;   /* -f: one final newline is dropped */
    struct cli_list texts;   /* -f where it may be given several times; see cli_text_settle */
    const char *binary_file; /* -bf: as it stands */
    const char *prompt;      /* -p: the text itself */
    bool parse_special;
    bool escape;                   /* -e: escapes in it are what they mean */
    bool force_text;               /* whatever the bytes of -f seem to be */
    bool lines;                    /* files, or the prompt, have JSON objects */
    bool undivided;                /* -f is one text, whatever is in it */
    bool strict;                   /* a text that may not be meant as it stands is refused */
    struct cli_chat_settings chat; /* of documents that are conversations */
};
extern const struct cli_option cli_text_options[];
extern const struct cli_option cli_texts_options[]; /* the same; -f fills texts */
extern const struct cli_option cli_rows_options[];  /* the same; --mask is about rows */
/** Whether any text is given. */
bool cli_text_given(const struct cli_text_settings *settings);
/** One of -f, -bf and -p is given, and no more. Fails: STATUS_USAGE. */
enum status cli_text_check(const struct cli_text_settings *settings, struct status_why *why);
/** Whether a file has JSON lines, by its name. */
bool cli_text_is_lines(const char *path);
/** A single -f in texts becomes text_file, unless it names documents: see cli_text_documents. */
void cli_text_settle(struct cli_text_settings *settings);
/**
 * Whether the text is documents: several -f, a folder, or JSON lines by its name. After
 * cli_text_settle. Other JSON is recognised when it is read.
 */
bool cli_text_documents(const struct cli_text_settings *settings);
/**
 * Check that the text is a single one: no documents, no conversations. what: "a sweep",
 * for the sentence.
 * Fails: STATUS_USAGE.
 */
enum status cli_text_check_single(const struct cli_text_settings *settings, const char *what,
                                  struct status_why *why);
extern const struct cli_option cli_special_options[]; /* bool: of them, --parse-special alone */

/** What is written beside the lines. Defaults: all zero. */
struct cli_output_settings {
    const char *json_file;
    bool hash_model;
    bool force; /* files of another kind are replaced, too, whatever option names them */
};
extern const struct cli_option cli_output_options[];
extern const struct cli_option cli_json_options[]; /* const char *: of them, --json alone */

/** What computes. */
struct cli_machine_settings {
    int64_t n_batch;                    /* tokens; 0: chosen by the speed */
    int64_t n_threads, n_threads_batch; /* 0 and below: all processors; the latter wins */
    int isa, gemm, precision, mpi;
    const struct act_rule *activations; /* how inputs of products are rounded; NULL: not at all */
    int64_t mpi_wait;                   /* seconds; 0: CLUSTER_TEAM_SECONDS */
    const char *split;      /* "layers", "layers:N"; NULL: each process has whole models */
    const char *device;     /* NULL: by gpu_layers */
    const char *gpu_layers; /* -ngl: 0 or NULL is the CPU, anything else a GPU if there is one */
};
extern const struct cli_option cli_machine_options[];
extern const struct cli_option cli_process_options[]; /* of them, those about one process */
extern const struct cli_option cli_device_options[];  /* of these, all but -b */
/** The word of --precision. */
const char *cli_precision_name(int precision);

/* model.c: -m and --label, of "Input", and "Model". */

extern const struct cli_option cli_model_file_options[]; /* const char *: -m, required */

extern const struct cli_option cli_label_options[]; /* struct cli_list: --label */
/** There is a label for each of n models, or there are none. Fails: STATUS_USAGE. */
enum status cli_labels_check(const struct cli_list *labels, size_t n, struct status_why *why);

/** A type of a cache, and the layers that have another one. */
struct cli_kv_type {
    struct model_kv_type type;
    struct model_kv_exceptions but;
};
/** What CLI_KV took; n 0: not rounded. cli_args_release() releases the items. */
struct cli_kv_list {
    struct cli_kv_type *items;
    size_t n;
};

/** How a model is opened. */
struct cli_model_settings {
    const char *tokenizer_pre;
    const char *tokenizer; /* whose tokens published folders get; NULL: they have none */
    bool tokenizer_chosen; /* by the command, not by a person */
    bool allow_unknown;
    struct cli_list overrides;
    int rope_scaling; /* -1: as the file says; else none, linear, yarn */
    double rope_scale, rope_freq_base, rope_freq_scale; /* NaN: as the file says */
    int64_t yarn_original_ctx;
    /* NaN or negative: as the file says. */
    double yarn_ext_factor, yarn_attn_factor, yarn_beta_fast, yarn_beta_slow;
    struct cli_kv_list cache_k, cache_v; /* candidates; the first of each go together */
    bool no_kv_rotation;
    int64_t experts_used; /* of a token; 0: as the file says. A base is never opened with it */
    int nextn; /* enum model_nextn_wish; no option: the block for the token after the next is
                  wanted, too */
};
extern const struct cli_option cli_model_options[];
extern const struct cli_option cli_weight_options[]; /* of them, those but -ctk and -ctv */
/** const char *: of them, --tokenizer-pre alone. */
extern const struct cli_option cli_pretokenizer_options[];
void cli_model_defaults(struct cli_model_settings *settings);
/** Leave out what a base is opened without: cache types, another number of experts. */
void cli_model_plain(struct cli_model_settings *settings);
/* kv_types.c */

/** How many pairs of cache types there are to take one after the other; without any, 1. */
size_t cli_kv_count(const struct cli_model_settings *settings);
/** The i-th pair, without scales. One type goes with each of several. */
struct model_kv_types cli_kv_types(const struct cli_model_settings *settings, size_t i);
/** There are as many types of keys as of values, or one. Fails: STATUS_USAGE. */
enum status cli_kv_check(const struct cli_model_settings *settings, struct status_why *why);
/** A type with its exceptions, as the options take it: "Q8_0,layers 0-3:F16". */
enum { CLI_KV_SPELLING = 2400 };
const char *cli_kv_spelling(char out[CLI_KV_SPELLING], struct model_kv_type type,
                            const struct model_kv_exceptions *but);
/** What is added to the name of a model that is rounded so: see doc_kv_label(). */
const char *cli_kv_label(char out[DOC_KV_LABEL], const struct model_kv_types *kv);

/** What the lists cannot say. Fails: STATUS_USAGE. */
enum status cli_model_check(const struct cli_model_settings *settings, struct status_why *why);

/* watch.c */

/** Evaluate again and again while tensors are replaced. Defaults: all zero. */
struct cli_watch_settings {
    bool wanted;
    const char *control, *status; /* by these files, both or neither */
    const char *script;           /* or by what this leaves; NULL: nothing is run */
    const char *cache;            /* a size; NULL: nothing is kept from one run to the next */
    const char *cache_file;       /* NULL: it is in memory */
    uint64_t cache_bytes;         /* of `cache` */
};
extern const struct cli_option cli_watch_options[];

/* What every command that evaluates takes beside its own. */

struct cli_host;

struct cli_evaluate_settings {
    struct cli_host *host; /* for whom it runs; NULL: the command line */
    bool dry_run;          /* that plans it instead (cli/plan/) */
    const char *state_file;
    char left_out[512]; /* a line for remarks: files that stand alone and are no models, or "" */
    struct cli_watch_settings watch;
    struct cli_output_settings output;
    struct cli_machine_settings machine;
    struct cli_model_settings load; /* of all models; cli_model_options fill it */
};
extern const struct cli_option cli_evaluate_options[]; /* --state, output, machine */
extern const struct cli_option cli_load_options[];     /* cli_model_options, --activations */
void cli_evaluate_defaults(struct cli_evaluate_settings *settings);
/** What the list of `watch` cannot say, and ik_llama.cpp's variables. Fails: STATUS_USAGE. */
enum status cli_watch_check(struct cli_evaluate_settings *settings, struct status_why *why);

/* windows.c: rows of "Evaluation" and of "Output". */

/** Which windows of a text. */
struct cli_window_settings {
    struct cli_counts n_ctx; /* 0: as the model was trained; -1: not given */
    int64_t n_chunks;        /* -1: all */
    int64_t chunk_from;      /* left out at the beginning */
    double stop_se;          /* NaN: the run does not end early */
};
extern const struct cli_option cli_window_options[];     /* -c, --chunks */
extern const struct cli_option cli_chunk_from_options[]; /* --chunk-from of the same settings */
extern const struct cli_option cli_stop_options[];       /* --stop-when-se of the same settings */
void cli_window_defaults(struct cli_window_settings *settings);
/**
 * What the lists cannot say. several: more than one context size is taken, as cli_contexts_run
 * does (cli/output/contexts.h). Fails: STATUS_USAGE.
 */
enum status cli_window_check(const struct cli_window_settings *settings, bool several,
                             struct status_why *why);

/** The figures by position. Defaults: all zero. */
struct cli_curve_settings {
    bool wanted;
    int64_t n_bins; /* 0: not given */
};
extern const struct cli_option cli_curve_options[];

/** What is printed of divergences beyond the usual. Defaults: all zero. */
struct cli_divergence_settings {
    struct cli_curve_settings curve;
    int64_t n_worst;
};
extern const struct cli_option cli_divergence_options[];

extern const struct cli_option cli_activations_options[]; /* const struct act_rule * */
extern const struct cli_option cli_per_token_options[];   /* const char *: --per-token */
extern const struct cli_option cli_force_options[];       /* bool: --force */

/* foreign.c */

/**
 * Options of llama-perplexity and of ik_llama.cpp's that mean nothing here: those that can change
 * no number are ignored, the others refused. No settings: the group's offset does not matter.
 */
extern const struct cli_option cli_foreign_options[];
/** Those that are of no evaluation at all, for assay perplexity alone: -o is among them. */
extern const struct cli_option cli_other_programs_options[];

#endif

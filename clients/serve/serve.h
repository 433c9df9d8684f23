/** assay serve: models that stay open, and requests about them. docs/serve.md has the requests. */
#ifndef SERVE_SERVE_H
#define SERVE_SERVE_H

#include <pthread.h>

#include "base/json/build.h"
#include "base/json/read.h"
#include "cli/options/args.h"
#include "cli/options/common.h"
#include "cli/session/swaps.h"
#include "clients/serve/http/http.h"
#include "clients/serve/jobs.h"
#include "clients/serve/turn.h"
#include "eval/units.h"

struct serve_settings {
    const char *model, *base, *text_file; /* base, text_file NULL: none */
    const char *host, *key_file, *state_folder;
    struct cli_list files_from;
    int64_t port, max_body, max_memory, n_waiting, seconds, job_seconds, grace;
    bool hot_swap;
    struct cli_evaluate_settings evaluate;
};

/** What POST /perplexity adds up; on the thread of the jobs, but for a copy under the lock. */
struct serve_perplexity_state {
    double nll, nll_squared; /* sums over scored tokens */
    uint64_t n_tokens, n_windows;
    char model_id[BASE_HEX]; /* "": nothing was added yet */
    char *settings; /* JSON text of those that figures depend on, cJSON's; NULL: the same */
};

enum { SERVE_CODES = 600 };

struct serve {
    const struct serve_settings *settings;
    char key_digest[BASE_HEX];  /* "": none is asked for */
    bool hot;                   /* tensors of the models' own files may be replaced */
    struct cli_list folders;    /* of files that requests name */
    struct serve_budget budget; /* of all requests together */
    struct serve_jobs *jobs;
    struct serve_http *http; /* of the main thread */

    /* Only the thread of the jobs uses these. */

    struct serve_resident resident; /* the model, then the base if it is one */
    struct cli_swaps swaps;         /* in the model */
    struct serve_perplexity_state state;

    /* Under the lock: copies for other threads. */

    pthread_mutex_t lock;
    char *model_text; /* JSON: the object `model` of documents; NULL: not open */
    char *base_text;  /* the same of the base; NULL: there is none, or it is not open */
    struct serve_perplexity_state at; /* without its settings */

    /* For requests that are answered beside the jobs; what never changes of the model. */

    pthread_rwlock_t holding;
    const struct model *model; /* NULL: not open, or closed */
    time_t opened;

    atomic_ullong n_replies[SERVE_CODES]; /* by code */
    atomic_ullong n_swaps;
};

/* files.c: files that requests name. */

/**
 * The folders of the models and those of --files-from, without links.
 * Fails: STATUS_USAGE (a path of --files-from is not a folder), STATUS_MEMORY.
 */
enum status serve_find_folders(struct cli_list *folders, const struct serve_settings *settings,
                               struct status_why *why);
/**
 * Where a file is that a request names, without links; freed by the caller. It lies under one of
 * the folders, also where a link leads there, and so do the other parts of a model in several
 * files. Nothing is opened. Fails: STATUS_USAGE, with one sentence, whether a file is elsewhere or
 * nowhere.
 */
enum status serve_find_file(char **out, const struct cli_list *folders, const char *path,
                            struct status_why *why);

/* body.c: requests' bodies. */

/**
 * Parse a body. Fails: STATUS_FORMAT (no UTF-8, no JSON object and nothing else, U+0000, a member
 * given twice, also in objects within), STATUS_MEMORY, STATUS_UNSUPPORTED.
 */
enum status serve_body_parse(cJSON **out, const char *bytes, size_t n, struct status_why *why);
/** A reader of a body's members: failures are STATUS_USAGE. */
struct base_json_reader serve_body_reader(cJSON *body);
/**
 * The body of a request, {} where there is none; NULL: refused, the reply says why.
 * *n_taken: of the budget, for the body and for what it becomes; the caller gives it back.
 */
cJSON *serve_body_read(size_t *n_taken, const struct serve_http_request *request,
                       struct serve_http_reply *reply);
/** Take more of the budget. false: refused, the reply says why. */
bool serve_body_take(size_t *n_taken, size_t n_bytes, const struct serve_http_request *request,
                     struct serve_http_reply *reply);
/** Check that it has no other members than these words. */
void serve_body_only(struct base_field object, const char *members);
/** Lines of a text, the last one without an end counted. */
size_t serve_n_lines(const char *text);
/** Append the token ids of a list; what is wrong with it, its reader keeps. */
void serve_body_ids(struct model_tokens *out, struct base_field list);

/* reply.c: replies. A text that is given is JSON, and is copied. */

void serve_reply_text(struct serve_http_reply *reply, unsigned code, const char *text);
/** Ends the document. */
void serve_reply_json(struct serve_http_reply *reply, unsigned code, struct base_json *json);
void serve_reply_error(struct serve_http_reply *reply, unsigned code, const char *type,
                       const char *message);
/** The code of a status and its sentence. */
void serve_reply_failure(struct serve_http_reply *reply, enum status status,
                         const struct status_why *why);
/** 503, because the queue takes nothing: loading, full, ending. */
void serve_reply_busy(struct serve *serve, struct serve_http_reply *reply);
/** What it may take is not there: 413, or 429 where others have it. */
void serve_reply_no_room(struct serve_http_reply *reply, const struct serve_http_request *request,
                         size_t n_bytes);
/** What came of a job that has ended. */
void serve_reply_job(struct serve_http_reply *reply, const struct serve_job *job);
/** The members `error` and, if there is one, `result`, of a job that failed. */
void serve_add_failure(struct base_json *json, const struct serve_job *job);

/* access.c: who may ask. */

/** Whether the request may do everything: its key is right, or none is asked for. */
bool serve_has_key(const struct serve *serve, const struct serve_http_request *request);
/**
 * Without a key, pages that a browser on this machine shows must not get in: neither by an address
 * of ours nor by a name of theirs that stands for it. A browser says in Sec-Fetch-Site who asks.
 */
bool serve_is_from_a_page(const struct serve *serve, const struct serve_http_request *request);

/* routes.c: the list of what is answered. For struct serve_http_options; user: a serve. */

bool serve_refuse(void *serve, const struct serve_http_request *request,
                  struct serve_http_reply *reply);
void serve_answer(void *serve, const struct serve_http_request *request,
                  struct serve_http_reply *reply);

/* watch.c: how a job is waited for. */

enum serve_waiting { SERVE_WAIT, SERVE_WATCH, SERVE_LEAVE };
/** `wait` and `stream` of a body. */
enum serve_waiting serve_waiting_read(struct base_field body);
/** A request whose body becomes the input of a job. */
struct serve_post {
    struct serve_job_kind job; /* free_input also takes an input that is filled in part */
    size_t input_bytes;
    /** From a body into zeros. The body's reader keeps failures. */
    void (*fill)(void *input, const struct serve *serve, struct base_field body);
    bool waits; /* the body may have `wait` and `stream` */
    /** Memory that the job takes beyond what the body took, reckoned. NULL: nothing to speak of. */
    size_t (*n_bytes)(const void *input);
};
/** The input for a body, released with free_input. Fails: STATUS_MEMORY, as `fill`. */
enum status serve_post_parse(void **out, const struct serve_post *post, const struct serve *serve,
                             struct base_field body, struct status_why *why);
/**
 * Read the body, queue the job and reply: when it has ended (a client that goes away cancels it),
 * with its events, or at once.
 */
void serve_post(struct serve *serve, const struct serve_http_request *request,
                struct serve_http_reply *reply, const struct serve_post *post);

/* perplexity.c, on the thread of the jobs */

/** That the state, if it has any windows, is of the model as it is. Fails: STATUS_CHANGED. */
enum status serve_perplexity_check(const struct serve *serve, struct status_why *why);
/** Add the windows of the document job->result to the state, which becomes the result with it. */
enum status serve_perplexity_add(struct serve *serve, struct serve_job *job,
                                 struct status_why *why);

/** Evaluate what is laid out, with the resident model, on the thread of the jobs. completions.c */
enum status serve_score(struct serve *serve, struct serve_job *job,
                        struct eval_request_scores *scores, struct status_why *why);

/* reload.c */

/** Take what changed on the disk; job->result: what that is. */
extern const struct serve_job_kind serve_reloading;

/* about.c */

/**
 * The model, whose tokenizer and hyper-parameters may be read until it is let go of. NULL: it is
 * not open any more, and the reply says so.
 */
const struct model *serve_hold_model(struct serve *serve, struct serve_http_reply *reply);
void serve_let_go_of_model(struct serve *serve);

/* show.c: what the other threads see of model and base. On the thread of the jobs. */

/** A model is another one now. */
void serve_show_models(struct serve *serve);
struct cli_base;
/** The base is this one. */
void serve_show_base(struct serve *serve, const struct cli_base *base);

/* The requests, each in a file named for it. */

typedef void serve_handler(struct serve *serve, const struct serve_http_request *request,
                           struct serve_http_reply *reply);
serve_handler serve_get_health, serve_get_metrics, serve_get_jobs, serve_get_job, serve_get_events,
    serve_delete_job, serve_get_state, serve_get_models, serve_get_tokenizer_info,
    serve_post_tokenize, serve_post_detokenize;
extern const struct serve_post serve_swapping, serve_evaluating, serve_completing, serve_scoring,
    serve_templating, serve_adding, serve_saving, serve_loading, serve_resetting;

#endif

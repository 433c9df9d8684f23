/**
 * Documents: texts that no window spans beyond. A document is a file, or a JSON object of one with
 * "text", a conversation or token ids. Their tokens lie side by side in one stream, so that
 * windows, targets and bytes are looked up as those of a single text. docs/protocols.md has the
 * procedure.
 */
#ifndef EVAL_INPUT_DOCUMENTS_H
#define EVAL_INPUT_DOCUMENTS_H

#include <cjson/cJSON.h>

#include "base/text/strtab.h"
#include "eval/input/stream.h"
#include "eval/input/window.h"
#include "model/chat/markers.h"

/** How texts become tokens; everything is borrowed. */
struct eval_document_rules {
    const struct model_tokenizer *tokenizer;
    bool parse_special;               /* recognise control tokens in texts */
    struct base_string chat_template; /* of conversations; .data NULL: the model's own */
    enum model_chat_mask mask;        /* which of their tokens are scored */
    bool skip_refused; /* leave out conversations that the template refuses; else they are a failure
                        */
    double chat_seconds; /* of processor time for the conversations of a file; 0: no limit */
};

enum { EVAL_REFUSED_NAMED = 10 };
/** Conversations that the template refuses, or of which it cannot be told what is whose. */
struct eval_refused {
    size_t n, n_of_file;              /* of all files, of the last one */
    size_t lines[EVAL_REFUSED_NAMED]; /* the first of that file */
    struct status_why why;            /* of the first of that file */
};

/** A file that documents come from. */
struct eval_document_file {
    char sha256[BASE_HEX];      /* of its bytes, as read */
    size_t n_bytes;             /* likewise */
    const char *converted_from; /* as struct base_text has it */
    size_t first, n;            /* its documents */
    bool is_page;               /* its bytes are a page of the web */
    size_t n_crlf;              /* line ends of their texts that are CR and LF */
    size_t n_marks;             /* of them, those that begin with a byte-order mark */
};

enum { EVAL_NO_CATEGORY = -1 };

struct eval_document {
    size_t file;      /* index in files */
    size_t line;      /* of that file, in which it begins, from 1; 0: all of it */
    char *id;         /* that the line has; NULL: none */
    int32_t category; /* index in categories, or EVAL_NO_CATEGORY */
    size_t first;     /* in the stream: its first token, BOS included where it has one */
    size_t n_tokens;
    size_t n_scored; /* tokens that are targets; may be 0 */
};

/** Zero-initialise but for `rules`; release with eval_documents_free. */
struct eval_documents {
    const struct eval_document_rules *rules; /* borrowed */
    struct eval_document *items;             /* [n], in the order in which they were added */
    size_t n;
    struct eval_document_file *files; /* [n_files] */
    char **paths;                     /* [n_files] their names, as they were given */
    size_t n_files;
    struct base_strtab categories; /* their names, owned; in the order in which they were met */
    struct eval_stream stream;     /* all tokens; has_bos: some document begins with one put there.
                                      sha256 is made by eval_documents_end */
    uint8_t *scored;               /* [stream.n]: whether a token is a target; never a first one */
    size_t n_scored;               /* of all of them */
    struct model_chat *chat;       /* opened for the first conversation */
    size_t n_conversations;        /* without those that are refused */
    struct eval_refused refused;
    char odd_role[40]; /* the first that templates do not know, of "messages"; "": there is none */
    size_t odd_line;   /* the line of its conversation */
    double chat_seconds;               /* that those of the last file took */
    enum model_chat_mask mask;         /* of them */
    char template_sha256[BASE_HEX];    /* of their template; "": none was used */
    struct model_chat_markers markers; /* in what it wrote */
    char sha256[BASE_HEX]; /* of lengths, categories and scored tokens, by eval_documents_end */
    char text_sha256[BASE_HEX]; /* of the digits of all files, one after the other; likewise */
    size_t capacity, file_capacity, path_capacity, id_capacity, byte_capacity, scored_capacity;
};

/** What is known of a document before its tokens. id: copied; category: copied, "": it has none. */
struct eval_document_head {
    size_t line;
    struct base_string id, category; /* .data NULL: none */
};

/** Tokens of a document, borrowed. */
struct eval_document_tokens {
    const int32_t *ids; /* BOS included, where it has one */
    size_t n;
    const uint32_t *n_text_bytes; /* that each stands for; NULL: none of them for any */
    const uint8_t *scored;        /* [n], 0 or 1; NULL: all. The first one never is */
};

/** "3, 7 and 9", the lines of conversations of the last file that are refused; beyond the first ten
 * their number. */
void eval_refused_lines(char *out, size_t capacity, const struct eval_refused *refused);

/** Documents that are added from now on are this file's. Fails: STATUS_MEMORY. */
enum status eval_documents_begin_file(struct eval_documents *d, const char *path,
                                      const struct base_text *text, struct status_why *why);

/** Add a document to the last file. Fails: STATUS_MEMORY, STATUS_UNSUPPORTED (too many). */
enum status eval_documents_add(struct eval_documents *d, const struct eval_document_head *head,
                               const struct eval_document_tokens *tokens, struct status_why *why);

/**
 * The same with a text, which may be empty: its tokens, BOS in front where the vocabulary asks for
 * it. Fails: also as model_tokenize.
 */
enum status eval_documents_add_text(struct eval_documents *d, const struct eval_document_head *head,
                                    struct base_string text, struct status_why *why);

/** Add a conversation: a JSON object with "messages", which was parsed from `bytes`.
 * docs/chats.md has the procedure.
 * One that is refused is counted, and not added: eval_documents_add_objects fails of all at once.
 * Fails: also STATUS_FORMAT (no template), STATUS_UNSUPPORTED (those of the file take longer than
 * chat_seconds), as model_chat_open and, but for a refusal, model_chat_render. */
enum status eval_documents_add_chat(struct eval_documents *d, const struct eval_document_head *head,
                                    const cJSON *object, struct base_string bytes,
                                    struct status_why *why);

/**
 * The same with two texts, the second after the first, of which the rules' mask scores one
 * (MODEL_CHAT_ASSISTANT: the second). No template is used; it counts as a conversation.
 */
enum status eval_documents_add_prompt(struct eval_documents *d,
                                      const struct eval_document_head *head,
                                      struct base_string prompt, struct base_string completion,
                                      struct status_why *why);

/** Add a list of "ids" with, where it is not NULL, one of 0 and 1, whether each of them is scored.
 * Fails: also STATUS_FORMAT (not such lists, an id beyond the vocabulary). */
enum status eval_documents_add_ids(struct eval_documents *d, const struct eval_document_head *head,
                                   const cJSON *ids, const cJSON *mask, struct status_why *why);

/** What a text is, by the object that it begins with, alone or in a list. */
enum eval_json {
    EVAL_JSON_NONE,     /* there is no whole object */
    EVAL_JSON_OTHER,    /* with none of the members that documents have */
    EVAL_JSON_DOCUMENTS /* with what one of the forms of docs/chats.md begins with */
};
/** Fails: as base_json_first_object. */
enum status eval_documents_recognise(enum eval_json *kind, const char *bytes, size_t n_bytes,
                                     struct status_why *why);

/**
 * Add each JSON object of a file, JSON lines or a list or any others (base/json/lines.h): one with
 * "text", "messages" or "ids", or of another form of docs/chats.md, and, if it likes, "category"
 * (a text) and "id" (a text or a number); other members are passed over, or a conversation's. The
 * bytes are written to.
 * Fails: STATUS_FORMAT (the sentence begins with the file and names the line), as the functions
 *        above.
 */
enum status eval_documents_add_objects(struct eval_documents *d, char *bytes, size_t n_bytes,
                                       struct status_why *why);

/** All are there. Fails: STATUS_FORMAT (none, or no token is scored), STATUS_MEMORY. */
enum status eval_documents_end(struct eval_documents *d, struct status_why *why);

/** A zero-initialised object is allowed. */
void eval_documents_free(struct eval_documents *d);

/**
 * Lay windows over documents (EVAL_PROTOCOL_DOCUMENTS). A document of up to n_ctx tokens is one
 * window; a longer one has windows of n_ctx tokens that begin n_ctx / 2 tokens apart, of which the
 * last may be shorter; or, options->apart, n_ctx. Each scored token is scored once, in the first
 * window that has it, or that has the token before it where windows are apart. A window ends with
 * its last position that scores a token, and one that has none is left out; neither if
 * options->whole. BOS takes the place of the first token of a window that does not begin a
 * document. plan: released with eval_plan_free. Fails: STATUS_USAGE (as eval_plan_make),
 * STATUS_MEMORY.
 */
enum status eval_plan_make_documents(struct eval_plan *plan,
                                     const struct eval_plan_options *options,
                                     const struct eval_documents *d, struct status_why *why);

#endif

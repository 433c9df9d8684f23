/**
 * How fast files are: the rows of llama-bench's that are of them.
 *
 * A row is of a file if the file's name, without folders, and the sizes are the same: bytes of the
 * tensors and number of weights; and if its cache is of the types that the model was evaluated
 * with: f16 is also that of one that was not rounded. ik_llama.cpp's counts a head that is also the
 * embedding twice, which is allowed for.
 */
#ifndef DOCUMENTS_RESULTS_SPEEDS_H
#define DOCUMENTS_RESULTS_SPEEDS_H

#include "clients/documents/results/scoreboard.h"

/** What a file is recognised by. */
struct doc_measured {
    const char *file; /* its name, without folders */
    uint64_t n_bytes, n_weights;
    const char *k, *v;  /* the types of its cache; NULL: it was not rounded */
    bool other_experts; /* not as many as the file says: no row is of it */
};

struct doc_speed_row;

/** Zero-initialise; release with doc_speeds_close. Must not outlive the documents. */
struct doc_speeds {
    struct doc_speed_row *rows;
    size_t n, capacity;
    const struct doc_speed_row *shown[DOC_N_SPEEDS]; /* the first that was taken of each kind */
    struct doc_measured other_size;                  /* a file of which a row has other sizes */
    bool repeated;                                   /* a file was measured again */
    bool refuses_several;  /* of configurations of one file: the caller's */
    char differences[320]; /* of the configurations of what was taken; "": there are none */
    char several[320];     /* of those of a file, what was taken first; "": each has one */
};

/**
 * Check all rows of the documents of DOC_BENCH among n.
 * Fails: STATUS_FORMAT (a member that is missing, of another type, or no speed), STATUS_MEMORY.
 */
enum status doc_speeds_open(struct doc_speeds *speeds, struct doc_document *documents, size_t n,
                            struct status_why *why);
void doc_speeds_close(struct doc_speeds *speeds);

/**
 * The speeds of a file, in tokens per second, with the standard deviation of the repetitions (NaN:
 * there was one). Of rows that differ in the build or in the time alone the last one counts; of
 * several configurations the one that most rows have, then that of the least depth, then that of
 * llama-bench's own number of tokens or the smallest.
 * Fails: STATUS_USAGE (several configurations that are refused: it says what differs).
 */
enum status doc_speeds_of(struct doc_speeds *speeds, struct doc_metric_value out[DOC_N_SPEEDS],
                          const struct doc_measured *file, struct status_why *why);

/** What was measured, and how the rows of both kinds differ: "pp512 and tg128 of llama-bench, AMD
 * EPYC, CPU, 8 threads". */
void doc_speeds_about(const struct doc_speeds *speeds, char out[DOC_SPEEDS_TEXT]);

enum { DOC_MOST_SPEED_NOTES = 8 };
/** Say which rows were taken and which were left out: sentences, [DOC_MOST_SPEED_NOTES] at most,
 * after the first *n. */
void doc_speeds_note(const struct doc_speeds *speeds, struct status_why *notes, size_t *n);

/** Note that rows of models of a board are left out because they are of choice tasks. */
void doc_speeds_pass(struct doc_speeds *speeds, const struct doc_scoreboard *of_tasks);
/** Give the runs of a board their speeds. Fails: as doc_speeds_of. */
enum status doc_speeds_put(struct doc_speeds *speeds, struct doc_scoreboard *board,
                           struct status_why *why);

#endif

/** Models that are compared with each other by one figure, the best one first. */
#ifndef DOCUMENTS_REPORT_WORDS_RANKING_H
#define DOCUMENTS_REPORT_WORDS_RANKING_H

#include "clients/documents/report/report.h"

enum { DOC_MOST_JUDGED = 40 /* each is a paired test */ };

/** Whether a model is as good as the best one. */
enum doc_found { DOC_BEST, DOC_EQUAL, DOC_WORSE, DOC_UNTESTED };

/** Zero-initialise; set report and board. A smaller value is better. */
struct doc_ranking {
    struct doc_report *report;
    const struct doc_scoreboard *board;
    const struct doc_scoreboard_run *runs[DOC_MOST_JUDGED];
    double values[DOC_MOST_JUDGED];
    enum doc_found found[DOC_MOST_JUDGED];
    size_t n, n_left_out;
    size_t metric;         /* of texts */
    struct status_why why; /* of the first that could not be tested */
};

/**
 * Rank those of texts that are comparable with `head` by DOC_METRIC_KLD or DOC_METRIC_PPL, and test
 * each against the best one. False: there is none but bases, or divergences judge them.
 */
bool doc_rank_texts(struct doc_ranking *ranking, const struct doc_scoreboard_run *head,
                    size_t metric);
/**
 * The same of choice tasks: of the runs from `first` on that are of its kind; values are what is
 * right of a hundred, negative. Returns how many runs those are; n: 0 where none has a score.
 */
size_t doc_rank_tasks(struct doc_ranking *ranking, size_t first);

size_t doc_ranking_count(const struct doc_ranking *ranking, enum doc_found found);

/** The best other model that is no larger than the i-th one and no worse; NULL: its size gains
 * something.
 */
const struct doc_scoreboard_run *doc_ranking_instead_of(const struct doc_ranking *ranking,
                                                        size_t i);

/** verdict.c: a list of what the tests say of each model, and which perplexities are the base's. */
void doc_put_verdict(const struct doc_ranking *ranking, const char *base);

/** verdict.c: "+5.5 %", of a share; never with an exponent. */
void doc_put_percent(struct base_file *file, double share);

/** verdict.c: write "A, B and C": the models of which `found` is so, but for the best one. */
void doc_put_found(const struct doc_ranking *ranking, enum doc_found found);

#endif

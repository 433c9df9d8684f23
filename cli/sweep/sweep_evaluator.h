/** A run of assay sweep from end to end: what the parts of the command share. */
#ifndef CLI_SWEEP_SWEEP_EVALUATOR_H
#define CLI_SWEEP_SWEEP_EVALUATOR_H

#include "cli/evaluate.h"
#include "cli/input/windows.h"
#include "cli/sweep/groups.h"
#include "eval/streams.h"
#include "eval/units.h"

enum cli_sweep_sort { CLI_SWEEP_AS_IN_MODEL, CLI_SWEEP_BY_KLD };

struct cli_sweep_settings {
    const char *base, *around;           /* around NULL: the base */
    struct cli_list from, types, groups; /* types: to be made, which joins `from` */
    const char *quantizer, *keep;
    size_t unmade; /* so many of `from` are the base, in place of models that are not made yet */
    int by;
    int sort; /* enum cli_sweep_sort: of the printed lines */
    struct cli_text_settings text;
    struct cli_window_settings windows;
    const char *tsv_file, *heatmap_file;
    struct cli_evaluate_settings evaluate;
};

struct cli_sweep {
    struct cli_evaluation e;
    const struct cli_sweep_settings *settings;
    struct cli_model base, around; /* around.model NULL: the base */
    struct cli_model *candidates;  /* [settings->from.n] */
    size_t n_candidates;
    const struct model *swapped; /* in which tensors are swapped: the base, or around */
    struct cli_windows windows;  /* without tables */
    struct cli_sweep_groups groups;
    struct cli_sweep_names *names;
    /* In the order of their evaluation; the reference, if there is one, first. */
    struct eval_variant *variants;
    double *costs;
    size_t n_variants;
    size_t *variant_of;       /* [groups.n_choices]: of the same bytes it is the same one */
    size_t *together;         /* [n_candidates]: all choices of it at once; SIZE_MAX: just one */
    struct eval_swap **swaps; /* [n_candidates]: of these */
    const struct gguf_file **files;
    struct eval_variants all;
    struct eval_stream_source streams; /* of these */
    struct eval_trials trials;
};

/** What stands in the way of taking a choice's figure for what the tensors do. */
enum cli_sweep_doubt {
    CLI_SWEEP_CLEAR,
    CLI_SWEEP_BELOW_ERROR,    /* less than twice its paired standard error */
    CLI_SWEEP_BELOW_ROUNDING, /* so small that float32 arithmetic may have made it */
    CLI_SWEEP_NO_VERSION,     /* a tensor is no version of the base's */
    CLI_SWEEP_NONFINITE
};

/** The figures of a choice. */
struct cli_sweep_figures {
    bool known; /* it has been evaluated, on so many windows: */
    size_t n_windows;
    struct eval_kld_figures kld;
    struct base_estimate excess; /* KLD less that of the model around: of what was swapped */
    double per_bit; /* excess for each bit per weight of the whole model that is saved; NaN: none */
    enum cli_sweep_doubt doubt;
};
struct cli_sweep_figures cli_sweep_figures(const struct cli_sweep *s, size_t choice);

/** All choices of a candidate at once, beside the sum of what they cost one at a time. */
struct cli_sweep_together {
    size_t n_choices;
    double sum;
    struct cli_sweep_figures figures; /* .known: false also where one choice is all there is */
};
struct cli_sweep_together cli_sweep_together(const struct cli_sweep *s, size_t candidate);

/** The figures of the model around, against the base; all 0 but the NLL if it is the base. */
struct cli_sweep_figures cli_sweep_reference(const struct cli_sweep *s);

/** Windows that all choices have been evaluated on; 0 while there is none. */
size_t cli_sweep_whole_windows(const struct cli_sweep *s);

extern const char *const cli_sweep_doubts[];       /* by enum cli_sweep_doubt; NULL: clear */
extern const struct cli_lines cli_sweep_lines;     /* sweep_text.c */
extern const struct cli_members cli_sweep_members; /* sweep_json.c */
/** Find the choices that have a tensor which is no version of the base's, and say so in a remark.
 */
enum status cli_sweep_find_odd(struct cli_sweep *s, struct status_why *why); /* versions.c */
/* Files, as struct cli_output has it: sweep_json.c, heatmap.c. */
enum status cli_sweep_write_tsv(const void *self, struct base_file *file, struct status_why *why);
enum status cli_sweep_write_heatmap(const void *self, struct base_file *file,
                                    struct status_why *why);

/** The whole of assay sweep with these settings. */
enum status cli_sweep_run(const struct cli_sweep_settings *settings, struct status_why *why);

#endif

/**
 * What enters the layers of the models that go in step. Without a source the embedding enters the
 * first layer, and what leaves the last one is scored. A source knows more: streams that entered a
 * layer in an earlier pass, tensors that are swapped for a batch, layers that are computed
 * elsewhere. eval/streams/ has three kinds of source.
 */
#ifndef EVAL_SCORER_STREAMS_H
#define EVAL_SCORER_STREAMS_H

#include "kernels/types.h"
#include "model/forward/forward.h"
#include "model/split.h"

struct eval_scorer_options;
struct eval_streams;

/** A pass of one model over a batch. */
struct eval_pass {
    const struct model *model;
    struct kern_backend *backend;
    const struct model_batch *batch;
    float *x;     /* backend: [n_tokens, S * D], the residual stream */
    size_t layer; /* that x enters */
    bool is_idle; /* its scores are not wanted: neither layers nor head are computed, they are 0 */
};

/** The functions of a kind of streams. passes: of the scorer's model, then of its candidates. */
struct eval_streams_kind {
    /**
     * From now on the models are this variant (eval_unit_kind.variant). NULL: there is one only.
     * Fails: as the kind says.
     */
    enum status (*select)(struct eval_streams *streams, size_t variant, struct status_why *why);
    /**
     * Begin passes, whose layers are 0. Where something is known of a stream, set x and the layer,
     * which is above 0, that it enters. The embedding enters the others. A pass that others are
     * compared with cannot be idle.
     */
    enum status (*enter)(struct eval_streams *streams, struct eval_pass *passes, size_t n_passes,
                         struct status_why *why);
    /** The layer after pass->layer at which `reach` is called next, at most. NULL: the last one. */
    size_t (*next)(const struct eval_streams *streams, const struct eval_pass *passes, size_t i);
    /** Pass i has reached its layer. Called in the order of the passes. */
    enum status (*reach)(struct eval_streams *streams, const struct eval_pass *passes,
                         size_t n_passes, size_t i, struct status_why *why);
    void (*close)(struct eval_streams *streams);
};

/** The streams of one scorer: what a kind's own struct begins with. */
struct eval_streams {
    const struct eval_streams_kind *kind;
    const struct model *const *candidates; /* that take the place of the run's; NULL: none does */
};

/** Where the streams of a run's scorers come from; each scorer opens its own. */
struct eval_stream_source {
    void *user;
    const struct gguf_file *const *files; /* [n_files]: others than the models' that it uses */
    size_t n_files;
    /** The layers of a model that are evaluated here. NULL: all. Fails: as model_split. */
    enum status (*layers)(void *user, const struct model *m, struct model_layer_range *out,
                          struct status_why *why);
    /** NULL: they come without streams. The kind's close releases them. */
    enum status (*open)(void *user, struct kern_backend *backend, struct eval_streams **out,
                        struct status_why *why);
    /** Bytes of a scorer with such streams, and of the streams. NULL: as eval_scorer_bytes. */
    double (*scorer_bytes)(void *user, const struct model *model, struct kern_backend *backend,
                           const struct eval_scorer_options *options);
    /** Bytes that all of them share, with batches of so many tokens. NULL: none. */
    double (*bytes)(void *user, size_t n_tokens);
};

/** As source->layers; source NULL: all. */
enum status eval_stream_layers(const struct eval_stream_source *source, const struct model *m,
                               struct model_layer_range *out, struct status_why *why);

/** Whether the last layer's rows come to be here. A split that cannot be counts as whole. */
bool eval_stream_scores(const struct eval_stream_source *source, const struct model *m);

#endif

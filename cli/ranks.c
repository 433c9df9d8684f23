#include "cli/ranks.h"

#include "cli/inspect/version.h"
#include "cli/session/cluster.h"
#include "eval/cluster/pipeline.h"
#include "eval/cluster/remote.h"
#include "kernels/backend.h"

enum status cli_ranks_settings(char **out, const struct cli_evaluation *e, bool with_split,
                               struct status_why *why)
{
    struct base_json json;
    struct cli_versions versions;
    cli_versions_read(&versions);
    base_json_begin(&json);
    base_json_text(&json, json.root, "evaluator", e->name);
    base_json_text(&json, json.root, "assay", versions.assay);
    e->kind->members->description(e, &json, true);
    if (with_split)
        base_json_uint(&json, json.root, "split", cli_cluster()->n_shares);
    enum status status = base_json_text_of(&json, out, why);
    base_json_free(&json);
    return status;
}

enum status cli_ranks_divide(struct cli_evaluation *e, struct status_why *why)
{
    const struct cli_cluster *cluster = cli_cluster();
    e->models.n_ranks = cluster->n_ranks;
    e->models.share = (struct eval_share){.i = eval_pipe_share(cluster->rank, cluster->n_shares),
                                          .n = cluster->n_shares};
    if (e->models.variants && eval_share_splits(&e->models.share))
        return status_fail(why, STATUS_USAGE,
                           "--split: assay %s changes tensors between batches, and every process "
                           "needs the whole models; expected it without --split",
                           e->name);
    return STATUS_OK;
}

enum status cli_ranks_agree(const struct cli_evaluation *e, struct status_why *why)
{
    char *settings;
    enum status status = cli_ranks_settings(&settings, e, true, why);
    if (!status)
        status =
            eval_team_agree(&cli_cluster()->team, settings, e->models.backends[0]->cancel, why);
    cJSON_free(settings);
    return status;
}

enum status cli_ranks_serve(struct cli_evaluation *e, struct status_why *why)
{
    struct eval_team *team = &cli_cluster()->team;
    char *settings = NULL;
    enum status status = cli_evaluation_open(e, why);
    if (!status)
        status = cli_ranks_settings(&settings, e, true, why);
    enum status told = eval_team_ready(team, status, settings, why);
    if (!status && !told)
        told = eval_serve(e->units, &e->models, &team->links[0], why);
    cJSON_free(settings);
    return told;
}

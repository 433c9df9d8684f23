#include "cli/ranks.h"

#include "cli/host.h"
#include "cli/session/cluster.h"
#include "clients/cluster/remote.h"
#include "kernels/kernels.h"

/** Whether the layers can be divided as is wanted. */
static enum status check(const struct cli_evaluation *e, struct status_why *why)
{
    if (!e->models.streams || cli_cluster()->n_shares == 1)
        return STATUS_OK;
    return status_fail(why, STATUS_USAGE,
                       "--split: assay %s changes tensors between batches, and every process "
                       "needs the whole models; expected it without --split",
                       e->name);
}

enum status cli_ranks_ready(struct cli_evaluation *e, struct status_why *why)
{
    struct cli_cluster *cluster = cli_cluster();
    char *settings = NULL;
    enum status status = check(e, why);
    if (!status)
        status = cli_evaluation_identify(&settings, e, cluster->n_shares, why);
    if (!status)
        status = cluster_team_agree(&cluster->team, settings, e->models.backends[0]->cancel, why);
    cJSON_free(settings);
    if (!status)
        cluster_rank_crew_join(&cluster->ranks, &cluster->team, cluster->n_shares, &e->models);
    return status;
}

void cli_ranks_end(enum status status)
{
    if (cli_cluster()->n_ranks > 1)
        cluster_team_end(&cli_cluster()->team, status);
}

/** A rank is told what to do, and shows nothing. */
static enum status ready(struct cli_host *host, struct cli_evaluation *e, struct status_why *why)
{
    (void)host;
    return check(e, why);
}

enum status cli_ranks_serve(struct cli_evaluation *e, struct status_why *why)
{
    struct cli_host host = {.ready = ready};
    struct cluster_team *team = &cli_cluster()->team;
    char *settings = NULL;
    e->host = &host;
    enum status status = cli_model_check(&e->settings->load, why);
    if (!status)
        status = cli_evaluation_open(e, why);
    if (!status)
        status = cli_evaluation_identify(&settings, e, cli_cluster()->n_shares, why);
    enum status told = cluster_team_ready(team, status, settings, why);
    if (!status && !told)
        told = cluster_serve(e->units, &e->models, &team->links[0], why);
    cJSON_free(settings);
    cli_evaluation_close(e);
    return told;
}

/* Whom an evaluation runs for: its settings say so. */
#include "cli/command_line.h"
#include "cli/evaluate.h"
#include "cli/plan/plan.h"
#include "cli/ranks.h"
#include "cli/session/cluster.h"
#include "cli/watch/watch.h"

enum status cli_evaluate(struct cli_evaluation *e, struct status_why *why)
{
    struct cli_host *given = e->settings->host, own = cli_command_line;
    struct cli_plan plan;
    if (!given && e->settings->dry_run) {
        cli_plan_make(&plan, &cli_plan_defaults);
        given = &plan.host;
    }
    if (given)
        return given->evaluate(given, e, why);
    enum status status = cli_cluster_join(&e->settings->machine, why);
    if (status && cli_cluster()->n_ranks > 1)
        status_context(why, "rank %zu", cli_cluster()->rank);
    if (status) {
        cli_evaluation_close(e);
        return status;
    }
    if (e->settings->watch.wanted)
        return cli_watch(e, why);
    return cli_cluster()->rank ? cli_ranks_serve(e, why) : own.evaluate(&own, e, why);
}

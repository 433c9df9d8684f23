#include "clients/cluster/team.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "eval/run.h"

/** Compare the settings of one rank with those of rank 0. */
static enum status agree(struct cluster_link *link, const char *settings, struct status_why *why)
{
    struct cluster_message message;
    enum status status = cluster_link_receive(link, &message, why);
    if (status)
        return link->lost
                   ? status_fail(why, status, "%s died while it opened its files", link->name)
                   : status;
    if (message.kind != CLUSTER_MESSAGE_READY)
        return cluster_link_unexpected(link, &message, why);
    if (message.status)
        return cluster_link_failure(link, &message, why);
    char *theirs;
    struct eval_difference d = {0};
    status = cluster_link_read_text(link, &message, &theirs, why);
    bool same = !status && strcmp(theirs, settings) == 0;
    if (!status && !same)
        status = eval_difference_find(&d, theirs, settings, why);
    if (!status && !same)
        status = status_fail(why, STATUS_USAGE,
                             "%s has %s %s, rank 0 has %s; expected the same program, files and "
                             "options on all ranks",
                             link->name, *d.name ? d.name : "other settings", d.first, d.second);
    free(theirs);
    return status;
}

enum status cluster_team_agree(struct cluster_team *team, const char *settings,
                               const atomic_bool *cancel, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < team->n_links && !status; i++) {
        team->links[i].cancel[0] = cancel;
        status = agree(&team->links[i], settings, why);
    }
    return status;
}

enum status cluster_team_ready(struct cluster_team *team, enum status opened, const char *settings,
                               struct status_why *why)
{
    const char *text = opened ? why->text : settings;
    struct cluster_part part = {text, strlen(text)};
    enum status status =
        cluster_link_send(&team->links[0], CLUSTER_MESSAGE_READY, opened, &part, 1, NULL);
    if (status && cluster_link_has_ended(&team->links[0]))
        return STATUS_OK;
    if (status && opened)
        return opened;
    return status ? status_fail(why, status, "rank 0 died, which ends the run") : STATUS_OK;
}

void cluster_team_end(struct cluster_team *team, enum status status)
{
    static const atomic_bool at_once = true;
    for (size_t i = 0; i < team->n_links && !team->ended; i++) {
        struct cluster_link *link = &team->links[i];
        link->cancel[0] = &at_once; /* no waiting for a rank that reads nothing */
        if (link->fd >= 0)
            cluster_link_send(link, CLUSTER_MESSAGE_END, status, NULL, 0, NULL);
        link->cancel[0] = NULL;
    }
    team->ended = true;
}

void cluster_team_close(struct cluster_team *team)
{
    if (team->n_ranks && team->listener >= 0)
        close(team->listener);
    for (size_t i = 0; i < team->n_links; i++)
        cluster_link_close(&team->links[i]);
    free(team->links);
    *team = (struct cluster_team){.listener = -1};
}

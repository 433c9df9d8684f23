#include "eval/cluster/team.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "eval/run/difference.h"

/** Compare the settings of one rank with those of rank 0. */
static enum status agree(struct eval_link *link, const char *settings, struct status_why *why)
{
    struct eval_message message;
    enum status status = eval_link_receive(link, &message, why);
    if (status)
        return link->lost
                   ? status_fail(why, status, "%s died while it opened its files", link->name)
                   : status;
    if (message.kind != EVAL_MESSAGE_READY)
        return eval_link_unexpected(link, &message, why);
    if (message.status)
        return eval_link_failure(link, &message, why);
    char *theirs;
    struct eval_difference d = {0};
    status = eval_link_read_text(link, &message, &theirs, why);
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

enum status eval_team_agree(struct eval_team *team, const char *settings, const atomic_bool *cancel,
                            struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < team->n_links && !status; i++) {
        team->links[i].cancel[0] = cancel;
        status = agree(&team->links[i], settings, why);
    }
    return status;
}

enum status eval_team_ready(struct eval_team *team, enum status opened, const char *settings,
                            struct status_why *why)
{
    const char *text = opened ? why->text : settings;
    struct eval_part part = {text, strlen(text)};
    enum status status =
        eval_link_send(&team->links[0], EVAL_MESSAGE_READY, opened, &part, 1, NULL);
    if (status && eval_link_has_ended(&team->links[0]))
        return STATUS_OK;
    if (status && opened)
        return opened;
    return status ? status_fail(why, status, "rank 0 died, which ends the run") : STATUS_OK;
}

void eval_team_end(struct eval_team *team, enum status status)
{
    static const atomic_bool at_once = true;
    for (size_t i = 0; i < team->n_links && !team->ended; i++) {
        struct eval_link *link = &team->links[i];
        link->cancel[0] = &at_once; /* who reads nothing is not waited for */
        if (link->fd >= 0)
            eval_link_send(link, EVAL_MESSAGE_END, status, NULL, 0, NULL);
        link->cancel[0] = NULL;
    }
    team->ended = true;
}

void eval_team_close(struct eval_team *team)
{
    if (team->n_ranks && team->listener >= 0)
        close(team->listener);
    for (size_t i = 0; i < team->n_links; i++)
        eval_link_close(&team->links[i]);
    free(team->links);
    *team = (struct eval_team){.listener = -1};
}

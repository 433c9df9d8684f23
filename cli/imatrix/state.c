/* --state: the journal has the scores, a file beside it the sums of its first windows. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/digest.h"
#include "cli/imatrix/imatrix_command.h"
#include "cli/process/say.h"

/* Between two writings is at least so many times what one takes. */
static const double least_times = 20;

/** A journal and its sums belong to the same run. */
static enum status identify(struct cli_imatrix *im, struct status_why *why)
{
    char *settings = NULL;
    im->sums_id = malloc(BASE_HEX);
    if (!im->sums_id)
        return status_fail(why, STATUS_MEMORY, "no memory for an id");
    enum status status = cli_evaluation_identify(&settings, &im->e, 0, why);
    if (!status)
        status = base_sha256(im->sums_id, settings, strlen(settings), why);
    cJSON_free(settings);
    return status;
}

enum status cli_imatrix_load(void *self, struct status_why *why)
{
    struct cli_imatrix *im = self;
    struct status_why unusable = {""};
    if (!im->sums_file)
        return STATUS_OK;
    enum status status = identify(im, why);
    if (status)
        return status;
    status = imat_units_load(&im->units, im->sums_file, im->sums_id, &unusable);
    if (status == STATUS_FORMAT)
        cli_say("assay: note: %s; all windows are evaluated anew\n", unusable.text);
    else if (status)
        return status_fail(why, status, "%s", unusable.text);
    im->saved = base_clock_seconds();
    return STATUS_OK;
}

enum status cli_imatrix_check_loaded(void *self, struct status_why *why)
{
    struct cli_imatrix *im = self;
    struct imat_units *u = &im->units;
    if (!im->sums_file || im->e.units->n_finished >= u->n_merged)
        return STATUS_OK;
    cli_say("assay: note: %s has sums of %zu windows, the journal has %zu; all windows are "
            "evaluated anew\n",
            im->sums_file, u->n_merged, im->e.units->n_finished);
    imat_collector_clear(im->collector);
    imat_units_free(u);
    u->stop.n_half = 0;
    enum status status = cli_windows_make_tables(&im->windows, 0, why);
    if (!status)
        imat_units_begin(u, &im->windows.units);
    return status;
}

static enum status save(struct cli_imatrix *im, struct status_why *why)
{
    double began = base_clock_seconds();
    enum status status = eval_journal_sync(im->e.journal, why); /* it may not have less */
    if (!status)
        status = imat_units_save(&im->units, im->sums_file, im->sums_id, why);
    im->saved = base_clock_seconds();
    im->seconds_to_save = im->saved - began;
    return status;
}

/** Whether the sums are of windows that the journal has. */
static bool may_save(const struct cli_imatrix *im)
{
    return im->e.journal && im->units.n_merged <= eval_journal_n(im->e.journal);
}

void cli_imatrix_keep(void *self, size_t window)
{
    struct cli_imatrix *im = self;
    struct status_why failure = {""};
    if (!may_save(im) || window + 1 != im->units.n_merged ||
        base_clock_seconds() - im->saved < least_times * im->seconds_to_save)
        return;
    if (save(im, &failure))
        cli_say("assay: note: a run could go on from earlier windows only: %s\n", failure.text);
}

enum status cli_imatrix_keep_last(struct cli_imatrix *im, struct status_why *why)
{
    return may_save(im) ? save(im, why) : STATUS_OK;
}

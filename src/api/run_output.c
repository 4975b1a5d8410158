/* A run's output folder before anything in it is changed. */
#include "api/run_output.h"
#include "base/alloc.h"
#include "base/files.h"
#include "engine/shared_folder.h"

/* What the run writes for other programs may lie in the folder. */
static ls_status check(ls_training_run *run, ls_error *error)
{
    const ls_options *options = run->session.options;
    const char *paths[3];
    char *csv = NULL;
    ls_output_guests guests = {.paths = paths};
    if (options->csv) LS_TRY(ls_path_join(&csv, options->csv, options->job_name, error));
    if (csv) paths[guests.count++] = csv;
    if (options->tensorboard) paths[guests.count++] = options->tensorboard;
    if (options->prometheus) paths[guests.count++] = options->prometheus;
    ls_status status =
        ls_output_check(options->output, options->model, &guests, &run->made_output, error);
    ls_free(csv);
    return status;
}

/* The first process makes it and holds its lock for all; all must see it. */
ls_status ls_training_run_take_output(ls_training_run *run, ls_error *error)
{
    const ls_options *options = run->session.options;
    if (!options->output) return LS_OK;
    ls_status status = LS_OK;
    if (ls_session_is_first(&run->session)) {
        status = check(run, error);
        if (status == LS_OK)
            status = ls_folder_lock_take(&run->output_lock, options->output, error);
    }
    LS_TRY(ls_session_agree(&run->session, status, "the check of the output folder", error));
    return ls_shared_folder_check(run->session.processes, options->output, error);
}

/* What single settings cannot say of themselves: forms of their own, and what goes together. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/settings.h"
#include "api/settings_table.h"
#include "api/strategy.h"

enum { MOST_DEVICES = 64 };

ls_status ls_profile_steps_parse(const char *text, int64_t *first, int64_t *last, ls_error *error)
{
    char *end = NULL;
    errno = 0;
    *first = *last = strtoll(text, &end, 10);
    bool good = text[0] >= '0' && text[0] <= '9';
    if (good && *end == ':') {
        good = end[1] >= '0' && end[1] <= '9';
        if (good) *last = strtoll(end + 1, &end, 10);
    }
    if (good && !*end && errno == 0 && *first >= 1 && *first <= *last) return LS_OK;
    return ls_fail(error, LS_USAGE,
                   "--profile-steps: '%s' is not FIRST:LAST, two steps counted from 1, as in 10:15",
                   text);
}

static ls_status check_monitoring(const ls_options *options, ls_error *error)
{
    int64_t first, last;
    LS_TRY(ls_profile_steps_parse(options->profile_steps, &first, &last, error));
    if (!strchr(options->job_name, '/')) return LS_OK;
    return ls_fail(error, LS_USAGE, "--job-name: '%s' is a path; it is the name of one folder",
                   options->job_name);
}

/* What is planned need not be here. */
static ls_status check_devices(const ls_options *options, unsigned command, ls_error *error)
{
    if (command == LS_COMMAND_PLAN) return LS_OK;
    if (options->device_list)
        return ls_fail(error, LS_USAGE,
                       "--devices: '%.100s' is a list: a run has one number, plan takes a list",
                       options->device_list);
    if (options->devices <= MOST_DEVICES) return LS_OK;
    return ls_fail(error, LS_USAGE, "--devices: %" PRId64 " is out of range: it goes from 1 to %d",
                   options->devices, MOST_DEVICES);
}

ls_status ls_options_check_combinations(const ls_options *options, unsigned command,
                                        ls_error *error)
{
    if (command & TRAIN) LS_TRY(check_monitoring(options, error));
    if ((command & RUN) && options->max_steps == 0)
        return ls_fail(error, LS_USAGE,
                       "--max-steps: 0 steps train nothing; -1 is as many as the epochs have");
    if ((command & SAVED) && options->keep_best && !options->validation)
        return ls_fail(error, LS_USAGE, "--keep-best: there is no --validation file to be best on");
    if ((command & TRAIN) && options->resume_weights_only && !options->resume)
        return ls_fail(error, LS_USAGE,
                       "--resume-weights-only: --resume says from which checkpoint");
    if (!(command & RUN)) return LS_OK;
    LS_TRY(check_devices(options, command, error));
    ls_strategy strategy;
    LS_TRY(ls_strategy_of(&strategy, options, command != LS_COMMAND_PLAN, error));
    bool scaled = (command & RUN) && strcmp(options->learning_rate_scaling, "none") != 0;
    if (scaled && options->base_batch_size == 0)
        return ls_fail(error, LS_USAGE,
                       "--learning-rate-scaling %s needs --base-batch-size, the batch for which "
                       "--learning-rate is meant",
                       options->learning_rate_scaling);
    if ((command & RUN) && !scaled && options->base_batch_size > 0)
        return ls_fail(error, LS_USAGE,
                       "--base-batch-size %" PRId64 " does nothing without --learning-rate-scaling "
                       "linear or sqrt",
                       options->base_batch_size);
    /* A plan may be of other strategies. */
    return command == LS_COMMAND_PLAN
               ? LS_OK
               : ls_strategy_check_devices(&strategy, options->devices, error);
}

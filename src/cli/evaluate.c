#include <stdio.h>

#include "cli/command.h"
#include "cli/exit_status.h"
#include "cli/progress.h"

static int evaluate(const ls_invocation *invocation)
{
    ls_progress progress;
    ls_error error;
    ls_progress_init(&progress, invocation->quiet);
    ls_callbacks callbacks = ls_progress_callbacks(&progress);
    ls_status status = ls_evaluate(&invocation->options, &callbacks, &error);
    ls_progress_clear(&progress);
    return ls_exit_report(status, &error);
}

const ls_command ls_command_evaluate = {
    .name = "evaluate",
    .bit = LS_COMMAND_EVALUATE,
    .summary = "accuracy, macro-F1 and the confusion table on labelled texts",
    .usage = "--model FOLDER --data FILE [flags]",
    .example = "lockstep evaluate --model trained --data test.tsv",
    .details = "macro-F1 is the mean of the classes' F1 scores; a class that occurs neither in the "
               "rows nor in the predictions is left out of it.",
    .needed = {"model", "data"},
    .can_be_quiet = true,
    .run = evaluate,
};

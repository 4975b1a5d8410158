#include <stdio.h>

#include "cli/command.h"
#include "cli/exit_status.h"

static int config(const ls_invocation *invocation)
{
    char *text = NULL;
    ls_error error;
    ls_status status = ls_config_text(&invocation->options, invocation->sources,
                                      invocation->deepspeed, invocation->json, &text, &error);
    if (status == LS_OK) fputs(text, stdout);
    ls_text_free(text);
    return ls_exit_report(status, &error);
}

const ls_command ls_command_config = {
    .name = "config",
    .bit = LS_COMMAND_TRAIN,
    .summary = "every setting of a run and where it comes from",
    .usage = "[FILE] [flags of train] [--json]",
    .example = "lockstep config ds_config.json --devices 4",
    .details =
        "FILE is a DeepSpeed configuration (ds_config.json). Prints each setting that train would "
        "use with its value and its source: the command line, a key of the file, \"auto\" in the "
        "file, or the default; then what each key of the file does here. Nothing is run.",
    .needed = {NULL},
    .takes_deepspeed = true,
    .is_config = true,
    .run = config,
};

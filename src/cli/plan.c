#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/exit_status.h"

/* Without a strategy, of the command line or of a DeepSpeed file, all of them side by side; one on
 * one number of devices in all detail. */
static int plan(const ls_invocation *invocation)
{
    const ls_options *options = &invocation->options;
    char *text = NULL;
    ls_error error;
    bool one = invocation->has_strategy || invocation->deepspeed || options->print_program;
    bool automatic = strcmp(options->strategy, "auto") == 0;
    bool table = !one || automatic || options->device_list || invocation->json;
    ls_status status = table ? ls_plan_table_text(options, !one, invocation->json, &text, &error)
                             : ls_plan_text(options, &text, &error);
    if (status == LS_OK && text) fputs(text, stdout); /* of several processes one has it */
    ls_text_free(text);
    return ls_exit_report(status, &error);
}

const ls_command ls_command_plan = {
    .name = "plan",
    .bit = LS_COMMAND_PLAN,
    .summary = "the memory of a run before it starts, and its program",
    .usage = "--model FOLDER [flags of train] [--json] [--print]",
    .example = "lockstep plan --model all-MiniLM-L6-v2 --batch-size 64 --devices 1,2,4,8",
    .details =
        "Without --strategy: a table of all strategies, with and without offload and recompute, on "
        "each number of --devices: memory of a device by parts, elements that a step moves between "
        "devices, passes, and whether it fits --device-memory. With --strategy: each part of a "
        "device's memory and the total, to the byte. Nothing of it is allocated. Takes the flags "
        "of "
        "train: put plan in its place. With --train the plan is that of the longest row, without "
        "it "
        "of rows of --max-length tokens. --strategy auto measures this machine and says what a run "
        "would choose.",
    .needed = {"model"},
    .takes_deepspeed = true,
    .has_json = true,
    .run = plan,
};

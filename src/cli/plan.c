#include <stdio.h>

#include "cli/command.h"
#include "cli/exit_status.h"

static int plan(const ls_invocation *invocation)
{
    char *text = NULL;
    ls_error error;
    ls_status status = ls_plan_text(&invocation->options, &text, &error);
    if (status == LS_OK && text) fputs(text, stdout); /* of several processes one has it */
    ls_text_free(text);
    return ls_exit_report(status, &error);
}

const ls_command ls_command_plan = {
    .name = "plan",
    .bit = LS_COMMAND_PLAN,
    .summary = "the memory of a run before it starts, and its program",
    .usage = "--model FOLDER [flags of train] [--print]",
    .example = "lockstep plan --model all-MiniLM-L6-v2 --batch-size 64 --samples-per-pass 8",
    .details =
        "Prints each part of the device's memory and the total, to the byte, without "
        "allocating any of it. Takes the flags of train: put plan in its place. With --train "
        "the plan is that of the longest row, without it of rows of --max-length tokens.",
    .needed = {"model"},
    .takes_deepspeed = true,
    .run = plan,
};

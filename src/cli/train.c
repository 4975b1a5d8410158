#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/exit_status.h"
#include "cli/format.h"
#include "cli/progress.h"
#include "cli/signals.h"

static void print_summary(const ls_options *options, const ls_train_report *report, int64_t tokens)
{
    char planned[LS_FORMAT_BYTES], measured[LS_FORMAT_BYTES], speed[LS_FORMAT_BYTES];
    char exactly[LS_FORMAT_BYTES], count[LS_FORMAT_BYTES];
    double rate = report->seconds > 0 ? (double)tokens / report->seconds : 0;
    printf("%s %s steps", report->stopped ? "stopped after" : "trained",
           ls_format_count(count, report->steps));
    if (report->resumed_step)
        printf(", %s of them now,", ls_format_count(count, report->steps - report->resumed_step));
    printf(" in %.1f s, %s tokens/s\n", report->seconds, ls_format_count(speed, (int64_t)rate));
    if (report->skipped_steps)
        printf("skipped        %s steps whose loss or gradient was not finite\n",
               ls_format_count(count, report->skipped_steps));
    printf("device memory  planned  %s (%s bytes)\n",
           ls_format_bytes(planned, report->planned_bytes),
           ls_format_count(exactly, report->planned_bytes));
    printf("               measured %s (%s bytes)\n",
           ls_format_bytes(measured, report->measured_bytes),
           ls_format_count(exactly, report->measured_bytes));
    printf("weights        sha256 %s\n", report->weights_sha256);
    printf("output         %s\n", options->output);
}

static int train(const ls_invocation *invocation)
{
    ls_progress progress;
    ls_train_report report = {0};
    ls_error error;
    ls_progress_init(&progress, invocation->quiet);
    progress.breakdown = invocation->options.wall_clock_breakdown;
    progress.log_every = invocation->options.log_every;
    ls_callbacks callbacks = ls_progress_callbacks(&progress);
    callbacks.should_stop = ls_signals_stop_requested;
    callbacks.peer_is_gone = ls_signals_peer_is_gone;
    ls_signals_install();
    ls_status status =
        ls_train(&invocation->options, &callbacks, invocation->sources, &report, &error);
    ls_progress_clear(&progress);
    /* 75 promises a model. */
    if (status == LS_INTERRUPTED && report.steps == 0) status = LS_INVALID;
    if (status != LS_OK && status != LS_INTERRUPTED) return ls_exit_report(status, &error);
    if (report.rank == 0) print_summary(&invocation->options, &report, progress.tokens);
    return ls_exit_status(status);
}

const ls_command ls_command_train = {
    .name = "train",
    .bit = LS_COMMAND_TRAIN,
    .summary = "fine-tune a model on labelled texts",
    .usage = "--model FOLDER --train FILE --output FOLDER [flags]",
    .example = "lockstep train --model all-MiniLM-L6-v2 --train train.tsv --output trained",
    .details =
        "Writes a model folder that Transformers loads, with metrics.jsonl (a line a step and "
        "an evaluation), run.json (every setting and where it came from, and what the run came to) "
        "and, with --profile, a trace and a summary of some steps in profile/. An interrupt "
        "(Ctrl-C) ends the run after its step and writes the model and a checkpoint; a second one "
        "ends it at once. With --save-every and --resume auto the same command line goes on from "
        "the last checkpoint after any end, to the same bits, on any number of devices and with "
        "any strategy.",
    .needed = {"model", "train", "output"},
    .can_be_quiet = true,
    .takes_deepspeed = true,
    .run = train,
};

/* That a run used every sample as often as it should have. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/command.h"
#include "cli/exit_status.h"
#include "cli/format.h"

static int audit(const ls_invocation *invocation)
{
    ls_run_audit report;
    ls_error error;
    char steps[LS_FORMAT_BYTES], rows[LS_FORMAT_BYTES], rest[LS_FORMAT_BYTES];
    ls_status status = ls_audit_record(invocation->options.output, &report, &error);
    if (status != LS_OK) return ls_exit_report(status, &error);
    printf("%s steps, %" PRId64 " whole epochs: each of %s samples was used exactly once in each\n",
           ls_format_count(steps, report.steps), report.epochs, ls_format_count(rows, report.rows));
    if (report.rest)
        printf("epoch %" PRId64 " so far: %s samples, none twice\n", report.epochs + 1,
               ls_format_count(rest, report.rest));
    if (report.skipped_steps)
        printf("%" PRId64 " steps were skipped: their samples were read and changed nothing\n",
               report.skipped_steps);
    return LS_EXIT_DONE;
}

const ls_command ls_command_audit = {
    .name = "audit",
    .bit = LS_COMMAND_AUDIT,
    .summary = "prove from a run's record that it used each sample of each epoch once",
    .usage = "FOLDER",
    .example = "lockstep audit trained",
    .details =
        "Reads run.json and metrics.jsonl of an output folder. Every step's line has a digest of "
        "the samples that its devices ran; the order of each epoch is computed again from "
        "the seed and compared. Restarts and other numbers of devices make no difference. "
        "Exit status 6 where a step ran other samples.",
    .needed = {"output"},
    .paths = {"output"},
    .run = audit,
};

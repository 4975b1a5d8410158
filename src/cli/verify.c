/* Two models or checkpoints to the bit; one against its manifest. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/command.h"
#include "cli/exit_status.h"
#include "cli/format.h"

static int verify(const ls_invocation *invocation)
{
    const ls_options *options = &invocation->options;
    ls_verify_report report;
    ls_error error;
    char tensors[LS_FORMAT_BYTES], bytes[LS_FORMAT_BYTES];
    ls_status status = ls_verify(options->model, options->other, &report, &error);
    if (status != LS_OK) return ls_exit_report(status, &error);
    ls_format_count(tensors, report.tensors);
    ls_format_count(bytes, (int64_t)report.bytes);
    if (options->other)
        printf("equal to the bit: %s tensors, %s bytes\n", tensors, bytes);
    else
        printf("as the manifest says: %" PRId64 " files, %s tensors, %s bytes\n", report.files,
               tensors, bytes);
    return LS_EXIT_DONE;
}

const ls_command ls_command_verify = {
    .name = "verify",
    .bit = LS_COMMAND_VERIFY,
    .summary = "compare two models or checkpoints to the bit, or one checkpoint with its manifest",
    .usage = "PATH [PATH]",
    .example = "lockstep verify trained/checkpoint-500 again/checkpoint-500",
    .details =
        "With two paths (model folders, checkpoints, safetensors files): every tensor, and the "
        "moments where both have them. The first difference is printed: tensor, element, "
        "bits, and how many units in the last place they are apart. With one: sizes and "
        "checksums of a checkpoint's files. Exit status 6 where there is a difference.",
    .needed = {"model"},
    .paths = {"model", "other"},
    .run = verify,
};

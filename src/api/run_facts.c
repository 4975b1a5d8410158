/* What a training run says of itself in run.json. */
#include "api/run_facts.h"

#include "api/run_record.h"

ls_status ls_training_run_record(ls_training_run *run, bool finished, ls_error *error)
{
    char digest[LS_DIGEST_CHARACTERS], name[64];
    const char *isa = "", *best = ls_checkpoints_best_name(run, name);
    ls_dataset_digest(run->train, digest);
    LS_TRY(ls_instruction_set(&isa, error));
    size_t classes = (size_t)ls_labels_count(run->session.labels);
    const ls_train_report *report = &run->report;
    ls_run_results results = {0};
    ls_auto_facts automatic;
    if (finished)
        LS_TRY(ls_run_results_make(&results, &run->monitor, &run->programs, report,
                                   &run->checkpoints.saves, error));
    const ls_run_fact facts[] = {
        {.key = "version", .kind = LS_RUN_TEXT, .text = ls_version()},
        {.key = "instruction_set", .kind = LS_RUN_TEXT, .text = isa},
        {.key = "train_rows", .kind = LS_RUN_INTEGER, .integer = ls_dataset_count(run->train)},
        {.key = "train_tokens",
         .kind = LS_RUN_INTEGER,
         .integer = (int64_t)ls_dataset_tokens(run->train)},
        {.key = "train_rows_left_out",
         .kind = LS_RUN_INTEGER,
         .integer = (int64_t)ls_dataset_skipped(run->train)},
        {.key = "train_digest", .kind = LS_RUN_TEXT, .text = digest},
        {.key = "labels", .kind = LS_RUN_TEXTS, .texts = run->label_names, .count = classes},
        {.key = "steps_per_epoch", .kind = LS_RUN_INTEGER, .integer = run->steps_per_epoch},
        {.key = "total_steps", .kind = LS_RUN_INTEGER, .integer = run->total_steps},
        {.key = "planned_bytes", .kind = LS_RUN_INTEGER, .integer = report->planned_bytes},
        {.key = "measured_bytes", .kind = LS_RUN_INTEGER, .integer = report->measured_bytes},
        {.key = "planned_host_bytes",
         .kind = LS_RUN_INTEGER,
         .integer = report->planned_host_bytes},
        {.key = "measured_host_bytes",
         .kind = LS_RUN_INTEGER,
         .integer = report->measured_host_bytes},
        {.key = "planned_file_bytes",
         .kind = LS_RUN_INTEGER,
         .integer = report->planned_file_bytes},
        {.key = "measured_file_bytes",
         .kind = LS_RUN_INTEGER,
         .integer = report->measured_file_bytes},
        {.key = "resumed_step", .kind = LS_RUN_INTEGER, .integer = report->resumed_step},
        ls_auto_choice_fact(&run->choice, &automatic),
        /* The following are known only at the end. */
        {.key = "best_checkpoint", .kind = LS_RUN_TEXT, .text = best},
        {.key = "best_value",
         .kind = LS_RUN_NUMBER,
         .number = best ? run->checkpoints.best.value : __builtin_nan("")},
        {.key = "steps", .kind = LS_RUN_INTEGER, .integer = report->steps},
        {.key = "seconds", .kind = LS_RUN_NUMBER, .number = ls_training_run_seconds(run)},
        {.key = "weights_sha256", .kind = LS_RUN_TEXT, .text = report->weights_sha256},
        {.key = "results", .kind = LS_RUN_OBJECT, .facts = results.facts, .count = results.count},
    };
    size_t count = sizeof facts / sizeof *facts;
    ls_status status =
        ls_run_record_write(run->session.options->output, run->session.options, &run->used,
                            run->sources, facts, finished ? count : count - 6, error);
    ls_run_results_deinit(&results);
    return status;
}

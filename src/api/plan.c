/* ls_plan_text: what a run would take, from headers, settings and the lengths of rows. */
#include <string.h>

#include "api/fitting.h"
#include "api/plan_data.h"
#include "api/training_memory.h"
#include "base/alloc.h"
#include "base/text.h"

static ls_status open_files(ls_plan_data *data, ls_session *session, ls_error *error)
{
    const ls_options *options = session->options;
    const struct {
        const char *path;
        ls_dataset **out;
    } files[] = {{options->train, &data->train},
                 {options->validation, &data->validation},
                 {options->test, &data->test}};
    /* Without training rows nothing is known of a run's data: its labels come from there. */
    for (int i = 0; options->train && i < 3; i++)
        if (files[i].path)
            LS_TRY(ls_session_dataset(session, files[i].out, files[i].path, true, NULL, error));
    return LS_OK;
}

ls_status ls_plan_data_open(ls_plan_data *data, ls_session *session, ls_run_memory_options *memory,
                            ls_error *error)
{
    LS_TRY(open_files(data, session, error));
    int64_t classes = ls_labels_count(session->labels);
    if (classes == 0) classes = (int64_t)session->folder.config.label_count;
    *memory =
        ls_training_memory_options(session, classes, data->train, data->validation, data->test);
    return LS_OK;
}

void ls_plan_data_close(ls_plan_data *data)
{
    ls_dataset_free(data->train);
    ls_dataset_free(data->validation);
    ls_dataset_free(data->test);
    *data = (ls_plan_data){0};
}

static ls_status describe(ls_session *session, ls_text *text, ls_error *error)
{
    ls_plan_data data = {0};
    ls_run_programs programs = {0};
    ls_run_memory_options memory;
    ls_status status;
    LS_TRY_GOTO(status, ls_plan_data_open(&data, session, &memory, error), done);
    LS_TRY_GOTO(status, ls_training_check_ranks(session, &memory, error), done);
    LS_TRY_GOTO(status, ls_session_message_bytes(session, &memory.training.message_bytes, error),
                done);
    LS_TRY_GOTO(status, ls_run_programs_find(&programs, &memory, session->device, error), done);
    if (!ls_run_programs_fit(&programs, session->device)) {
        status = ls_fitting_refuse(session, &memory, error);
        goto done;
    }
    LS_TRY_GOTO(status, ls_run_programs_print(&programs, text, error), done);
    if (session->options->print_program) {
        LS_TRY_GOTO(status, ls_text_print(text, error, "\n"), done);
        status = ls_program_print(programs.training.program, text, error);
    }
done:
    ls_run_programs_deinit(&programs);
    ls_plan_data_close(&data);
    return status;
}

ls_status ls_plan_text(const ls_options *options, char **text, ls_error *error)
{
    ls_session session;
    ls_text plan = {0};
    *text = NULL;
    if (options->device_list || (options->strategy && strcmp(options->strategy, "auto") == 0))
        return ls_fail(error, LS_USAGE, "a list of --devices and --strategy auto make a table");
    ls_status status =
        ls_session_open(&session, options, NULL, LS_COMMAND_PLAN, LS_TRAINING_LENGTH, error);
    if (status == LS_OK) status = describe(&session, &plan, error);
    status = ls_session_agree(&session, status, "the plan", error);
    bool first = ls_session_is_first(&session);
    if (!first && error && status != LS_OK) error->text[0] = '\0';
    ls_session_close(&session);
    if (status != LS_OK || !first) ls_text_deinit(&plan); /* one process prints it */
    *text = plan.data;
    return status;
}

void ls_text_free(char *text)
{
    ls_free(text);
}

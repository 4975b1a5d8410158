/* ls_plan: what a run would take, from headers and settings alone. */
#include "api/training_run.h"
#include "base/alloc.h"
#include "base/text.h"

enum { DEFAULT_MAX_LENGTH = 128 };

static ls_status describe(ls_session *session, ls_text *text, ls_error *error)
{
    ls_dataset *train = NULL;
    ls_run_programs programs = {0};
    int64_t longest = session->max_length;
    /* Without data, rows are as long as they may be, and there are as many classes as the model
     * names. */
    if (session->options->train) {
        LS_TRY(ls_session_dataset(session, &train, session->options->train, true, NULL, error));
        longest = ls_dataset_longest(train);
    }
    int64_t classes = ls_labels_count(session->labels);
    if (classes == 0) classes = (int64_t)session->folder.config.label_count;
    ls_run_memory_options memory = ls_training_memory_options(session, classes, longest, longest);
    ls_status status = ls_run_programs_make(&programs, &memory, session->device, error);
    if (status == LS_OK) status = ls_run_programs_print(&programs, text, error);
    if (status == LS_OK && session->options->print_program) {
        status = ls_text_print(text, error, "\n");
        if (status == LS_OK) status = ls_program_print(programs.training.program, text, error);
    }
    ls_run_programs_deinit(&programs);
    ls_dataset_free(train);
    return status;
}

ls_status ls_plan_text(const ls_options *options, char **text, ls_error *error)
{
    ls_session session;
    ls_text plan = {0};
    LS_TRY(ls_session_open(&session, options, NULL, LS_COMMAND_PLAN, DEFAULT_MAX_LENGTH, error));
    ls_status status = describe(&session, &plan, error);
    ls_session_close(&session);
    if (status != LS_OK) ls_text_deinit(&plan);
    *text = plan.data;
    return status;
}
void ls_text_free(char *text)
{
    ls_free(text);
}

#include "api/inference.h"

#include "base/alloc.h"

/* The most samples a pass, halving from what was asked, that fit the budget. */
static ls_status assemble(ls_inference *inference, ls_session *session, int64_t samples,
                          int64_t longest_row, ls_error *error)
{
    const ls_device *device = session->device;
    ls_assembly_options options = {.config = &session->folder.config,
                                   .classes = session->folder.head_classes,
                                   .batch_size = 1,
                                   .leaf_size = 1,
                                   .samples_per_pass = samples,
                                   .longest_row = longest_row};
    int64_t asked = session->options->samples_per_pass;
    bool fixed = asked != LS_SAMPLES_AUTO;
    for (;;) {
        LS_TRY(ls_assembly_make(&inference->assembly, &options, device, error));
        int64_t bytes = ls_plan_total(&inference->assembly.plan);
        if (device->budget == 0 || bytes <= device->budget) return LS_OK;
        ls_assembly_deinit(&inference->assembly);
        if (fixed || options.samples_per_pass == 1)
            return ls_fail(error, LS_NO_MEMORY,
                           "forward passes of %lld sample%s need %lld bytes of device memory, "
                           "--device-memory allows %lld: raise it%s",
                           (long long)options.samples_per_pass,
                           options.samples_per_pass == 1 ? "" : "s", (long long)bytes,
                           (long long)device->budget, fixed ? " or lower --samples-per-pass" : "");
        options.samples_per_pass /= 2;
    }
}

ls_status ls_inference_open(ls_inference *inference, ls_session *session, int64_t usual_samples,
                            int64_t most_samples, int64_t longest_row, ls_error *error)
{
    int64_t asked = session->options->samples_per_pass;
    int64_t samples = asked > 0 ? asked : usual_samples;
    if (samples > most_samples) samples = most_samples;
    ls_status status;
    *inference = (ls_inference){.classes = (int32_t)session->folder.head_classes};
    ls_parameters_notes notes = {0};
    LS_TRY(assemble(inference, session, samples, longest_row, error));
    LS_TRY_GOTO(status, ls_parameters_check(&inference->assembly, session->folder.weights, error),
                fail);
    LS_TRY_GOTO(status,
                ls_evaluator_new(&inference->evaluator, &inference->assembly, session->device, 0,
                                 NULL, error),
                fail);
    LS_TRY_GOTO(status,
                ls_parameters_load(ls_evaluator_executor(inference->evaluator),
                                   &inference->assembly, session->folder.weights, 0, &notes, error),
                fail);
    if (notes.initialised.length) {
        status = ls_fail(error, LS_INVALID,
                         "%s: the classification head is not whole, %s is missing: fine-tune the "
                         "model first, with lockstep train",
                         session->options->model, notes.initialised.data);
        goto fail;
    }
    LS_TRY_GOTO(status, ls_session_label_names(session, &inference->label_names, error), fail);
    ls_parameters_notes_deinit(&notes);
    return LS_OK;
fail:
    ls_parameters_notes_deinit(&notes);
    ls_inference_close(inference);
    return status;
}

void ls_inference_close(ls_inference *inference)
{
    ls_free(inference->label_names);
    ls_evaluator_free(inference->evaluator);
    ls_assembly_deinit(&inference->assembly);
    *inference = (ls_inference){0};
}

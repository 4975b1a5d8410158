#include "monitor/scalars.h"

const ls_scalar ls_step_scalars[LS_STEP_SCALARS] = {
    {"loss", "train_loss", 1, "Mean cross-entropy over the samples of the step."},
    {"learning_rate", "lr", 1, "Learning rate of the step."},
    {"gradient_norm", "gradient_norm", 1, "Norm of all gradients, before clipping."},
    {"tokens_per_second", "tokens_per_second", 1, "Tokens of the step over its time."},
    {"step_seconds", "elapsed_time_ms", 1000, "Time of the step."},
    {"data_seconds", "elapsed_time_ms_data", 1000, "Waiting for the batch, writing inputs."},
    {"forward_seconds", "elapsed_time_ms_forward", 1000, "Forward pass."},
    {"backward_seconds", "elapsed_time_ms_backward", 1000, "Backward pass."},
    {"exchange_seconds", "elapsed_time_ms_backward_allreduce", 1000,
     "Waiting for other ranks and their bytes."},
    {"optimizer_seconds", "elapsed_time_ms_step", 1000, "Norm, clipping and update."},
    {"skipped_steps", "skipped_steps", 1, "Steps so far that updated nothing."},
};

const ls_scalar ls_evaluation_scalars[LS_EVALUATION_SCALARS] = {
    {"loss", "loss", 1, "Mean cross-entropy over the rows."},
    {"accuracy", "accuracy", 1, "Correct rows over rows."},
    {"macro_f1", "macro_f1", 1, "Mean of the F1 of all classes that occur."},
};

void ls_step_values(const ls_step_report *report, double values[LS_STEP_SCALARS])
{
    const double all[LS_STEP_SCALARS] = {
        report->loss,
        report->learning_rate,
        report->gradient_norm,
        report->tokens_per_second,
        report->step_seconds,
        report->data_seconds,
        report->forward_seconds,
        report->backward_seconds,
        report->exchange_seconds,
        report->optimizer_seconds,
        (double)report->skipped_steps,
    };
    for (int i = 0; i < LS_STEP_SCALARS; i++)
        values[i] = all[i];
}

void ls_evaluation_values(const ls_evaluation_report *report, double values[LS_EVALUATION_SCALARS])
{
    values[0] = report->loss;
    values[1] = report->accuracy;
    values[2] = report->macro_f1;
}

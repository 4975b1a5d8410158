/* ls_evaluate and ls_predict: one pass over a file. */
#include "api/inference.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/numbers.h"
#include "base/text.h"

typedef struct prediction_sink {
    const ls_callbacks *callbacks;
    const ls_inference *inference;
    ls_writer *writer; /* NULL: no file */
    ls_text line;
} prediction_sink;

/* {"row": 0, "prediction": "positive", "probabilities": [0.1, 0.9]} */
static ls_status write_line(prediction_sink *sink, int64_t row, int32_t prediction,
                            const float *probabilities, ls_error *error)
{
    char digits[LS_NUMBER_BYTES];
    ls_text_clear(&sink->line);
    LS_TRY(ls_text_print(&sink->line, error, "{\"row\": %lld, \"prediction\": ", (long long)row));
    LS_TRY(ls_text_json_string(&sink->line, sink->inference->label_names[prediction], error));
    LS_TRY(ls_text_print(&sink->line, error, ", \"probabilities\": ["));
    for (int32_t c = 0; c < sink->inference->classes; c++)
        LS_TRY(ls_text_print(&sink->line, error, "%s%s", c ? ", " : "",
                             ls_number_print(digits, (double)probabilities[c])));
    LS_TRY(ls_text_print(&sink->line, error, "]}\n"));
    return ls_writer_write(sink->writer, sink->line.data, sink->line.length, error);
}

static ls_status take_prediction(void *context, int64_t row, int32_t label, int32_t prediction,
                                 const float *probabilities, ls_error *error)
{
    prediction_sink *sink = context;
    const ls_callbacks *callbacks = sink->callbacks;
    if (sink->writer) LS_TRY(write_line(sink, row, prediction, probabilities, error));
    if (!callbacks->prediction) return LS_OK;
    ls_prediction one = {.row = row,
                         .classes = sink->inference->classes,
                         .prediction = prediction,
                         .label = label,
                         .labels = sink->inference->label_names,
                         .probabilities = probabilities};
    callbacks->prediction(callbacks->context, &one);
    return LS_OK;
}

static void report(const ls_session *session, const ls_inference *inference,
                   const ls_evaluation *evaluation, double seconds)
{
    const ls_callbacks *callbacks = session->callbacks;
    if (!callbacks->evaluation) return;
    ls_evaluation_report done = {
        .name = session->options->data,
        .epoch = -1,
        .samples = evaluation->samples,
        .tokens = evaluation->tokens,
        .classes = inference->classes,
        .labels = inference->label_names,
        .confusion = evaluation->confusion,
        .loss = evaluation->loss,
        .accuracy = ls_accuracy(evaluation->confusion, inference->classes),
        .macro_f1 = ls_macro_f1(evaluation->confusion, inference->classes),
        .seconds = seconds,
    };
    callbacks->evaluation(callbacks->context, &done);
}

static ls_status run_file(ls_session *session, ls_inference *inference, const ls_dataset *dataset,
                          bool evaluate, ls_error *error)
{
    const ls_options *options = session->options;
    ls_writer writer;
    ls_session_progress progress = {.session = session};
    /* Predictions show themselves. */
    ls_evaluation evaluation = {.progress = evaluate ? ls_session_show : NULL,
                                .progress_context = &progress};
    prediction_sink sink = {.callbacks = session->callbacks, .inference = inference};
    int64_t classes = inference->classes;
    LS_TRY(LS_NEW(evaluation.confusion, classes * classes, "confusion counts", error));
    ls_status status = LS_OK;
    if (evaluate && options->predictions) {
        status = ls_writer_open(&writer, options->predictions, error);
        if (status == LS_OK) sink.writer = &writer;
    }
    snprintf(progress.what, sizeof progress.what, "evaluating %s", options->data);
    double start = ls_seconds();
    if (status == LS_OK)
        status = ls_evaluator_dataset(&(ls_evaluators){.each = &inference->evaluator, .count = 1},
                                      dataset, options->leaf_size, &evaluation, take_prediction,
                                      &sink, error);
    if (sink.writer) {
        if (status == LS_OK) status = ls_writer_finish(&writer, error);
        ls_writer_abandon(&writer);
    }
    if (status == LS_OK && evaluate) report(session, inference, &evaluation, ls_seconds() - start);
    ls_text_deinit(&sink.line);
    ls_free(evaluation.confusion);
    return status;
}

static ls_status run_command(const ls_options *options, const ls_callbacks *callbacks,
                             bool evaluate, ls_error *error)
{
    ls_session session;
    ls_inference inference = {0};
    ls_dataset *dataset = NULL;
    ls_status status;
    unsigned command = evaluate ? LS_COMMAND_EVALUATE : LS_COMMAND_PREDICT;
    LS_TRY(ls_session_open(&session, options, callbacks, command, 0, error));
    if (!options->data) {
        status = ls_fail(error, LS_USAGE, "--data is missing: give it a TSV, CSV or JSONL file");
        goto done;
    }
    LS_TRY_GOTO(status, ls_session_need_head(&session, error), done);
    LS_TRY_GOTO(status,
                ls_session_dataset(&session, &dataset, options->data, evaluate, NULL, error), done);
    LS_TRY_GOTO(status,
                ls_inference_open(&inference, &session, options->batch_size,
                                  ls_dataset_count(dataset), ls_dataset_longest(dataset), error),
                done);
    status = run_file(&session, &inference, dataset, evaluate, error);
done:
    ls_inference_close(&inference);
    ls_dataset_free(dataset);
    ls_session_close(&session);
    return status;
}

ls_status ls_evaluate(const ls_options *options, const ls_callbacks *callbacks, ls_error *error)
{
    return run_command(options, callbacks, true, error);
}

ls_status ls_predict(const ls_options *options, const ls_callbacks *callbacks, ls_error *error)
{
    return run_command(options, callbacks, false, error);
}

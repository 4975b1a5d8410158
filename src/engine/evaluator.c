#include "engine/evaluator.h"

#include <string.h>

#include "base/alloc.h"
#include "comm/tree.h"
#include "data/reader.h"
#include "engine/feeder.h"

struct ls_evaluator {
    const ls_assembly *assembly;
    ls_executor *executor;
    ls_feeder *feeder;
    float *probabilities, *losses; /* of one pass */
};

ls_status ls_evaluator_new(ls_evaluator **out, const ls_assembly *assembly, ls_device *device,
                           const ls_executor *host, ls_error *error)
{
    ls_evaluator *evaluator = NULL;
    ls_status status;
    int64_t samples = assembly->samples_per_pass;
    LS_TRY(LS_NEW(evaluator, 1, "evaluator", error));
    evaluator->assembly = assembly;
    ls_executor_options executor = {.program = assembly->program,
                                    .plan = &assembly->plan,
                                    .device = device,
                                    .limits = assembly->limits,
                                    .host = host};
    LS_TRY_GOTO(status, ls_executor_new(&evaluator->executor, &executor, error), fail);
    LS_TRY_GOTO(status, ls_feeder_new(&evaluator->feeder, assembly, evaluator->executor, error),
                fail);
    LS_TRY_GOTO(
        status,
        LS_NEW(evaluator->probabilities, samples * assembly->model.classes, "probabilities", error),
        fail);
    LS_TRY_GOTO(status, LS_NEW(evaluator->losses, samples, "losses", error), fail);
    *out = evaluator;
    return LS_OK;
fail:
    ls_evaluator_free(evaluator);
    return status;
}

void ls_evaluator_free(ls_evaluator *evaluator)
{
    if (!evaluator) return;
    ls_feeder_free(evaluator->feeder);
    ls_executor_free(evaluator->executor);
    ls_free(evaluator->probabilities);
    ls_free(evaluator->losses);
    ls_free(evaluator);
}

ls_executor *ls_evaluator_executor(ls_evaluator *evaluator)
{
    return evaluator->executor;
}

void ls_evaluator_run(ls_evaluator *evaluator, const ls_batch *batch, int32_t begin, int32_t end,
                      ls_batch_outputs *outputs)
{
    const ls_classifier_loss_results *results = &evaluator->assembly->model.results;
    ls_extents extents = ls_feeder_pass(evaluator->feeder, batch, begin, end);
    ls_executor_run(evaluator->executor, LS_SEGMENT_PASS, &extents);
    ls_executor_read(evaluator->executor, results->probabilities, evaluator->probabilities,
                     &extents);
    ls_executor_read(evaluator->executor, results->sample_loss, evaluator->losses, &extents);
    *outputs = (ls_batch_outputs){evaluator->probabilities, evaluator->losses};
}

/* The loss of samples that come one by one in the file's order: chains inside leaves, the tree
 * across them. */
typedef struct loss_sum {
    ls_tree_range range;
    ls_tree_stack stack;
    double open[LS_MAX_SLOTS];
    double chain;
    int64_t leaf_size, samples, total;
} loss_sum;

static void add_loss(loss_sum *sum, double loss)
{
    sum->chain = sum->samples % sum->leaf_size ? sum->chain + loss : loss;
    sum->samples++;
    if (sum->samples % sum->leaf_size && sum->samples < sum->total) return;
    int64_t leaf = (sum->samples - 1) / sum->leaf_size;
    int top = sum->stack.depth;
    sum->open[top] = sum->chain;
    int merges =
        ls_tree_push(&sum->stack, sum->range, leaf, leaf + 1 < sum->range.end ? leaf + 1 : -1);
    for (; merges > 0; merges--, top--)
        sum->open[top - 1] += sum->open[top];
}

static int32_t largest(const float *values, int32_t count)
{
    int32_t best = 0;
    for (int32_t i = 1; i < count; i++)
        if (values[i] > values[best]) best = i;
    return best;
}

static ls_status count_batch(ls_evaluator *evaluator, const ls_batch *batch,
                             ls_evaluation *evaluation, loss_sum *sum, ls_sample_function each,
                             void *context, ls_error *error)
{
    int32_t classes = (int32_t)evaluator->assembly->model.classes;
    ls_batch_outputs outputs;
    ls_evaluator_run(evaluator, batch, 0, batch->samples, &outputs);
    for (int32_t i = 0; i < batch->samples; i++) {
        const float *probabilities = outputs.probabilities + (int64_t)i * classes;
        int32_t prediction = largest(probabilities, classes), label = batch->labels[i];
        if (label >= 0) {
            evaluation->confusion[(int64_t)label * classes + prediction]++;
            add_loss(sum, (double)outputs.losses[i]);
        }
        if (each)
            LS_TRY(each(context, evaluation->samples, label, prediction, probabilities, error));
        evaluation->samples++;
    }
    evaluation->tokens += batch->offsets[batch->samples];
    return LS_OK;
}

ls_status ls_evaluator_dataset(ls_evaluator *evaluator, const ls_dataset *dataset,
                               int64_t leaf_size, ls_evaluation *evaluation,
                               ls_sample_function each, void *context, ls_error *error)
{
    ls_sampler *sampler = NULL;
    ls_reader *reader = NULL;
    ls_status status;
    int64_t classes = evaluator->assembly->model.classes, labelled = 0;
    for (uint32_t row = 0; row < ls_dataset_count(dataset); row++)
        labelled += ls_dataset_label(dataset, row) >= 0;
    int64_t leaves = (labelled + leaf_size - 1) / leaf_size;
    loss_sum sum = {.range = {0, leaves, leaves}, .leaf_size = leaf_size, .total = labelled};
    evaluation->samples = evaluation->tokens = 0;
    memset(evaluation->confusion, 0, (size_t)(classes * classes) * sizeof(int64_t));
    ls_sampler_options order = {.count = ls_dataset_count(dataset),
                                .batch_size = (int32_t)evaluator->assembly->samples_per_pass,
                                .leaf_size = (int32_t)leaf_size,
                                .sequential = true};
    LS_TRY_GOTO(status, ls_sampler_new(&sampler, &order, error), done);
    ls_reader_options reading = {.dataset = dataset, .sampler = sampler, .epochs = 1};
    LS_TRY_GOTO(status, ls_reader_new(&reader, &reading, error), done);
    for (;;) {
        const ls_batch *batch;
        bool more;
        LS_TRY_GOTO(status, ls_reader_next(reader, &batch, &more, error), done);
        if (!more) break;
        LS_TRY_GOTO(status, count_batch(evaluator, batch, evaluation, &sum, each, context, error),
                    done);
    }
    evaluation->loss = labelled ? sum.open[0] / (double)labelled : 0.0;
done:
    ls_reader_free(reader);
    ls_sampler_free(sampler);
    return status;
}

double ls_accuracy(const int64_t *confusion, int32_t classes)
{
    int64_t right = 0, all = 0;
    for (int64_t i = 0; i < (int64_t)classes * classes; i++) {
        all += confusion[i];
        if (i / classes == i % classes) right += confusion[i];
    }
    return all ? (double)right / (double)all : 0.0;
}

double ls_macro_f1(const int64_t *confusion, int32_t classes)
{
    double sum = 0;
    int32_t present = 0;
    for (int64_t c = 0; c < classes; c++) {
        int64_t truth = 0, predicted = 0, right = confusion[c * classes + c];
        for (int64_t other = 0; other < classes; other++) {
            truth += confusion[c * classes + other];
            predicted += confusion[other * classes + c];
        }
        if (truth + predicted == 0) continue;
        sum += 2.0 * (double)right / (double)(truth + predicted);
        present++;
    }
    return present ? sum / present : 0.0;
}

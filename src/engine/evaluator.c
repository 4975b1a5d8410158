#include "engine/evaluator.h"

#include <string.h>

#include "base/alloc.h"
#include "comm/tree.h"
#include "data/reader.h"
#include "engine/exchange/exchange.h"
#include "engine/feeder.h"

struct ls_evaluator {
    const ls_assembly *assembly;
    ls_executor *executor;
    ls_feeder *feeder;
    ls_exchange *exchange;         /* with an assembly of several ranks */
    float *probabilities, *losses; /* of one pass */
};

ls_status ls_evaluator_new(ls_evaluator **out, const ls_assembly *assembly, ls_device *device,
                           int rank, const ls_executor *host, ls_error *error)
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
                                    .host = host,
                                    .rank = rank};
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
    ls_exchange_free(evaluator->exchange);
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

ls_status ls_evaluator_connect(ls_evaluator *evaluator, ls_comm *comm, ls_error *error)
{
    return ls_exchange_new(&evaluator->exchange, comm, evaluator->executor,
                           evaluator->assembly->program, &evaluator->assembly->plan, error);
}

ls_status ls_evaluator_run(ls_evaluator *evaluator, const ls_batch *batch, int32_t begin,
                           int32_t end, ls_batch_outputs *outputs, ls_error *error)
{
    const ls_classifier_loss_results *results = &evaluator->assembly->model.results;
    ls_extents extents = {{1}};
    ls_feeder_start_evaluation(evaluator->feeder, batch);
    if (begin < end) extents = ls_feeder_pass(evaluator->feeder, batch, begin, end);
    ls_executor_run(evaluator->executor,
                    begin < end ? LS_RUN_PASS : LS_RUN_PASS | LS_RUN_COLLECTIVES, &extents);
    if (evaluator->exchange) LS_TRY(ls_exchange_finish(evaluator->exchange, error));
    LS_TRY(ls_executor_check(evaluator->executor, error));
    if (begin == end) return LS_OK;
    ls_executor_read(evaluator->executor, results->probabilities, evaluator->probabilities,
                     &extents);
    ls_executor_read(evaluator->executor, results->sample_loss, evaluator->losses, &extents);
    *outputs = (ls_batch_outputs){evaluator->probabilities, evaluator->losses};
    return LS_OK;
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

/* What counts of a sample. */
typedef struct score {
    float loss;
    int32_t prediction;
} score;

/* What an evaluation has so far. */
typedef struct count {
    const ls_evaluators *evaluators;
    int processes, ranks, first; /* `ranks` of all processes, this one's begin at `first` */
    const ls_batch *batch;
    ls_batch_outputs *outputs; /* [evaluators] of the batch */
    score *scores;             /* [samples of the largest batch] */
    score *gathered;           /* [processes][most_samples] */
    int64_t most_samples;      /* of a process */
    ls_evaluation *evaluation;
    loss_sum sum;
    ls_sample_function each;
    void *context;
} count;

/* First sample of the batch that is `rank`'s. */
static int32_t share_begin(const count *c, int rank)
{
    return (int32_t)((int64_t)c->batch->samples * rank / c->ranks);
}

static int32_t classes_of(const count *c)
{
    return (int32_t)c->evaluators->each[0]->assembly->model.classes;
}

static ls_status run_share(void *context, int index, ls_error *error)
{
    count *c = context;
    int rank = c->first + index;
    int32_t begin = share_begin(c, rank), end = share_begin(c, rank + 1), classes = classes_of(c);
    const ls_batch_outputs *outputs = &c->outputs[index];
    LS_TRY(ls_evaluator_run(c->evaluators->each[index], c->batch, begin, end, &c->outputs[index],
                            error));
    for (int32_t sample = begin; sample < end; sample++) {
        const float *probabilities = outputs->probabilities + (int64_t)(sample - begin) * classes;
        c->scores[sample] =
            (score){outputs->losses[sample - begin], largest(probabilities, classes)};
    }
    return LS_OK;
}

/* The scores of all processes, each with its consecutive samples. */
static ls_status gather_scores(count *c, ls_error *error)
{
    int32_t own = share_begin(c, c->first);
    int64_t bytes = c->most_samples * (int64_t)sizeof(score);
    LS_TRY(ls_processes_gather(c->evaluators->processes, c->scores + own, bytes, c->gathered,
                               "the evaluation of a batch", error));
    for (int process = 0; process < c->processes; process++) {
        int32_t begin = share_begin(c, process * c->evaluators->count);
        int32_t end = share_begin(c, (process + 1) * c->evaluators->count);
        memcpy(c->scores + begin, c->gathered + process * c->most_samples,
               (size_t)(end - begin) * sizeof(score));
    }
    return LS_OK;
}

static ls_status count_sample(count *c, int32_t sample, const float *probabilities, ls_error *error)
{
    int32_t label = c->batch->labels[sample];
    const score *one = &c->scores[sample];
    if (label >= 0) {
        c->evaluation->confusion[(int64_t)label * classes_of(c) + one->prediction]++;
        add_loss(&c->sum, (double)one->loss);
    }
    int64_t row = c->evaluation->samples++;
    return c->each ? c->each(c->context, row, label, one->prediction, probabilities, error) : LS_OK;
}

static ls_status count_batch(count *c, ls_error *error)
{
    if (c->evaluators->group)
        LS_TRY(ls_rank_group_run(c->evaluators->group, run_share, c, error));
    else
        LS_TRY(run_share(c, 0, error));
    if (c->processes > 1) LS_TRY(gather_scores(c, error));
    for (int rank = 0; rank < c->ranks; rank++) {
        int32_t begin = share_begin(c, rank), end = share_begin(c, rank + 1);
        for (int32_t sample = begin; sample < end; sample++) {
            const float *probabilities =
                c->each ? c->outputs[rank].probabilities + (int64_t)(sample - begin) * classes_of(c)
                        : NULL;
            LS_TRY(count_sample(c, sample, probabilities, error));
        }
    }
    c->evaluation->tokens += c->batch->offsets[c->batch->samples];
    return LS_OK;
}

static ls_status read_batches(count *c, const ls_dataset *dataset, const ls_sampler_options *order,
                              ls_error *error)
{
    ls_sampler *sampler = NULL;
    ls_reader *reader = NULL;
    ls_status status;
    LS_TRY_GOTO(status, ls_sampler_new(&sampler, order, error), done);
    ls_reader_options reading = {.dataset = dataset, .sampler = sampler, .epochs = 1};
    LS_TRY_GOTO(status, ls_reader_new(&reader, &reading, error), done);
    for (;;) {
        bool more;
        LS_TRY_GOTO(status, ls_reader_next(reader, &c->batch, &more, error), done);
        if (!more) break;
        LS_TRY_GOTO(status, count_batch(c, error), done);
        if (c->evaluation->progress)
            c->evaluation->progress(c->evaluation->progress_context, c->evaluation->samples,
                                    ls_dataset_count(dataset));
    }
done:
    ls_reader_free(reader);
    ls_sampler_free(sampler);
    return status;
}

static ls_status take_room(count *c, int64_t batch_size, ls_error *error)
{
    /* What is gathered begins anywhere in the scores and has one length. */
    c->most_samples = batch_size / c->processes + 1;
    LS_TRY(LS_NEW(c->outputs, c->evaluators->count, "evaluation", error));
    LS_TRY(LS_NEW(c->scores, batch_size + c->most_samples, "evaluation", error));
    return LS_NEW(c->gathered, c->processes * c->most_samples, "evaluation", error);
}

ls_status ls_evaluator_dataset(const ls_evaluators *evaluators, const ls_dataset *dataset,
                               int64_t leaf_size, ls_evaluation *evaluation,
                               ls_sample_function each, void *context, ls_error *error)
{
    const ls_assembly *assembly = evaluators->each[0]->assembly;
    int64_t classes = assembly->model.classes, labelled = 0;
    for (uint32_t row = 0; row < ls_dataset_count(dataset); row++)
        labelled += ls_dataset_label(dataset, row) >= 0;
    int64_t leaves = (labelled + leaf_size - 1) / leaf_size;
    count c = {.evaluators = evaluators,
               .processes = 1,
               .evaluation = evaluation,
               .sum = {.range = {0, leaves, leaves}, .leaf_size = leaf_size, .total = labelled},
               .each = each,
               .context = context};
    if (evaluators->processes) {
        const ls_processes_place *here = ls_processes_here(evaluators->processes);
        c.processes = here->count;
        c.first = here->index * evaluators->count;
    }
    c.ranks = c.processes * evaluators->count;
    evaluation->samples = evaluation->tokens = 0;
    memset(evaluation->confusion, 0, (size_t)(classes * classes) * sizeof(int64_t));
    int64_t batch_size = assembly->samples_per_pass * c.ranks;
    ls_sampler_options order = {.count = ls_dataset_count(dataset),
                                .batch_size = (int32_t)batch_size,
                                .leaf_size = (int32_t)leaf_size,
                                .sequential = true};
    ls_status status = take_room(&c, batch_size, error);
    if (status == LS_OK) status = read_batches(&c, dataset, &order, error);
    if (status == LS_OK) evaluation->loss = labelled ? c.sum.open[0] / (double)labelled : 0.0;
    ls_free(c.outputs);
    ls_free(c.scores);
    ls_free(c.gathered);
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

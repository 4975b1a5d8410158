/* Forward passes over a dataset in the file's order, and the counts that come of them. */
#ifndef LS_ENGINE_EVALUATOR_H
#define LS_ENGINE_EVALUATOR_H

#include "comm/processes.h"
#include "data/dataset.h"
#include "engine/assembly.h"
#include "engine/executor.h"
#include "engine/rank_group.h"

typedef struct ls_evaluator ls_evaluator;

/* `rank`: of those that the assembly was made for. `host`: an executor whose parameters and
 * activation memory are used (see executor.h); NULL: the evaluator has its own, to be loaded
 * through ls_evaluator_executor. */
ls_status ls_evaluator_new(ls_evaluator **out, const ls_assembly *assembly, ls_device *device,
                           int rank, const ls_executor *host, ls_error *error) LS_MUST_CHECK;
/* With an assembly of several ranks, once before the first batch: join the group. A collective
 * call. */
ls_status ls_evaluator_connect(ls_evaluator *evaluator, ls_comm *comm,
                               ls_error *error) LS_MUST_CHECK;
void ls_evaluator_free(ls_evaluator *evaluator); /* NULL is allowed */
ls_executor *ls_evaluator_executor(ls_evaluator *evaluator);

/* Probabilities [samples][classes] and losses [samples] (meaningless without labels) of samples
 * [begin, end) of a batch, at most a pass; borrowed until the next call. With an assembly of
 * several ranks a collective call, of a rank without samples too. */
typedef struct ls_batch_outputs {
    const float *probabilities, *losses;
} ls_batch_outputs;
ls_status ls_evaluator_run(ls_evaluator *evaluator, const ls_batch *batch, int32_t begin,
                           int32_t end, ls_batch_outputs *outputs, ls_error *error) LS_MUST_CHECK;

typedef struct ls_evaluation {
    int64_t samples, tokens;
    int64_t *confusion; /* [classes][classes], the caller's: row is the truth */
    double loss;        /* mean over labelled samples, summed over leaves of the file's order by the
                           tree of comm/tree.h */
    /* The caller's, may be NULL: rows of all rows, after each batch, on the caller's thread. */
    void (*progress)(void *context, int64_t done, int64_t total);
    void *progress_context;
} ls_evaluation;

/* One sample's result; `label` is -1 where the row has none. */
typedef ls_status (*ls_sample_function)(void *context, int64_t row, int32_t label,
                                        int32_t prediction, const float *probabilities,
                                        ls_error *error);

/* Evaluators of the same assembly, one a rank of the group; NULL: one evaluator, no group. */
typedef struct ls_evaluators {
    ls_evaluator *const *each; /* [count] */
    ls_rank_group *group;
    int count;
    ls_processes *processes; /* each has `count` of them; NULL: there are no other ones */
} ls_evaluators;

/* Every row once: batches in the file's order, each divided among the evaluators of all processes,
 * which all get the whole result. `each` may be NULL, and is with several processes; a failure of
 * it ends the evaluation. */
ls_status ls_evaluator_dataset(const ls_evaluators *evaluators, const ls_dataset *dataset,
                               int64_t leaf_size, ls_evaluation *evaluation,
                               ls_sample_function each, void *context,
                               ls_error *error) LS_MUST_CHECK;

/* Mean F1 over the classes that occur in truth or prediction. */
double ls_macro_f1(const int64_t *confusion, int32_t classes);
double ls_accuracy(const int64_t *confusion, int32_t classes);

#endif

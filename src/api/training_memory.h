/* What a run takes and whether its ranks, samples and memory go together, before it is opened. */
#ifndef LS_API_TRAINING_MEMORY_H
#define LS_API_TRAINING_MEMORY_H

#include "api/session.h"
#include "engine/memory.h"

enum { LS_TRAINING_LENGTH = 128 }; /* --max-length when none is given */

/* The assembly options of a run on a model with `classes` on these files. Without training rows
 * they are taken to be as long as they may be; validation and test may be NULL. */
ls_run_memory_options ls_training_memory_options(const ls_session *session, int64_t classes,
                                                 const ls_dataset *train,
                                                 const ls_dataset *validation,
                                                 const ls_dataset *test);

/* LS_NO_MEMORY if all devices of this host together take more than this process can ever have. */
ls_status ls_training_check_memory(const ls_session *session, const ls_run_programs *programs,
                                   ls_error *error) LS_MUST_CHECK;

/* Set what a strategy and a number of ranks say. `strategy` is borrowed. */
void ls_training_use_strategy(ls_assembly_options *training, const ls_options *options,
                              const ls_strategy *strategy, int64_t ranks);

/* Tokens of a usual row: the mean of the training rows, without them the longest there may be. */
double ls_training_row_tokens(const ls_dataset *train, const ls_run_memory_options *memory);

/* LS_USAGE if a full batch has fewer leaves than there are ranks; `ranks` begins the message, e.g.
 * "--devices 9 is". */
ls_status ls_training_check_leaves(const ls_run_memory_options *memory, const char *ranks,
                                   ls_error *error) LS_MUST_CHECK;
/* The same for the ranks of this run; and LS_USAGE if the strategy cannot have as many. */
ls_status ls_training_check_ranks(const ls_session *session, const ls_run_memory_options *memory,
                                  ls_error *error) LS_MUST_CHECK;

#endif

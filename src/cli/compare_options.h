/* From the flags of `lockstep compare` to a comparison's options. */
#ifndef LS_CLI_COMPARE_OPTIONS_H
#define LS_CLI_COMPARE_OPTIONS_H

#include "cli/command.h"
#include "compare/compare.h"

enum { LS_COMPARE_MOST = 64 }; /* strategies, seeds, batch sizes */

/* What the options borrow. */
typedef struct ls_compare_request {
    ls_compare_options options;
    ls_compare_strategy strategies[LS_COMPARE_MOST];
    int64_t seeds[LS_COMPARE_MOST], batch_sizes[LS_COMPARE_MOST];
    char **flags;        /* owned; ended by NULL */
    const char **chosen; /* of each strategy the flags that it takes, one behind the other */
    char *command;
    char note[200]; /* for the user, "" for none */
} ls_compare_request;

/* Settings of `lockstep train` that a comparison does not take: --strategies stands for the first,
 * and the files of the others would be written anew by each run. Ended by NULL. */
extern const char *const ls_compare_left_out[];

/* Strategies that `lockstep train` does not know are refused with its own words. `single` comes
 * first whether it is named or not. What a DeepSpeed file has put into the options holds for all
 * runs, but its stage and its monitors. Free with ls_compare_request_deinit, also after a failure.
 */
ls_status ls_compare_request_init(ls_compare_request *request, const ls_invocation *invocation,
                                  ls_error *error);
void ls_compare_request_deinit(ls_compare_request *request);

#endif
